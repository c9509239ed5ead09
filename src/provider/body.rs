//! What both dialects need to write a body: settings, `extra_body`, and JSON put together of pieces.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use super::client::Omit;
use super::refusal::Param;
use super::{Choice, ProviderError, TurnRequest};
use crate::model::{HistoryBlock, JudgeConfig, ToolDeclaration};

/// A JSON object in the making, cut into pieces where large parts begin and end.
#[derive(Debug)]
pub(super) struct Pieces {
    done: Vec<Arc<str>>,
    open: String,
}

impl Pieces {
    /// An object without members yet.
    pub(super) fn new() -> Self {
        Self {
            done: Vec::new(),
            open: "{".to_owned(),
        }
    }

    /// A member.
    pub(super) fn member(&mut self, key: &str, value: &impl Serialize) {
        self.key(key);
        self.open.push_str(&json(value));
    }

    /// A member that is an array; each element is a piece of its own, its comma included.
    pub(super) fn array(&mut self, key: &str, elements: Vec<String>) {
        self.key(key);
        self.open.push('[');
        for (at, element) in elements.into_iter().enumerate() {
            if at == 0 {
                self.close_piece();
                self.done.push(element.into());
            } else {
                self.done.push(format!(",{element}").into());
            }
        }
        self.open.push(']');
    }

    /// The declared functions, a piece of its own that bodies share. Whether there are any: without, there is no key.
    pub(super) fn tools(&mut self, declared: Option<Arc<str>>) -> bool {
        let Some(declared) = declared else {
            return false;
        };
        self.key("tools");
        self.close_piece();
        self.done.push(declared);
        true
    }

    /// All members of a map.
    pub(super) fn members(&mut self, map: &Map<String, Value>) {
        for (key, value) in map {
            self.member(key, value);
        }
    }

    /// The object, complete.
    pub(super) fn finish(mut self) -> Vec<Arc<str>> {
        self.open.push('}');
        self.close_piece();
        self.done
    }

    fn key(&mut self, key: &str) {
        if !(self.done.is_empty() && self.open == "{") {
            self.open.push(',');
        }
        self.open.push_str(&json(&key));
        self.open.push(':');
    }

    fn close_piece(&mut self) {
        if !self.open.is_empty() {
            self.done.push(std::mem::take(&mut self.open).into());
        }
    }
}

/// Any of our own values as JSON text.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings, numbers and maps with string keys are JSON")
}

/// The declared functions a request names: none where the model must answer in text.
pub(super) fn declared<'t>(turn: &TurnRequest<'t>) -> Result<&'t [ToolDeclaration], ProviderError> {
    match &turn.choice {
        Choice::NoTools | Choice::Schema(_) => Ok(&[]),
        Choice::Auto => Ok(turn.tools),
        Choice::Only(name) if turn.tools.iter().any(|tool| tool.name == *name) => Ok(turn.tools),
        Choice::Only(name) => Err(ProviderError::Request(format!(
            "the model can only call a function that is declared, and `{name}` is not"
        ))),
    }
}

/// Keys of `extra_body` that would say something else than the judge's own configuration does.
const OWNED: [&str; 15] = [
    "model",
    "messages",
    "system",
    "contents",
    "systemInstruction",
    "system_instruction",
    "stream",
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "toolConfig",
    "tool_config",
    "n",
    "candidateCount",
];

/// `extra_body` as a map, or why it cannot be one.
pub(super) fn extra(config: &JudgeConfig) -> Result<Map<String, Value>, ProviderError> {
    let map = match &config.extra_body {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(map)) => map.clone(),
        Some(_) => {
            return Err(ProviderError::Request(format!(
                "judge `{}`: extra_body must be a mapping of request keys",
                config.name
            )));
        }
    };
    let generation = map.get("generationConfig").and_then(Value::as_object);
    let inner = generation.into_iter().flat_map(Map::keys);
    match map
        .keys()
        .chain(inner)
        .find(|key| OWNED.contains(&key.as_str()))
    {
        None => Ok(map),
        Some(key) => Err(ProviderError::Request(format!(
            "judge `{}`: extra_body must not hold `{key}`: dicta sets it from the judge's own keys",
            config.name
        ))),
    }
}

