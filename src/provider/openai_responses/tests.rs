use std::sync::Arc;

use serde_json::value::RawValue;

use super::super::ProviderError;
use super::super::testing::{body, decl, opening};
use super::*;
use crate::model::{HistoryBlock, HistoryItem, ModelReply, ProviderKind, ReplyCall, ToolResponse};

mod replies;

fn config() -> JudgeConfig {
    let mut config = JudgeConfig::new("j", ProviderKind::OpenaiResponses);
    config.model = "m".to_owned();
    config.base_url = Some("http://127.0.0.1:1/v1".to_owned());
    config
}

fn responses(config: &JudgeConfig) -> ResponsesDialect {
    ResponsesDialect::new(config).expect("a good configuration")
}

fn raw(text: &str) -> Arc<RawValue> {
    Arc::from(RawValue::from_string(text.to_owned()).expect("JSON"))
}

#[test]
fn request_without_tools_has_no_tool_key() {
    let responses = responses(&config());
    assert_eq!(
        body(&responses, &opening(), &[], ToolChoice::NoTools),
        r#"{"model":"m","instructions":"You judge.","input":[{"role":"user","content":[{"type":"input_text","text":"Judge \"this\"."}]}],"temperature":0.0,"max_output_tokens":4096,"store":false,"include":["reasoning.encrypted_content"],"stream":true}"#
    );
    let schema = json!({"type": "object"});
    let tools = [decl("fetch_url")];
    let text = body(&responses, &opening(), &tools, ToolChoice::Schema(schema));
    assert!(!text.contains("tool"), "{text}");
    assert!(text.contains(
        r#""text":{"format":{"type":"json_schema","name":"verdict","strict":true,"schema":{"type":"object"}}}"#
    ));
}

#[test]
fn request_declares_flat_tools_and_can_force_one() {
    let responses = responses(&config());
    let mut tools = [decl("fetch_url"), decl("submit_verdict")];
    tools[1].schema = json!({"type": "object", "properties": {"passed": {"type": "boolean"}},
        "required": ["passed"], "additionalProperties": false});
    let read = |choice| -> Value {
        serde_json::from_str(&body(&responses, &opening(), &tools, choice)).expect("JSON")
    };
    let free = read(ToolChoice::Auto);
    assert_eq!(
        free["tools"][0],
        json!({"type": "function", "name": "fetch_url", "description": "does fetch_url",
            "parameters": tools[0].schema, "strict": false})
    );
    assert_eq!(free["tools"][1]["strict"], true);
    assert_eq!(free.get("tool_choice"), None);
    let forced = read(ToolChoice::ForcedTool("submit_verdict".to_owned()));
    assert_eq!(
        forced["tool_choice"],
        json!({"type": "function", "name": "submit_verdict"})
    );
    let turn = TurnRequest {
        history: &opening(),
        tools: &tools,
        tool_choice: ToolChoice::ForcedTool("other".to_owned()),
    };
    assert!(
        responses
            .build_body_pieces(&turn, &OmittedSettings::default())
            .is_err()
    );
}

