use super::*;

/// The first format whose signature matches.
struct FirstCandidate<'h> {
    name: &'static str,
    preview: FilePreview<'h>,
}

fn detect(head: &[u8]) -> Result<FirstCandidate<'_>, DetectError> {
    let found = find_candidates(head)?;
    let (name, create_reader) = found.formats[0];
    if create_reader.is_none() {
        return Err(DetectError::Unsupported(name));
    }
    Ok(FirstCandidate {
        name,
        preview: found.preview,
    })
}

/// The format's name, the layout of the records, and their offset.
type Found = (&'static str, RecordLayout, usize);

fn found(head: &[u8]) -> Result<Found, DetectError> {
    detect(head).map(|found| (found.name, found.preview.layout, found.preview.start))
}

fn lines(start: usize) -> Found {
    ("native", RecordLayout::Lines, start)
}

fn values_from(array: bool, start: usize) -> Found {
    ("native", RecordLayout::Values { array }, start)
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
    // Read or not, a format has a name.
    let named = |head: &[u8]| match found(head) {
        Ok((name, _, _)) | Err(DetectError::Unsupported(name)) => name.to_owned(),
        Err(DetectError::Unknown(why) | DetectError::Unmapped(why)) => why,
    };
    let cases = [
        ("PK\u{3}\u{4}rest", "an Inspect log (.eval)"),
        ("Obj\u{1}\u{4}\u{14}avro.codec", "an Avro file"),
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
            "[{\"role\":\"user\",\"content\":\"x\"}]",
            "a bare list of messages",
        ),
        (
            "eval_id,prompt,conversation_history\n1,2,[]\n",
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
        assert_eq!(named(text.as_bytes()), format, "{text}");
    }
}

#[test]
fn readable_formats_have_their_own_signature() {
    let claude_code = "a Claude Code session";
    let anthropic = "Anthropic messages (content blocks)";
    let cases = [
        (
            r#"{"type":"user","message":{"role":"user"},"uuid":"u","sessionId":"s"}"#,
            claude_code,
        ),
        (
            r#"{"type":"summary","summary":"x","leafUuid":"u"}"#,
            claude_code,
        ),
        (
            "{\"type\":\"us\n{\"type\":\"user\",\"uuid\":\"u\",\"sessionId\":\"s\"}",
            claude_code,
        ),
        (
            r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}]}"#,
            anthropic,
        ),
        (
            r#"{"system":"s","messages":[{"role":"user","content":"x"}]}"#,
            anthropic,
        ),
        (
            r#"{"type":"message","role":"assistant","content":[],"stop_reason":"end_turn"}"#,
            anthropic,
        ),
        (
            r#"{"custom_id":"x","result":{"type":"expired"}}"#,
            anthropic,
        ),
        (
            r#"{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"torn"#,
            anthropic,
        ),
    ];
    for (text, format) in cases {
        let found = found(text.as_bytes()).map(|(name, ..)| name);
        assert_eq!(found, Ok(format), "{text}");
    }
}

#[test]
fn unknown_content_is_described() {
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
            r#"{"messages":[{"direction":"send"}],"version":1}"#,
            r#"the `messages` of its first record have no known shape (it has "messages", "version")"#,
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
            DetectError::Unmapped
        } else {
            DetectError::Unknown
        };
        assert_eq!(
            found(text.as_bytes()),
            Err(refusal(why.to_owned())),
            "{text}"
        );
    }
    for utf16 in [
        &b"\xff\xfe{\0"[..],
        b"\xfe\xff\0{",
        b"{\0\"\0m\0",
        b"\0i\0d\0,",
    ] {
        let why = "it is UTF-16 text; save it as UTF-8".to_owned();
        assert_eq!(found(utf16), Err(DetectError::Unknown(why)), "{utf16:?}");
    }
}

