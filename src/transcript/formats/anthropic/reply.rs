//! A message of the Messages API with what is told of it: tokens, why it stopped, why there is none.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::super::content::{ObjectOnly, RawContent};
use super::super::super::metadata::{MetadataBuilder, SourceUsage};
use super::super::super::native::{self, json_string, parse_or_none, text_or_json};
use super::super::content_blocks::ContentBlocks;
use crate::model::{MessageRole, SourceText, TranscriptMessage};

/// A message: one of a request, or a reply with what is told of it.
#[derive(Debug, Deserialize)]
pub(in super::super) struct AnthropicLogMessage<'a> {
    #[serde(borrow, default)]
    pub(in super::super) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) role: Option<SourceText<'a>>,
    #[serde(borrow, default)]
    pub(in super::super) model: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(in super::super) content: Option<RawContent<'a>>,
    #[serde(borrow, default)]
    pub(in super::super) stop_reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(in super::super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
}

impl<'a> AnthropicLogMessage<'a> {
    /// As messages; `meta` holds what else is known of it.
    pub(super) fn into_messages(
        self,
        mut meta: MetadataBuilder,
    ) -> Result<Vec<TranscriptMessage<'a>>, String> {
        let role = self.role.ok_or("it has no `role`")?;
        let role = native::parse_role(role);
        let blocks = self
            .content
            .map(ContentBlocks::from_content)
            .unwrap_or_default();
        for (key, raw) in [("model", self.model), ("stop_reason", self.stop_reason)] {
            if let Some(text) = raw.and_then(json_string) {
                meta.set(key, &*text);
            }
        }
        if let Some(usage) = self.usage {
            meta.set("usage", parse_usage(usage).to_json());
        }
        let cited: Vec<Value> = blocks
            .citations
            .iter()
            .filter_map(|raw| parse_or_none(Some(raw)))
            .collect();
        if !cited.is_empty() {
            meta.set("citations", cited);
        }
        if let Some(own) = parse_or_none(self.metadata) {
            meta.merge_source(own);
        }
        let meta = meta.finish();
        if role == MessageRole::Assistant {
            return Ok(vec![TranscriptMessage {
                role,
                parts: blocks.into_parts(),
                metadata: meta,
            }]);
        }
        let mut turns = blocks.into_messages(&role);
        for turn in &mut turns {
            turn.metadata.clone_from(&meta);
        }
        Ok(turns)
    }
}

/// Tokens as Anthropic counts them; see [`super`] for what `input` holds.
pub(in super::super) fn parse_usage(usage: &RawValue) -> SourceUsage {
    #[derive(Deserialize)]
    #[serde(rename = "RawUsage")]
    struct AnthropicLogUsage<'a> {
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
    #[serde(rename = "Details")]
    struct AnthropicUsageDetails {
        #[serde(default)]
        thinking_tokens: Option<u64>,
    }
    let Some(ObjectOnly(usage)) = parse_or_none::<ObjectOnly<AnthropicLogUsage<'_>>>(Some(usage))
    else {
        return SourceUsage::default();
    };
    let cached = parse_or_none::<u64>(usage.cache_read_input_tokens);
    let beside = [
        parse_or_none::<u64>(usage.cache_creation_input_tokens),
        cached,
    ];
    let beside: u64 = beside.into_iter().flatten().fold(0, u64::saturating_add);
    let details = parse_or_none::<ObjectOnly<AnthropicUsageDetails>>(usage.output_tokens_details);
    SourceUsage {
        input: parse_or_none::<u64>(usage.input_tokens).map(|fresh| fresh.saturating_add(beside)),
        output: parse_or_none(usage.output_tokens),
        total: None,
        cached,
        thinking: details.and_then(|ObjectOnly(details)| details.thinking_tokens),
    }
}

/// Of `{type, message}`, perhaps below another `error`: `overloaded_error: Overloaded`.
pub(in super::super) fn format_error(raw: &RawValue) -> String {
    #[derive(Deserialize)]
    #[serde(rename = "Told")]
    struct AnthropicLogError<'a> {
        #[serde(borrow, default, rename = "type")]
        kind: Option<SourceText<'a>>,
        #[serde(borrow, default)]
        message: Option<SourceText<'a>>,
        #[serde(borrow, default)]
        error: Option<&'a RawValue>,
    }
    match parse_or_none::<ObjectOnly<AnthropicLogError<'_>>>(Some(raw)) {
        Some(ObjectOnly(AnthropicLogError {
            error: Some(inner), ..
        })) => format_error(inner),
        Some(ObjectOnly(AnthropicLogError {
            kind: Some(kind),
            message: Some(message),
            ..
        })) => format!("{kind}: {message}"),
        _ => text_or_json(raw).to_string(),
    }
}

/// What the tools of a request are called.
pub(super) fn parse_tool_names(raw: &RawValue) -> Vec<String> {
    #[derive(Deserialize)]
    #[serde(rename = "Tool")]
    struct AnthropicToolName<'a> {
        #[serde(borrow, default)]
        name: Option<SourceText<'a>>,
    }
    let tools: Vec<&RawValue> = parse_or_none(Some(raw)).unwrap_or_default();
    tools
        .into_iter()
        .filter_map(|raw| {
            parse_or_none::<ObjectOnly<AnthropicToolName<'_>>>(Some(raw))?
                .0
                .name
        })
        .map(|name| name.to_string())
        .collect()
}
