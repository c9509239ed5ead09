use proptest::prelude::*;
use serde_json::value::RawValue;

use super::super::client::NewDeltas;
use super::super::testing::{assert_deltas_make, body, cut_everywhere, decl, opening, read};
use super::super::{CompletedReply, ProviderError};
use super::*;
use crate::model::{
    HistoryBlock, HistoryItem, ModelReply, ProviderKind, ReplyCall, StopReason, TokenUsage,
    ToolResponse,
};

mod replies;

fn config() -> JudgeConfig {
    let mut config = JudgeConfig::new("j", ProviderKind::Gemini);
    config.model = "gemini-2.5-pro".to_owned();
    config
}

fn generate(config: &JudgeConfig) -> GeminiDialect {
    GeminiDialect::new(config).expect("a good configuration")
}

fn parts(texts: &[&str]) -> Vec<Arc<RawValue>> {
    let raw = |text: &&str| Arc::from(RawValue::from_string((*text).to_owned()).expect("JSON"));
    texts.iter().map(raw).collect()
}

#[test]
fn request_without_tools_has_no_tool_key() {
    let dialect = generate(&config());
    let text = body(&dialect, &opening(), &[], ToolChoice::NoTools);
    assert_eq!(
        text,
        r#"{"systemInstruction":{"parts":[{"text":"You judge."}]},"contents":[{"role":"user","parts":[{"text":"Judge \"this\"."}]}],"generationConfig":{"temperature":0.0,"maxOutputTokens":4096}}"#
    );
    let schema = ToolChoice::Schema(json!({"type": "object"}));
    let text = body(&dialect, &opening(), &[decl("fetch_url")], schema);
    assert!(
        !text.contains("tool") && !text.contains("function"),
        "{text}"
    );
    assert!(text.contains(
        r#""responseMimeType":"application/json","responseJsonSchema":{"type":"object"}"#
    ));
}

#[test]
fn request_that_forces_a_function_asks_for_no_json_reply() {
    let dialect = generate(&config());
    let tools = [decl("submit_verdict")];
    let only = ToolChoice::ForcedTool("submit_verdict".to_owned());
    let text = body(&dialect, &opening(), &tools, only);
    assert!(text.contains(
        r#""toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["submit_verdict"]}}"#
    ));
    assert!(!text.contains("responseMimeType"));
    let free: Value =
        serde_json::from_str(&body(&dialect, &opening(), &tools, ToolChoice::Auto)).expect("JSON");
    assert_eq!(free["toolConfig"]["functionCallingConfig"]["mode"], "AUTO");
    assert_eq!(
        free["tools"],
        json!([{"functionDeclarations": [{"name": "submit_verdict", "description": "does submit_verdict",
            "parametersJsonSchema": tools[0].schema}]}])
    );
}

