//! The parts of request bodies that all dialects share: settings, `extra_body`, and JSON built from pieces.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use super::client::OmittedSettings;
use super::server_error::OmittableSetting;
use super::{ProviderError, ToolChoice, TurnRequest};
use crate::model::{HistoryBlock, JudgeConfig, ToolDeclaration};

/// A JSON object under construction, cut into pieces where large parts begin and end.
#[derive(Debug)]
pub(super) struct BodyBuilder {
    closed_pieces: Vec<Arc<str>>,
    open_piece: String,
}

impl BodyBuilder {
    /// An object without members.
    pub(super) fn new() -> Self {
        Self {
            closed_pieces: Vec::new(),
            open_piece: "{".to_owned(),
        }
    }

    /// Adds a member.
    pub(super) fn add_member(&mut self, key: &str, value: &impl Serialize) {
        self.write_key(key);
        self.open_piece.push_str(&to_json(value));
    }

    /// Adds a member that is an array; each element with its comma is a piece of its own.
    pub(super) fn add_array(&mut self, key: &str, elements: Vec<String>) {
        self.write_key(key);
        self.open_piece.push('[');
        for (at, element) in elements.into_iter().enumerate() {
            // The comma is part of the element's piece, so a longer history only adds pieces and the recorded
            // ones stay shared.
            if at == 0 {
                self.close_piece();
                self.closed_pieces.push(element.into());
            } else {
                self.closed_pieces.push(format!(",{element}").into());
            }
        }
        self.open_piece.push(']');
    }

    /// Adds the declared functions as a piece that bodies share; returns whether there are any.
    pub(super) fn add_tools(&mut self, declared: Option<Arc<str>>) -> bool {
        let Some(declared) = declared else {
            return false;
        };
        // The key belongs to the piece before, so the declarations alone are the shared piece.
        self.write_key("tools");
        self.close_piece();
        self.closed_pieces.push(declared);
        true
    }

    /// Adds all members of a map.
    pub(super) fn add_members(&mut self, map: &Map<String, Value>) {
        for (key, value) in map {
            self.add_member(key, value);
        }
    }

    /// Returns the pieces of the complete object.
    pub(super) fn finish(mut self) -> Vec<Arc<str>> {
        self.open_piece.push('}');
        self.close_piece();
        self.closed_pieces
    }

    fn write_key(&mut self, key: &str) {
        // The first member has no comma before it.
        if !(self.closed_pieces.is_empty() && self.open_piece == "{") {
            self.open_piece.push(',');
        }
        self.open_piece.push_str(&to_json(&key));
        self.open_piece.push(':');
    }

    fn close_piece(&mut self) {
        if !self.open_piece.is_empty() {
            self.closed_pieces
                .push(std::mem::take(&mut self.open_piece).into());
        }
    }
}

/// The settings of a request in their order, without those that the model or the server refuses.
pub(super) struct SettingsBuilder<'o> {
    omit: &'o OmittedSettings,
    map: Map<String, Value>,
}

impl<'o> SettingsBuilder<'o> {
    /// A builder without settings.
    pub(super) fn new(omit: &'o OmittedSettings) -> Self {
        Self {
            omit,
            map: Map::new(),
        }
    }

    /// Sets `key` of the body, unless `setting` is omitted.
    pub(super) fn set(&mut self, setting: &str, key: &str, value: Value) {
        if !self.omit.contains(setting) {
            self.map.insert(key.to_owned(), value);
        }
    }

    /// Sets `key` of the body if the judge configures a value.
    pub(super) fn set_if_some(&mut self, setting: &str, key: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.set(setting, key, serde_json::json!(value));
        }
    }

    /// Returns the settings as members of the body.
    pub(super) fn finish(self) -> Map<String, Value> {
        self.map
    }
}

/// Formats one of dicta's own values as JSON.
pub(super) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings, numbers and maps with string keys are JSON")
}

/// Returns the functions that a request declares: none if the model must reply in text.
pub(super) fn check_declared_tools<'t>(
    turn: &TurnRequest<'t>,
) -> Result<&'t [ToolDeclaration], ProviderError> {
    match &turn.tool_choice {
        ToolChoice::NoTools | ToolChoice::Schema(_) => Ok(&[]),
        ToolChoice::Auto => Ok(turn.tools),
        ToolChoice::ForcedTool(name) if turn.tools.iter().any(|tool| tool.name == *name) => {
            Ok(turn.tools)
        }
        ToolChoice::ForcedTool(name) => Err(ProviderError::Request(format!(
            "the request forces the function `{name}`, which it doesn't declare"
        ))),
    }
}

