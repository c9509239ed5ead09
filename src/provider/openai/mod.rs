//! OpenAI Chat Completions, and the many servers that speak it.
//!
//! `base_url` + `/chat/completions`, `authorization: Bearer`. Formats: OpenAI's reference, and the deviations of Ollama,
//! vLLM, llama.cpp, LM Studio and `OpenRouter` that [`stream`] tolerates.

mod calls;
mod history;
mod stream;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::body::{Pieces, base, declared, extra, json as text, merge};
use super::client::{Dialect, Omit, Reader};
use super::declared::Declared;
use super::refusal::{Param, leave_out};
use super::{Choice, ProviderError, TurnRequest};
use crate::model::{JudgeConfig, ToolDeclaration, TurnIx};

const DEFAULT_BASE: &str = "https://api.openai.com/v1";

/// What a server may refuse and we can leave out.
const PARAMS: [Param; 8] = [
    leave_out("temperature", &["temperature"], &[&["temperature"]]),
    leave_out("seed", &["seed"], &[&["seed"]]),
    leave_out("reasoning", &["reasoning_effort"], &[&["reasoning_effort"]]),
    Param {
        setting: "max_tokens",
        named: &["max_tokens"],
        at: &[&["max_tokens"]],
        instead: Some("max_completion_tokens"),
    },
    Param {
        setting: "max_completion_tokens",
        named: &["max_completion_tokens"],
        at: &[&["max_completion_tokens"]],
        instead: Some("max_tokens"),
    },
    leave_out(
        "structured output",
        &["response_format", "json_schema"],
        &[&["response_format"]],
    ),
    leave_out(
        "stream_options",
        &["stream_options", "include_usage"],
        &[&["stream_options"]],
    ),
    leave_out("tool_choice", &["tool_choice"], &[&["tool_choice"]]),
];

/// The dialect of one judge.
pub(super) struct Chat {
    config: JudgeConfig,
    url: String,
    /// OpenAI itself: newer names are wanted, and the end mark is never missing.
    official: bool,
    tools: Declared,
    extra: Map<String, Value>,
}

impl Chat {
    pub(super) fn new(config: &JudgeConfig) -> Result<Self, ProviderError> {
        let mut url = base(config, DEFAULT_BASE)?;
        let path = url.path().trim_end_matches('/').to_owned();
        if !path.ends_with("/chat/completions") {
            url.set_path(&format!("{path}/chat/completions"));
        }
        Ok(Self {
            official: url.host_str() == Some("api.openai.com"),
            url: url.into(),
            tools: Declared::default(),
            extra: extra(config)?,
            config: config.clone(),
        })
    }

    /// The key for the token limit: the other one once this one was refused.
    fn limit_key(&self, omit: &Omit) -> Option<&'static str> {
        let (first, second) = if self.official {
            ("max_completion_tokens", "max_tokens")
        } else {
            ("max_tokens", "max_completion_tokens")
        };
        match (omit.renamed.contains(&first), omit.has(first)) {
            (true, _) if omit.has(second) => None,
            (true, _) => Some(second),
            (false, true) => None,
            (false, false) => Some(first),
        }
    }

    fn settings(&self, turn: &TurnRequest<'_>, has_tools: bool, omit: &Omit) -> Map<String, Value> {
        let mut map = Map::new();
        let mut set = |setting: &str, key: &str, value: Value| {
            if !omit.has(setting) {
                map.insert(key.to_owned(), value);
            }
        };
        match &turn.choice {
            Choice::Only(name) => set(
                "tool_choice",
                "tool_choice",
                json!({"type": "function", "function": {"name": name}}),
            ),
            Choice::Schema(schema) => set(
                "structured output",
                "response_format",
                json!({"type": "json_schema", "json_schema": {"name": "verdict", "strict": true, "schema": schema}}),
            ),
            Choice::NoTools | Choice::Auto => {}
        }
        if let Some(temperature) = self.config.temperature {
            set("temperature", "temperature", json!(temperature));
        }
        if let Some(seed) = self.config.seed {
            set("seed", "seed", json!(seed));
        }
        if let Some(effort) = &self.config.reasoning {
            set("reasoning", "reasoning_effort", json!(effort));
        }
        if let (Some(limit), Some(key)) = (self.config.max_output_tokens, self.limit_key(omit)) {
            set(key, key, json!(limit));
        }
        set("stream", "stream", json!(self.config.stream));
        if self.config.stream {
            set(
                "stream_options",
                "stream_options",
                json!({"include_usage": true}),
            );
        }
        merge(&mut map, &self.extra, &PARAMS, omit);
        if !has_tools {
            // The one tool key that may stand in `extra_body`: without tools it is none of ours.
            map.shift_remove("parallel_tool_calls");
        }
        map
    }
}

pub(super) fn declarations(tools: &[ToolDeclaration]) -> String {
    let all = tools.iter().map(|tool| {
        json!({"type": "function", "function": {
            "name": tool.name, "description": tool.description, "parameters": tool.schema}})
    });
    text(&all.collect::<Vec<Value>>())
}

impl Dialect for Chat {
    fn url(&self) -> &str {
        &self.url
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    fn params(&self) -> &'static [Param] {
        &PARAMS
    }

    fn pieces(&self, turn: &TurnRequest<'_>, omit: &Omit) -> Result<Vec<Arc<str>>, ProviderError> {
        let tools = self.tools.piece(declared(turn)?, declarations);
        let mut body = Pieces::new();
        body.member("model", &self.config.model);
        body.array("messages", history::messages(turn.history)?);
        let has_tools = body.tools(tools);
        body.members(&self.settings(turn, has_tools, omit));
        Ok(body.finish())
    }

    fn reader(&self, turn: TurnIx) -> Box<dyn Reader> {
        Box::new(stream::ChatReader::new(turn, self.official))
    }
}

#[cfg(test)]
mod replies_tests;
#[cfg(test)]
mod tests;