#[test]
fn request_puts_settings_into_the_generation_config() {
    let mut config = config();
    config.seed = Some(3);
    config.reasoning = Some("low".to_owned());
    config.extra_body = Some(json!({"generationConfig": {"topP": 0.5}, "safetySettings": []}));
    let turn = TurnRequest {
        history: &[],
        tools: &[],
        tool_choice: ToolChoice::NoTools,
    };
    let text = |config: &JudgeConfig, omit: &OmittedSettings| {
        generate(config)
            .build_body_pieces(&turn, omit)
            .expect("a body")
            .concat()
    };
    assert_eq!(
        text(&config, &OmittedSettings::default()),
        r#"{"contents":[],"generationConfig":{"temperature":0.0,"seed":3,"maxOutputTokens":4096,"thinkingConfig":{"includeThoughts":true,"thinkingBudget":1024},"topP":0.5},"safetySettings":[]}"#
    );
    let omit = OmittedSettings {
        refused: vec!["seed", "reasoning", "temperature"],
        ..OmittedSettings::default()
    };
    assert_eq!(
        text(&config, &omit),
        r#"{"contents":[],"generationConfig":{"maxOutputTokens":4096,"topP":0.5},"safetySettings":[]}"#
    );
    config.model = "gemini-3-flash".to_owned();
    assert!(text(&config, &OmittedSettings::default()).contains(r#""thinkingLevel":"LOW""#));
}

#[test]
fn address_contains_version_model_and_method() {
    let url = |base: Option<&str>, model: &str, stream: bool| {
        let mut config = config();
        config.base_url = base.map(str::to_owned);
        config.model = model.to_owned();
        config.stream = stream;
        generate(&config).url
    };
    assert_eq!(
        url(None, "gemini-2.5-pro", true),
        "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
    );
    assert_eq!(
        url(Some("http://h:1/"), "m", true),
        "http://h:1/v1beta/models/m:streamGenerateContent?alt=sse"
    );
    for base in ["http://h/v1", "http://h/x/v1alpha/", "http://h/v1beta2"] {
        let base_path = base.trim_end_matches('/');
        assert_eq!(
            url(Some(base), "models/m", false),
            format!("{base_path}/models/m:generateContent")
        );
    }
    assert_eq!(
        url(Some("http://h/video"), "tunedModels/t", false),
        "http://h/video/v1beta/tunedModels/t:generateContent"
    );
}

#[test]
fn signed_parts_are_sent_back_unchanged_with_responses_in_call_order() {
    let native = [
        r#"{"text":"Let me look.","thought":true}"#,
        r#"{ "functionCall": {"name":"f","args":{"n":1.50}}, "thoughtSignature":"S+/=" }"#,
        r#"{"functionCall":{"id":"x1","name":"g","args":{}}}"#,
    ];
    let mut history = opening();
    history.push(HistoryItem::Model {
        native: parts(&native),
        reply: ModelReply::default(),
    });
    history.push(HistoryItem::ToolResponses(vec![
        ToolResponse::ok("page"),
        ToolResponse::error("no such page"),
    ]));
    history.push(HistoryItem::User(vec![HistoryBlock::System(
        "Conclude.".to_owned(),
    )]));
    let turn = TurnRequest {
        history: &history,
        tools: &[],
        tool_choice: ToolChoice::NoTools,
    };
    let pieces = generate(&config())
        .build_body_pieces(&turn, &OmittedSettings::default())
        .expect("a body");
    assert_eq!(
        &*pieces[2],
        format!(r#",{{"role":"model","parts":[{}]}}"#, native.join(","))
    );
    assert_eq!(
        &*pieces[3],
        r#",{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"page"}}},{"functionResponse":{"id":"x1","name":"g","response":{"error":"Error: no such page"}}}]}"#
    );
    assert_eq!(
        &*pieces[4],
        r#",{"role":"user","parts":[{"text":"Conclude."}]}"#
    );
    history.push(HistoryItem::ToolResponses(vec![ToolResponse::ok("one")]));
    let turn = TurnRequest {
        history: &history,
        tools: &[],
        tool_choice: ToolChoice::NoTools,
    };
    let refused = generate(&config()).build_body_pieces(&turn, &OmittedSettings::default());
    assert!(matches!(refused, Err(ProviderError::Request(_))));
}

#[test]
fn signed_parts_of_six_turns_are_sent_back_byte_for_byte() {
    let mut history = opening();
    let mut natives = Vec::new();
    for n in 0..6 {
        let native = [
            format!(r#"{{ "text":"r\u00e9{n}", "thought":true, "thoughtSignature":"T{n}+/=" }}"#),
            format!(
                r#"{{"functionCall": {{"name":"f", "args":{{"n":{n}.50}}}}, "thoughtSignature":"S{n}+/=="}}"#
            ),
        ];
        let texts: Vec<&str> = native.iter().map(String::as_str).collect();
        history.push(HistoryItem::Model {
            native: parts(&texts),
            reply: ModelReply::default(),
        });
        history.push(HistoryItem::ToolResponses(vec![ToolResponse::ok(format!(
            "page {n}"
        ))]));
        natives.push(native.join(","));
    }
    let text = body(
        &generate(&config()),
        &history,
        &[decl("f")],
        ToolChoice::Auto,
    );
    let sent: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(sent["contents"].as_array().map(Vec::len), Some(1 + 12));
    for (n, native) in natives.iter().enumerate() {
        assert!(text.contains(native), "round {n}: {text}");
        let answer = &sent["contents"][2 + 2 * n]["parts"][0]["functionResponse"];
        assert_eq!(
            answer["response"]["output"],
            format!("page {n}"),
            "round {n}"
        );
    }
}

fn reader() -> Box<dyn ReplyReader> {
    Box::new(stream::GeminiReplyReader::new(TurnIx(1)))
}

fn finished(stream: &str) -> CompletedReply {
    let (finished, new) = read(reader(), &[stream.as_bytes()]).expect("a reply");
    assert_deltas_make(&finished.reply, &new);
    finished
}

fn failed(stream: &str) -> ProviderError {
    read(reader(), &[stream.as_bytes()]).expect_err("no reply")
}

fn text(text: &str) -> String {
    format!(
        "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{text}\"}}]}}}}]}}\r\n\r\n"
    )
}

fn end(reason: &str) -> String {
    format!("data: {{\"candidates\":[{{\"finishReason\":\"{reason}\"}}]}}\r\n\r\n")
}

const STREAM: &str = concat!(
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hm é\",\"thought\":true}],\"role\":\"model\"},\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":9}}\r\n\r\n",
    "data: {\"candidates\":[{\"content\":{}}]}\r\n\r\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Let me 😀\"},{\"text\":\" look.\"},{\"text\":\"\"}]}}]}\r\n\r\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"f\",\"args\":{\"url\": \"u\", \"n\": 1.50}},\"thoughtSignature\":\"S1\"},{\"functionCall\":{\"id\":\"x\",\"name\":\"g\"}}]}}]}\r\n\r\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\",\"thoughtSignature\":\"S2\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":9,\"cachedContentTokenCount\":2,\"candidatesTokenCount\":4,\"thoughtsTokenCount\":3,\"toolUsePromptTokenCount\":1}}\r\n\r\n",
);

#[test]
fn stream_becomes_a_reply_with_unchanged_parts() {
    let finished = finished(STREAM);
    let call = |id: &str, name: &str, raw: &str| ReplyCall {
        id: id.to_owned(),
        name: name.to_owned(),
        raw: raw.to_owned(),
    };
    assert_eq!(
        finished.reply,
        ModelReply {
            text: "Let me 😀 look.".to_owned(),
            thought: "hm é".to_owned(),
            calls: vec![
                call("call_1_0", "f", r#"{"url": "u", "n": 1.50}"#),
                call("x", "g", "{}")
            ],
            stop: StopReason::ToolCalls,
        }
    );
    assert_eq!(
        finished.usage,
        TokenUsage {
            input: Some(10),
            output: Some(7),
            cached: Some(2),
            thinking: Some(3),
            calls: 1
        }
    );
    let native: Vec<&str> = finished.native.iter().map(|part| part.get()).collect();
    assert_eq!(
        native,
        [
            r#"{"text":"hm é","thought":true}"#,
            r#"{"text":"Let me 😀"}"#,
            r#"{"text":" look."}"#,
            r#"{"functionCall":{"name":"f","args":{"url": "u", "n": 1.50}},"thoughtSignature":"S1"}"#,
            r#"{"functionCall":{"id":"x","name":"g"}}"#,
            r#"{"text":"","thoughtSignature":"S2"}"#,
        ]
    );
}

#[test]
fn truncated_stream_is_an_error_or_the_complete_reply() {
    let good = cut_everywhere(reader, STREAM);
    assert!(good <= 4, "only the last line's end may be missing, {good}");
}

proptest! {
    #[test]
    fn reply_is_the_same_for_every_split_of_the_stream(cuts in prop::collection::vec(0..STREAM.len(), 0..12)) {
        let mut cuts = cuts;
        cuts.sort_unstable();
        let mut chunks = Vec::new();
        let mut from = 0;
        for cut in cuts {
            chunks.push(&STREAM.as_bytes()[from..cut]);
            from = cut;
        }
        chunks.push(&STREAM.as_bytes()[from..]);
        let (whole_reply, _) = read(reader(), &[STREAM.as_bytes()]).expect("a reply");
        let (split, new) = read(reader(), &chunks).expect("the same reply");
        assert_deltas_make(&split.reply, &new);
        prop_assert_eq!(split.reply, whole_reply.reply);
    }
}

#[test]
fn finish_reason_on_every_frame_does_not_end_the_reply() {
    let frame = |text: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{text}\"}}]}},\"finishReason\":\"STOP\"}}]}}\n\n"
        )
    };
    let finished = finished(&[frame("a"), frame("b"), frame("c")].concat());
    assert_eq!(finished.reply.text, "abc");
}

#[test]
fn each_finish_reason_maps_to_its_stop_reason() {
    let stop = |reason: &str| {
        finished(&format!("{}{}", text("x"), end(reason)))
            .reply
            .stop
    };
    assert_eq!(stop("STOP"), StopReason::Stop);
    assert_eq!(stop("MAX_TOKENS"), StopReason::Length);
    assert_eq!(stop("SAFETY"), StopReason::Refused("SAFETY".into()));
    let blocked = "data: {\"promptFeedback\":{\"blockReason\":\"JAILBREAK\"}}\n\n";
    assert_eq!(
        finished(blocked).reply.stop,
        StopReason::Refused("the prompt was blocked: JAILBREAK".into())
    );
}

#[test]
fn faulty_reply_is_an_error() {
    let with = |tail: &str| failed(&format!("{}{tail}", text("{\\\"passed\\\":true}")));
    let is_cut = |error: ProviderError| matches!(error, ProviderError::Cut { .. });
    let is_malformed = |error: ProviderError| matches!(error, ProviderError::Malformed(_));
    assert!(is_cut(failed("")));
    assert!(is_cut(with("")));
    assert!(is_cut(with("data: {\"candidates\":[{\"con")));
    assert!(is_cut(with(&format!(
        "{}{{\r\n \"error\": {{",
        end("STOP")
    ))));
    assert!(is_malformed(with("data: {\"candidates\":[{\"con\n\n")));
    assert!(is_malformed(with("data: {\"candidates\":7}\n\n")));
    assert!(matches!(
        failed("<html>\n"),
        ProviderError::WrongProtocol(_)
    ));
    assert!(is_malformed(with(
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{}}]}}]}\n\n"
    )));
    let tail = "{\r\n  \"error\": {\r\n    \"code\": 499,\r\n    \"message\": \"The operation was cancelled.\",\r\n    \"status\": \"CANCELLED\"\r\n  }\r\n}\r\n";
    for (tail, retryable) in [
        (tail.to_owned(), true),
        (format!("{}{tail}", end("STOP")), true),
        (
            "data: {\"error\":{\"code\":400,\"message\":\"was cancelled\"}}\n\n".to_owned(),
            false,
        ),
        (
            "[{\"error\":{\"code\":503,\"message\":\"was cancelled\"}}]\n".to_owned(),
            true,
        ),
    ] {
        let error = with(&tail);
        let ProviderError::InStream {
            message,
            retryable: r,
        } = &error
        else {
            panic!("{tail}: {error:?}");
        };
        assert!(message.contains("was cancelled"));
        assert_eq!(*r, retryable);
    }
}