#[test]
fn file_that_lacks_a_part_of_the_conversation_is_named_with_what_to_save() {
    let cases = [
        (
            r#"{"type":"result","subtype":"success","is_error":false,"result":"Hi","session_id":"s","uuid":"u"}"#,
            ["`claude -p --output-format json`", "stream-json"],
        ),
        (
            r#"{"data":[{"text":"Hi","manualGrading":{"pass":true}}]}"#,
            ["promptfoo", "`promptfoo export eval -o out.json`"],
        ),
        (
            r#"{"id":"t","observations":[{"id":"o","type":"GENERATION","input":"Hi"}]}"#,
            ["Langfuse", "`/api/public/traces/ID`"],
        ),
        (
            r#"{"post":[{"id":"r","run_type":"chain","inputs":{}}],"patch":[]}"#,
            ["LangSmith", "`Client.list_runs`"],
        ),
        (
            r#"{"object":"eval.run","id":"r","eval_id":"e","result_counts":{}}"#,
            ["OpenAI", "output_items`"],
        ),
        (
            r#"{"object":"list","data":[{"object":"eval.run","id":"r","eval_id":"e"}]}"#,
            ["OpenAI", "output_items`"],
        ),
        (
            r#"{"trial_name":"a.1-of-1","task_id":"a","instruction":"Do it.","is_resolved":true,"parser_results":{}}"#,
            ["Terminal-Bench", "`trajectory.json`"],
        ),
        (
            r#"{"id":"r","results":[{"trial_name":"a.1-of-1","task_id":"a","instruction":"Do it.","is_resolved":null}]}"#,
            ["Terminal-Bench", "`trajectory.json`"],
        ),
        (
            r#"{"task_id":"c61","Question":"Who?","Level":1,"Final answer":"17","file_name":""}"#,
            ["GAIA", "no conversation"],
        ),
        (
            r#"{"test_cases_lookup_map":{"{}":{"cached_metrics_data":[]}}}"#,
            ["DeepEval", ".latest_run_full.json`"],
        ),
        (
            r#"{"user_input":{"0":"Why?","1":"How?"},"response":{"0":"So.","1":"So."}}"#,
            ["pandas", "records"],
        ),
    ];
    for (text, parts) in cases {
        let Err(DetectError::Unmapped(why)) = found(text.as_bytes()) else {
            panic!("{text} is not refused");
        };
        assert!(why.starts_with("it looks like "), "{why}");
        assert!(parts.iter().all(|part| why.contains(part)), "{why}");
    }
    for other in [
        r#"{"id":"p","observations":[{"value":3}]}"#,
        r#"{"data":[{"text":"Hi"}]}"#,
        r#"{"object":"list","data":[{"id":"m","object":"model"}]}"#,
        r#"{"post":[{"title":"Hi"}]}"#,
        r#"{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[]},"finish_reason":"tool_calls"}"#,
    ] {
        let Err(DetectError::Unmapped(why)) = found(other.as_bytes()) else {
            panic!("{other} is not refused");
        };
        assert!(
            why.starts_with("its first record has no `messages`"),
            "{why}"
        );
    }
}

#[test]
fn first_record_that_the_file_ends_in_is_cut_off() {
    for (text, why) in [
        (
            r#"{"a": [1, 2"#,
            r#"its first record is cut off before its end (it has "a")"#,
        ),
        (
            r#"[{"a": "text"#,
            r#"its first record is cut off before its end (it has "a")"#,
        ),
        (
            "{\"a\": 1, \"b\n{\"a\": 2}\n",
            r#"its first record is cut off before its end (it has "a")"#,
        ),
        (
            r#"{"a"#,
            r#"its first record is cut off before its end: "{\"a""#,
        ),
        ("t", "it is neither JSON lines nor a JSON array"),
    ] {
        let Err(DetectError::Unmapped(found) | DetectError::Unknown(found)) =
            found(text.as_bytes())
        else {
            panic!("{text} is not refused");
        };
        assert!(found.starts_with(why), "{text}: {found}");
    }
    // Only the preview ends in a record of a large file.
    let large = format!("{{\"a\": \"{}", "x".repeat(BLOCK_SIZE));
    assert_eq!(
        found(&large.as_bytes()[..BLOCK_SIZE]),
        Err(DetectError::Unmapped(
            r#"its first record has no `messages` (it has "a")"#.to_owned()
        ))
    );
}

