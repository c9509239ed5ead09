//! The error contract on the built program: tools of a file, a scripted model, and what the recorded run says of each call.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cli::{TestDir, text};
use crate::support::wire::{Dialect, Reply, WireServer};

const TOOLS: &str = "\
sources:
  shop: { kind: sqlite, database: shop.db }
tools:
  order:
    kind: sqlite-sql
    source: shop
    description: An order by its number
    parameters: [{ name: id, type: integer, description: its number, minValue: 1 }]
    statement: select ? as id, 'tea' as what
  lenient:
    kind: sqlite-sql
    source: shop
    coerce: true
    description: As order, but takes texts
    parameters: [{ name: id, type: integer, description: its number }]
    statement: select ? as id
  later:
    kind: sqlite-sql
    source: shop
    after: [order]
    maxCalls: 1
    description: After an order
    parameters: [{ name: n, type: integer, description: which, default: 0 }]
    statement: select ? as n
  fails:
    kind: sqlite-sql
    source: shop
    description: Always fails
    parameters: [{ name: text, type: string, description: some JSON }]
    statement: select json_extract(?, '$.a') as x
";

/// A workspace with these tools, and a judge of this dialect who says this.
fn test_dir(dialect: Dialect, turns: Vec<Reply>) -> (TestDir, WireServer) {
    let mut replies = turns;
    replies.push(Reply::verdict(
        json!({"citations": [], "reasoning": "seen", "passed": true, "score": 1.0}),
    ));
    let server = WireServer::scripted(dialect, replies);
    let provider = match dialect {
        Dialect::Openai => "openai",
        Dialect::Gemini => "gemini",
        Dialect::Anthropic => "anthropic",
        Dialect::Responses => "openai-responses",
    };
    let test_dir = TestDir::new();
    test_dir.workspace(
        &format!(
            "tools: [tools.yaml]\njudges:\n  j: {{ provider: {provider}, base_url: '{}', model: m, api_key_file: key, tools: [order, lenient, later, fails] }}\n",
            server.base_url()
        ),
        "  - { id: a, type: llm_judge_session, judge: j, params: { criteria: It is fine, min_score: 0.5 } }\n",
    );
    test_dir.write("tools.yaml", TOOLS);
    test_dir.write(
        "t.jsonl",
        "{\"id\":\"one\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"},{\"role\":\"assistant\",\"content\":\"Good day\"}]}\n",
    );
    let key = test_dir.write("key", "sk-test-4711-abcdef");
    private(&key);
    private(&database(&test_dir));
    test_dir.trust();
    (test_dir, server)
}

#[cfg(unix)]
fn private(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(path, mode).expect("ours");
}

#[cfg(not(unix))]
fn private(_: &std::path::Path) {}

/// SQLite takes an empty file for an empty database.
fn database(test_dir: &TestDir) -> std::path::PathBuf {
    test_dir.write("shop.db", "")
}

/// The facts of each call in the newest run, by turn and number: `received repaired validated started finished`.
fn facts_by_call(test_dir: &TestDir) -> BTreeMap<(u64, u64), Vec<(String, Value)>> {
    let runs = test_dir.path().join("runs");
    let run = std::fs::read_dir(runs).expect("runs");
    let run = run.flatten().map(|entry| entry.path()).max();
    let events = run.expect("a run").join("events.jsonl");
    let events = std::fs::read_to_string(events).expect("events");
    let mut facts_by_call = BTreeMap::new();
    for line in events.lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        let tool = &event["kind"]["tool"];
        let Some(fact) = tool["fact"].as_object() else {
            if let Some(word) = tool["fact"].as_str() {
                push(&mut facts_by_call, tool, word, &Value::Null);
            }
            continue;
        };
        for (word, what) in fact {
            push(&mut facts_by_call, tool, word, what);
        }
    }
    facts_by_call
}

fn push(
    facts_by_call: &mut BTreeMap<(u64, u64), Vec<(String, Value)>>,
    tool: &Value,
    word: &str,
    what: &Value,
) {
    let number = |key: &str| tool[key].as_u64().expect("a number");
    let call = facts_by_call
        .entry((number("turn"), number("call")))
        .or_default();
    call.push((word.to_owned(), what.clone()));
}

fn words(facts: &[(String, Value)]) -> String {
    let words: Vec<&str> = facts.iter().map(|(word, _)| word.as_str()).collect();
    words.join(" ")
}

fn run(test_dir: &TestDir) {
    let out = test_dir.dicta(&["run", "-q", "--no-cache"]);
    assert_eq!(
        out.status.code(),
        Some(0),
        "{}{}",
        text(&out.stdout),
        text(&out.stderr)
    );
}

