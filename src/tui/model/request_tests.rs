use super::*;

fn key() -> RequestKey {
    RequestKey {
        run: RunId("r".into()),
        cell: CellIx(0),
        turn: 1,
    }
}

fn lines(request: &Request) -> Vec<&str> {
    let text = |block: &RequestBlock| &request.text[block.range.clone()];
    request.blocks.iter().map(text).collect()
}

const FIRST: &str = r#"{"model":"m","messages":[{"role":"system","content":"Judge."},{"role":"user","content":"This."}],
    "tools":[{"type":"function","function":{"name":"fetch_url","description":"Fetches."}}],"temperature":0.0}"#;
const SECOND: &str = r#"{"model":"m","messages":[{"role":"system","content":"Judge."},{"role":"user","content":"This."},
    {"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"fetch_url","arguments":"{}"}}]},
    {"role":"tool","tool_call_id":"c","content":"a page"}],"temperature":0.0}"#;

#[test]
fn a_chat_body_is_read_and_what_the_turn_before_held_is_collapsed() {
    let first = Request::of(key(), FIRST, None);
    assert_eq!(lines(&first), ["system", "Judge.", "user", "This."]);
    assert_eq!((first.fresh, first.earlier), (0, 0));
    assert_eq!(first.settings, "model: m · temperature: 0.0");
    assert_eq!(first.tools, [("fetch_url".into(), "Fetches.".into())]);
    let second = Request::of(key(), SECOND, Some(FIRST));
    assert_eq!(second.earlier, 2);
    assert_eq!(
        lines(&second)[second.fresh..],
        ["assistant", "calls fetch_url({})", "tool", "a page"]
    );
    assert!(
        second.raw.contains("\n    {\n      \"role\": \"system\""),
        "{}",
        second.raw
    );
}

#[test]
fn a_gemini_body_is_read() {
    let body = r#"{"systemInstruction":{"parts":[{"text":"Judge."}]},"contents":[
        {"role":"user","parts":[{"text":"This."}]},
        {"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"name":"fetch_url","args":{"url":"u"}}}]},
        {"role":"user","parts":[{"functionResponse":{"name":"fetch_url","response":{"output":"a page"}}}]}],
        "tools":[{"functionDeclarations":[{"name":"fetch_url","description":"F"}]}],"generationConfig":{"temperature":0.5}}"#;
    let request = Request::of(key(), body, None);
    assert_eq!(
        lines(&request),
        [
            "system",
            "Judge.",
            "user",
            "This.",
            "model",
            "hm",
            r#"calls fetch_url({"url":"u"})"#,
            "tool",
            "a page"
        ]
    );
    assert_eq!(request.settings, "temperature: 0.5");
    assert_eq!(request.tools.len(), 1);
}

#[test]
fn a_body_of_rules_is_read_and_any_other_stays_json() {
    let rules = r#"{"judge":"rules: a checker","prompt":"P","results":[{"call":"fetch_url","arguments":"{}","result":"a page","is_error":true}],
        "tools":["fetch_url"],"answer":"any","scale":[0.0,1.0]}"#;
    let request = Request::of(key(), rules, None);
    assert_eq!(
        lines(&request),
        ["user", "P", "tool, an error", "fetch_url({})", "a page"]
    );
    let other = Request::of(key(), r#"{"input":[1]}"#, None);
    assert_eq!(lines(&other), ["{\n  \"input\": [\n    1\n  ]\n}"]);
    for torn in [
        "",
        "{\"messages\":[",
        "[]",
        r#"{"messages":[7]}"#,
        r#"{"contents":[null]}"#,
    ] {
        let _never_panics = Request::of(key(), torn, Some(torn));
    }
}

#[test]
fn a_turn_that_repeats_the_one_before_is_shown_whole() {
    let again = Request::of(key(), FIRST, Some(FIRST));
    assert_eq!((again.fresh, again.earlier), (0, 0));
}

#[test]
fn an_anthropic_body_is_read() {
    let body = r#"{"model":"m","system":"Judge.","messages":[{"role":"user","content":[{"type":"text","text":"This."}]},
        {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"S"},
            {"type":"tool_use","id":"t","name":"f","input":{"n":1}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a page"}]}],
        "tools":[{"name":"f","description":"Fetches."}],"max_tokens":5}"#;
    let read = Request::of(key(), body, None);
    assert_eq!(
        lines(&read),
        [
            "system",
            "Judge.",
            "user",
            "This.",
            "assistant",
            "hm",
            "calls f({\"n\":1})",
            "tool",
            "a page"
        ]
    );
    assert_eq!(read.tools, [("f".into(), "Fetches.".into())]);
    assert_eq!(read.settings, "model: m · max_tokens: 5");
}