#[test]
fn readable_formats_are_distinguished() {
    for (text, name) in [
        (
            r#"{"timestamp":"t","type":"session_meta","payload":{}}"#,
            "a Codex rollout",
        ),
        (
            r#"{"id":"x","timestamp":"t","instructions":null}"#,
            "a Codex rollout",
        ),
        (
            r#"{"type":"thread.started","thread_id":"x"}"#,
            "the output of `codex exec --json`",
        ),
        (
            r#"{"contents":[{"role":"user","parts":[]}]}"#,
            "Gemini contents",
        ),
        (r#"[{"role":"user","parts":[]}]"#, "Gemini contents"),
        (r#"{"candidates":[],"usageMetadata":{}}"#, "Gemini contents"),
        (
            r#"[{"role":"user","content":"x"}]"#,
            "a bare list of messages",
        ),
        (
            r#"{"role":"user","content":"x"}"#,
            "a bare list of messages",
        ),
        (
            r#"{"type":"message","role":"user","content":[]}"#,
            "OpenAI Responses items",
        ),
        (
            r#"{"items":[{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}]}"#,
            "OpenAI Responses items",
        ),
        (
            r#"{"session":{"id":"s"},"items":[{"type":"message","role":"user","content":[]},{"type":"reasoning"}]}"#,
            "a Codex rollout",
        ),
        (
            r#"{"items":[{"type":"message","role":"user","content":["x"]}]}"#,
            "a livekit chat history",
        ),
        (
            r#"{"id":"r","object":"response","output":[]}"#,
            "OpenAI Responses",
        ),
        (
            r#"{"input":"q","output":[],"model":"m"}"#,
            "OpenAI Responses",
        ),
        (
            r#"{"custom_id":"q","response":{},"error":null}"#,
            "an OpenAI batch",
        ),
        (
            r#"{"request":{},"response":{}}"#,
            "request and response pairs",
        ),
        (r#"{"id":"c","choices":[]}"#, "OpenAI chat completions"),
        (
            r#"{"object":"list","data":[{"type":"message","id":"m","role":"user","content":[]}],"has_more":false}"#,
            "a list of OpenAI's API (items, messages)",
        ),
        (
            r#"{"id":"c","finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"text","text":"Hi"}]}}"#,
            "Cohere chats",
        ),
        (
            r#"{"message":"Hi","chat_history":[{"role":"USER","message":"Hello"}]}"#,
            "Cohere chats",
        ),
    ] {
        assert_eq!(
            found(text.as_bytes()).map(|found| found.0),
            Ok(name),
            "{text}"
        );
    }
    let plain = found(br#"{"input":"q","output":"a"}"#);
    assert!(
        matches!(plain, Err(DetectError::Unmapped(_))),
        "of any tool"
    );
}

#[test]
fn logs_of_other_programs_are_no_sessions() {
    let others = [
        r#"{"location":"Table.tsx:234","message":"render","data":{},"timestamp":1,"sessionId":"s"}"#,
        r#"{"event_id":"5","record":{"name":"retrieve"},"record_type":"SPAN","timestamp":"t"}"#,
    ];
    for text in others {
        let found = found(text.as_bytes());
        assert!(
            matches!(found, Err(DetectError::Unmapped(_))),
            "{text}: {found:?}"
        );
    }
    let cut = r#"{"sessionId":"s","message":{"role":"user","content":"torn"#;
    let found = found(cut.as_bytes()).map(|(name, ..)| name);
    assert_eq!(found, Ok("a Claude Code session"));
}

#[test]
fn record_with_messages_next_to_spans_is_native() {
    let messages = r#""messages":[{"role":"user","content":"Hi"}]"#;
    let traces = [
        (
            r#""spans":[{"span_id":"1","attributes":{"mlflow.spanType":"AGENT"}}]"#,
            "an MLflow trace",
        ),
        (
            r#""trace":{"id":"t","start_time":"s"},"spans":[{"trace_id":"t"}]"#,
            "an Opik trace",
        ),
        (
            r#""root_span_id":"r","span_id":"r","scores":{}"#,
            "a Braintrust log",
        ),
        (r#""llmSpans":[],"toolSpans":[]"#, "a DeepEval trace"),
    ];
    for (keys, format) in traces {
        let name = |text: String| found(text.as_bytes()).map(|(name, ..)| name);
        assert_eq!(name(format!("{{{keys}}}")), Ok(format), "{keys}");
        assert_eq!(
            name(format!("{{{messages},{keys}}}")),
            Ok("native"),
            "{keys}"
        );
        assert_eq!(
            name(format!("{{{keys},{messages}}}")),
            Ok("native"),
            "{keys}"
        );
    }
}

#[test]
fn trajectory_whose_format_follows_the_preview_is_known() {
    for (info, messages) in [
        (
            r#""mini_version":"2.2.4""#,
            r#"},"messages":[{"role":"user","content":"torn"#,
        ),
        (r#""exit_status":"Submitted","submission":"diff torn"#, ""),
    ] {
        let text = format!(r#"{{"info":{{{info}{messages}"#);
        let found = found(text.as_bytes()).map(|(name, ..)| name);
        assert_eq!(found, Ok("a SWE-agent trajectory"), "{text}");
    }
}