/// Adds `extra` to the settings, objects merged, everything else replaced; then takes out what the server refused.
pub(super) fn merge(
    settings: &mut Map<String, Value>,
    extra: &Map<String, Value>,
    params: &[Param],
    omit: &Omit,
) {
    deep(settings, extra);
    for param in params.iter().filter(|p| omit.refused.contains(&p.setting)) {
        for path in param.at {
            remove(settings, path);
        }
    }
}

fn deep(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Object(into)), Value::Object(from)) => deep(into, from),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

fn remove(map: &mut Map<String, Value>, path: &[&str]) {
    match path {
        [] => {}
        [key] => {
            map.shift_remove(*key);
        }
        [key, deeper @ ..] => {
            if let Some(Value::Object(inner)) = map.get_mut(*key) {
                remove(inner, deeper);
            }
        }
    }
}

/// Blocks of one user item, neighbours of a kind joined by a blank line.
pub(super) fn paragraphs(blocks: &[HistoryBlock]) -> Vec<HistoryBlock> {
    let mut out: Vec<HistoryBlock> = Vec::new();
    for block in blocks {
        match (out.last_mut(), block) {
            (Some(HistoryBlock::System(all)), HistoryBlock::System(text))
            | (Some(HistoryBlock::Text(all)), HistoryBlock::Text(text)) => {
                all.push_str("\n\n");
                all.push_str(text);
            }
            _ => out.push(block.clone()),
        }
    }
    out
}

/// Says that a history cannot be sent: a defect of the caller, told instead of sent.
pub(super) fn unpaired(answers: usize, calls: usize) -> ProviderError {
    ProviderError::Request(format!(
        "the history holds {answers} answers to {calls} calls"
    ))
}

/// A configured or default base as a URL.
pub(super) fn base(config: &JudgeConfig, default: &str) -> Result<url::Url, ProviderError> {
    let text = config.base_url.as_deref().unwrap_or(default);
    let url = url::Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| {
        ProviderError::Request(format!(
            "judge `{}`: base_url `{text}` must be an http or https address, as in {default}",
            config.name
        ))
    })
}

/// The path of a base without its last slash, with the version at its end: `version` where it has none of its own.
pub(super) fn versioned(base: &url::Url, version: &str) -> String {
    let path = base.path().trim_end_matches('/');
    match path.rsplit('/').next() {
        Some(last) if is_version(last) => path.to_owned(),
        _ => format!("{path}/{version}"),
    }
}

/// `v1`, `v1beta`, `v1alpha2`.
fn is_version(segment: &str) -> bool {
    let rest = segment.strip_prefix('v').unwrap_or_default();
    let name = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
    rest.starts_with(|c: char| c.is_ascii_digit()) && ["", "alpha", "beta"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProviderKind;
    use serde_json::json;

    #[test]
    fn pieces_concatenate_to_the_object() {
        let mut pieces = Pieces::new();
        pieces.member("model", &"m");
        pieces.array("messages", vec!["{\"a\":1}".into(), "{\"b\":2}".into()]);
        pieces.array("none", Vec::new());
        pieces.member("stream", &true);
        let all = pieces.finish();
        let texts: Vec<&str> = all.iter().map(|p| &**p).collect();
        assert_eq!(
            texts,
            [
                r#"{"model":"m","messages":["#,
                r#"{"a":1}"#,
                r#",{"b":2}"#,
                r#"],"none":[],"stream":true}"#,
            ]
        );
    }

    #[test]
    fn extra_body_merges_objects_and_may_not_speak_for_the_judge() {
        let mut config = JudgeConfig::new("j", ProviderKind::Openai);
        config.extra_body =
            Some(json!({"provider": {"order": ["a"]}, "top_p": 0.5, "o": {"x": 1}}));
        let extra = extra(&config).expect("fine");
        let Value::Object(mut settings) = json!({"top_p": 1, "o": {"x": 0, "y": 2}}) else {
            unreachable!()
        };
        merge(&mut settings, &extra, &[], &Omit::default());
        assert_eq!(
            Value::Object(settings),
            json!({"top_p": 0.5, "o": {"x": 1, "y": 2}, "provider": {"order": ["a"]}})
        );
        for bad in [json!({"tools": []}), json!({"messages": []}), json!([1])] {
            config.extra_body = Some(bad);
            assert!(super::extra(&config).is_err());
        }
    }
}
