//! The errors that servers report: the message, and the setting that a server refuses.

use serde_json::Value;
use serde_json::value::RawValue;

use super::RequestBody;
use crate::event::DroppedSetting;

/// The most characters of a server's text in an error.
const MAX_ERROR_CHARS: usize = 500;

/// An error of a server, whatever its JSON looks like.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ServerError {
    /// The text for people: the server's code and parameter, then its message. Not redacted or cut yet.
    pub(super) message: String,
    /// A number instead of a status.
    pub(super) code: Option<u64>,
    /// The error itself, for details.
    pub(super) error: Value,
}

/// Parses an error body.
///
/// Accepts `{"error": {…}}`, `{"error": "…"}`, a one-element array of those (Gemini), `{"message": …}`, `{"detail":
/// …}`, and text.
pub(super) fn parse_error_body(body: &str) -> ServerError {
    let parsed: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let parsed = match parsed {
        Value::Array(mut all) if !all.is_empty() => all.swap_remove(0),
        other => other,
    };
    match parsed {
        Value::Object(mut map) => {
            let inner = map.remove("error").filter(|e| !e.is_null());
            parse_error_value(inner.unwrap_or(Value::Object(map)))
        }
        _ if body.trim().is_empty() => parse_error_value(Value::from("it gave no reason")),
        _ => parse_error_value(Value::from(
            super::foreign_text::read_web_page(body)
                .unwrap_or_else(|| body.split_whitespace().collect::<Vec<_>>().join(" ")),
        )),
    }
}

/// Parses the value of `error`.
pub(super) fn parse_error_value(error: Value) -> ServerError {
    let text = |key: &str| error.get(key).and_then(Value::as_str);
    let mut message = match &error {
        Value::String(text) => text.clone(),
        _ => match (text("message"), error.get("detail")) {
            (Some(message), _) => message.to_owned(),
            (None, Some(Value::String(detail))) => detail.clone(),
            (None, Some(detail)) => detail.to_string(),
            (None, None) => error.to_string(),
        },
    };
    // OpenRouter puts the message of the server behind it here.
    if let Some(raw) = error.pointer("/metadata/raw").and_then(Value::as_str) {
        message = format!("{message}: {raw}");
    }
    let kind = text("code").or(text("status")).or(text("type"));
    // A number repeats the HTTP status, which the message already has.
    let kind = kind.filter(|kind| kind.parse::<u64>().is_err());
    // The code comes first, so that cutting the text keeps it.
    message = match (kind, text("param")) {
        (Some(kind), Some(param)) => format!("{kind} (param {param}): {message}"),
        (Some(kind), None) => format!("{kind}: {message}"),
        (None, Some(param)) => format!("(param {param}) {message}"),
        (None, None) => message,
    };
    let code = match error.get("code") {
        Some(Value::Number(n)) => n.as_u64(),
        Some(Value::String(n)) => n.parse().ok(),
        _ => None,
    };
    ServerError {
        message,
        code,
        error,
    }
}

impl ServerError {
    /// Returns whether another attempt may succeed, if this error is inside a reply that began well.
    ///
    /// An error without a code counts as temporary, because the server had accepted the request.
    pub(super) fn is_retryable(&self) -> bool {
        if super::server_limits::is_quota_exhausted(&self.error) {
            return false;
        }
        if let Some(code) = self.code {
            // 499 is a gateway's code for a client that closed the connection.
            return super::retry::is_retryable_status(code) || code == 499;
        }
        let word = |key: &str| self.error.get(key).and_then(Value::as_str);
        // Errors about the request or the key stay the same on every attempt.
        ![word("type"), word("code")]
            .into_iter()
            .flatten()
            .any(|word| word.contains("invalid") || word.contains("authentication"))
    }
}

