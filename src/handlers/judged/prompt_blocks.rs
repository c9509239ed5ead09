//! The further material of a preset judge: the question, the contexts, the expected output, the agent's role.
//!
//! The author writes it, or dicta finds it in the transcript. Material that is found nowhere is missing data, never a
//! pass. Material that the transcript contains is not copied; its block names the messages.

use serde_json::Value;

use super::personal_data;
use crate::handlers::wrap::ParamsCompleter;
use crate::handlers::{Finding, JudgedParams, PromptBlock, Subject};
use crate::model::{MessageRole, TranscriptPart};

/// The largest number of contexts in one eval. More are a mistake in the path.
const MAX_CONTEXTS: usize = 1000;

/// The source of some material.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum BlockSource {
    /// Written by the author.
    Given(Vec<String>),
    /// At this path of the transcript's metadata.
    MetadataField(String),
    /// In the transcript itself.
    Transcript,
}

/// The required material; `None` if a judge does not need it.
#[derive(Debug, Default)]
pub(super) struct PromptBlocksSpec {
    pub(super) question: Option<BlockSource>,
    pub(super) contexts: Option<BlockSource>,
    pub(super) reference: Option<String>,
    pub(super) role: Option<BlockSource>,
    /// `true` to fail at once if the agent's messages contain obvious personal data.
    pub(super) reject_personal_data: bool,
}

impl ParamsCompleter for PromptBlocksSpec {
    fn complete(
        &self,
        subject: &Subject<'_>,
        known: JudgedParams,
    ) -> Result<JudgedParams, Finding> {
        // Before all else: a certain fail needs no material and no judge.
        if self.reject_personal_data
            && let Some(found) = personal_data::find_personal_data(subject)
        {
            return Err(found);
        }
        // The order of the blocks is the order of the prompt, and so a part of the cache key.
        let mut material = known.prompt_blocks;
        if let Some(from) = &self.question {
            material.extend(resolve_blocks(
                "question",
                from,
                subject,
                find_last_question,
            )?);
        }
        if let Some(from) = &self.contexts {
            material.extend(resolve_blocks(
                "contexts",
                from,
                subject,
                collect_tool_results,
            )?);
        }
        if let Some(text) = &self.reference {
            material.push(new_block("expected output", text));
        }
        if let Some(from) = &self.role {
            material.extend(resolve_blocks(
                "agent role",
                from,
                subject,
                find_agent_role,
            )?);
        }
        Ok(JudgedParams {
            prompt_blocks: material,
            ..known
        })
    }
}

fn new_block(label: &str, text: &str) -> PromptBlock {
    PromptBlock {
        label: label.to_owned(),
        text: text.to_owned(),
    }
}

