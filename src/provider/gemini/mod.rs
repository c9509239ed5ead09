//! The Gemini API: `generateContent` and its stream. Vertex AI speaks it too, at other URLs.
//!
//! Posts to `base_url` + `/v1beta/models/{model}:streamGenerateContent?alt=sse` (a base that ends in a version keeps
//! it), with `x-goog-api-key`. Format: Google's REST reference and recordings of the service. The server refuses a
//! forced function together with a JSON reply type, and [`ToolChoice`] can't express both.

mod explain;
mod finish_reason;
mod history;
mod partial_args;
mod stream;

pub(super) use self::explain::explain_body;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::client::{Dialect, KeyHeader, OmittedSettings, ReplyReader};
use super::request_body::{
    BodyBuilder, SettingsBuilder, append_version, check_declared_tools, merge_settings,
    parse_base_url, parse_extra_body, to_json as text,
};
use super::server_error::{OmittableSetting, new_omittable_setting};
use super::tool_declarations::ToolDeclarationCache;
use super::{ProviderError, ToolChoice, TurnRequest};
use crate::model::{JudgeConfig, ToolDeclaration, TurnIx};

pub(super) const DEFAULT_BASE: &str = "https://generativelanguage.googleapis.com";
const API_VERSION: &str = "v1beta";

/// The settings that a server may refuse and dicta can omit. The service writes the names in both spellings.
const OMITTABLE_SETTINGS: [OmittableSetting; 5] = [
    new_omittable_setting(
        "temperature",
        &["temperature"],
        &[&["generationConfig", "temperature"]],
    ),
    new_omittable_setting("seed", &["seed"], &[&["generationConfig", "seed"]]),
    new_omittable_setting(
        "reasoning",
        &[
            "thinkingConfig",
            "thinking_config",
            "thinkingLevel",
            "thinking_level",
            "thinkingBudget",
            "thinking_budget",
            "Thinking",
            "thinking",
        ],
        &[&["generationConfig", "thinkingConfig"]],
    ),
    new_omittable_setting(
        "max_output_tokens",
        &["maxOutputTokens", "max_output_tokens"],
        &[&["generationConfig", "maxOutputTokens"]],
    ),
    new_omittable_setting(
        "structured output",
        &[
            "responseJsonSchema",
            "response_json_schema",
            "responseMimeType",
            "response_mime_type",
            "JSON mode",
            "response mime type",
            "controlled generation",
            "structured output",
        ],
        &[
            &["generationConfig", "responseMimeType"],
            &["generationConfig", "responseJsonSchema"],
        ],
    ),
];

/// The dialect of one judge.
pub(super) struct GeminiDialect {
    config: JudgeConfig,
    url: String,
    tool_declarations: ToolDeclarationCache,
    extra_body: Map<String, Value>,
}

impl GeminiDialect {
    pub(super) fn new(config: &JudgeConfig) -> Result<Self, ProviderError> {
        let mut url = parse_base_url(config, DEFAULT_BASE)?;
        let path = append_version(&url, API_VERSION);
        let model = match &config.model {
            // Tuned models name their own collection.
            path if path.contains('/') => path.clone(),
            name => format!("models/{name}"),
        };
        url.set_path(&format!("{path}/{model}"));
        Self::with_model_url(config, url)
    }

    /// The dialect for the model at this URL (Vertex AI has its own).
    pub(super) fn with_model_url(
        config: &JudgeConfig,
        mut url: url::Url,
    ) -> Result<Self, ProviderError> {
        // Without `alt=sse` the service streams one JSON array instead of events.
        let method = if config.stream {
            url.query_pairs_mut().append_pair("alt", "sse");
            "streamGenerateContent"
        } else {
            "generateContent"
        };
        let path = url.path().to_owned();
        url.set_path(&format!("{path}:{method}"));
        Ok(Self {
            url: url.into(),
            tool_declarations: ToolDeclarationCache::default(),
            extra_body: parse_extra_body(config)?,
            config: config.clone(),
        })
    }

