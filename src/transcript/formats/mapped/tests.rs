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
    let maps = FieldMappings([(path.clone(), Arc::new(map))].into());
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
    let silent = one("messages: m", r#"{"m": [{"role": "user", "text": "Hi"}]}"#);
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
