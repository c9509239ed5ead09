//! OpenAI Responses, and the servers that nearly speak it.
//!
//! Posts to `base_url` + `/responses`, with `authorization: Bearer`. The server stores nothing (`store: false`). The
//! reasoning that must survive tool turns arrives encrypted and is sent back unchanged. The protocol has no seed, and
//! dicta records that it omits one (`capabilities`).

mod explain;
mod history;
mod output_items;
mod stream;
mod strict_schema;

pub(super) use self::explain::explain_body;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::client::{Dialect, KeyHeader, OmittedSettings, ReplyReader};
use super::request_body::{
    BodyBuilder, SettingsBuilder, check_declared_tools, merge_settings, parse_base_url,
    parse_extra_body, to_json as text,
};
use super::server_error::{OmittableSetting, new_omittable_setting};
use super::tool_declarations::ToolDeclarationCache;
use super::{ProviderError, ToolChoice, TurnRequest};
use crate::model::{JudgeConfig, ToolDeclaration, TurnIx};

pub(super) const DEFAULT_BASE: &str = "https://api.openai.com/v1";

/// The settings that a server may refuse and dicta can omit.
///
/// The summary comes before the whole: a refusal of `reasoning.summary` names both.
const OMITTABLE_SETTINGS: [OmittableSetting; 8] = [
    new_omittable_setting(
        "reasoning summary",
        &[
            "reasoning.summary",
            "reasoning summaries",
            "reasoning_summary",
        ],
        &[&["reasoning", "summary"]],
    ),
    new_omittable_setting(
        "reasoning",
        &["reasoning", "reasoning.effort", "reasoning_effort"],
        &[&["reasoning"]],
    ),
    new_omittable_setting(
        "encrypted reasoning",
        &[
            "include",
            "reasoning.encrypted_content",
            "encrypted_content",
            "Encrypted content",
        ],
        &[&["include"]],
    ),
    new_omittable_setting("temperature", &["temperature"], &[&["temperature"]]),
    new_omittable_setting(
        "max_output_tokens",
        &["max_output_tokens"],
        &[&["max_output_tokens"]],
    ),
    new_omittable_setting(
        "structured output",
        &[
            "text.format",
            "json_schema",
            "response_format",
            "response format",
            "structured output",
            "structured outputs",
            "json mode",
        ],
        &[&["text", "format"]],
    ),
    new_omittable_setting("tool_choice", &["tool_choice"], &[&["tool_choice"]]),
    new_omittable_setting("store", &["store"], &[&["store"]]),
];

/// The keys of `extra_body` that would contradict the history, or change how the reply arrives.
const RESPONSES_RESERVED_KEYS: [&str; 6] = [
    "input",
    "instructions",
    "previous_response_id",
    "conversation",
    "prompt",
    "background",
];

/// The dialect of one judge.
pub(super) struct ResponsesDialect {
    config: JudgeConfig,
    url: String,
    /// `true` for OpenAI itself, which reports reliably how a reply ended.
    is_openai: bool,
    extra_body: Map<String, Value>,
    tool_declarations: ToolDeclarationCache,
}

impl ResponsesDialect {
    pub(super) fn new(config: &JudgeConfig) -> Result<Self, ProviderError> {
        let mut url = parse_base_url(config, DEFAULT_BASE)?;
        let path = url.path().trim_end_matches('/').to_owned();
        // A base URL may already be the whole address.
        if !path.ends_with("/responses") {
            url.set_path(&format!("{path}/responses"));
        }
        let extra = parse_extra_body(config)?;
        if let Some(key) = extra
            .keys()
            .find(|key| RESPONSES_RESERVED_KEYS.contains(&key.as_str()))
        {
            return Err(ProviderError::Request(format!(
                "judge `{}`: remove `{key}` from extra_body: dicta sends the whole conversation itself",
                config.name
            )));
        }
        Ok(Self {
            tool_declarations: ToolDeclarationCache::default(),
            is_openai: url.host_str() == Some("api.openai.com"),
            url: url.into(),
            extra_body: extra,
            config: config.clone(),
        })
    }