    /// Builds everything except the conversation and the functions.
    fn build_settings(&self, turn: &TurnRequest<'_>, omit: &OmittedSettings) -> Map<String, Value> {
        let mut settings = SettingsBuilder::new(omit);
        settings.set_if_some("temperature", "temperature", self.config.temperature);
        settings.set_if_some("seed", "seed", self.config.seed);
        let limit = self.config.max_output_tokens;
        settings.set_if_some("max_output_tokens", "maxOutputTokens", limit);
        if let ToolChoice::Schema(schema) = &turn.tool_choice {
            let setting = "structured output";
            // The service needs both keys, so both belong to one omittable setting.
            settings.set(setting, "responseMimeType", json!("application/json"));
            settings.set(setting, "responseJsonSchema", schema.clone());
        }
        if let Some(effort) = &self.config.reasoning {
            settings.set(
                "reasoning",
                "thinkingConfig",
                build_thinking_config(&self.config.model, effort),
            );
        }
        let generation = settings.finish();
        let mut map = Map::new();
        if !generation.is_empty() {
            map.insert("generationConfig".to_owned(), generation.into());
        }
        merge_settings(&mut map, &self.extra_body, &OMITTABLE_SETTINGS, omit);
        map
    }
}

/// Converts `reasoning` to a thinking configuration.
///
/// Gemini 2.5 uses a budget in tokens, with the values of Google's own OpenAI-compatible endpoint. Gemini 2.5 Pro
/// can't turn thinking off, and 128 is its minimum. Later models use a level. A number is a budget for any model.
fn build_thinking_config(model: &str, effort: &str) -> Value {
    let budget = |tokens: i64| json!({"includeThoughts": true, "thinkingBudget": tokens});
    // A number is a budget for every model.
    if let Ok(tokens) = effort.parse() {
        return budget(tokens);
    }
    if !model.contains("gemini-2.5") {
        return json!({"includeThoughts": true, "thinkingLevel": effort.to_uppercase()});
    }
    match effort {
        "none" | "off" if model.contains("pro") => budget(128),
        // Without thinking there are no thoughts to include.
        "none" | "off" => json!({"thinkingBudget": 0}),
        "minimal" | "low" => budget(1024),
        "medium" => budget(8192),
        "high" | "xhigh" | "max" => budget(24_576),
        // -1 lets the model choose its budget.
        _ => budget(-1),
    }
}

pub(super) fn render_tool_declarations(tools: &[ToolDeclaration]) -> String {
    let all = tools.iter().map(|tool| {
        json!({"name": tool.name, "description": tool.description,
            "parametersJsonSchema": tool.schema})
    });
    text(&json!([{"functionDeclarations": all.collect::<Vec<Value>>()}]))
}

impl Dialect for GeminiDialect {
    fn url(&self) -> &str {
        &self.url
    }

    fn key_header(&self) -> KeyHeader {
        KeyHeader::GOOGLE
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
        let (system, contents) = history::render_contents(turn.history)?;
        let mut body = BodyBuilder::new();
        if let Some(system) = system {
            body.add_member("systemInstruction", &json!({"parts": [{"text": system}]}));
        }
        body.add_array("contents", contents);
        // The service refuses `toolConfig` without functions.
        if body.add_tools(tools) {
            let calling = match &turn.tool_choice {
                ToolChoice::ForcedTool(name) => {
                    json!({"mode": "ANY", "allowedFunctionNames": [name]})
                }
                _ => json!({"mode": "AUTO"}),
            };
            body.add_member("toolConfig", &json!({"functionCallingConfig": calling}));
        }
        body.add_members(&self.build_settings(turn, omit));
        Ok(body.finish())
    }

    fn new_reply_reader(&self, turn: TurnIx) -> Box<dyn ReplyReader> {
        Box::new(stream::GeminiReplyReader::new(turn))
    }
}

#[cfg(test)]
mod tests;