#[test]
fn reply_without_stream_is_parsed() {
    let whole_reply = r#"{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2}}"#;
    let read_whole = |body: &str| {
        let mut reader = reader();
        reader.read_document(body, &mut NewDeltas::new())?;
        reader.finish()
    };
    assert_eq!(read_whole(whole_reply).expect("a reply").reply.text, "hi");
    let array = format!("[{whole_reply}]");
    assert_eq!(read_whole(&array).expect("a reply").reply.text, "hi");
    for bad in [
        &whole_reply[..40],
        "",
        "<html>",
        r#"{"candidates":[]}"#,
        "[1]",
    ] {
        assert!(read_whole(bad).is_err(), "{bad}");
    }
}

#[test]
fn vertex_error_about_thinking_names_the_reasoning_setting() {
    let body = r#"{"error":{"code":400,"message":"Unable to submit request because Thinking_config.include_thoughts is only enabled when thinking is enabled. Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/gemini","status":"INVALID_ARGUMENT"}}"#;
    let message = super::super::server_error::parse_error_body(body).message;
    let found = super::super::server_error::find_refused_setting(&OMITTABLE_SETTINGS, &message);
    assert_eq!(found.map(|setting| setting.setting), Some("reasoning"));
    for (message, expected) in [
        (
            "Budget 0 is invalid. This model only works in thinking mode.",
            "reasoning",
        ),
        (
            "Function calling with a response mime type: 'application/json' is unsupported",
            "structured output",
        ),
        (
            "Controlled generation is not supported for this model",
            "structured output",
        ),
    ] {
        let found = super::super::server_error::find_refused_setting(&OMITTABLE_SETTINGS, message);
        assert_eq!(
            found.map(|setting| setting.setting),
            Some(expected),
            "{message}"
        );
    }
}