#[test]
fn tool_facts_are_in_order_and_a_rejected_call_never_starts() {
    let turn = Reply::raw_call("order", r#"{"id":1}"#)
        .and_raw_call("order", "{'id': 2,}")
        .and_raw_call("order", r#"{ "id": 1 }"#)
        .and_raw_call("lenient", r#"{"id":"5"}"#)
        .and_raw_call("ordr", "{}")
        .and_raw_call("order", "no JSON at all")
        .and_raw_call("order", "[1]")
        .and_raw_call("order", r#"{"id":0,"x":1}"#)
        .and_raw_call("fails", r#"{"text":"{"}"#);
    let second = Reply::raw_call("later", "{}").and_raw_call("order", r#"{"id":1}"#);
    let (test_dir, server) = test_dir(
        Dialect::Openai,
        vec![turn, second, Reply::raw_call("later", "{n: 1}")],
    );
    run(&test_dir);
    let facts_by_call = facts_by_call(&test_dir);
    let fact_words = |turn, call| words(&facts_by_call[&(turn, call)]);
    let ran = "received validated started finished";
    let repaired = "received repaired validated started finished";
    assert_eq!(fact_words(0, 0), ran);
    assert_eq!(fact_words(0, 1), repaired);
    assert_eq!(fact_words(0, 2), repaired, "spelling is rewritten too");
    assert_eq!(fact_words(0, 3), ran);
    assert_eq!(fact_words(0, 4), "received rejected");
    assert_eq!(fact_words(0, 5), "received rejected");
    assert_eq!(fact_words(0, 6), "received rejected");
    assert_eq!(fact_words(0, 7), "received rejected");
    assert_eq!(fact_words(0, 8), ran);
    assert_eq!(fact_words(1, 0), ran);
    assert_eq!(fact_words(1, 1), ran);
    assert_eq!(fact_words(2, 0), "received repaired rejected");

    let fact = |turn, call, word: &str| {
        let facts = &facts_by_call[&(turn, call)];
        let found = facts.iter().find(|(one, _)| one == word);
        found.map(|(_, what)| what.clone()).expect("told")
    };
    assert_eq!(fact(0, 1, "repaired")["canonical"], json!({"id": 2}));
    assert_eq!(fact(0, 2, "finished")["source"]["same_trace"]["call"], 0);
    assert_eq!(fact(1, 1, "finished")["source"]["same_trace"]["turn"], 0);
    assert_eq!(fact(0, 3, "validated")["values"], json!({"id": 5}));
    assert!(
        !fact(0, 3, "validated")["coerced"]
            .as_array()
            .expect("changes")
            .is_empty()
    );
    for (call, rule) in [
        (4, "unknown_tool"),
        (5, "parse"),
        (6, "parse"),
        (7, "parameters"),
    ] {
        assert_eq!(fact(0, call, "rejected")["rule"], rule, "call {call}");
    }
    assert_eq!(fact(2, 0, "rejected")["rule"], "max_calls");

    // The recording contains the responses that the model got, in call order.
    let back = server.requests()[1].json();
    let messages = back["messages"].as_array().expect("messages").clone();
    let results: Vec<&Value> = messages.iter().filter(|m| m["role"] == "tool").collect();
    assert_eq!(results.len(), 9);
    for (call, result) in (0..).zip(&results) {
        let response_text = result["content"].as_str().expect("text");
        if let Some((_, rejected)) = facts_by_call[&(0, call)]
            .iter()
            .find(|(word, _)| word == "rejected")
        {
            assert_eq!(rejected["text"], response_text);
        }
    }
    let response_text = |call: usize| results[call]["content"].as_str().expect("text");
    assert!(
        response_text(4).contains("did you mean `order`?"),
        "{}",
        response_text(4)
    );
    assert!(response_text(7).contains("\"id\""), "{}", response_text(7));
    assert!(
        response_text(8).starts_with("Error: "),
        "{}",
        response_text(8)
    );
    let sent = messages.iter().find(|m| m["role"] == "assistant");
    let calls = &sent.expect("its own turn")["tool_calls"];
    assert_eq!(calls[0]["function"]["arguments"], r#"{"id":1}"#);
    assert_eq!(calls[1]["function"]["arguments"], r#"{"id":2}"#);
}

#[test]
fn repaired_call_is_sent_back_repaired_and_unreadable_call_as_empty() {
    for dialect in [Dialect::Openai, Dialect::Anthropic, Dialect::Responses] {
        let turn = Reply::raw_call("order", "{'id': 2,}")
            .and_raw_call("order", "{id: 0}")
            .and_raw_call("order", "no JSON at all");
        // The server answers 500 to any past call whose arguments are no JSON.
        let (test_dir, server) = test_dir(dialect, vec![turn]);
        run(&test_dir);
        let back = server.requests()[1].json();
        let sent: Vec<Value> = match dialect {
            Dialect::Openai => {
                let messages = back["messages"].as_array().expect("messages");
                let assistant_message = messages.iter().find(|m| m["role"] == "assistant");
                let calls = assistant_message.expect("its turn")["tool_calls"]
                    .as_array()
                    .cloned();
                let calls = calls.expect("calls").into_iter();
                calls.map(|c| parsed(&c["function"]["arguments"])).collect()
            }
            Dialect::Anthropic => {
                let messages = back["messages"].as_array().expect("messages");
                let assistant_message = messages.iter().find(|m| m["role"] == "assistant");
                let parts = assistant_message.expect("its turn")["content"]
                    .as_array()
                    .cloned();
                let parts = parts.expect("parts").into_iter();
                parts
                    .filter(|part| part["type"] == "tool_use")
                    .map(|part| part["input"].clone())
                    .collect()
            }
            _ => {
                let items = back["input"].as_array().expect("items").iter();
                items
                    .filter(|item| item["type"] == "function_call")
                    .map(|item| parsed(&item["arguments"]))
                    .collect()
            }
        };
        assert_eq!(
            sent,
            [json!({"id": 2}), json!({"id": 0}), json!({})],
            "{dialect:?}"
        );
    }
}

fn parsed(text: &Value) -> Value {
    serde_json::from_str(text.as_str().expect("text")).expect("JSON")
}

#[test]
fn changed_statement_is_judged_again_and_an_unchanged_one_is_cached() {
    let (test_dir, server) = test_dir(Dialect::Openai, Vec::new());
    let server_says = |_: &crate::support::wire::Request| {
        Reply::verdict(json!({"citations": [], "reasoning": "r", "passed": true, "score": 1.0}))
    };
    drop(server);
    let server = WireServer::answering(Dialect::Openai, server_says);
    let config = std::fs::read_to_string(test_dir.path().join("dicta.yaml")).expect("written");
    let old = config.find("base_url: '").expect("there") + "base_url: '".len();
    let end = old + config[old..].find('\'').expect("there");
    let config = format!("{}{}{}", &config[..old], server.base_url(), &config[end..]);
    test_dir.write("dicta.yaml", &config);
    test_dir.trust();
    let asked = || {
        let out = test_dir.dicta(&["run", "-q"]);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        server.requests().len()
    };
    assert_eq!(asked(), 1);
    assert_eq!(asked(), 1, "nothing changed");
    for (change, with) in [
        ("'tea' as what", "'pot' as what"),
        ("An order by its number", "An order, by its number"),
        ("coerce: true", "coerce: false"),
        ("minValue: 1", "minValue: 2"),
    ] {
        let before = server.requests().len();
        let tools = std::fs::read_to_string(test_dir.path().join("tools.yaml")).expect("written");
        test_dir.write("tools.yaml", &tools.replace(change, with));
        assert_eq!(asked(), before + 1, "{with}");
        assert_eq!(asked(), before + 1, "{with}, again");
    }
    // A comment is not a change.
    let tools = std::fs::read_to_string(test_dir.path().join("tools.yaml")).expect("written");
    test_dir.write("tools.yaml", &format!("# shop\n{tools}"));
    let before = server.requests().len();
    assert_eq!(asked(), before);
}

fn run_with_cache(test_dir: &TestDir) {
    let out = test_dir.dicta(&["run", "-q"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
}

fn passes() -> Reply {
    Reply::verdict(json!({"citations": [], "reasoning": "seen", "passed": true, "score": 1.0}))
}

#[test]
fn verdict_is_cached_until_the_database_changes() {
    let call = || Reply::raw_call("order", r#"{"id":1}"#);
    let (test_dir, server) = test_dir(Dialect::Openai, vec![call(), passes(), call()]);
    run_with_cache(&test_dir);
    assert_eq!(server.requests().len(), 2);
    run_with_cache(&test_dir);
    assert_eq!(server.requests().len(), 2, "the file is unchanged");
    let path = test_dir.path().join("shop.db");
    let file = std::fs::File::options().write(true).open(path);
    let file = file.expect("there");
    let written = file.metadata().and_then(|meta| meta.modified());
    let later = written.expect("a time") + std::time::Duration::from_millis(1);
    file.set_modified(later).expect("ours");
    run_with_cache(&test_dir);
    assert_eq!(server.requests().len(), 4, "the judge reads the file again");
}

#[test]
fn verdict_after_a_failed_call_is_judged_again() {
    let call = || Reply::raw_call("fails", r#"{"text":"no JSON"}"#);
    let (test_dir, server) = test_dir(Dialect::Openai, vec![call(), passes(), call()]);
    run_with_cache(&test_dir);
    run_with_cache(&test_dir);
    assert_eq!(server.requests().len(), 4, "the tool may work now");
}
