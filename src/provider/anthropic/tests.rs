use serde_json::value::RawValue;

use super::super::testing::{body, decl, opening};
use super::*;
use crate::model::{HistoryBlock, HistoryItem, ModelReply, ProviderKind, ReplyCall, ToolResponse};

mod replies;

fn config() -> JudgeConfig {
    let mut config = JudgeConfig::new("j", ProviderKind::Anthropic);
    config.model = "claude-sonnet-4-5".to_owned();
    config
}

fn messages(config: &JudgeConfig) -> AnthropicDialect {
    AnthropicDialect::new(config).expect("a good configuration")
}

fn pieces_of(
    config: &JudgeConfig,
    history: &[HistoryItem],
    omit: &OmittedSettings,
) -> Vec<Arc<str>> {
    let turn = TurnRequest {
        history,
        tools: &[],
        tool_choice: ToolChoice::NoTools,
    };
    messages(config)
        .build_body_pieces(&turn, omit)
        .expect("a body")
}

fn text_of(config: &JudgeConfig, omit: &OmittedSettings) -> String {
    pieces_of(config, &[], omit).concat()
}

#[test]
fn request_without_tools_has_no_tool_key() {
    let text = body(&messages(&config()), &opening(), &[], ToolChoice::NoTools);
    assert_eq!(
        text,
        r#"{"model":"claude-sonnet-4-5","system":"You judge.","messages":[{"role":"user","content":[{"type":"text","text":"Judge \"this\"."}]}],"temperature":0.0,"max_tokens":4096,"stream":true}"#
    );
    let schema = ToolChoice::Schema(json!({"type": "object"}));
    let text = body(
        &messages(&config()),
        &opening(),
        &[decl("fetch_url")],
        schema,
    );
    assert!(!text.contains("tool"), "{text}");
    assert!(text.contains(
        r#""output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}"#
    ));
}

#[test]
fn request_forces_a_function_for_models_without_thinking() {
    let tools = [decl("fetch_url"), decl("submit_verdict")];
    let only = || ToolChoice::ForcedTool("submit_verdict".to_owned());
    let sent = |config: &JudgeConfig, choice: ToolChoice| -> Value {
        let text = body(&messages(config), &opening(), &tools, choice);
        serde_json::from_str(&text).expect("JSON")
    };
    let free = sent(&config(), ToolChoice::Auto);
    assert_eq!(free.get("tool_choice"), None);
    assert_eq!(
        free["tools"][0],
        json!({"name": "fetch_url", "description": "does fetch_url", "input_schema": tools[0].schema})
    );
    let forced = sent(&config(), only());
    assert_eq!(
        forced["tool_choice"],
        json!({"type": "tool", "name": "submit_verdict"})
    );
    assert_eq!(forced["tools"].as_array().map(Vec::len), Some(2));
    // A text asks a model that thinks for the call, and no other function is declared.
    let mut thinking = config();
    thinking.reasoning = Some("low".to_owned());
    let unforced = sent(&thinking, only());
    assert_eq!(unforced.get("tool_choice"), None);
    assert_eq!(unforced["tools"][0]["name"], "submit_verdict");
    assert_eq!(unforced["tools"].as_array().map(Vec::len), Some(1));
    let content = &unforced["messages"][0]["content"];
    assert!(
        content[1]["text"]
            .as_str()
            .is_some_and(|text| text.contains("`submit_verdict`")),
        "{content}"
    );
    assert_eq!(sent(&thinking, ToolChoice::Auto)["tools"], free["tools"]);
}

#[test]
fn refused_forced_call_is_requested_in_words() {
    let message =
        "invalid_request_error: Thinking may not be enabled when tool_choice forces tool use.";
    let named = super::super::server_error::find_refused_setting(&OMITTABLE_SETTINGS, message);
    assert_eq!(named.map(|param| param.setting), Some("tool_choice"));
    let both = "invalid_request_error: `temperature` may only be set to 1 when thinking is enabled";
    let named = super::super::server_error::find_refused_setting(&OMITTABLE_SETTINGS, both);
    assert_eq!(named.map(|param| param.setting), Some("temperature"));
    for old_model in [
        "This model does not support structured outputs.",
        "'claude-x' does not support output format.",
    ] {
        let named =
            super::super::server_error::find_refused_setting(&OMITTABLE_SETTINGS, old_model);
        assert_eq!(named.map(|param| param.setting), Some(OUTPUT_CONFIG));
    }
    let tools = [decl("submit_verdict")];
    let turn = TurnRequest {
        history: &opening(),
        tools: &tools,
        tool_choice: ToolChoice::ForcedTool("submit_verdict".to_owned()),
    };
    let omit = OmittedSettings {
        refused: vec!["tool_choice"],
        ..OmittedSettings::default()
    };
    let body = messages(&config())
        .build_body_pieces(&turn, &omit)
        .expect("a body");
    let text = body.concat();
    assert!(!text.contains("tool_choice"), "{text}");
    assert!(text.contains("This is your last turn"), "{text}");
}

