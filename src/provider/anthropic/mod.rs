//! Anthropic Messages, and the servers that speak it.
//!
//! `base_url` + `/v1/messages` (a base that ends in its version keeps it), `x-api-key`, `anthropic-version`. Format:
//! Anthropic's reference, and the deviations that [`stream`] tolerates.
//!
//! **The version is 2023-06-01** unless `headers:` says another. The newer one, 2026-10-21, takes nothing that the older
//! does not, refuses every sampling setting and so every judge with a temperature, and gateways do not know it.
//!
//! **A function cannot be forced of a model that thinks** (the service refuses the pair). The last turn of such a judge
//! declares that function alone, lets the model choose, and says in words what is left to choose.

mod blocks;
mod history;
mod stream;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::body::{Pieces, base, declared, extra, json as text, merge, versioned};
use super::caps::claude::{self, Thinking};
use super::client::{Dialect, Omit, Reader};
use super::declared::Declared;
use super::refusal::{Param, leave_out};
use super::{Choice, ProviderError, TurnRequest};
use crate::model::{JudgeConfig, ToolDeclaration, TurnIx};

const DEFAULT_BASE: &str = "https://api.anthropic.com";
const VERSION: &str = "2023-06-01";

/// The least a model thinks where it thinks by a budget.
const LEAST_BUDGET: u32 = 1024;

/// Both settings that stand under `output_config`: an older server knows neither.
const OUTPUT: &str = "structured output and effort";

/// What a server may refuse and we can leave out. `Thinking` with a capital begins the sentence that forbids it beside
/// a forced call; what is left out then is the forced call.
const PARAMS: [Param; 4] = [
    leave_out("temperature", &["temperature"], &[&["temperature"]]),
    leave_out("tool_choice", &["tool_choice"], &[&["tool_choice"]]),
    leave_out(
        OUTPUT,
        &["output_config", "output_format", "json_schema", "effort"],
        &[&["output_config"]],
    ),
    leave_out(
        "reasoning",
        &["thinking", "budget_tokens"],
        &[&["thinking"]],
    ),
];

/// Where requests go, how the key travels and where the version stands: all that differs where somebody else hosts
/// Claude. On Vertex the address names the model, the key is a bearer token and the version is `anthropic_version` in
/// the body.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    /// Where to post.
    pub(super) url: String,
    /// The header that carries the key: its name and what precedes the key.
    pub(super) key_header: (&'static str, &'static str),
    /// `anthropic-version`, where it is a header.
    pub(super) version: Option<&'static str>,
    /// `anthropic_version`, where it stands in the body instead; the body then names no model.
    pub(super) version_in_body: Option<&'static str>,
}

impl Endpoint {
    /// Anthropic itself, or a server that speaks as it does.
    fn anthropic(config: &JudgeConfig) -> Result<Self, ProviderError> {
        let mut url = base(config, DEFAULT_BASE)?;
        let path = url.path().trim_end_matches('/');
        if !path.ends_with("/messages") {
            let path = versioned(&url, "v1");
            url.set_path(&format!("{path}/messages"));
        }
        Ok(Self {
            url: url.into(),
            key_header: ("x-api-key", ""),
            version: Some(VERSION),
            version_in_body: None,
        })
    }
}

/// The dialect of one judge.
#[derive(Debug)]
pub(super) struct Messages {
    config: JudgeConfig,
    endpoint: Endpoint,
    extra: Map<String, Value>,
    tools: Declared,
    limit: u32,
    thinking: Map<String, Value>,
}

impl Messages {
    pub(super) fn new(config: &JudgeConfig) -> Result<Self, ProviderError> {
        Self::at(config, Endpoint::anthropic(config)?)
    }

    /// The dialect somewhere else.
    pub(super) fn at(config: &JudgeConfig, endpoint: Endpoint) -> Result<Self, ProviderError> {
        let limit = config.max_output_tokens;
        let limit = limit.unwrap_or_else(|| claude::default_limit(&config.model));
        Ok(Self {
            thinking: thinking(config, limit)?,
            extra: extra(config)?,
            tools: Declared::default(),
            limit,
            endpoint,
            config: config.clone(),
        })
    }

    /// Whether the model thinks, as far as the server lets it.
    fn thinks(&self, omit: &Omit) -> bool {
        claude::thinks(&self.config) && !omit.has("reasoning")
    }

    fn settings(&self, turn: &TurnRequest<'_>, has_tools: bool, omit: &Omit) -> Map<String, Value> {
        let mut map = Map::new();
        if let Choice::Only(name) = &turn.choice
            && !self.thinks(omit)
            && !omit.has("tool_choice")
        {
            let forced = json!({"type": "tool", "name": name});
            map.insert("tool_choice".to_owned(), forced);
        }
        let mut output = Map::new();
        if let Choice::Schema(schema) = &turn.choice {
            let format = json!({"type": "json_schema", "schema": schema});
            output.insert("format".to_owned(), format);
        }
        if !omit.has("reasoning") {
            for (key, value) in &self.thinking {
                let into = if key == "effort" {
                    &mut output
                } else {
                    &mut map
                };
                into.insert(key.clone(), value.clone());
            }
        }
        if !output.is_empty() && !omit.has(OUTPUT) {
            map.insert("output_config".to_owned(), output.into());
        }
        if let Some(temperature) = self.config.temperature
            && !omit.has("temperature")
        {
            map.insert("temperature".to_owned(), json!(temperature));
        }
        map.insert("max_tokens".to_owned(), json!(self.limit));
        map.insert("stream".to_owned(), json!(self.config.stream));
        merge(&mut map, &self.extra, &PARAMS, omit);
        if !has_tools {
            // They may stand in `extra_body`; without tools they are none of ours.
            map.shift_remove("disable_parallel_tool_use");
        }
        map
    }
}

