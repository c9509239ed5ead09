//! Records of other shapes, by maps.

use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::transcript::{FieldMappings, ReadTally, TranscriptFile};

/// Native forms, or what is wrong; and what was counted.
fn read(map: &str, text: &str) -> (Vec<Result<Value, String>>, ReadTally, Vec<Label>) {
    let dir = tempfile::tempdir().expect("a folder");
    let path: PathBuf = dir.path().join("t.jsonl");
    std::fs::write(&path, text).expect("written");
    let map = FieldMapping::parse_inline(map).unwrap_or_else(|found| panic!("{map}: {found:?}"));
    let maps = FieldMappings {
        by_path: [(path.clone(), Arc::new(map))].into(),
        joins_pairs: false,
    };
    let mut file: TranscriptFile = maps.open(&path).expect("it opens");
    let (mut all, mut labels) = (Vec::new(), Vec::new());
    while let Some(block) = file.next_block().expect("a block") {
        for (record, bytes) in block.records() {
            labels.extend(record.labels.clone());
            all.push(match record.parse(bytes, "default") {
                Ok(_) => {
                    assert_eq!(file.read_native(record.span).expect("again"), bytes);
                    assert!(!file.read_raw(record.span).expect("raw").is_empty());
                    Ok(serde_json::from_slice(bytes).expect("native"))
                }
                Err(bad) => Err(bad.why),
            });
        }
    }
    (all, file.tally().expect("counted").clone(), labels)
}

fn one(map: &str, text: &str) -> Result<Value, String> {
    let (mut all, ..) = read(map, text);
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0)
}

#[test]
fn input_and_output_become_a_user_and_an_assistant() {
    let found = one(
        "id: n, system: s, input: q.text, output: a, metadata: {latency_ms: ms, usage: {input: u}}, tags: t",
        r#"{"n": 7, "s": "Be brief", "q": {"text": "Hi"}, "a": "Hello", "ms": 120.50, "u": 3, "t": ["x", 2]}"#,
    );
    assert_eq!(
        found,
        Ok(json!({
            "id": "7",
            "messages": [
                {"role": "system", "content": "Be brief"},
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "Hello"},
            ],
            "metadata": {"latency_ms": 120.5, "usage": {"input": 3}},
            "tags": ["x", "2"],
        }))
    );
}

#[test]
fn messages_keep_calls_and_their_arguments_as_they_are_written() {
    let found = one(
        "messages: 'log[0].turns', metadata: '@'",
        r#"{"log": [{"turns": [
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"z": 1.0, "a": 123456789012345678901234567890}}}]},
            {"role": "tool", "tool_call_id": "c", "content": "done"}]}]}"#,
    )
    .expect("a transcript");
    let call = &found["messages"][0]["tool_calls"][0]["function"];
    assert_eq!(
        call["arguments"], r#"{"z": 1.0, "a": 123456789012345678901234567890}"#,
        "order and numbers as written"
    );
    assert_eq!(found["messages"][1]["tool_call_id"], "c");
    assert!(found["metadata"]["log"].is_array());
}

