use std::sync::Arc;

use serde_json::value::RawValue;

use super::super::ProviderError;
use super::super::testing::{body, decl, opening};
use super::*;
use crate::model::{HistoryItem, ModelReply, ProviderKind, ReplyCall, ToolResponse};

mod replies;

fn config() -> JudgeConfig {
    let mut config = JudgeConfig::new("j", ProviderKind::Openai);
    config.model = "m".to_owned();
    config.base_url = Some("http://127.0.0.1:1/v1".to_owned());
    config
}

fn chat(config: &JudgeConfig) -> ChatDialect {
    ChatDialect::new(config).expect("a good configuration")
}

fn raw(text: &str) -> Arc<RawValue> {
    Arc::from(RawValue::from_string(text.to_owned()).expect("JSON"))
}

#[test]
fn request_without_tools_has_no_tool_key() {
    let chat = chat(&config());
    let text = body(&chat, &opening(), &[], ToolChoice::NoTools);
    assert_eq!(
        text,
        r#"{"model":"m","messages":[{"role":"system","content":"You judge."},{"role":"user","content":"Judge \"this\"."}],"temperature":0.0,"max_tokens":4096,"stream":true,"stream_options":{"include_usage":true}}"#
    );
    let schema = json!({"type": "object"});
    let text = body(
        &chat,
        &opening(),
        &[decl("fetch_url")],
        ToolChoice::Schema(schema),
    );
    assert!(!text.contains("tool"), "{text}");
    assert!(text.contains(
        r#""response_format":{"type":"json_schema","json_schema":{"name":"verdict","strict":true,"schema":{"type":"object"}}}"#
    ));
}

#[test]
fn request_declares_tools_and_can_force_one() {
    let chat = chat(&config());
    let tools = [decl("fetch_url"), decl("submit_verdict")];
    let free: Value =
        serde_json::from_str(&body(&chat, &opening(), &tools, ToolChoice::Auto)).expect("JSON");
    assert_eq!(
        free["tools"][0],
        json!({"type": "function", "function": {"name": "fetch_url", "description": "does fetch_url",
            "parameters": tools[0].schema}})
    );
    assert_eq!(free.get("tool_choice"), None);
    let only = ToolChoice::ForcedTool("submit_verdict".to_owned());
    let forced: Value = serde_json::from_str(&body(&chat, &opening(), &tools, only)).expect("JSON");
    assert_eq!(
        forced["tool_choice"],
        json!({"type": "function", "function": {"name": "submit_verdict"}})
    );
    let turn = TurnRequest {
        history: &opening(),
        tools: &tools,
        tool_choice: ToolChoice::ForcedTool("other".to_owned()),
    };
    assert!(matches!(
        chat.build_body_pieces(&turn, &OmittedSettings::default()),
        Err(ProviderError::Request(_))
    ));
}

