//! OpenAI Responses, and the servers that nearly speak it.
//!
//! `base_url` + `/responses`, `authorization: Bearer`. Nothing is kept at the server (`store: false`): the reasoning that
//! must survive tool turns comes encrypted and goes back as it came. The protocol has no seed; that one is left out is
//! recorded (`caps`).

mod history;
mod items;
mod stream;
mod strict;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::body::{Pieces, base, declared, extra, json as text, merge};
use super::client::{Dialect, Omit, Reader};
use super::declared::Declared;
use super::refusal::{Param, leave_out};
use super::{Choice, ProviderError, TurnRequest};
use crate::model::{JudgeConfig, ToolDeclaration, TurnIx};

const DEFAULT_BASE: &str = "https://api.openai.com/v1";

/// What a server may refuse and we can leave out. The summary stands before the whole: a refusal of `reasoning.summary`
/// names both.
const PARAMS: [Param; 8] = [
    leave_out(
        "reasoning summary",
        &[
            "reasoning.summary",
            "reasoning summaries",
            "reasoning_summary",
        ],
        &[&["reasoning", "summary"]],
    ),
    leave_out(
        "reasoning",
        &["reasoning", "reasoning.effort", "reasoning_effort"],
        &[&["reasoning"]],
    ),
    leave_out(
        "encrypted reasoning",
        &[
            "include",
            "reasoning.encrypted_content",
            "encrypted_content",
            "Encrypted content",
        ],
        &[&["include"]],
    ),
    leave_out("temperature", &["temperature"], &[&["temperature"]]),
    leave_out(
        "max_output_tokens",
        &["max_output_tokens"],
        &[&["max_output_tokens"]],
    ),
    leave_out(
        "structured output",
        &["text.format", "json_schema", "response_format"],
        &[&["text", "format"]],
    ),
    leave_out("tool_choice", &["tool_choice"], &[&["tool_choice"]]),
    leave_out("store", &["store"], &[&["store"]]),
];

/// Keys of `extra_body` that would say what the history says, or have the reply come another way.
const OWNED: [&str; 6] = [
    "input",
    "instructions",
    "previous_response_id",
    "conversation",
    "prompt",
    "background",
];

/// The dialect of one judge.
pub(super) struct Responses {
    config: JudgeConfig,
    url: String,
    /// OpenAI itself, whose word on how a reply ended can be relied on.
    official: bool,
    extra: Map<String, Value>,
    tools: Declared,
}

impl Responses {
    pub(super) fn new(config: &JudgeConfig) -> Result<Self, ProviderError> {
        let mut url = base(config, DEFAULT_BASE)?;
        let path = url.path().trim_end_matches('/').to_owned();
        if !path.ends_with("/responses") {
            url.set_path(&format!("{path}/responses"));
        }
        let extra = extra(config)?;
        if let Some(key) = extra.keys().find(|key| OWNED.contains(&key.as_str())) {
            return Err(ProviderError::Request(format!(
                "judge `{}`: extra_body must not hold `{key}`: dicta sends the whole conversation itself",
                config.name
            )));
        }
        Ok(Self {
            tools: Declared::default(),
            official: url.host_str() == Some("api.openai.com"),
            url: url.into(),
            extra,
            config: config.clone(),
        })
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
                json!({"type": "function", "name": name}),
            ),
            Choice::Schema(schema) => set(
                "structured output",
                "text",
                json!({"format": {"type": "json_schema", "name": "verdict", "strict": true, "schema": schema}}),
            ),
            Choice::NoTools | Choice::Auto => {}
        }
        if let Some(temperature) = self.config.temperature {
            set("temperature", "temperature", json!(temperature));
        }
        if let Some(effort) = &self.config.reasoning {
            let asked = if omit.has("reasoning summary") {
                json!({"effort": effort})
            } else {
                json!({"effort": effort, "summary": "auto"})
            };
            set("reasoning", "reasoning", asked);
        }
        if let Some(limit) = self.config.max_output_tokens {
            set("max_output_tokens", "max_output_tokens", json!(limit));
        }
        set("store", "store", json!(false));
        set(
            "encrypted reasoning",
            "include",
            json!(["reasoning.encrypted_content"]),
        );
        set("stream", "stream", json!(self.config.stream));
        merge(&mut map, &self.extra, &PARAMS, omit);
        if !has_tools {
            // The tool keys that may stand in `extra_body`: without tools they are none of ours.
            map.shift_remove("parallel_tool_calls");
            map.shift_remove("max_tool_calls");
        }
        map
    }

    /// The token limit that is sent.
    fn limit(&self) -> Option<u64> {
        let own = self.config.max_output_tokens.map(u64::from);
        let written = self.extra.get("max_output_tokens").and_then(Value::as_u64);
        written.or(own)
    }
}

/// The declared functions as the protocol spells them: flat.
pub(super) fn declarations(tools: &[ToolDeclaration]) -> String {
    let all = tools.iter().map(|tool| {
        // `strict` is said either way: left out, the service takes it for true.
        json!({"type": "function", "name": tool.name, "description": tool.description,
            "parameters": tool.schema, "strict": strict::fits(&tool.schema)})
    });
    text(&all.collect::<Vec<_>>())
}

impl Dialect for Responses {
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
        let (instructions, input) = history::input(turn.history)?;
        let mut body = Pieces::new();
        body.member("model", &self.config.model);
        if let Some(instructions) = instructions {
            body.member("instructions", &instructions);
        }
        body.array("input", input);
        let has_tools = body.tools(tools);
        body.members(&self.settings(turn, has_tools, omit));
        Ok(body.finish())
    }

    fn reader(&self, turn: TurnIx) -> Box<dyn Reader> {
        let limit = self.limit().filter(|_| !self.official);
        Box::new(stream::ResponseReader::new(turn, limit))
    }
}

#[cfg(test)]
mod replies_tests;
#[cfg(test)]
mod tests;