/// Returns the first 500 characters. Keeps control characters; the code that displays the text handles them.
pub(super) fn truncate_text(text: &str) -> String {
    match text.char_indices().nth(MAX_ERROR_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A setting in a request body that a server may refuse.
#[derive(Debug)]
pub(super) struct OmittableSetting {
    /// The name in dicta.yaml.
    pub(super) setting: &'static str,
    /// The names that servers use when they refuse it.
    pub(super) server_names: &'static [&'static str],
    /// The paths of keys to it in the body.
    pub(super) body_paths: &'static [&'static [&'static str]],
    /// The key for the same value, if the server names that key instead.
    pub(super) replacement_key: Option<&'static str>,
}

/// A setting that is omitted once a server refuses it.
pub(super) const fn new_omittable_setting(
    setting: &'static str,
    named: &'static [&'static str],
    at: &'static [&'static [&'static str]],
) -> OmittableSetting {
    OmittableSetting {
        setting,
        server_names: named,
        body_paths: at,
        replacement_key: None,
    }
}

/// Returns the setting that a message refuses, if it names one.
///
/// A value out of range is a mistake that the user must fix, so it doesn't count.
pub(super) fn find_refused_setting<'p>(
    params: &'p [OmittableSetting],
    message: &str,
) -> Option<&'p OmittableSetting> {
    const HINTS: [&str; 28] = [
        "unsupported",
        "not support",
        "n't support",
        "unknown",
        "unrecognized",
        "unexpected",
        "extra inputs",
        "not permitted",
        "not allowed",
        "deprecated",
        "cannot find field",
        "is not enabled",
        "not available",
        "n't available",
        // DeepSeek: "This response_format type is unavailable now".
        "unavailable",
        // Moonshot: "tool_choice 'specified' is incompatible with thinking enabled".
        "incompatible",
        "not compatible",
        // Vertex AI: "Thinking_config.include_thoughts is only enabled when thinking is enabled".
        "only enabled when",
        // Anthropic's words about two settings that exclude each other.
        "may not be enabled",
        "may only be set",
        "not implemented",
        // Groq: "json mode cannot be combined with tool/function calling".
        "cannot be combined",
        // Moonshot: "invalid temperature: only 1 is allowed for this model".
        "is allowed for this model",
        "not valid for this model",
        // Gemini: "Budget 0 is invalid. This model only works in thinking mode."
        "only works in",
        "not yet support",
        "不支持",
        "仅支持",
    ];
    // A list of the accepted values. dicta chooses the value of these settings, so the user can't fix it.
    const VALUE_HINTS: [&str; 5] = [
        "input should be '",
        "supported values are",
        // LM Studio: "Invalid tool_choice type: 'object'. Supported string values: none, auto, required".
        "supported string values",
        "one of the allowed values",
        "must either be",
    ];
    const CHOSEN_BY_DICTA: [&str; 2] = ["structured output", "tool_choice"];
    let lower = message.to_lowercase();
    // A schema that the server can't use is a defect that must be visible, so it isn't omitted.
    let hinted = HINTS.iter().any(|hint| lower.contains(hint));
    let lists_values = VALUE_HINTS.iter().any(|hint| lower.contains(hint));
    if !(hinted || lists_values) || lower.contains("invalid schema") {
        return None;
    }
    // The server's own name of the parameter wins over words in its sentence.
    let (_, param) = message.split_once("(param ").unwrap_or_default();
    let (param, _) = param.split_once(')').unwrap_or_default();
    let place = |text: &str, param: &OmittableSetting| {
        let places = param.server_names.iter().filter_map(|name| {
            // An English word at the beginning of a sentence (`Thinking may not …`) names no key. A name with an
            // underscore is a key in any case: Vertex AI writes `Thinking_config`. So are two words.
            if name.contains(['_', ' ']) {
                find_word(&text.to_ascii_lowercase(), &name.to_ascii_lowercase())
            } else {
                find_word(text, name)
            }
        });
        places.min()
    };
    for text in [param, message] {
        let found = params
            .iter()
            .filter_map(|param| Some((place(text, param)?, param)))
            // The setting that is named first is the one that the server means.
            .min_by_key(|(at, _)| *at);
        if let Some((_, param)) = found {
            return (hinted || CHOSEN_BY_DICTA.contains(&param.setting)).then_some(param);
        }
    }
    None
}

fn find_word(text: &str, word: &str) -> Option<usize> {
    // Whole words only: `max_tokens` must not match `max_tokens_limit`.
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word)
        .find(|(at, _)| !text[..*at].ends_with(part) && !text[at + word.len()..].starts_with(part))
        .map(|(at, _)| at)
}

/// Returns the body without a setting, or with it under its other key; `None` if the body doesn't have it.
///
/// All other bytes stay unchanged.
pub(super) fn remove_setting(
    body: &RequestBody,
    param: &OmittableSetting,
    rename: bool,
    dropped: DroppedSetting,
) -> Option<RequestBody> {
    let mut text = body.text();
    let mut changed = false;
    for path in param.body_paths {
        let to = param.replacement_key.filter(|_| rename);
        if let Some(shorter) = remove_key(&text, path, to) {
            text = shorter;
            changed = true;
        }
    }
    let mut all = body.dropped.clone();
    all.push(dropped);
    changed.then(|| RequestBody {
        pieces: vec![text.into()],
        dropped: all,
    })
}