/// The keys of `extra_body` that would contradict the judge's own configuration.
const RESERVED_KEYS: [&str; 15] = [
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

/// Parses `extra_body`; returns an error if it isn't a mapping or has a reserved key.
pub(super) fn parse_extra_body(config: &JudgeConfig) -> Result<Map<String, Value>, ProviderError> {
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
    // Gemini has some of these keys one level deeper.
    let generation = map.get("generationConfig").and_then(Value::as_object);
    let inner = generation.into_iter().flat_map(Map::keys);
    match map
        .keys()
        .chain(inner)
        .find(|key| RESERVED_KEYS.contains(&key.as_str()))
    {
        None => Ok(map),
        Some(key) => Err(ProviderError::Request(format!(
            "judge `{}`: remove `{key}` from extra_body: dicta sets it from the judge's own keys",
            config.name
        ))),
    }
}

/// Merges `extra` into the settings (objects merge, everything else is replaced), then removes refused settings.
pub(super) fn merge_settings(
    settings: &mut Map<String, Value>,
    extra: &Map<String, Value>,
    params: &[OmittableSetting],
    omit: &OmittedSettings,
) {
    // The user's `extra_body` wins over dicta's settings, except for what the server refused.
    merge_deep(settings, extra);
    for param in params.iter().filter(|p| omit.refused.contains(&p.setting)) {
        for path in param.body_paths {
            remove_path(settings, path);
        }
    }
}

fn merge_deep(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Object(into)), Value::Object(from)) => merge_deep(into, from),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

fn remove_path(map: &mut Map<String, Value>, path: &[&str]) {
    match path {
        [] => {}
        [key] => {
            map.shift_remove(*key);
        }
        [key, deeper @ ..] => {
            if let Some(Value::Object(inner)) = map.get_mut(*key) {
                remove_path(inner, deeper);
            }
        }
    }
}

/// Joins neighboring blocks of the same kind with a blank line.
pub(super) fn join_paragraphs(blocks: &[HistoryBlock]) -> Vec<HistoryBlock> {
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

/// Adds a paragraph to the instructions, for protocols that have one place for them.
pub(super) fn add_instructions(instructions: &mut Option<String>, text: String) {
    match instructions {
        Some(all) => {
            all.push_str("\n\n");
            all.push_str(&text);
        }
        None => *instructions = Some(text),
    }
}

/// Returns the error for a history that can't be sent, because responses and calls don't match.
pub(super) fn unpaired_responses_error(answers: usize, calls: usize) -> ProviderError {
    ProviderError::Request(format!(
        "the history has {answers} tool responses to {calls} calls"
    ))
}

/// Parses the configured or default base URL.
pub(super) fn parse_base_url(
    config: &JudgeConfig,
    default: &str,
) -> Result<url::Url, ProviderError> {
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

/// Returns the path of a base URL without its last slash; appends `version` if it doesn't end in one.
pub(super) fn append_version(base: &url::Url, version: &str) -> String {
    let path = base.path().trim_end_matches('/');
    match path.rsplit('/').next() {
        Some(last) if is_version(last) => path.to_owned(),
        _ => format!("{path}/{version}"),
    }
}

/// Returns whether a path segment is a version: `v1`, `v1beta`, `v1alpha2`.
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
    fn body_pieces_concatenate_to_the_json_object() {
        let mut pieces = BodyBuilder::new();
        pieces.add_member("model", &"m");
        pieces.add_array("messages", vec!["{\"a\":1}".into(), "{\"b\":2}".into()]);
        pieces.add_array("none", Vec::new());
        pieces.add_member("stream", &true);
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
    fn extra_body_merges_objects_and_rejects_reserved_keys() {
        let mut config = JudgeConfig::new("j", ProviderKind::Openai);
        config.extra_body =
            Some(json!({"provider": {"order": ["a"]}, "top_p": 0.5, "o": {"x": 1}}));
        let extra = parse_extra_body(&config).expect("fine");
        let Value::Object(mut settings) = json!({"top_p": 1, "o": {"x": 0, "y": 2}}) else {
            unreachable!()
        };
        merge_settings(&mut settings, &extra, &[], &OmittedSettings::default());
        assert_eq!(
            Value::Object(settings),
            json!({"top_p": 0.5, "o": {"x": 1, "y": 2}, "provider": {"order": ["a"]}})
        );
        for bad in [json!({"tools": []}), json!({"messages": []}), json!([1])] {
            config.extra_body = Some(bad);
            assert!(parse_extra_body(&config).is_err());
        }
    }
}
