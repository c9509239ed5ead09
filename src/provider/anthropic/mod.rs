//! Anthropic Messages, and the servers that speak it.
//!
//! Posts to `base_url` + `/v1/messages` (a base that ends in a version keeps it), with `x-api-key` and
//! `anthropic-version`. Format: Anthropic's reference, and the deviations that [`stream`] accepts.
//!
//! **The version is 2023-06-01** unless `headers:` sets another. The newer one, 2026-10-21, accepts nothing more. It
//! refuses every sampling setting, and so every judge with a temperature, and gateways don't know it.
//!
//! **A function can't be forced if the model thinks**, because the service refuses the combination. On the last turn
//! of such a judge, dicta declares only that function, lets the model choose, and adds a text that names it.

mod blocks;
mod explain;
mod history;
mod stream;

pub(super) use self::explain::explain_body;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::capabilities::claude::{self, ThinkingMode};
use super::client::{Dialect, KeyHeader, OmittedSettings, ReplyReader};
use super::request_body::{
    BodyBuilder, append_version, check_declared_tools, merge_settings, parse_base_url,
    parse_extra_body, to_json as text,
};
use super::server_error::{OmittableSetting, new_omittable_setting};
use super::tool_declarations::ToolDeclarationCache;
use super::{ProviderError, ToolChoice, TurnRequest};
use crate::model::{JudgeConfig, ToolDeclaration, TurnIx};

pub(super) const DEFAULT_BASE: &str = "https://api.anthropic.com";
const API_VERSION: &str = "2023-06-01";

/// The smallest thinking budget that the service accepts, in tokens.
const LEAST_BUDGET: u32 = 1024;

/// Both settings under `output_config`: an older server knows neither.
const OUTPUT_CONFIG: &str = "structured output and effort";

/// The settings that a server may refuse and dicta can omit.
///
/// The server's message about thinking with a forced call begins with `Thinking`; the forced call is omitted then, so
/// only lower-case `thinking` matches.
const OMITTABLE_SETTINGS: [OmittableSetting; 4] = [
    new_omittable_setting("temperature", &["temperature"], &[&["temperature"]]),
    new_omittable_setting("tool_choice", &["tool_choice"], &[&["tool_choice"]]),
    new_omittable_setting(
        OUTPUT_CONFIG,
        &[
            "output_config",
            "output_format",
            "output format",
            "structured output",
            "structured outputs",
            "json_schema",
            "effort",
        ],
        &[&["output_config"]],
    ),
    new_omittable_setting(
        "reasoning",
        &["thinking", "budget_tokens"],
        &[&["thinking"]],
    ),
];

/// The differences between the hosts of Claude: the URL, the header of the key, and the place of the version.
///
/// On Vertex AI the URL names the model, the key is a bearer token, and the version is `anthropic_version` in the
/// body.
#[derive(Debug, Clone)]
pub(super) struct AnthropicEndpoint {
    /// The URL for requests.
    pub(super) url: String,
    /// The header with the key.
    pub(super) key_header: KeyHeader,
    /// The `anthropic-version`, if it is a header.
    pub(super) version: Option<&'static str>,
    /// The `anthropic_version`, if it is in the body instead. The body then names no model.
    pub(super) version_in_body: Option<&'static str>,
}

impl AnthropicEndpoint {
    /// The endpoint of Anthropic itself, or of a compatible server.
    fn from_config(config: &JudgeConfig) -> Result<Self, ProviderError> {
        let mut url = parse_base_url(config, DEFAULT_BASE)?;
        let path = url.path().trim_end_matches('/');
        // A base URL may be the whole address, the version, or only the host.
        if !path.ends_with("/messages") {
            let path = append_version(&url, "v1");
            url.set_path(&format!("{path}/messages"));
        }
        Ok(Self {
            url: url.into(),
            key_header: KeyHeader {
                name: "x-api-key",
                prefix: "",
            },
            version: Some(API_VERSION),
            version_in_body: None,
        })
    }
}

/// The dialect of one judge.
#[derive(Debug)]
pub(super) struct AnthropicDialect {
    config: JudgeConfig,
    endpoint: AnthropicEndpoint,
    extra_body: Map<String, Value>,
    tool_declarations: ToolDeclarationCache,
    max_tokens: u32,
    thinking_settings: Map<String, Value>,
}