/// `reasoning` as `thinking` and, under `effort`, what belongs into `output_config`.
///
/// A word is an effort where the model decides itself how much it thinks, and else a budget that leaves at least as much
/// of the limit for the answer; a number is a budget as it stands.
fn thinking(config: &JudgeConfig, limit: u32) -> Result<Map<String, Value>, ProviderError> {
    let refuse = |why: String| {
        let name = &config.name;
        Err(ProviderError::Request(format!("judge `{name}`: {why}")))
    };
    let mut out = Map::new();
    let mut set = |key: &str, value: Value| out.insert(key.to_owned(), value);
    let Some(effort) = config.reasoning.as_deref() else {
        return Ok(out);
    };
    let how = claude::thinking(&config.model);
    let number = effort.parse::<u32>().ok().filter(|tokens| *tokens > 0);
    match (how, number) {
        (Thinking::Adaptive { .. }, _) if claude::is_off(effort) => {
            set("thinking", json!({"type": "disabled"}));
        }
        (Thinking::Budget, _) if claude::is_off(effort) => {}
        (Thinking::Adaptive { hides: true }, Some(_)) => {
            let model = &config.model;
            return refuse(format!(
                "reasoning: {effort} is a budget, which {model} does not take; write low, medium, high, xhigh or max"
            ));
        }
        (Thinking::Adaptive { hides }, None) => {
            let mut thinking = json!({"type": "adaptive"});
            if hides {
                // What is not shown cannot be read by whoever has to trust the verdict.
                thinking["display"] = json!("summarized");
            }
            set("thinking", thinking);
            let effort = if effort == "minimal" { "low" } else { effort };
            set("effort", json!(effort));
        }
        (_, Some(tokens)) => {
            if tokens < LEAST_BUDGET || tokens >= limit {
                return refuse(format!(
                    "reasoning: {tokens} must be at least {LEAST_BUDGET} and less than max_output_tokens ({limit}), \
                     which holds thinking and answer"
                ));
            }
            set("thinking", budget(tokens));
        }
        (Thinking::Budget, None) => {
            let wanted = match effort {
                "minimal" | "low" => LEAST_BUDGET,
                "medium" => 8192,
                _ => 24_576,
            };
            let room = limit / 2;
            if room < LEAST_BUDGET && claude::thinks(config) {
                return refuse(format!(
                    "reasoning: {effort} needs max_output_tokens of at least {} (got {limit}): it holds thinking and answer",
                    2 * LEAST_BUDGET
                ));
            }
            set("thinking", budget(wanted.min(room)));
        }
    }
    Ok(out)
}

fn budget(tokens: u32) -> Value {
    json!({"type": "enabled", "budget_tokens": tokens})
}

/// The declared functions as the protocol spells them.
pub(super) fn declarations(tools: &[ToolDeclaration]) -> String {
    let all = tools.iter().map(|tool| {
        json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema})
    });
    text(&all.collect::<Vec<_>>())
}

impl Dialect for Messages {
    fn url(&self) -> &str {
        &self.endpoint.url
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        self.endpoint.key_header
    }

    fn headers(&self) -> Vec<(&'static str, &'static str)> {
        let version = self.endpoint.version.into_iter();
        version.map(|v| ("anthropic-version", v)).collect()
    }

    fn params(&self) -> &'static [Param] {
        &PARAMS
    }

    fn pieces(&self, turn: &TurnRequest<'_>, omit: &Omit) -> Result<Vec<Arc<str>>, ProviderError> {
        let all = declared(turn)?;
        let unforced = match &turn.choice {
            Choice::Only(name) if self.thinks(omit) || omit.has("tool_choice") => Some(name),
            _ => None,
        };
        let tools = match unforced {
            None => self.tools.piece(all, declarations),
            Some(only) => {
                let left: Vec<ToolDeclaration> = all
                    .iter()
                    .filter(|tool| tool.name == *only)
                    .cloned()
                    .collect();
                self.tools.piece(&left, declarations)
            }
        };
        let nudge = unforced.map(|only| {
            format!(
                "This is your last turn, and `{only}` is all that is left to call: call it now."
            )
        });
        let (system, messages) = history::messages(turn.history, nudge.as_deref())?;
        let mut body = Pieces::new();
        match self.endpoint.version_in_body {
            Some(version) => body.member("anthropic_version", &version),
            None => body.member("model", &self.config.model),
        }
        if let Some(system) = system {
            body.member("system", &system);
        }
        body.array("messages", messages);
        let has_tools = body.tools(tools);
        body.members(&self.settings(turn, has_tools, omit));
        Ok(body.finish())
    }

    fn reader(&self, turn: TurnIx) -> Box<dyn Reader> {
        Box::new(stream::MessagesReader::new(turn))
    }
}

#[cfg(test)]
mod replies_tests;
#[cfg(test)]
mod tests;