#[test]
fn request_has_settings_where_the_server_reads_them() {
    let mut config = config();
    config.seed = Some(7);
    config.reasoning = Some("low".to_owned());
    config.stream = false;
    config.temperature = None;
    config.extra_body = Some(json!({"seed": 8, "provider": {"require_parameters": true}}));
    let tail = |config: &JudgeConfig, omit: &OmittedSettings| {
        let turn = TurnRequest {
            history: &[],
            tools: &[],
            tool_choice: ToolChoice::NoTools,
        };
        chat(config)
            .build_body_pieces(&turn, omit)
            .expect("a body")
            .concat()
    };
    assert_eq!(
        tail(&config, &OmittedSettings::default()),
        r#"{"model":"m","messages":[],"seed":8,"reasoning_effort":"low","max_tokens":4096,"stream":false,"provider":{"require_parameters":true}}"#
    );
    let mut omit = OmittedSettings {
        refused: vec!["seed", "reasoning"],
        renamed: vec!["max_tokens"],
        unsupported: Vec::new(),
    };
    assert_eq!(
        tail(&config, &omit),
        r#"{"model":"m","messages":[],"max_completion_tokens":4096,"stream":false,"provider":{"require_parameters":true}}"#
    );
    omit.refused.push("max_completion_tokens");
    assert!(!tail(&config, &omit).contains("tokens"));
    config.base_url = None;
    let text = tail(&config, &OmittedSettings::default());
    assert!(text.contains(r#""max_completion_tokens":4096"#), "{text}");
}

#[test]
fn address_joins_base_url_and_path() {
    let url = |base: Option<&str>| {
        let mut config = config();
        config.base_url = base.map(str::to_owned);
        ChatDialect::new(&config).map(|chat| chat.url)
    };
    let good = [
        (None, "https://api.openai.com/v1/chat/completions"),
        (
            Some("http://localhost:8080/v1/"),
            "http://localhost:8080/v1/chat/completions",
        ),
        (Some("http://h"), "http://h/chat/completions"),
        (
            Some("https://a.example/o/gpt?api-version=1"),
            "https://a.example/o/gpt/chat/completions?api-version=1",
        ),
        (
            Some("http://h/v1/chat/completions"),
            "http://h/v1/chat/completions",
        ),
    ];
    for (base, expected) in good {
        assert_eq!(url(base).expect("good"), expected);
    }
    for bad in ["localhost:8080", "ftp://h", "", "/v1"] {
        assert!(
            matches!(url(Some(bad)), Err(ProviderError::Request(_))),
            "{bad}"
        );
    }
}

fn turn_with(native: &str, raws: &[&str]) -> Vec<HistoryItem> {
    let calls = raws.iter().enumerate().map(|(at, raw)| ReplyCall {
        id: format!("c{at}"),
        name: "f".to_owned(),
        raw: (*raw).to_owned(),
    });
    let view = ModelReply {
        calls: calls.collect(),
        ..ModelReply::default()
    };
    let answers = raws.iter().map(|_| ToolResponse::ok("page")).collect();
    vec![
        HistoryItem::Model {
            native: vec![raw(native)],
            reply: view,
        },
        HistoryItem::ToolResponses(answers),
    ]
}

#[test]
fn reply_is_sent_back_byte_for_byte() {
    let native = r#"{ "role":"assistant", "content":null,"n":1.50, "tool_calls":[{"id":"c0","type":"function","function":{"name":"f","arguments":"{ \"a\": 1 }"},"x":"s"}] }"#;
    let all = chat(&config())
        .build_body_pieces(
            &TurnRequest {
                history: &turn_with(native, &[r#"{"a":1}"#]),
                tools: &[],
                tool_choice: ToolChoice::NoTools,
            },
            &OmittedSettings::default(),
        )
        .expect("a body");
    assert_eq!(&*all[1], native);
    assert_eq!(
        &*all[2],
        r#",{"role":"tool","tool_call_id":"c0","content":"page"}"#
    );
}

#[test]
fn invalid_json_arguments_are_sent_back_in_canonical_form() {
    // (as the model wrote them, what the judge made of them, what is sent)
    let cases = [
        (r#""{\"a\": 1""#, r#"{"a":1}"#, r#""{\"a\":1}""#),
        (r#""{\"a\": 1""#, r#"{"a": 1"#, r#""{}""#),
        (r#""""#, "", r#""{}""#),
        (r#""\"{}\"""#, r#"{"b":2}"#, r#""{\"b\":2}""#),
        (r#"{"a": 1}"#, "", r#""{\"a\": 1}""#),
        ("null", "", r#""{}""#),
    ];
    for (written, canonical, sent) in cases {
        let native = |arguments: &str| {
            format!(
                r#"{{"role":"assistant","tool_calls":[{{"id":"c0","function":{{"arguments":"{{}}"}}}},{{"function":{{"arguments":{arguments},"name":"f"}},"id":"c1"}}]}}"#
            )
        };
        let history = turn_with(&native(written), &["{}", canonical]);
        let text = body(&chat(&config()), &history, &[], ToolChoice::NoTools);
        assert!(text.contains(&native(sent)), "{written}: {text}");
    }
}

#[test]
fn tool_responses_that_match_no_calls_are_rejected() {
    let history = [HistoryItem::ToolResponses(vec![ToolResponse::ok("x")])];
    let turn = TurnRequest {
        history: &history,
        tools: &[],
        tool_choice: ToolChoice::NoTools,
    };
    let refused = chat(&config()).build_body_pieces(&turn, &OmittedSettings::default());
    assert!(matches!(refused, Err(ProviderError::Request(_))));
}

#[test]
fn six_turns_are_sent_back_byte_for_byte_except_invalid_arguments() {
    let chat = chat(&config());
    let mut history = opening();
    let mut natives = Vec::new();
    for n in 0..6 {
        // Spacing, escapes and unknown fields of a gateway's own, which dicta itself never writes.
        let broken = n == 3;
        let args = if broken {
            "{\\\"url\\\":"
        } else {
            "{\\\"url\\\": \\\"u\\u00e9\\\"}"
        };
        let native = format!(
            r#"{{ "role":"assistant", "content":"look {n}", "x_reasoning":"r\u00e9{n}", "tool_calls":[{{"id":"c{n}","type":"function","extra_content":{{"sig":"S{n}=="}},"function":{{"name":"fetch_url","arguments":"{args}"}}}}]}}"#
        );
        let raw_args = if broken { "{}" } else { "{\"url\": \"ué\"}" };
        let view = ModelReply {
            text: format!("look {n}"),
            calls: vec![ReplyCall {
                id: format!("c{n}"),
                name: "fetch_url".into(),
                raw: raw_args.into(),
            }],
            ..ModelReply::default()
        };
        history.push(HistoryItem::Model {
            native: vec![raw(&native)],
            reply: view,
        });
        history.push(HistoryItem::ToolResponses(vec![ToolResponse::ok(format!(
            "page {n}"
        ))]));
        natives.push((native, broken));
    }
    let text = body(&chat, &history, &[decl("fetch_url")], ToolChoice::Auto);
    let sent: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(sent["messages"].as_array().map(Vec::len), Some(2 + 12));
    for (n, (native, broken)) in natives.iter().enumerate() {
        assert_eq!(text.contains(native.trim()), !broken, "round {n}: {text}");
        let turn = &sent["messages"][2 + 2 * n];
        assert_eq!(turn["x_reasoning"], format!("ré{n}"), "round {n}");
        assert_eq!(
            turn["tool_calls"][0]["extra_content"]["sig"],
            format!("S{n}=="),
            "round {n}"
        );
        let args = turn["tool_calls"][0]["function"]["arguments"]
            .as_str()
            .expect("text");
        assert!(
            serde_json::from_str::<Value>(args).is_ok(),
            "round {n}: {args}"
        );
        assert_eq!(sent["messages"][3 + 2 * n]["tool_call_id"], format!("c{n}"));
        assert_eq!(sent["messages"][3 + 2 * n]["content"], format!("page {n}"));
    }
}

/// In the words of real servers.
#[test]
fn refused_setting_is_found_in_each_servers_words() {
    let refused = |body: &str| {
        let message = super::super::server_error::parse_error_body(body).message;
        super::super::server_error::find_refused_setting(&OMITTABLE_SETTINGS, &message)
            .map(|setting| setting.setting)
    };
    let deepseek = r#"{"error":{"message":"This response_format type is unavailable now","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#;
    assert_eq!(refused(deepseek), Some("structured output"));
    let unprocessable = r#"{"error":{"message":"Failed to deserialize the JSON body into the target type: response_format: response_format.type `json_schema` is unavailable now at line 1 column 3519","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#;
    assert_eq!(refused(unprocessable), Some("structured output"));
    let moonshot = r#"{"error":{"message":"tool_choice 'specified' is incompatible with thinking enabled","type":"invalid_request_error"}}"#;
    assert_eq!(refused(moonshot), Some("tool_choice"));
    let overloaded = r#"{"error":{"message":"The model is temporarily unavailable"}}"#;
    assert_eq!(refused(overloaded), None);
    for (message, setting) in [
        (
            "json mode cannot be combined with tool/function calling",
            Some("structured output"),
        ),
        (
            "'response_format.type' : value is not one of the allowed values ['text','json_object']",
            Some("structured output"),
        ),
        (
            "response_format.type: Input should be 'text' or 'json_object'",
            Some("structured output"),
        ),
        (
            "Structured outputs are not supported for this model",
            Some("structured output"),
        ),
        (
            "Json mode response is not supported when enable_thinking is true",
            Some("structured output"),
        ),
        (
            "response_format is not implemented",
            Some("structured output"),
        ),
        (
            "Invalid tool_choice type: 'object'. Supported string values: none, auto, required",
            Some("tool_choice"),
        ),
        (
            "`tool_choice` must either be a named tool, \"auto\", or \"none\".",
            Some("tool_choice"),
        ),
        ("tool_choice仅支持auto", Some("tool_choice")),
        (
            "this thinking model does not support this tool_choice",
            Some("tool_choice"),
        ),
        (
            "invalid temperature: only 1 is allowed for this model",
            Some("temperature"),
        ),
        ("Seed is not supported by this provider.", Some("seed")),
        (
            "\"qwen2.5:7b\" does not support thinking",
            Some("reasoning"),
        ),
        (
            "Model grok-4 does not support parameter reasoningEffort.",
            Some("reasoning"),
        ),
        (
            "Reasoning effort is not supported by this model.",
            Some("reasoning"),
        ),
        // The user set a value that this server doesn't know.
        (
            "reasoning_effort: Input should be 'low', 'medium' or 'high'",
            None,
        ),
        ("temperature must be greater than 0", None),
    ] {
        let body = json!({"error": {"message": message}}).to_string();
        assert_eq!(refused(&body), setting, "{message}");
    }
}