#[test]
fn request_has_settings_where_the_server_reads_them() {
    let mut config = config();
    config.seed = Some(7);
    config.reasoning = Some("low".to_owned());
    config.stream = false;
    config.temperature = None;
    config.extra_body = Some(json!({"text": {"verbosity": "low"}, "max_tool_calls": 3}));
    let tail = |omit: &OmittedSettings| {
        let turn = TurnRequest {
            history: &[],
            tools: &[],
            tool_choice: ToolChoice::NoTools,
        };
        let pieces = responses(&config).build_body_pieces(&turn, omit);
        pieces.expect("a body").concat()
    };
    assert_eq!(
        tail(&OmittedSettings::default()),
        r#"{"model":"m","input":[],"reasoning":{"effort":"low","summary":"auto"},"max_output_tokens":4096,"store":false,"include":["reasoning.encrypted_content"],"stream":false,"text":{"verbosity":"low"}}"#,
        "it has no seed"
    );
    let omit = OmittedSettings {
        refused: vec!["reasoning summary", "encrypted reasoning"],
        ..OmittedSettings::default()
    };
    let text = tail(&omit);
    assert!(text.contains(r#""reasoning":{"effort":"low"},"#), "{text}");
    assert!(!text.contains("include"), "{text}");
    for key in RESPONSES_RESERVED_KEYS {
        let mut config = config.clone();
        config.extra_body = Some(json!({ key: "x" }));
        assert!(ResponsesDialect::new(&config).is_err(), "{key}");
    }
}

#[test]
fn refused_setting_is_found_by_its_name() {
    let named = |message: &str| {
        super::super::server_error::find_refused_setting(&OMITTABLE_SETTINGS, message)
            .map(|param| param.setting)
    };
    for (message, setting) in [
        (
            "unsupported_value (param reasoning.summary): Your organization must be verified, or summaries are not available",
            "reasoning summary",
        ),
        (
            "unsupported_parameter (param reasoning.effort): Unsupported parameter: 'reasoning.effort' is not supported with this model.",
            "reasoning",
        ),
        (
            "invalid_request_error (param include): Encrypted content is not supported with this model.",
            "encrypted reasoning",
        ),
        ("Unsupported parameter: 'temperature'", "temperature"),
        ("unknown field `store`", "store"),
    ] {
        assert_eq!(named(message), Some(setting), "{message}");
    }
}

fn turn(native: &[&str], calls: &[(&str, &str)]) -> Vec<HistoryItem> {
    let read = calls.iter().map(|(id, raw)| ReplyCall {
        id: (*id).to_owned(),
        name: "f".to_owned(),
        raw: (*raw).to_owned(),
    });
    let view = ModelReply {
        calls: read.collect(),
        ..ModelReply::default()
    };
    vec![
        HistoryItem::Model {
            native: native.iter().map(|item| raw(item)).collect(),
            reply: view,
        },
        HistoryItem::ToolResponses(calls.iter().map(|(id, _)| ToolResponse::ok(*id)).collect()),
    ]
}

#[test]
fn reply_is_sent_back_byte_for_byte() {
    let reasoning = r#"{ "id":"rs_1","type":"reasoning", "n":1.50,"summary":[],"encrypted_content":"gAAA/+=="}"#;
    let call = r#"{"type":"function_call", "arguments":"{ \"a\": 1 }","call_id":"c1","name":"f"}"#;
    let history = turn(&[reasoning, call], &[("c1", r#"{"a":1}"#)]);
    let request = TurnRequest {
        history: &history,
        tools: &[],
        tool_choice: ToolChoice::NoTools,
    };
    let all = responses(&config())
        .build_body_pieces(&request, &OmittedSettings::default())
        .expect("a body");
    assert_eq!(*all[1], format!("{reasoning},{call}"));
    assert_eq!(
        &*all[2],
        r#",{"type":"function_call_output","call_id":"c1","output":"c1"}"#
    );
}

#[test]
fn invalid_json_arguments_are_sent_back_in_canonical_form() {
    // (as the model wrote them, what the judge made of them, what is sent)
    for (written, canonical, sent) in [
        (r#""{\"a\": 1""#, r#"{"a":1}"#, r#""{\"a\":1}""#),
        (r#""{\"a\": 1""#, r#"{"a": 1"#, r#""{}""#),
        (r#""""#, "", r#""{}""#),
        (r#""\"{}\"""#, r#"{"b":2}"#, r#""{\"b\":2}""#),
        (r#"{"a": 1}"#, "", r#""{\"a\": 1}""#),
    ] {
        let native = |arguments: &str| {
            format!(r#"{{"type":"function_call","arguments":{arguments},"call_id":"c1"}}"#)
        };
        let first = r#"{"type":"function_call","arguments":"{}","call_id":"c0"}"#;
        let note = r#"{"type":"web_search_call","arguments":"not ours"}"#;
        let history = turn(
            &[first, note, &native(written)],
            &[("c0", "{}"), ("c1", canonical)],
        );
        let text = body(&responses(&config()), &history, &[], ToolChoice::NoTools);
        let expected = format!("{first},{note},{}", native(sent));
        assert!(text.contains(&expected), "{written}: {text}");
    }
}

#[test]
fn history_with_unpaired_responses_is_rejected() {
    let history = [HistoryItem::ToolResponses(vec![ToolResponse::ok("x")])];
    let turn = TurnRequest {
        history: &history,
        tools: &[],
        tool_choice: ToolChoice::NoTools,
    };
    let refused = responses(&config()).build_body_pieces(&turn, &OmittedSettings::default());
    assert!(matches!(refused, Err(ProviderError::Request(_))));
}

#[test]
fn later_system_messages_keep_their_position() {
    let mut history = opening();
    history.push(HistoryItem::User(vec![
        HistoryBlock::System("Hurry.".to_owned()),
        HistoryBlock::Text("Now.".to_owned()),
    ]));
    let text = body(&responses(&config()), &history, &[], ToolChoice::NoTools);
    assert!(
        text.contains(
            r#",{"role":"system","content":[{"type":"input_text","text":"Hurry."}]},{"role":"user","#
        ),
        "{text}"
    );
}