    fn build_settings(
        &self,
        turn: &TurnRequest<'_>,
        has_tools: bool,
        omit: &OmittedSettings,
    ) -> Map<String, Value> {
        let mut settings = SettingsBuilder::new(omit);
        match &turn.tool_choice {
            ToolChoice::ForcedTool(name) => settings.set(
                "tool_choice",
                "tool_choice",
                json!({"type": "function", "name": name}),
            ),
            ToolChoice::Schema(schema) => settings.set(
                "structured output",
                "text",
                json!({"format": {"type": "json_schema", "name": "verdict", "strict": true, "schema": schema}}),
            ),
            ToolChoice::NoTools | ToolChoice::Auto => {}
        }
        settings.set_if_some("temperature", "temperature", self.config.temperature);
        if let Some(effort) = &self.config.reasoning {
            // Only verified organizations receive summaries from OpenAI, so the server may refuse them.
            let asked = if omit.contains("reasoning summary") {
                json!({"effort": effort})
            } else {
                json!({"effort": effort, "summary": "auto"})
            };
            settings.set("reasoning", "reasoning", asked);
        }
        let limit = self.config.max_output_tokens;
        settings.set_if_some("max_output_tokens", "max_output_tokens", limit);
        // Transcripts can be private, so the service must not keep them.
        settings.set("store", "store", json!(false));
        settings.set(
            "encrypted reasoning",
            "include",
            json!(["reasoning.encrypted_content"]),
        );
        settings.set("stream", "stream", json!(self.config.stream));
        let mut map = settings.finish();
        merge_settings(&mut map, &self.extra_body, &OMITTABLE_SETTINGS, omit);
        if !has_tools {
            // `extra_body` may contain them, and servers refuse them without tools.
            map.shift_remove("parallel_tool_calls");
            map.shift_remove("max_tool_calls");
        }
        map
    }

    /// Returns the token limit of the request.
    fn token_limit(&self) -> Option<u64> {
        let configured = self.config.max_output_tokens.map(u64::from);
        let written = self
            .extra_body
            .get("max_output_tokens")
            .and_then(Value::as_u64);
        // `extra_body` wins, as in the request itself.
        written.or(configured)
    }
}

/// Renders the declared functions in this protocol's flat format.
pub(super) fn render_tool_declarations(tools: &[ToolDeclaration]) -> String {
    let all = tools.iter().map(|tool| {
        // `strict` is always present, because its default is true.
        json!({"type": "function", "name": tool.name, "description": tool.description,
            "parameters": tool.schema, "strict": strict_schema::can_be_strict(&tool.schema)})
    });
    text(&all.collect::<Vec<_>>())
}

impl Dialect for ResponsesDialect {
    fn url(&self) -> &str {
        &self.url
    }

    fn key_header(&self) -> KeyHeader {
        KeyHeader::BEARER
    }

    fn omittable_settings(&self) -> &'static [OmittableSetting] {
        &OMITTABLE_SETTINGS
    }

    fn build_body_pieces(
        &self,
        turn: &TurnRequest<'_>,
        omit: &OmittedSettings,
    ) -> Result<Vec<Arc<str>>, ProviderError> {
        let tools = self
            .tool_declarations
            .get_or_render(check_declared_tools(turn)?, render_tool_declarations);
        let (instructions, input) = history::render_input(turn.history)?;
        let mut body = BodyBuilder::new();
        body.add_member("model", &self.config.model);
        if let Some(instructions) = instructions {
            body.add_member("instructions", &instructions);
        }
        body.add_array("input", input);
        let has_tools = body.add_tools(tools);
        body.add_members(&self.build_settings(turn, has_tools, omit));
        Ok(body.finish())
    }

    fn new_reply_reader(&self, turn: TurnIx) -> Box<dyn ReplyReader> {
        // Compatible servers may report `completed` at the token limit, so the reader compares the counts.
        let limit = self.token_limit().filter(|_| !self.is_openai);
        Box::new(stream::ResponsesReplyReader::new(turn, limit))
    }
}

#[cfg(test)]
mod tests;
