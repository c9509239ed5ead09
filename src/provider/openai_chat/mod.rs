//! OpenAI Chat Completions, and the many servers that speak it.
//!
//! Posts to `base_url` + `/chat/completions`, with `authorization: Bearer`. Format: OpenAI's reference, and the
//! deviations of Ollama, vLLM, llama.cpp, LM Studio and `OpenRouter` that [`stream`] accepts.

mod explain;
mod history;
mod stream;
mod tool_calls;

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
const OMITTABLE_SETTINGS: [OmittableSetting; 8] = [
    new_omittable_setting("temperature", &["temperature"], &[&["temperature"]]),
    new_omittable_setting("seed", &["seed", "Seed"], &[&["seed"]]),
    new_omittable_setting(
        "reasoning",
        &[
            "reasoning_effort",
            "reasoningEffort",
            "reasoning effort",
            // Ollama: "\"qwen2.5:7b\" does not support thinking", and "think value \"low\" is not supported".
            "support thinking",
            "think value",
        ],
        &[&["reasoning_effort"]],
    ),
    OmittableSetting {
        setting: "max_tokens",
        server_names: &["max_tokens"],
        body_paths: &[&["max_tokens"]],
        replacement_key: Some("max_completion_tokens"),
    },
    OmittableSetting {
        setting: "max_completion_tokens",
        server_names: &["max_completion_tokens"],
        body_paths: &[&["max_completion_tokens"]],
        replacement_key: Some("max_tokens"),
    },
    new_omittable_setting(
        "structured output",
        &[
            "response_format",
            "json_schema",
            "response format",
            "structured output",
            "structured outputs",
            "json mode",
        ],
        &[&["response_format"]],
    ),
    new_omittable_setting(
        "stream_options",
        &["stream_options", "include_usage"],
        &[&["stream_options"]],
    ),
    new_omittable_setting("tool_choice", &["tool_choice"], &[&["tool_choice"]]),
];

/// The dialect of one judge.
pub(super) struct ChatDialect {
    config: JudgeConfig,
    url: String,
    /// `true` for OpenAI itself, which wants the newer names and never omits the end mark.
    is_openai: bool,
    tool_declarations: ToolDeclarationCache,
    extra_body: Map<String, Value>,
}

impl ChatDialect {
    pub(super) fn new(config: &JudgeConfig) -> Result<Self, ProviderError> {
        let mut url = parse_base_url(config, DEFAULT_BASE)?;
        let path = url.path().trim_end_matches('/').to_owned();
        // A base URL may already be the whole address.
        if !path.ends_with("/chat/completions") {
            url.set_path(&format!("{path}/chat/completions"));
        }
        Ok(Self {
            is_openai: url.host_str() == Some("api.openai.com"),
            url: url.into(),
            tool_declarations: ToolDeclarationCache::default(),
            extra_body: parse_extra_body(config)?,
            config: config.clone(),
        })
    }

    /// Returns the key for the token limit: the other one after a server refused the first.
    fn token_limit_key(&self, omit: &OmittedSettings) -> Option<&'static str> {
        // OpenAI's reasoning models refuse `max_tokens`; many compatible servers know no other key.
        let (first, second) = if self.is_openai {
            ("max_completion_tokens", "max_tokens")
        } else {
            ("max_tokens", "max_completion_tokens")
        };
        match (omit.renamed.contains(&first), omit.contains(first)) {
            (true, _) if omit.contains(second) => None,
            (true, _) => Some(second),
            (false, true) => None,
            (false, false) => Some(first),
        }
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
                json!({"type": "function", "function": {"name": name}}),
            ),
            ToolChoice::Schema(schema) => settings.set(
                "structured output",
                "response_format",
                json!({"type": "json_schema", "json_schema": {"name": "verdict", "strict": true, "schema": schema}}),
            ),
            ToolChoice::NoTools | ToolChoice::Auto => {}
        }
        settings.set_if_some("temperature", "temperature", self.config.temperature);
        settings.set_if_some("seed", "seed", self.config.seed);
        let effort = self.config.reasoning.as_ref();
        settings.set_if_some("reasoning", "reasoning_effort", effort);
        if let (Some(limit), Some(key)) =
            (self.config.max_output_tokens, self.token_limit_key(omit))
        {
            settings.set(key, key, json!(limit));
        }
        settings.set("stream", "stream", json!(self.config.stream));
        // Without this option the stream contains no usage.
        if self.config.stream {
            settings.set(
                "stream_options",
                "stream_options",
                json!({"include_usage": true}),
            );
        }
        let mut map = settings.finish();
        merge_settings(&mut map, &self.extra_body, &OMITTABLE_SETTINGS, omit);
        if !has_tools {
            // `extra_body` may contain it, and servers refuse it without tools.
            map.shift_remove("parallel_tool_calls");
        }
        map
    }
}

pub(super) fn render_tool_declarations(tools: &[ToolDeclaration]) -> String {
    let all = tools.iter().map(|tool| {
        json!({"type": "function", "function": {
            "name": tool.name, "description": tool.description, "parameters": tool.schema}})
    });
    text(&all.collect::<Vec<Value>>())
}

impl Dialect for ChatDialect {
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
        let mut body = BodyBuilder::new();
        body.add_member("model", &self.config.model);
        body.add_array("messages", history::render_messages(turn.history)?);
        let has_tools = body.add_tools(tools);
        body.add_members(&self.build_settings(turn, has_tools, omit));
        Ok(body.finish())
    }

    fn new_reply_reader(&self, turn: TurnIx) -> Box<dyn ReplyReader> {
        Box::new(stream::ChatReplyReader::new(turn, self.is_openai))
    }
}

#[cfg(test)]
mod tests;