#[test]
fn reasoning_is_converted_for_each_model() {
    let thinking_of = |model: &str, effort: &str, limit: Option<u32>| {
        let mut config = config();
        model.clone_into(&mut config.model);
        config.reasoning = Some(effort.to_owned());
        config.max_output_tokens = limit;
        let dialect = AnthropicDialect::new(&config).map_err(|error| error.to_string())?;
        let omit = OmittedSettings {
            unsupported: super::super::capabilities::find_capabilities(&config).1,
            ..OmittedSettings::default()
        };
        let turn = TurnRequest {
            history: &[],
            tools: &[],
            tool_choice: ToolChoice::NoTools,
        };
        let body = dialect
            .build_body_pieces(&turn, &omit)
            .expect("a body")
            .concat();
        let body: Value = serde_json::from_str(&body).expect("JSON");
        Ok::<_, String>((
            body["thinking"].clone(),
            body["output_config"].clone(),
            body["max_tokens"].clone(),
        ))
    };
    let budget = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
    let adaptive = json!({"type": "adaptive"});
    let summarized = json!({"type": "adaptive", "display": "summarized"});
    let null = Value::Null;
    let high = json!({"effort": "high"});
    let cases = [
        (
            "claude-sonnet-4-5",
            "low",
            Some(4096),
            &budget(1024),
            &null,
            4096,
        ),
        (
            "claude-sonnet-4-5",
            "high",
            Some(4096),
            &budget(2048),
            &null,
            4096,
        ),
        (
            "claude-sonnet-4-5",
            "high",
            None,
            &budget(8192),
            &null,
            16_384,
        ),
        (
            "claude-sonnet-4-5",
            "3000",
            Some(4096),
            &budget(3000),
            &null,
            4096,
        ),
        ("claude-sonnet-4-5", "none", Some(4096), &null, &null, 4096),
        (
            "claude-sonnet-4-6",
            "high",
            Some(900),
            &adaptive,
            &high,
            900,
        ),
        ("claude-opus-5", "high", None, &summarized, &high, 16_384),
        (
            "claude-opus-5",
            "off",
            None,
            &json!({"type": "disabled"}),
            &null,
            16_384,
        ),
        (
            "claude-3-5-haiku-latest",
            "high",
            Some(900),
            &null,
            &null,
            900,
        ),
        ("tinyllama", "low", None, &budget(1024), &null, 8192),
    ];
    for (model, effort, limit, thinking, output, most) in cases {
        let got = thinking_of(model, effort, limit).expect(model);
        let expected = (thinking.clone(), output.clone(), json!(most));
        assert_eq!(got, expected, "{model} {effort}");
    }
    for (model, effort, limit, why) in [
        ("claude-sonnet-4-5", "low", 2000, "at least 2048"),
        (
            "claude-sonnet-4-5",
            "5000",
            4096,
            "less than max_output_tokens (4096)",
        ),
        ("claude-opus-5", "5000", 8000, "write low, medium"),
    ] {
        let refused = thinking_of(model, effort, Some(limit)).expect_err("no room");
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn request_merges_settings_and_omits_refused_ones() {
    let mut config = config();
    config.model = "claude-sonnet-4-6".to_owned();
    config.reasoning = Some("low".to_owned());
    config.seed = Some(7);
    config.stream = false;
    config.extra_body = Some(json!({"metadata": {"user_id": "u"}, "output_config": {"x": 1}}));
    assert_eq!(
        text_of(&config, &OmittedSettings::default()),
        r#"{"model":"claude-sonnet-4-6","messages":[],"thinking":{"type":"adaptive"},"output_config":{"effort":"low","x":1},"temperature":0.0,"max_tokens":4096,"stream":false,"metadata":{"user_id":"u"}}"#
    );
    let omit = OmittedSettings {
        refused: vec!["temperature", OUTPUT_CONFIG, "reasoning"],
        ..OmittedSettings::default()
    };
    assert_eq!(
        text_of(&config, &omit),
        r#"{"model":"claude-sonnet-4-6","messages":[],"max_tokens":4096,"stream":false,"metadata":{"user_id":"u"}}"#
    );
    for owned in ["system", "messages", "tools", "tool_choice"] {
        config.extra_body = Some(json!({owned: 1}));
        assert!(AnthropicDialect::new(&config).is_err(), "{owned}");
    }
}

#[test]
fn address_joins_base_url_and_path() {
    let url = |base: Option<&str>| {
        let mut config = config();
        config.base_url = base.map(str::to_owned);
        AnthropicDialect::new(&config).map(|messages| messages.endpoint.url)
    };
    for (base, expected) in [
        (None, "https://api.anthropic.com/v1/messages"),
        (Some("http://h:8080"), "http://h:8080/v1/messages"),
        (Some("http://h/v1/"), "http://h/v1/messages"),
        (Some("http://h/v2"), "http://h/v2/messages"),
        (Some("http://h/anthropic"), "http://h/anthropic/v1/messages"),
        (Some("http://h/v1/messages"), "http://h/v1/messages"),
    ] {
        assert_eq!(url(base).expect("good"), expected);
    }
    assert!(url(Some("h:8080")).is_err());
}

#[test]
fn other_endpoint_has_the_version_in_the_body_and_the_model_in_the_url() {
    let vertex = AnthropicEndpoint {
        url: "https://v/claude:streamRawPredict".to_owned(),
        key_header: KeyHeader::BEARER,
        version: None,
        version_in_body: Some("vertex-2023-10-16"),
    };
    let there = AnthropicDialect::with_endpoint(&config(), vertex).expect("good");
    let text = body(&there, &[], &[], ToolChoice::NoTools);
    assert!(
        text.starts_with(r#"{"anthropic_version":"vertex-2023-10-16","messages""#),
        "{text}"
    );
    assert!(!text.contains("claude"), "{text}");
    assert_eq!(there.extra_headers(), []);
    assert_eq!(
        messages(&config()).extra_headers(),
        [("anthropic-version", "2023-06-01")]
    );
}

fn raw(text: &str) -> Arc<RawValue> {
    Arc::from(RawValue::from_string(text.to_owned()).expect("JSON"))
}

fn model_turn(native: &[&str], calls: &[(&str, &str)]) -> HistoryItem {
    let calls = calls.iter().map(|(id, raw)| ReplyCall {
        id: (*id).to_owned(),
        name: "f".to_owned(),
        raw: (*raw).to_owned(),
    });
    HistoryItem::Model {
        native: native.iter().map(|text| raw(text)).collect(),
        reply: ModelReply {
            calls: calls.collect(),
            ..ModelReply::default()
        },
    }
}

#[test]
fn reply_is_sent_back_byte_for_byte_and_tool_responses_come_first_in_one_message() {
    let native = [
        r#"{ "type":"thinking", "thinking":"hm\u00e9","signature":"S+/=" }"#,
        r#"{"type":"redacted_thinking","data":"AA=="}"#,
        r#"{"type":"server_thing","n":1.50}"#,
        r#"{"type":"tool_use","id":"t1","name":"f","input":{ "n": 1.50 },"caller":{"x":1}}"#,
        r#"{"type":"tool_use","id":"t2","name":"f","input":{}}"#,
    ];
    let mut history = opening();
    history.push(model_turn(&native, &[("t1", r#"{"n":1.5}"#), ("t2", "{}")]));
    history.push(HistoryItem::ToolResponses(vec![
        ToolResponse::ok("page"),
        ToolResponse::error("no such page"),
    ]));
    history.push(HistoryItem::User(vec![HistoryBlock::System(
        "Conclude.".to_owned(),
    )]));
    let pieces = pieces_of(&config(), &history, &OmittedSettings::default());
    assert_eq!(
        &*pieces[2],
        format!(
            r#",{{"role":"assistant","content":[{}]}}"#,
            native.join(",")
        )
    );
    assert_eq!(
        &*pieces[3],
        r#",{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"page"},{"type":"tool_result","tool_use_id":"t2","content":"Error: no such page","is_error":true},{"type":"text","text":"Conclude."}]}"#
    );
    history.push(HistoryItem::ToolResponses(vec![ToolResponse::ok("one")]));
    let turn = TurnRequest {
        history: &history,
        tools: &[],
        tool_choice: ToolChoice::NoTools,
    };
    let refused = messages(&config()).build_body_pieces(&turn, &OmittedSettings::default());
    assert!(matches!(refused, Err(ProviderError::Request(_))));
}

#[test]
fn invalid_input_is_sent_back_in_canonical_form_without_other_changes() {
    // (the input in the block, the judge's canonical form, the input that is sent)
    let cases = [
        (r#""{\"a\": 1""#, r#"{"a":1}"#, r#"{"a":1}"#),
        (r#""{\"a\": 1""#, r#"{"a": 1"#, "{}"),
        ("null", "", "{}"),
        ("[1]", "[1]", "{}"),
        (r#"{"a": 1e400}"#, r#"{"b":1}"#, r#"{"a": 1e400}"#),
    ];
    for (written, canonical, sent) in cases {
        let block =
            |input: &str| format!(r#"{{"type":"tool_use", "id":"t2","input":{input},"name":"f"}}"#);
        let signed = r#"{"type":"thinking","thinking":"input","signature":"s"}"#;
        let first = r#"{"type":"tool_use","id":"t1","name":"f","input":{}}"#;
        let history = [
            model_turn(
                &[signed, first, &block(written)],
                &[("t1", r#"{"x":1}"#), ("t2", canonical)],
            ),
            HistoryItem::ToolResponses(vec![ToolResponse::ok("a"), ToolResponse::ok("b")]),
        ];
        let text = pieces_of(&config(), &history, &OmittedSettings::default()).concat();
        let all_blocks = [signed, first, &block(sent)].join(",");
        assert!(text.contains(&all_blocks), "{written}: {text}");
    }
}