impl AnthropicDialect {
    pub(super) fn new(config: &JudgeConfig) -> Result<Self, ProviderError> {
        Self::with_endpoint(config, AnthropicEndpoint::from_config(config)?)
    }

    /// The dialect at another endpoint.
    pub(super) fn with_endpoint(
        config: &JudgeConfig,
        endpoint: AnthropicEndpoint,
    ) -> Result<Self, ProviderError> {
        let limit = config.max_output_tokens;
        // The protocol requires `max_tokens`, so there is always a limit.
        let limit = limit.unwrap_or_else(|| claude::default_max_tokens(&config.model));
        Ok(Self {
            thinking_settings: build_thinking_settings(config, limit)?,
            extra_body: parse_extra_body(config)?,
            tool_declarations: ToolDeclarationCache::default(),
            max_tokens: limit,
            endpoint,
            config: config.clone(),
        })
    }

    /// Returns whether the model thinks, unless the server refused that.
    fn is_thinking(&self, omit: &OmittedSettings) -> bool {
        claude::is_thinking(&self.config) && !omit.contains("reasoning")
    }

    fn build_settings(
        &self,
        turn: &TurnRequest<'_>,
        has_tools: bool,
        omit: &OmittedSettings,
    ) -> Map<String, Value> {
        let mut map = Map::new();
        if let ToolChoice::ForcedTool(name) = &turn.tool_choice
            // The service refuses a forced call together with thinking.
            && !self.is_thinking(omit)
            && !omit.contains("tool_choice")
        {
            let forced = json!({"type": "tool", "name": name});
            map.insert("tool_choice".to_owned(), forced);
        }
        let mut output = Map::new();
        if let ToolChoice::Schema(schema) = &turn.tool_choice {
            let format = json!({"type": "json_schema", "schema": schema});
            output.insert("format".to_owned(), format);
        }
        // `effort` belongs into `output_config`; the other keys are at the top level.
        if !omit.contains("reasoning") {
            for (key, value) in &self.thinking_settings {
                let into = if key == "effort" {
                    &mut output
                } else {
                    &mut map
                };
                into.insert(key.clone(), value.clone());
            }
        }
        if !output.is_empty() && !omit.contains(OUTPUT_CONFIG) {
            map.insert("output_config".to_owned(), output.into());
        }
        if let Some(temperature) = self.config.temperature
            && !omit.contains("temperature")
        {
            map.insert("temperature".to_owned(), json!(temperature));
        }
        map.insert("max_tokens".to_owned(), json!(self.max_tokens));
        map.insert("stream".to_owned(), json!(self.config.stream));
        merge_settings(&mut map, &self.extra_body, &OMITTABLE_SETTINGS, omit);
        if !has_tools {
            // `extra_body` may contain it, and the service refuses it without tools.
            map.shift_remove("disable_parallel_tool_use");
        }
        map
    }
}

