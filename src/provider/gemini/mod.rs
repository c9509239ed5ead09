//! Gemini API: `generateContent` and its stream; Vertex AI speaks it too, at other addresses.
//!
//! `base_url` + `/v1beta/models/{model}:streamGenerateContent?alt=sse` (a base that ends in its version keeps it),
//! `x-goog-api-key`. Format: Google's REST reference and captures of the service. A function is never forced together
//! with a JSON reply type: the server refuses the pair, and [`Choice`] cannot spell it.

mod finish;
mod history;
mod partial;
mod stream;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::body::{Pieces, base, declared, extra, json as text, merge, versioned};
use super::client::{Dialect, Omit, Reader};
use super::declared::Declared;
use super::refusal::{Param, leave_out};
use super::{Choice, ProviderError, TurnRequest};
use crate::model::{JudgeConfig, ToolDeclaration, TurnIx};

const DEFAULT_BASE: &str = "https://generativelanguage.googleapis.com";
const VERSION: &str = "v1beta";

/// What a server may refuse and we can leave out; names in both spellings in which the service writes them.
const PARAMS: [Param; 5] = [
    leave_out(
        "temperature",
        &["temperature"],
        &[&["generationConfig", "temperature"]],
    ),
    leave_out("seed", &["seed"], &[&["generationConfig", "seed"]]),
    leave_out(
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
    leave_out(
        "max_output_tokens",
        &["maxOutputTokens", "max_output_tokens"],
        &[&["generationConfig", "maxOutputTokens"]],
    ),
    leave_out(
        "structured output",
        &[
            "responseJsonSchema",
            "response_json_schema",
            "responseMimeType",
            "response_mime_type",
            "JSON mode",
        ],
        &[
            &["generationConfig", "responseMimeType"],
            &["generationConfig", "responseJsonSchema"],
        ],
    ),
];

/// The dialect of one judge.
pub(super) struct Generate {
    config: JudgeConfig,
    url: String,
    tools: Declared,
    extra: Map<String, Value>,
}

impl Generate {
    pub(super) fn new(config: &JudgeConfig) -> Result<Self, ProviderError> {
        let mut url = base(config, DEFAULT_BASE)?;
        let path = versioned(&url, VERSION);
        let model = match &config.model {
            // Tuned models name their own collection.
            named if named.contains('/') => named.clone(),
            bare => format!("models/{bare}"),
        };
        url.set_path(&format!("{path}/{model}"));
        Self::at(config, url)
    }

    /// For the model at this address (Vertex AI has its own).
    pub(super) fn at(config: &JudgeConfig, mut url: url::Url) -> Result<Self, ProviderError> {
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
            tools: Declared::default(),
            extra: extra(config)?,
            config: config.clone(),
        })
    }

    /// Everything but who said what and the functions.
    fn settings(&self, turn: &TurnRequest<'_>, omit: &Omit) -> Map<String, Value> {
        let mut generation = Map::new();
        let mut set = |setting: &str, key: &str, value: Value| {
            if !omit.has(setting) {
                generation.insert(key.to_owned(), value);
            }
        };
        if let Some(temperature) = self.config.temperature {
            set("temperature", "temperature", json!(temperature));
        }
        if let Some(seed) = self.config.seed {
            set("seed", "seed", json!(seed));
        }
        if let Some(limit) = self.config.max_output_tokens {
            set("max_output_tokens", "maxOutputTokens", json!(limit));
        }
        if let Choice::Schema(schema) = &turn.choice {
            let setting = "structured output";
            set(setting, "responseMimeType", json!("application/json"));
            set(setting, "responseJsonSchema", schema.clone());
        }
        if let Some(effort) = &self.config.reasoning {
            set(
                "reasoning",
                "thinkingConfig",
                thinking(&self.config.model, effort),
            );
        }
        let mut map = Map::new();
        if !generation.is_empty() {
            map.insert("generationConfig".to_owned(), generation.into());
        }
        merge(&mut map, &self.extra, &PARAMS, omit);
        map
    }
}

/// `reasoning` as a thinking configuration. Gemini 2.5 takes a budget in tokens (the figures are those of Google's own
/// OpenAI-compatible endpoint; 2.5 Pro cannot be turned off, 128 is its least), later ones a level. A number is a
/// budget for any model.
fn thinking(model: &str, effort: &str) -> Value {
    let budget = |tokens: i64| json!({"includeThoughts": true, "thinkingBudget": tokens});
    if let Ok(tokens) = effort.parse() {
        return budget(tokens);
    }
    if !model.contains("gemini-2.5") {
        return json!({"includeThoughts": true, "thinkingLevel": effort.to_uppercase()});
    }
    match effort {
        "none" | "off" if model.contains("pro") => budget(128),
        "none" | "off" => json!({"thinkingBudget": 0}),
        "minimal" | "low" => budget(1024),
        "medium" => budget(8192),
        "high" | "xhigh" | "max" => budget(24_576),
        _ => budget(-1),
    }
}

pub(super) fn declarations(tools: &[ToolDeclaration]) -> String {
    let all = tools.iter().map(|tool| {
        json!({"name": tool.name, "description": tool.description,
            "parametersJsonSchema": tool.schema})
    });
    text(&json!([{"functionDeclarations": all.collect::<Vec<Value>>()}]))
}

impl Dialect for Generate {
    fn url(&self) -> &str {
        &self.url
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-goog-api-key", "")
    }

    fn params(&self) -> &'static [Param] {
        &PARAMS
    }

    fn pieces(&self, turn: &TurnRequest<'_>, omit: &Omit) -> Result<Vec<Arc<str>>, ProviderError> {
        let tools = self.tools.piece(declared(turn)?, declarations);
        let (system, contents) = history::contents(turn.history)?;
        let mut body = Pieces::new();
        if let Some(system) = system {
            body.member("systemInstruction", &json!({"parts": [{"text": system}]}));
        }
        body.array("contents", contents);
        if body.tools(tools) {
            let calling = match &turn.choice {
                Choice::Only(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
                _ => json!({"mode": "AUTO"}),
            };
            body.member("toolConfig", &json!({"functionCallingConfig": calling}));
        }
        body.members(&self.settings(turn, omit));
        Ok(body.finish())
    }

    fn reader(&self, turn: TurnIx) -> Box<dyn Reader> {
        Box::new(stream::GenerateReader::new(turn))
    }
}

#[cfg(test)]
mod more_tests;
#[cfg(test)]
mod tests;