fn remove_key(object: &str, path: &[&str], rename: Option<&str>) -> Option<String> {
    let (key, deeper) = path.split_first()?;
    // Raw values in their order keep every other byte of the body.
    let map: indexmap::IndexMap<String, &RawValue> = serde_json::from_str(object).ok()?;
    let held = map.get(*key)?;
    let inner = if deeper.is_empty() {
        None
    } else {
        Some(remove_key(held.get(), deeper, rename)?)
    };
    let mut out = String::with_capacity(object.len());
    out.push('{');
    for (name, value) in &map {
        let (name, value) = match (name == key, &inner, rename) {
            (false, ..) => (name.as_str(), value.get()),
            (true, Some(inner), _) => (name.as_str(), inner.as_str()),
            (true, None, Some(other)) => (other, value.get()),
            (true, None, None) => continue,
        };
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(&Value::from(name).to_string());
        out.push(':');
        out.push_str(value);
    }
    out.push('}');
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn error_is_parsed_in_every_shape() {
        let cases = [
            (
                r#"{"error":{"message":"no","type":"invalid_request_error","param":"seed","code":"unsupported_parameter"}}"#,
                "unsupported_parameter (param seed): no",
                None,
            ),
            (
                r#"[{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}]"#,
                "RESOURCE_EXHAUSTED: slow down",
                Some(429),
            ),
            (r#"{"error":"model not found"}"#, "model not found", None),
            (
                r#"{"object":"error","message":"flat","code":400}"#,
                "flat",
                Some(400),
            ),
            (r#"{"detail":"Not Found"}"#, "Not Found", None),
            (
                r#"{"detail":[{"loc":["body"]}]}"#,
                r#"[{"loc":["body"]}]"#,
                None,
            ),
            (
                r#"{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"upstream"}}}"#,
                "Provider returned error: upstream",
                Some(502),
            ),
            (
                "<html>\n  <b>Bad\tGateway</b>",
                "a web page: Bad Gateway",
                None,
            ),
            ("", "it gave no reason", None),
            ("null", "null", None),
        ];
        for (body, message, code) in cases {
            let error = parse_error_body(body);
            assert_eq!(
                (error.message.as_str(), error.code),
                (message, code),
                "{body}"
            );
        }
        let long = truncate_text(&"é".repeat(600));
        assert_eq!(long.chars().count(), 501);
    }

    const PARAMS: [OmittableSetting; 2] = [
        OmittableSetting {
            setting: "temperature",
            server_names: &["temperature"],
            body_paths: &[&["generationConfig", "temperature"], &["temperature"]],
            replacement_key: None,
        },
        OmittableSetting {
            setting: "max_output_tokens",
            server_names: &["max_tokens"],
            body_paths: &[&["max_tokens"]],
            replacement_key: Some("max_completion_tokens"),
        },
    ];

    #[test]
    fn error_names_only_an_unsupported_setting() {
        let setting = |message: &str| find_refused_setting(&PARAMS, message).map(|p| p.setting);
        assert_eq!(
            setting(
                "unsupported_parameter (param max_tokens): Use 'max_completion_tokens' instead. Unknown temperature."
            ),
            Some("max_output_tokens")
        );
        assert_eq!(
            setting("Unsupported value: 'temperature' does not support 0 with this model."),
            Some("temperature")
        );
        assert_eq!(
            setting(
                "Invalid JSON payload received. Unknown name \"temperature\" at 'generation_config': Cannot find field."
            ),
            Some("temperature")
        );
        assert_eq!(
            setting("invalid temperature: only 1 is allowed for this model"),
            Some("temperature")
        );
        assert_eq!(setting("Invalid 'temperature': must be at most 2"), None);
        assert_eq!(
            setting("temperature: Input should be '0' or '1'"),
            None,
            "the user chose the value"
        );
        assert_eq!(setting("unsupported_temperature_range"), None);
        assert_eq!(setting("unknown model"), None);
        assert_eq!(
            setting("Invalid schema for 'temperature': oneOf is not permitted"),
            None
        );
    }

    #[test]
    fn removing_a_setting_keeps_all_other_bytes_of_the_body() {
        let body = |text: &str| RequestBody {
            pieces: vec![text.into()],
            dropped: Vec::new(),
        };
        let gone = DroppedSetting {
            what: "x".to_owned(),
            why: "y".to_owned(),
        };
        let text = |body: &RequestBody, param: &OmittableSetting, rename| {
            remove_setting(body, param, rename, gone.clone()).map(|b| b.text())
        };
        let openai = body(r#"{"model":"m","temperature":0.0,"n":1e400,"max_tokens":5}"#);
        assert_eq!(
            text(&openai, &PARAMS[0], false).as_deref(),
            Some(r#"{"model":"m","n":1e400,"max_tokens":5}"#)
        );
        assert_eq!(
            text(&openai, &PARAMS[1], true).as_deref(),
            Some(r#"{"model":"m","temperature":0.0,"n":1e400,"max_completion_tokens":5}"#)
        );
        let gemini = body(r#"{"contents":[],"generationConfig":{"temperature":0,"seed":1}}"#);
        assert_eq!(
            text(&gemini, &PARAMS[0], false).as_deref(),
            Some(r#"{"contents":[],"generationConfig":{"seed":1}}"#)
        );
        assert_eq!(text(&body("{}"), &PARAMS[0], false), None);
        assert_eq!(
            text(&body("edited by hand, badly"), &PARAMS[0], false),
            None
        );
    }

    #[test]
    fn code_of_a_stream_error_decides_its_retry() {
        let retryable = |error| parse_error_value(error).is_retryable();
        assert!(retryable(json!({"code": 503, "message": "x"})));
        assert!(retryable(json!({"code": "502", "message": "x"})));
        assert!(retryable(json!("upstream hiccup")));
        assert!(retryable(json!({"type": "server_error"})));
        assert!(!retryable(json!({"code": 400, "message": "x"})));
        assert!(!retryable(json!({"type": "invalid_request_error"})));
        assert!(!retryable(json!({"code": "insufficient_quota"})));
    }
}