/// Converts `reasoning` to `thinking` and, under the key `effort`, the value for `output_config`.
///
/// A word is an effort if the model decides how much it thinks. Otherwise it is a budget that leaves at least half of
/// the limit for the reply. A number is the budget itself.
fn build_thinking_settings(
    config: &JudgeConfig,
    limit: u32,
) -> Result<Map<String, Value>, ProviderError> {
    let refuse = |why: String| {
        let name = &config.name;
        Err(ProviderError::Request(format!("judge `{name}`: {why}")))
    };
    let mut out = Map::new();
    let mut set = |key: &str, value: Value| out.insert(key.to_owned(), value);
    let Some(effort) = config.reasoning.as_deref() else {
        return Ok(out);
    };
    let how = claude::find_thinking_mode(&config.model);
    let number = effort.parse::<u32>().ok().filter(|tokens| *tokens > 0);
    match (how, number) {
        (ThinkingMode::Adaptive { .. }, _) if claude::is_thinking_off(effort) => {
            set("thinking", json!({"type": "disabled"}));
        }
        // These models don't think unless a request asks for it, so no key is necessary.
        (ThinkingMode::Budget, _) if claude::is_thinking_off(effort) => {}
        (
            ThinkingMode::Adaptive {
                hides_reasoning: true,
            },
            Some(_),
        ) => {
            let model = &config.model;
            return refuse(format!(
                "reasoning: {effort} is a budget, which {model} does not take; write low, medium, high, xhigh or max"
            ));
        }
        (
            ThinkingMode::Adaptive {
                hides_reasoning: hides,
            },
            None,
        ) => {
            let mut thinking = json!({"type": "adaptive"});
            if hides {
                // A person must be able to read the reasoning behind a verdict.
                thinking["display"] = json!("summarized");
            }
            set("thinking", thinking);
            // Anthropic has no `minimal`; `low` is its lowest effort.
            let effort = if effort == "minimal" { "low" } else { effort };
            set("effort", json!(effort));
        }
        // An explicit budget works in both modes, except for the newest models above.
        (_, Some(tokens)) => {
            if tokens < LEAST_BUDGET || tokens >= limit {
                return refuse(format!(
                    "reasoning: {tokens} must be at least {LEAST_BUDGET} and less than max_output_tokens ({limit}), \
                     which holds thinking and answer"
                ));
            }
            set("thinking", thinking_budget(tokens));
        }
        (ThinkingMode::Budget, None) => {
            let budget = match effort {
                "minimal" | "low" => LEAST_BUDGET,
                "medium" => 8192,
                _ => 24_576,
            };
            // Thinking counts towards the limit, so at least half of it stays for the reply.
            let room = limit / 2;
            if room < LEAST_BUDGET && claude::is_thinking(config) {
                return refuse(format!(
                    "reasoning: {effort} needs max_output_tokens of at least {} (got {limit}): it holds thinking and answer",
                    2 * LEAST_BUDGET
                ));
            }
            set("thinking", thinking_budget(budget.min(room)));
        }
    }
    Ok(out)
}

fn thinking_budget(tokens: u32) -> Value {
    json!({"type": "enabled", "budget_tokens": tokens})
}

/// Renders the declared functions in this protocol's format.
pub(super) fn render_tool_declarations(tools: &[ToolDeclaration]) -> String {
    let all = tools.iter().map(|tool| {
        json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema})
    });
    text(&all.collect::<Vec<_>>())
}

impl Dialect for AnthropicDialect {
    fn url(&self) -> &str {
        &self.endpoint.url
    }

    fn key_header(&self) -> KeyHeader {
        self.endpoint.key_header
    }

    fn extra_headers(&self) -> Vec<(&'static str, &'static str)> {
        let version = self.endpoint.version.into_iter();
        version.map(|v| ("anthropic-version", v)).collect()
    }

    fn omittable_settings(&self) -> &'static [OmittableSetting] {
        &OMITTABLE_SETTINGS
    }

    fn build_body_pieces(
        &self,
        turn: &TurnRequest<'_>,
        omit: &OmittedSettings,
    ) -> Result<Vec<Arc<str>>, ProviderError> {
        let all = check_declared_tools(turn)?;
        // Without a forced call, dicta declares only that function and asks for it in words.
        let unforced = match &turn.tool_choice {
            ToolChoice::ForcedTool(name)
                if self.is_thinking(omit) || omit.contains("tool_choice") =>
            {
                Some(name)
            }
            _ => None,
        };
        let tools = match unforced {
            None => self
                .tool_declarations
                .get_or_render(all, render_tool_declarations),
            Some(only) => {
                let left: Vec<ToolDeclaration> = all
                    .iter()
                    .filter(|tool| tool.name == *only)
                    .cloned()
                    .collect();
                self.tool_declarations
                    .get_or_render(&left, render_tool_declarations)
            }
        };
        let nudge = unforced.map(|only| {
            format!(
                "This is your last turn, and `{only}` is all that is left to call: call it now."
            )
        });
        let (system, messages) = history::render_messages(turn.history, nudge.as_deref())?;
        let mut body = BodyBuilder::new();
        // On Vertex AI the URL names the model, and the body names the version.
        match self.endpoint.version_in_body {
            Some(version) => body.add_member("anthropic_version", &version),
            None => body.add_member("model", &self.config.model),
        }
        if let Some(system) = system {
            body.add_member("system", &system);
        }
        body.add_array("messages", messages);
        let has_tools = body.add_tools(tools);
        body.add_members(&self.build_settings(turn, has_tools, omit));
        Ok(body.finish())
    }

    fn new_reply_reader(&self, turn: TurnIx) -> Box<dyn ReplyReader> {
        Box::new(stream::AnthropicReplyReader::new(turn))
    }
}

#[cfg(test)]
mod tests;
