use super::*;

/// The format's name, how records stand, and from where.
type Found = (&'static str, Form, usize);

fn found(head: &[u8]) -> Result<Found, Refusal> {
    detect(head).map(|found| (found.name, found.look.form, found.look.start))
}

fn lines(start: usize) -> Found {
    ("native", Form::Lines, start)
}

fn values_from(array: bool, start: usize) -> Found {
    ("native", Form::Values { array }, start)
}

#[test]
fn a_file_with_messages_is_native_in_every_layout() {
    let cases: [(&str, Found); 12] = [
        ("{\"messages\":[]}\n", lines(0)),
        ("\u{feff}{\"messages\":[]}", lines(3)),
        ("\r\n\r\n {\"id\":1,\"messages\":[]}\r\n", lines(5)),
        ("{\n \"messages\": []\n}\n", values_from(false, 0)),
        (
            "{\"messages\": [\n{\"role\":\"user\",\"content\":\"x\"}\n]}",
            values_from(false, 0),
        ),
        (" [\n{\"messages\":[]}]", values_from(true, 2)),
        ("[]", values_from(true, 1)),
        ("{\"messages\": [{\"role\":\"us", lines(0)),
        (
            "{\"messages\": [\n{\"messages\":[]}\n{\"messages\":[]}\n",
            lines(0),
        ),
        ("{\"id\": \"torn\n{\"messages\":[]}\n", lines(0)),
        ("not json\n{\"messages\":[]}\n", lines(0)),
        (
            "{\"contents\":[],\"sessionId\":1,\"messages\":[]}",
            lines(0),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(found(text.as_bytes()), Ok(expected), "{text:?}");
    }
}

#[test]
fn a_large_object_is_told_from_a_broken_first_line() {
    let large = "{\n  \"messages\": [\n    {\"role\": \"user\", \"content\": \"";
    assert_eq!(found(large.as_bytes()), Ok(values_from(false, 0)));
    let broken = "{\"messages\": [\n{\"messages\":[]}\n{\"messages\":[]}\n";
    assert_eq!(found(broken.as_bytes()), Ok(lines(0)));
}

#[test]
fn foreign_formats_are_named() {
    let cases = [
        (
            "PK\u{3}\u{4}rest",
            "a zip archive (Inspect's .eval logs are such)",
        ),
        (
            r#"{"type":"user","message":{"role":"user"},"uuid":"u","sessionId":"s"}"#,
            "a Claude Code session",
        ),
        (
            r#"{"type":"summary","summary":"x","leafUuid":"u"}"#,
            "a Claude Code session",
        ),
        (
            r#"{"timestamp":"t","type":"session_meta","payload":{}}"#,
            "a Codex rollout",
        ),
        (
            "{\n \"evalId\": \"e\",\n \"results\": {\"version\": 3",
            "promptfoo results",
        ),
        (r#"{"promptIdx":0,"testIdx":1}"#, "promptfoo results"),
        (r#"{"resourceSpans":[]}"#, "OpenTelemetry spans (OTLP JSON)"),
        (
            r#"{"contents":[{"role":"user","parts":[]}]}"#,
            "Gemini contents",
        ),
        (
            r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}]}"#,
            "Anthropic messages (content blocks)",
        ),
        (
            "[{\"role\":\"user\",\"content\":\"x\"}]",
            "a bare list of messages (each record is to be an object with `messages`)",
        ),
        (
            "job_id,eval_id,score\n1,2,3\n",
            "an evalbench result table (CSV)",
        ),
        (
            r#"{"version":2,"status":"success","eval":{}}"#,
            "an Inspect log",
        ),
        (
            r#"{"schema_version":"ATIF-v1.4","steps":[]}"#,
            "a Harbor trajectory (ATIF)",
        ),
    ];
    for (text, format) in cases {
        assert_eq!(
            found(text.as_bytes()),
            Err(Refusal::Unsupported(format)),
            "{text}"
        );
    }
}

#[test]
fn what_is_nothing_known_is_described() {
    let cases = [
        ("  \n", "it holds only white space"),
        (
            "# Notes",
            "it is neither JSON lines nor a JSON array of objects; it begins with \"# Notes\"",
        ),
        (
            r#"{"name":"x","version":1}"#,
            r#"its first record has no `messages` (it has "name", "version")"#,
        ),
        (
            "Hello, world",
            "it is neither JSON lines nor a JSON array of objects; it begins with \"Hello, world\"",
        ),
        (
            "{broken",
            r#"its first record is not JSON with `messages`: "{broken""#,
        ),
    ];
    for (text, why) in cases {
        let mapped = text.starts_with("{\"");
        let refusal = if mapped {
            Refusal::Foreign
        } else {
            Refusal::Unknown
        };
        assert_eq!(
            found(text.as_bytes()),
            Err(refusal(why.to_owned())),
            "{text}"
        );
    }
    assert!(matches!(found(b"\xff\xfe{\0"), Err(Refusal::Unknown(_))));
}