#[test]
fn expression_renames_roles_and_keys_of_other_tools() {
    let text = r#"{"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}, {"from": "narrator", "value": "x"}]}"#;
    let found = one(
        "messages: 'conversations[].{role: from, content: value}'",
        text,
    );
    let found = found.expect("a transcript");
    let roles: Vec<&Value> = found["messages"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|message| &message["role"])
        .collect();
    assert_eq!(roles, ["user", "assistant", "narrator"]);
    let why = one("messages: conversations", text).expect_err("no roles");
    assert!(
        why.contains("it has no `role`; an expression such as turns[].{role: from"),
        "{why}"
    );
    let silent = one("messages: m", r#"{"m": [{"role": "user", "words": "Hi"}]}"#);
    assert!(
        silent
            .as_ref()
            .is_err_and(|why| why.contains("no message has `content`")),
        "{silent:?}"
    );
}

#[test]
fn cells_that_hold_json_are_parsed_where_messages_are_expected() {
    let cell = |json: &str| format!("id,m,o\n1,\"{}\",x\n", json.replace('"', "\"\""));
    let list = cell(r#"[{"role": "user", "content": "Hi, \"you\""}]"#);
    let found = one("messages: m", &list).expect("a transcript");
    assert_eq!(found["messages"][0]["content"], "Hi, \"you\"");
    let inner = cell(r#"{"turns": [{"from": "bot", "value": "Hi"}]}"#);
    for map in [
        "messages: 'm.turns[].{role: from, content: value}'",
        "messages: 'm.turns | [].{role: from, content: value}'",
    ] {
        let found = one(map, &inner).expect("a transcript");
        assert_eq!(
            found["messages"],
            json!([{"role": "assistant", "content": "Hi"}]),
            "{map}"
        );
    }
    let python = cell("[{'role': 'user', 'content': 'Hi'}]");
    let why = one("messages: m", &python).expect_err("no JSON");
    assert!(why.contains("json.dumps"), "{why}");
    // An answer that is JSON stays a text.
    let answer = "q,a\nhi,\"{\"\"x\"\": 1}\"\n";
    let found = one("input: q, output: a", answer).expect("a transcript");
    assert_eq!(found["messages"][1]["content"], r#"{"x": 1}"#);
    let numbers = "q,a,ms\nhi,ho,12\n";
    let found = one(
        "output: a, metadata: {text: ms, number: to_number(ms)}",
        numbers,
    );
    assert_eq!(
        found.expect("a transcript")["metadata"],
        json!({"text": "12", "number": 12})
    );
}

#[test]
fn missing_parts_are_faults_or_counted() {
    let (found, tally, _) = read(
        "id: id, input: q, output: a, metadata: {k: k}",
        concat!(
            r#"{"id": 1, "q": "x", "a": "y", "k": 1}"#,
            "\n",
            r#"{"id": 2, "a": "y"}"#,
            "\n",
            r#"{"id": 3, "q": "x"}"#,
            "\n",
            r#"{"id": {}, "q": "x", "a": "y"}"#,
            "\n",
            r#"{"id": 5, "q": "x", "q": "y", "a": "y"}"#,
            "\n",
            r#"{"id": 6, "q": "x", "a": NaN}"#,
            "\n",
            r#"{"id": 7, "q": "x", "a": ["#,
            "\n",
            r#"{"id": 99999999999999999999999999, "q": "x", "a": ""}"#,
        ),
    );
    let whys: Vec<String> = found.iter().filter_map(|one| one.clone().err()).collect();
    assert_eq!(whys.len(), 5, "{whys:?}");
    assert_eq!(whys[0], "`output` (a) finds nothing");
    assert_eq!(whys[1], "`id` (id) finds an object, not a text or a number");
    assert!(
        whys[2].starts_with("the key \"q\" occurs twice"),
        "{}",
        whys[2]
    );
    let last = found.last().expect("one").as_ref().expect("a transcript");
    assert_eq!(last["id"], "99999999999999999999999999");
    assert_eq!(last["messages"][1]["content"], Value::Null);
    assert_eq!(tally.records, 8);
    assert_eq!(tally.missing["`input` (q) finds nothing"], 1);
    assert_eq!(tally.missing["`k` (k) finds nothing"], 2);
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(100), "]".repeat(100));
    assert!(
        one("output: a", &deep).is_err(),
        "no messages, and no panic"
    );
    let deeper = format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(one("output: 'a[].b'", &deeper).is_err());
    assert!(one("output: a", "[1]").is_err());
}

#[test]
fn labels_of_people_come_with_their_transcript() {
    let map = "output: a, id: id, label: [{eval: tone, passed: ok, by: who, score: s}, {eval: facts, rubric: r, passed: f, note: why}]";
    let (found, tally, labels) = read(
        map,
        concat!(
            "id,a,ok,who,s,f,why\n",
            "1,x,Yes,Ann,0.5,fail,made up\n",
            "2,x,,,,maybe,\n",
        ),
    );
    assert_eq!(found.len(), 2);
    let label_texts: Vec<_> = labels
        .iter()
        .map(|label| (&*label.transcript, &*label.eval, label.passed))
        .collect();
    assert_eq!(
        label_texts,
        [("1", "tone", Some(true)), ("1", "facts", Some(false))]
    );
    assert_eq!(
        (labels[0].by.as_deref(), labels[0].score),
        (Some("Ann"), Some(0.5))
    );
    assert_eq!(labels[1].note.as_deref(), Some("made up"));
    assert_eq!(
        tally.missing["the label `f` is \"maybe\", neither pass nor fail"],
        1
    );
}

#[test]
fn parts_of_a_record_that_do_not_become_a_score_or_tag_are_counted() {
    let map = "output: a, tags: t, label: {eval: tone, passed: ok, score: s}";
    let (found, tally, labels) = read(
        map,
        concat!(
            r#"{"a": "x", "ok": true, "s": 4, "t": ["new", true]}"#,
            "\n",
            r#"{"a": "x", "ok": true, "s": -1}"#,
            "\n",
            r#"{"a": "x", "ok": true, "s": "high"}"#,
            "\n",
            r#"{"a": "x", "ok": true, "s": "0.5"}"#,
            "\n",
            r#"{"a": "x", "ok": true, "s": ""}"#,
            "\n",
        ),
    );
    assert_eq!(found.len(), 5);
    let scores: Vec<_> = labels.iter().map(|label| label.score).collect();
    assert_eq!(scores, [None, None, None, Some(0.5), None]);
    let counts: Vec<_> = tally
        .missing
        .iter()
        .map(|(what, count)| (what.as_str(), *count))
        .collect();
    assert_eq!(
        counts,
        [
            ("a tag of `tags` (t) is neither a text nor a number", 1),
            ("the score of a label is not a number (`s`)", 1),
            ("the score of a label is outside 0 to 1 (`s`)", 2),
        ]
    );
}

/// Reads `t.jsonl` next to other files.
fn read_with(map: &str, text: &[u8], others: &[(&str, &str)]) -> (Vec<Value>, ReadTally) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("t.jsonl");
    std::fs::write(&path, text).expect("written");
    for (name, text) in others {
        std::fs::write(dir.path().join(name), text).expect("written");
    }
    let mut map = FieldMapping::parse_inline(map).unwrap_or_else(|found| panic!("{found:?}"));
    map.resolve_paths(dir.path());
    let mut file = TranscriptFile::open_mapped(&path, Some(&Arc::new(map))).expect("it opens");
    let mut all = Vec::new();
    while let Some(block) = file.next_block().expect("a block") {
        for (record, bytes) in block.records() {
            all.push(match record.parse(bytes, "default") {
                Ok(_) => {
                    assert_eq!(file.read_native(record.span).expect("again"), bytes);
                    serde_json::from_slice(bytes).expect("native")
                }
                Err(bad) => Value::String(bad.why),
            });
        }
    }
    (all, file.tally().expect("counted").clone())
}

fn texts(found: &[Value]) -> Vec<String> {
    let message =
        |message: &Value| format!("{}:{}", message["role"], message["content"]).replace('"', "");
    let of = |value: &Value| match value["messages"].as_array() {
        Some(messages) => messages.iter().map(message).collect::<Vec<_>>().join(" "),
        None => value.to_string(),
    };
    found.iter().map(of).collect()
}

#[test]
fn list_in_an_object_is_read_element_by_element() {
    let map = "records: data.rows, id: n, input: q, output: a";
    let rows =
        r#"[{"n": 1, "q": "x", "a": "y"}, {"n": 2, "q": "z"}, {"n": 3, "q": "v", "a": "w"}]"#;
    let one = format!("{{\"v\": [0], \"data\": {{\"n\": 3, \"rows\": {rows}}}}}");
    let (found, tally) = read_with(map, one.as_bytes(), &[]);
    assert_eq!(
        texts(&found),
        [
            "user:x assistant:y",
            "\"`output` (a) finds nothing\"",
            "user:v assistant:w"
        ]
    );
    assert_eq!(tally.records, 3);
    // Several objects, one per line, with a list each.
    let several = format!("{one}\n{{\"data\": {{\"rows\": []}}}}\n{{\"x\": 1}}\n{one}\n");
    let (found, tally) = read_with(map, several.as_bytes(), &[]);
    assert_eq!(found.len(), 7, "{found:?}");
    assert_eq!(found[3], "`records` (data.rows) finds nothing");
    assert_eq!(tally.records, 8);
    assert_eq!(tally.missing.len(), 1, "{tally:?}");
}

#[test]
fn path_to_no_list_is_reported_at_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("t.json");
    std::fs::write(&path, r#"{"data": 3}"#).expect("written");
    let map = FieldMapping::parse_inline("records: data, output: a").expect("a map");
    let error = TranscriptFile::open_mapped(&path, Some(&Arc::new(map))).expect_err("no list");
    assert!(
        error
            .to_string()
            .contains("`records` (data) leads to no list"),
        "{error}"
    );
}

#[test]
fn events_of_a_group_are_one_transcript_in_their_order() {
    let map = "group: {by: s, order: t}, messages: 'records[].{role: r, content: c}', metadata: {first: 'records[0].t'}";
    let lines = r#"{"s": "a", "t": 10, "r": "assistant", "c": "two"}
{"s": "b", "t": 1, "r": "user", "c": "other"}
{"t": 1, "r": "user", "c": "lost"}
{"s": "a", "t": 9, "r": "user", "c": "one"}
"#;
    let (found, tally) = read_with(map, lines.as_bytes(), &[]);
    assert_eq!(texts(&found), ["user:one assistant:two", "user:other"]);
    assert_eq!(
        (&found[0]["id"], &found[0]["metadata"]),
        (&json!("a"), &json!({"first": 9}))
    );
    assert_eq!(
        tally.unknown.get("a record without a readable `group` (s)"),
        Some(&1)
    );
    // A table, with another delimiter and a quoted line break.
    let table = "s;t;r;c\na;2;assistant;\"two; and\nmore\"\nb;1;user;other\na;1;user;one\n";
    let (found, _) = read_with(map, table.as_bytes(), &[]);
    assert_eq!(texts(&found)[0], "user:one assistant:two; and\\nmore");
    // A list in an object.
    let map = map.replace("group", "records: e, group");
    let object = format!("{{\"e\": [{}]}}", lines.trim().replace('\n', ","));
    let (found, _) = read_with(&map, object.as_bytes(), &[]);
    assert_eq!(texts(&found), ["user:one assistant:two", "user:other"]);
}

#[test]
fn record_is_joined_with_another_file_by_key() {
    let map = "join: {path: q.csv, on: qid, key: id, as: question}, input: question.text, output: a, metadata: {all: question}";
    let lines =
        "{\"qid\": 7, \"a\": \"seven\"}\n{\"qid\": 8, \"a\": \"eight\"}\n{\"a\": \"none\"}\n";
    let (found, tally) = read_with(
        map,
        lines.as_bytes(),
        &[("q.csv", "id,text\n7,which?\n9,x\n9,y\n")],
    );
    assert_eq!(
        texts(&found),
        [
            "user:which? assistant:seven",
            "assistant:eight",
            "assistant:none"
        ]
    );
    assert_eq!(
        found[0]["metadata"]["all"],
        json!({"id": "7", "text": "which?"})
    );
    assert_eq!(
        tally.missing.get("no record of q.csv has the same key"),
        Some(&1)
    );
    assert_eq!(
        tally.missing.get("`join.on` (qid) finds no text or number"),
        Some(&1)
    );
    // Two joins: the second uses a field of the first.
    let map = "join: [{path: q.jsonl, on: qid, as: q}, {path: d.json, on: q.doc, key: doc}], input: q.text, output: joined.body";
    let others = [
        ("q.jsonl", "{\"qid\": 7, \"doc\": \"d\", \"text\": \"t\"}\n"),
        ("d.json", "[{\"doc\": \"d\", \"body\": \"b\"}]"),
    ];
    let (found, _) = read_with(map, b"{\"qid\": \"7\"}", &others);
    assert_eq!(texts(&found), ["user:t assistant:b"]);
}

#[test]
fn missing_joined_file_is_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("t.jsonl");
    std::fs::write(&path, "{\"a\": 1}").expect("written");
    let map =
        FieldMapping::parse_inline("join: {path: gone.csv, on: a}, output: a").expect("a map");
    let error = TranscriptFile::open_mapped(&path, Some(&Arc::new(map))).expect_err("no file");
    assert!(
        error.to_string().contains("its `join` can't read gone.csv"),
        "{error}"
    );
}

#[test]
fn answers_of_a_record_are_transcripts_of_one_pair() {
    let map =
        "id: n, input: p, answers: {chosen: good, rejected: bad}, better: w, metadata: {topic: t}";
    let line = r#"{"n": 4, "p": "q?", "good": [{"role": "user", "content": "q?"}, {"role": "assistant", "content": "yes"}], "bad": {"role": "assistant", "content": "no"}, "w": "rejected", "t": "x"}"#;
    let (found, tally) = read_with(map, line.as_bytes(), &[]);
    assert_eq!(
        texts(&found),
        ["user:q? assistant:yes", "user:q? assistant:no"]
    );
    assert_eq!(
        (&found[0]["id"], &found[1]["id"]),
        (&json!("4:chosen"), &json!("4:rejected"))
    );
    assert_eq!(
        found[0]["metadata"],
        json!({"topic": "x", "pair": "4", "choice": "chosen", "better": "rejected"})
    );
    assert_eq!(found[0]["verdicts"][0]["passed"], json!(false));
    assert_eq!(found[1]["verdicts"][0]["passed"], json!(true));
    assert_eq!((tally.records, tally.emitted), (1, 2));
    // Without an id, the content names the pair. A tie is not a verdict.
    let map = "input: p, answers: {a: x, b: y}, better: w";
    let (found, _) = read_with(
        map,
        br#"{"p": "q", "x": "1st", "y": "2nd", "w": "Tie (both bad)"}"#,
        &[],
    );
    assert_eq!(found[0]["metadata"]["pair"], found[1]["metadata"]["pair"]);
    assert_eq!(found[0]["metadata"]["better"], json!("tie"));
    assert_eq!(found[0].get("verdicts"), None);
    let (found, tally) = read_with(map, br#"{"p": "q", "x": "1st", "w": 2}"#, &[]);
    assert_eq!(
        (found.len(), &found[0]["metadata"]["better"]),
        (1, &json!("b"))
    );
    assert_eq!(tally.missing.get("`answers.b` (y) finds nothing"), Some(&1));
}

#[test]
fn encoding_applies_to_names_and_cells() {
    let table = b"fr\x82ge,answer\nwarum?,I don\x92t\n";
    let (found, _) = read_with("encoding: cp1252, output: answer", table, &[]);
    assert_eq!(texts(&found), ["assistant:I don’t"]);
    let (found, _) = read_with("output: answer", b"question,answer\nx,I don\x92t\n", &[]);
    assert!(
        texts(&found)[0].contains("name it with `encoding` in `map`"),
        "{found:?}"
    );
    let (found, _) = read_with(
        "encoding: mac_roman, output: a",
        b"{\"a\": \"caf\x8e\"}",
        &[],
    );
    assert_eq!(texts(&found), ["assistant:café"]);
}

#[test]
fn text_is_split_at_words_of_turns() {
    let map = "messages: t, split: {user: 'Human:', assistant: 'AI:'}";
    let (found, _) = read_with(map, br#"{"t": "\n\nHuman: hi\n\nAI: ho"}"#, &[]);
    assert_eq!(texts(&found), ["user:hi assistant:ho"]);
    let (found, _) = read_with(map, br#"{"t": "hi"}"#, &[]);
    assert!(
        texts(&found)[0].contains("no line begins with a word of `split`"),
        "{found:?}"
    );
    let map = "input: p, answers: {c: c, r: r}, split: {user: 'Human:', assistant: 'AI:'}";
    let (found, _) = read_with(
        map,
        br#"{"p": "Human: hi\nAI:", "c": " ho", "r": "Human: hi\nAI: no"}"#,
        &[],
    );
    assert_eq!(
        texts(&found),
        ["user:hi assistant: ho", "user:hi assistant:no"]
    );
}

#[test]
fn broken_keys_of_a_mapping_are_all_reported() {
    let problems = |map: &str| {
        let found = FieldMapping::parse_inline(map).expect_err("broken");
        found
            .into_iter()
            .map(|problem| problem.message)
            .collect::<Vec<_>>()
            .join("\n")
    };
    for (map, wanted) in [
        (
            "output: a, records: 'data[]'",
            "records must be a path of keys",
        ),
        ("output: a, group: {order: t}", "`group` needs `by`"),
        (
            "output: a, group: {by: s, ordre: t}",
            "did you mean `order`?",
        ),
        ("output: a, join: {path: x}", "`join` needs `on`"),
        ("output: a, join: 3", "join must be a mapping"),
        ("output: a, encoding: utf-16", "save the file as UTF-8"),
        ("output: a, encoding: klingon", "the name is unknown"),
        ("output: a, split: {}", "`split` needs words by role"),
        (
            "output: a, answers: {a: x, b: y}",
            "leave it or `output` out",
        ),
        ("answers: {a: x}", "answers must name two or more"),
        ("answers: {a: x, b: 3}", "answers.b must be a JMESPath"),
        (
            "output: a, better: x",
            "`better` names one of several `answers`",
        ),
        (
            "answers: {a: x, b: y}, label: {eval: e, passed: p}",
            "`label` is about one transcript",
        ),
        (
            "messages: m, answers: {a: x, b: y}",
            "leave it or `answers` out",
        ),
    ] {
        let found = problems(map);
        assert!(found.contains(wanted), "{map}: {found}");
    }
}

#[test]
fn roles_of_common_datasets_become_messages_calls_and_results() {
    let map = "messages: 'turns[].{role: from, content: value}'";
    let line = r#"{"turns": [{"from": "human", "value": "hi"}, {"from": "function_call", "value": "{\"name\": \"look\", \"arguments\": {\"q\": 1}}"}, {"from": "observation", "value": "found"}, {"from": "gemini", "value": "done"}, {"from": "narrator", "value": "end"}]}"#;
    let (found, _) = read_with(map, line.as_bytes(), &[]);
    let messages = found[0]["messages"].as_array().expect("messages");
    let roles: Vec<&str> = messages
        .iter()
        .filter_map(|one| one["role"].as_str())
        .collect();
    assert_eq!(
        roles,
        ["user", "assistant", "tool", "assistant", "narrator"]
    );
    assert_eq!(
        messages[1]["tool_calls"][0]["function"]["name"],
        json!("look")
    );
    // The call has no id, so the result belongs to it by its place.
    assert_eq!(messages[2]["content"], json!("found"));
    let native = found[0].to_string();
    let read = crate::transcript::parse_native(native.as_bytes(), 1, "").expect("a transcript");
    let unread = crate::transcript::UnreadContent::find(&read);
    let kinds: Vec<&String> = unread.kinds.keys().collect();
    assert_eq!(kinds, ["a message of the role `narrator`"]);
}
