use super::*;

fn key() -> RequestKey {
    RequestKey {
        run: RunId("r".into()),
        cell: CellIx(0),
        turn: 1,
    }
}

fn tool(name: &str, description: &str) -> ReadableTool {
    ReadableTool {
        name: name.to_owned(),
        description: description.to_owned(),
    }
}

fn lines(request: &ReadableRequest) -> Vec<&str> {
    let text = |block: &RequestBlock| &request.text[block.range.clone()];
    request.blocks.iter().map(text).collect()
}

const FIRST: &str = r#"{"model":"m","messages":[{"role":"system","content":"Judge."},{"role":"user","content":"This."}],
    "tools":[{"type":"function","function":{"name":"fetch_url","description":"Fetches."}}],"temperature":0.0}"#;
const SECOND: &str = r#"{"model":"m","messages":[{"role":"system","content":"Judge."},{"role":"user","content":"This."},
    {"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"fetch_url","arguments":"{}"}}]},
    {"role":"tool","tool_call_id":"c","content":"a page"}],"temperature":0.0}"#;

#[test]
fn chat_body_collapses_items_of_previous_turn() {
    let first = ReadableRequest::from_body(key(), FIRST, None);
    assert_eq!(lines(&first), ["system", "Judge.", "user", "This."]);
    assert_eq!((first.first_new_block, first.earlier_items), (0, 0));
    assert_eq!(first.settings, "model: m · temperature: 0.0");
    assert_eq!(first.tools, [tool("fetch_url", "Fetches.")]);
    let second = ReadableRequest::from_body(key(), SECOND, Some(FIRST));
    assert_eq!(second.earlier_items, 2);
    assert_eq!(
        lines(&second)[second.first_new_block..],
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
    let request = ReadableRequest::from_body(key(), body, None);
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
fn rules_body_is_readable_and_unknown_body_stays_json() {
    let rules = r#"{"judge":"rules: a checker","prompt":"P","results":[{"call":"fetch_url","arguments":"{}","result":"a page","is_error":true}],
        "tools":["fetch_url"],"answer":"any","scale":[0.0,1.0]}"#;
    let request = ReadableRequest::from_body(key(), rules, None);
    assert_eq!(
        lines(&request),
        ["user", "P", "tool, an error", "fetch_url({})", "a page"]
    );
    assert_eq!(
        request.settings,
        "judge: rules: a checker · verdict format: function call · scale: [0.0,1.0]"
    );
    let other = ReadableRequest::from_body(key(), r#"{"input":[1]}"#, None);
    assert_eq!(lines(&other), ["{\n  \"input\": [\n    1\n  ]\n}"]);
    for torn in [
        "",
        "{\"messages\":[",
        "[]",
        r#"{"messages":[7]}"#,
        r#"{"contents":[null]}"#,
    ] {
        let _never_panics = ReadableRequest::from_body(key(), torn, Some(torn));
    }
}

#[test]
fn repeated_turn_is_not_collapsed() {
    let again = ReadableRequest::from_body(key(), FIRST, Some(FIRST));
    assert_eq!((again.first_new_block, again.earlier_items), (0, 0));
}

#[test]
fn an_anthropic_body_is_read() {
    let body = r#"{"model":"m","system":"Judge.","messages":[{"role":"user","content":[{"type":"text","text":"This."}]},
        {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"S"},
            {"type":"tool_use","id":"t","name":"f","input":{"n":1}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a page"}]}],
        "tools":[{"name":"f","description":"Fetches."}],"max_tokens":5}"#;
    let read = ReadableRequest::from_body(key(), body, None);
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
    assert_eq!(read.tools, [tool("f", "Fetches.")]);
    assert_eq!(read.settings, "model: m · max_tokens: 5");
}

#[test]
fn a_responses_body_is_read() {
    let body = r#"{"model":"m","instructions":"Judge.","input":[{"role":"user","content":[{"type":"input_text","text":"This."}]},
        {"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"E"},
        {"type":"function_call","id":"f","call_id":"c","name":"fetch_url","arguments":"{}"},
        {"type":"function_call_output","call_id":"c","output":"a page"},
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"so"}]}],
        "tools":[{"type":"function","name":"fetch_url","description":"Fetches."}],"store":false}"#;
    let read = ReadableRequest::from_body(key(), body, None);
    let expected = [
        ["system", "Judge."],
        ["user", "This."],
        ["assistant", "hm"],
        ["assistant", "calls fetch_url({})"],
        ["tool", "a page"],
        ["assistant", "so"],
    ];
    assert_eq!(lines(&read), expected.concat());
    assert_eq!(read.tools, [tool("fetch_url", "Fetches.")]);
    assert_eq!(read.settings, "model: m · store: false");
    for torn in [
        r#"{"model":"m","input":[7]}"#,
        r#"{"model":"m","input":[{"role":"user","content":7}]}"#,
    ] {
        let _never_panics = ReadableRequest::from_body(key(), torn, Some(torn));
    }
}

#[test]
fn decisions_endpoint_questions_are_readable() {
    let openai = r#"{"model":"m","input":"This.","questions":[{"type":"predicate","name":"met","instructions":"Is it?"}]}"#;
    let read = ReadableRequest::from_body(key(), openai, None);
    assert_eq!(
        lines(&read),
        ["user", "This.", "question met: predicate", "Is it?"]
    );
    assert_eq!(read.settings, "model: m");
    let google = r#"{"model":"m","input":"This.","questions":{"met":{"type":"score","instructions":"How?","criteria":["0: no"]}}}"#;
    let read = ReadableRequest::from_body(key(), google, None);
    let expected = [
        "user",
        "This.",
        "question met: score",
        "How?",
        r#"["0: no"]"#,
    ];
    assert_eq!(lines(&read), expected);
}

#[test]
fn large_setting_is_shown_by_its_kind() {
    let schema = "x".repeat(100);
    let body = format!(
        r#"{{"messages":[],"response_format":{{"type":"json_schema","json_schema":{{"name":"{schema}"}}}},"thinking":{{"type":"enabled"}},"user":"{schema}"}}"#
    );
    let read = ReadableRequest::from_body(key(), &body, None);
    let cut = "x".repeat(60);
    let expected = format!(
        r#"response_format: json_schema … · thinking: {{"type":"enabled"}} · user: {cut}…"#
    );
    assert_eq!(read.settings, expected);
    assert!(read.raw.contains(&schema));
}