/// Returns the block, or blocks, of one kind of material.
fn resolve_blocks(
    label: &str,
    from: &BlockSource,
    subject: &Subject<'_>,
    found: fn(&Subject<'_>) -> Result<String, &'static str>,
) -> Result<Vec<PromptBlock>, Finding> {
    match from {
        BlockSource::Given(texts) => Ok(numbered_blocks(label, texts)),
        BlockSource::MetadataField(path) => {
            // Missing metadata is an error of the data and not a fail of the agent.
            let texts = read_metadata_texts(subject, path).map_err(Finding::check_error)?;
            Ok(numbered_blocks(label, &texts))
        }
        // dicta looks in the transcript only if the author gives no source.
        BlockSource::Transcript => match found(subject) {
            Ok(text) => Ok(vec![new_block(label, &text)]),
            Err(missing) => Err(Finding::check_error(missing)),
        },
    }
}

/// Returns one block, or a numbered block for each text, so that a text cannot imitate the next one.
fn numbered_blocks(label: &str, texts: &[String]) -> Vec<PromptBlock> {
    // A single text needs no number.
    if let [only] = texts {
        return vec![new_block(label, only)];
    }
    let one = label.trim_end_matches('s');
    let numbered = texts.iter().zip(1..);
    numbered
        .map(|(text, n)| new_block(&format!("{one} {n}"), text))
        .collect()
}

/// Returns a text, or a list of texts, in the metadata.
fn read_metadata_texts(subject: &Subject<'_>, path: &str) -> Result<Vec<String>, String> {
    // Authors write both `metadata.x` and `x`, as in other params.
    let path = path.strip_prefix("metadata.").unwrap_or(path);
    let value = subject
        .metadata(path)
        .ok_or_else(|| format!("this transcript has no metadata.{path}"))?;
    let texts: Option<Vec<String>> = match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(items) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned))
            .collect(),
        _ => None,
    };
    let texts =
        texts.ok_or_else(|| format!("metadata.{path} is neither a text nor a list of texts"))?;
    // All texts empty: the path is probably wrong. A judge without material could only guess.
    if texts.iter().all(|text| text.trim().is_empty()) {
        return Err(format!("metadata.{path} is empty"));
    }
    if texts.len() > MAX_CONTEXTS {
        let n = texts.len();
        return Err(format!(
            "metadata.{path} has {n} texts, more than {MAX_CONTEXTS}"
        ));
    }
    Ok(texts)
}

/// Returns a block that names the user's last message before the output.
fn find_last_question(subject: &Subject<'_>) -> Result<String, &'static str> {
    // The question comes before the output; a later user message has no answer yet.
    let end = subject.output().message.unwrap_or(subject.end);
    let mut messages = subject.transcript.messages[..end].iter();
    let asked = messages.rposition(|message| {
        message.role == MessageRole::User && !message.text().trim().is_empty()
    });
    match asked {
        Some(n) => Ok(format!(
            "The question is what the user says in message {n} of the transcript."
        )),
        None => Err(
            "the question is missing: no user message comes before the output, and `question` is not set",
        ),
    }
}

/// Returns a block that names the messages with tool results.
fn collect_tool_results(subject: &Subject<'_>) -> Result<String, &'static str> {
    let messages = subject.transcript.messages[..subject.end]
        .iter()
        .enumerate();
    let places: Vec<String> = messages
        .filter(|(_, message)| {
            let mut parts = message.parts.iter();
            // An empty result supports nothing, so it does not count as a context.
            parts.any(|part| matches!(part, TranscriptPart::ToolResult(r) if !r.content.trim().is_empty()))
        })
        .map(|(n, _)| n.to_string())
        .collect();
    match &places[..] {
        [] => Err(
            "there are no contexts: the transcript holds no tool result, and none of `contexts`, `context` and \
             `context_field` gives them",
        ),
        // Only positions: the transcript is in the prompt already, and a copy would cost tokens.
        [only] => Ok(format!(
            "The context is the tool result in message {only} of the transcript."
        )),
        all => Ok(format!(
            "The contexts are the tool results in messages {} of the transcript, in this order.",
            all.join(", ")
        )),
    }
}

/// Returns a block with the agent's role.
fn find_agent_role(subject: &Subject<'_>) -> Result<String, &'static str> {
    // Recorded metadata first, as the documentation of `agent_role` states.
    if let Some(text) = subject.metadata("system_prompt").and_then(Value::as_str)
        && !text.trim().is_empty()
    {
        return Ok(text.to_owned());
    }
    let messages = subject.transcript.messages[..subject.end]
        .iter()
        .enumerate();
    let places: Vec<String> = messages
        .filter(|(_, m)| m.role == MessageRole::System && !m.text().trim().is_empty())
        .map(|(n, _)| n.to_string())
        .collect();
    match &places[..] {
        [] => Err(
            "there is no role to violate: the transcript has no system message and no metadata.system_prompt, and \
             `agent_role` gives none",
        ),
        all => Ok(format!(
            "The agent's role is what the system says in message {} of the transcript.",
            all.join(", ")
        )),
    }
}
