//! A message of the Messages API with what is told of it: tokens, why it stopped, why there is none.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::super::content::{Content, Object};
use super::super::super::meta::{Meta, Tokens};
use super::super::super::native::{self, as_text, of, string};
use super::super::blocks::Blocks;
use crate::model::{Message, Role, Text};

/// A message: one of a request, or a reply with what is told of it.
#[derive(Debug, Deserialize)]
pub(in super::super) struct Reply<'a> {
    #[serde(borrow, default)]
    pub(in super::super) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) role: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(in super::super) model: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(in super::super) content: Option<Content<'a>>,
    #[serde(borrow, default)]
    pub(in super::super) stop_reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(in super::super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
}

impl<'a> Reply<'a> {
    /// As messages; `meta` holds what else is known of it.
    pub(super) fn turns(self, mut meta: Meta) -> Result<Vec<Message<'a>>, String> {
        let role = self.role.ok_or("it has no `role`")?;
        let role = native::role(role);
        let blocks = self.content.map(Blocks::of).unwrap_or_default();
        for (key, raw) in [("model", self.model), ("stop_reason", self.stop_reason)] {
            if let Some(text) = raw.and_then(string) {
                meta.set(key, &*text);
            }
        }
        if let Some(usage) = self.usage {
            meta.set("usage", tokens(usage).value());
        }
        let cited: Vec<Value> = blocks
            .citations
            .iter()
            .filter_map(|raw| of(Some(raw)))
            .collect();
        if !cited.is_empty() {
            meta.set("citations", cited);
        }
        if let Some(own) = of(self.metadata) {
            meta.adopt(own);
        }
        let meta = meta.finish();
        if role == Role::Assistant {
            return Ok(vec![Message {
                role,
                parts: blocks.into_parts(),
                metadata: meta,
            }]);
        }
        let mut turns = blocks.into_turns(&role);
        for turn in &mut turns {
            turn.metadata.clone_from(&meta);
        }
        Ok(turns)
    }
}

/// Tokens as Anthropic counts them; see [`super`] for what `input` holds.
pub(in super::super) fn tokens(usage: &RawValue) -> Tokens {
    #[derive(Deserialize)]
    struct RawUsage<'a> {
        #[serde(borrow, default)]
        input_tokens: Option<&'a RawValue>,
        #[serde(borrow, default)]
        cache_creation_input_tokens: Option<&'a RawValue>,
        #[serde(borrow, default)]
        cache_read_input_tokens: Option<&'a RawValue>,
        #[serde(borrow, default)]
        output_tokens: Option<&'a RawValue>,
        #[serde(borrow, default)]
        output_tokens_details: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Details {
        #[serde(default)]
        thinking_tokens: Option<u64>,
    }
    let Some(Object(usage)) = of::<Object<RawUsage<'_>>>(Some(usage)) else {
        return Tokens::default();
    };
    let cached = of::<u64>(usage.cache_read_input_tokens);
    let beside = [of::<u64>(usage.cache_creation_input_tokens), cached];
    let beside: u64 = beside.into_iter().flatten().fold(0, u64::saturating_add);
    let details = of::<Object<Details>>(usage.output_tokens_details);
    Tokens {
        input: of::<u64>(usage.input_tokens).map(|fresh| fresh.saturating_add(beside)),
        output: of(usage.output_tokens),
        total: None,
        cached,
        thinking: details.and_then(|Object(details)| details.thinking_tokens),
    }
}

/// Of `{type, message}`, perhaps below another `error`: `overloaded_error: Overloaded`.
pub(in super::super) fn error_told(raw: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Told<'a> {
        #[serde(borrow, default, rename = "type")]
        kind: Option<Text<'a>>,
        #[serde(borrow, default)]
        message: Option<Text<'a>>,
        #[serde(borrow, default)]
        error: Option<&'a RawValue>,
    }
    match of::<Object<Told<'_>>>(Some(raw)) {
        Some(Object(Told {
            error: Some(inner), ..
        })) => error_told(inner),
        Some(Object(Told {
            kind: Some(kind),
            message: Some(message),
            ..
        })) => format!("{kind}: {message}"),
        _ => as_text(raw).to_string(),
    }
}

/// What the tools of a request are called.
pub(super) fn tool_names(raw: &RawValue) -> Vec<String> {
    #[derive(Deserialize)]
    struct Tool<'a> {
        #[serde(borrow, default)]
        name: Option<Text<'a>>,
    }
    let tools: Vec<&RawValue> = of(Some(raw)).unwrap_or_default();
    tools
        .into_iter()
        .filter_map(|raw| of::<Object<Tool<'_>>>(Some(raw))?.0.name)
        .map(|name| name.to_string())
        .collect()
}
