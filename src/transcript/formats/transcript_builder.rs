//! A transcript under construction, for the readers of files of other tools.
//!
//! Responsible for what these readers share: roles, calls and their results, verdicts, metadata, and the counts of what
//! they did not read. Does not know any format: `foreign_message.rs` reads messages.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::value::RawValue;

use super::super::fields::text_or_compact_json;
use super::super::metadata::MetadataBuilder;
use super::super::reader::TranscriptSink;
use super::lenient_message::parse_role;
use super::response_items::{MessageBuilder, arguments_text};
use crate::model::{
    Label, MessageRole, RawJson, SourceText, SourceVerdict, ToolCall, ToolResult, Transcript,
    TranscriptMessage, TranscriptPart, parse_pass_or_fail,
};

/// The number of messages at the end among which a result finds its call.
const MAX_OPEN_MESSAGES: usize = 32;

/// A transcript under construction.
#[derive(Debug, Default)]
pub(super) struct TranscriptBuilder {
    /// The id; empty for the default id.
    pub(super) id: String,
    /// The messages in order.
    pub(super) messages: Vec<MessageBuilder<'static>>,
    /// The metadata of the transcript.
    pub(super) meta: MetadataBuilder,
    /// The tags.
    pub(super) tags: Vec<SourceText<'static>>,
    /// The source verdicts.
    pub(super) verdicts: Vec<SourceVerdict>,
    /// The labels of people.
    pub(super) labels: Vec<Label>,
    /// The kinds of content that the reader did not understand.
    pub(super) unknown: Vec<String>,
    /// The number of verdicts per judge and name.
    verdict_names: HashMap<String, u32>,
}

impl TranscriptBuilder {
    /// Returns an empty transcript with its source, such as `langfuse`.
    pub(super) fn new(source: &str, id: Option<SourceText<'_>>) -> Self {
        let mut built = Self {
            id: id.unwrap_or_default().0.into_owned(),
            ..Self::default()
        };
        built.meta.set("source", source);
        built
    }

    /// Adds a message.
    pub(super) fn push(&mut self, role: MessageRole<'static>, parts: Vec<TranscriptPart<'static>>) {
        self.messages.push(MessageBuilder {
            role,
            parts,
            meta: MetadataBuilder::default(),
        });
    }

    /// Adds a message of text. A text of a tool is a result without a call id.
    pub(super) fn push_text(&mut self, role: MessageRole<'static>, text: &str) {
        if role == MessageRole::Tool {
            return self.push_result("", text.to_owned(), None);
        }
        self.push(role, vec![text_part(text)]);
    }

    /// Adds a tool result.
    pub(super) fn push_result(&mut self, id: &str, content: String, is_error: Option<bool>) {
        self.push(
            MessageRole::Tool,
            vec![TranscriptPart::ToolResult(ToolResult {
                call_id: SourceText::from(id.to_owned()),
                content: SourceText::from(content),
                is_error,
                duration_ms: None,
            })],
        );
    }

    /// Adds a call to the last message if that is the assistant's, else to a new one.
    pub(super) fn push_call(&mut self, id: &str, name: &str, arguments: String) {
        let call = call_part(id, name, arguments);
        match self.messages.last_mut() {
            Some(last) if last.role == MessageRole::Assistant => last.parts.push(call),
            _ => self.push(MessageRole::Assistant, vec![call]),
        }
    }

    /// Begins an answer of the assistant, unless there is one (`is_answering`). Returns true if it began one.
    pub(super) fn begin_answer(&mut self, is_answering: &mut bool) -> bool {
        let is_new = !std::mem::replace(is_answering, true);
        if is_new {
            self.push(MessageRole::Assistant, Vec::new());
        }
        is_new
    }

    /// Returns the id of the oldest call of a tool without a result, among the last messages.
    pub(super) fn find_open_call(&self, tool: &str) -> Option<String> {
        let mut answered = HashSet::new();
        for message in self.messages.iter().rev().take(MAX_OPEN_MESSAGES) {
            for part in &message.parts {
                match part {
                    TranscriptPart::ToolResult(result) => {
                        answered.insert(&*result.call_id);
                    }
                    TranscriptPart::ToolCall(call)
                        if &*call.name == tool && !answered.contains(&*call.id) =>
                    {
                        return Some(call.id.to_string());
                    }
                    _ => {}
                }
            }
        }
        None
    }

    /// Returns the metadata of the last message of a role.
    pub(super) fn last_meta(&mut self, role: &MessageRole<'_>) -> Option<&mut MetadataBuilder> {
        let mut messages = self.messages.iter_mut().rev();
        let found = messages.find(|message| message.role == *role)?;
        Some(&mut found.meta)
    }

    /// Adds a source verdict.
    pub(super) fn push_verdict(&mut self, verdict: SourceVerdict) {
        // Two verdicts of one judge and name would be one column; the second gets a number.
        let name = format!("{}\n{}", verdict.judge, verdict.eval);
        let count = self.verdict_names.entry(name).or_default();
        *count += 1;
        let eval = match *count {
            1 => verdict.eval.clone(),
            number => format!("{}~{number}", verdict.eval),
        };
        self.verdicts.push(SourceVerdict { eval, ..verdict });
    }

    /// Counts a kind of content that the reader did not understand `count` times.
    pub(super) fn count_unknown(&mut self, kind: &str, count: usize) {
        let kinds = std::iter::repeat_n(kind.to_owned(), count);
        self.unknown.extend(kinds);
    }

    /// Counts a message that is not an object as unknown.
    pub(super) fn count_unknown_message(&mut self) {
        self.count_unknown("a message that is not an object", 1);
    }

    /// Returns true if a message was added.
    pub(super) fn has_messages(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Adds the transcript to `out` and counts what the reader did not understand. Without a message, the record is a
    /// fault.
    pub(super) fn finish(mut self, out: &mut TranscriptSink) {
        for kind in &self.unknown {
            out.count_unknown(kind);
        }
        if self.messages.is_empty() {
            return out.push_fault("it holds no message");
        }
        super::smolagents_roles::convert_roles(
            self.messages
                .iter_mut()
                .map(|message| (&mut message.role, &mut message.parts)),
        );
        self.name_calls();
        self.drop_repeated_calls();
        let messages = self.messages.into_iter().map(|message| TranscriptMessage {
            role: message.role,
            parts: message.parts,
            metadata: message.meta.finish(),
        });
        out.push_transcript(&Transcript {
            id: SourceText::from(self.id),
            messages: messages.collect(),
            metadata: self.meta.finish(),
            tags: self.tags,
            verdicts: self.verdicts,
        });
        for label in self.labels {
            out.attach_label(label);
        }
    }

    /// Removes calls whose id an earlier call of their message has. Some tools write a call in the content and next to
    /// it, or in two shapes.
    pub(super) fn drop_repeated_calls(&mut self) {
        for message in &mut self.messages {
            let mut seen = HashSet::new();
            message.parts.retain(|part| match part {
                TranscriptPart::ToolCall(call) => {
                    call.id.is_empty() || seen.insert(call.id.to_string())
                }
                _ => true,
            });
        }
    }

    /// Gives calls without an id one of their own, and their results the same one. The next result without an id
    /// answers the oldest open call: sources without ids write them in this order.
    fn name_calls(&mut self) {
        let mut open = VecDeque::new();
        let mut number = 0;
        for message in &mut self.messages {
            for part in &mut message.parts {
                match part {
                    TranscriptPart::ToolCall(call) if call.id.is_empty() => {
                        number += 1;
                        call.id = SourceText::from(format!("call-{number}"));
                        open.push_back(call.id.clone());
                    }
                    TranscriptPart::ToolResult(result) if result.call_id.is_empty() => {
                        if let Some(id) = open.pop_front() {
                            result.call_id = id;
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Returns a part of text.
pub(super) fn text_part(text: &str) -> TranscriptPart<'static> {
    TranscriptPart::Text(SourceText::from(text.to_owned()))
}

/// Returns a part of reasoning.
pub(super) fn reasoning_part(text: &str) -> TranscriptPart<'static> {
    TranscriptPart::Reasoning(SourceText::from(text.to_owned()))
}

/// Returns a call.
pub(super) fn call_part(id: &str, name: &str, arguments: String) -> TranscriptPart<'static> {
    TranscriptPart::ToolCall(ToolCall {
        id: SourceText::from(id.to_owned()),
        name: SourceText::from(name.to_owned()),
        arguments: SourceText::from(arguments),
    })
}

/// Returns arguments as text; `{}` if there are none.
pub(super) fn call_arguments(raw: Option<&RawValue>) -> String {
    raw.map_or_else(|| "{}".to_owned(), |raw| arguments_text(raw).0.into_owned())
}

/// Returns a role by its word in any tool.
pub(super) fn role_of(word: &str) -> MessageRole<'static> {
    match word.to_ascii_lowercase().as_str() {
        "gpt" | "chatgpt" | "bot" | "chatbot" | "agent" | "aimessage" | "aimessagechunk"
        | "gemini" | "answer" => MessageRole::Assistant,
        "humanmessage" | "humanmessagechunk" | "input" | "prompter" => MessageRole::User,
        "toolmessage" | "functionmessage" | "tool_response" | "observation" => MessageRole::Tool,
        "systemmessage" => MessageRole::System,
        _ => parse_role(word),
    }
}

/// Returns true if a value is true, false or a finite number, as scores are.
pub(super) fn is_boolean_or_number(value: &RawValue) -> bool {
    let value = value.get();
    matches!(value, "true" | "false") || value.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Returns a verdict from the value of a score: a Boolean is pass or fail, and a number from 0 to 1 is a score. Any other
/// value, such as the word `pass`, states neither.
pub(super) fn verdict_of(
    judge: &str,
    eval: &str,
    value: Option<&RawValue>,
    reasoning: Option<SourceText<'_>>,
) -> SourceVerdict {
    let value = value.filter(|value| value.get() != "null");
    let passed = value.and_then(|value| match value.get() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    });
    let number = value.and_then(|value| value.get().parse::<f64>().ok());
    SourceVerdict {
        judge: judge.to_owned(),
        eval: eval.to_owned(),
        passed,
        score: number.filter(|number| (0.0..=1.0).contains(number)),
        value: value.and_then(|value| RawJson::parse(value.get()).ok()),
        reasoning: reasoning
            .filter(|text| !text.is_empty())
            .map(|text| text.0.into_owned()),
        error: None,
    }
}

/// Returns a verdict of a source that states a category and a number. Its value is the category, and also the number if
/// neither `passed` nor `score` holds it.
pub(super) fn verdict_with_category(
    judge: &str,
    eval: &str,
    category: Option<&RawValue>,
    number: Option<&RawValue>,
    reasoning: Option<SourceText<'_>>,
) -> SourceVerdict {
    let Some(category) = category.filter(|name| name.get() != r#""""#) else {
        return verdict_of(judge, eval, number, reasoning);
    };
    let of_number = verdict_of(judge, eval, number, None);
    let mut verdict = verdict_of(judge, eval, Some(category), reasoning);
    let is_held = of_number.passed.is_some() || of_number.score.is_some();
    if let Some(number) = number.filter(|_| !is_held) {
        let both = format!(r#"{{"label":{category},"score":{number}}}"#);
        verdict.value = RawJson::parse(&both).ok().or(verdict.value);
    }
    verdict.passed = verdict.passed.or(of_number.passed);
    verdict.score = of_number.score.or(verdict.score);
    verdict
}

/// Returns the value of a verdict with a label and a number. A number outside 0 to 1 is not a score, so the value keeps
/// it next to the label.
pub(super) fn label_and_number(label: &str, number: Option<f64>) -> Option<RawJson> {
    match number.filter(|number| !(0.0..=1.0).contains(number)) {
        Some(number) => {
            let both = serde_json::json!({"label": label, "score": number});
            RawJson::from_serializable(&both).ok()
        }
        None => RawJson::from_serializable(&label).ok(),
    }
}

/// Keeps a person's rating as a label. A label that states nothing would mean that the person could not decide: such a
/// rating, as 4 of 5 stars, is a verdict with the value as written. A label has no place for a category that is neither
/// pass nor fail, so such a rating is a label and a verdict.
pub(super) fn keep_rating(
    rating: SourceVerdict,
    transcript: &str,
    by: Option<SourceText<'_>>,
    labels: &mut Vec<Label>,
    verdicts: &mut Vec<SourceVerdict>,
) {
    let word = rating.value.as_ref();
    let word = word.and_then(|value| serde_json::from_str::<String>(value.get()).ok());
    let stated = word.as_deref().and_then(parse_pass_or_fail);
    let passed = rating.passed.or(stated);
    if passed.is_none() && rating.score.is_none() {
        verdicts.push(rating);
        return;
    }
    let is_category =
        |value: &RawJson| stated.is_none() && value.get().starts_with(['"', '[', '{']);
    if rating.value.as_ref().is_some_and(is_category) {
        verdicts.push(rating.clone());
    }
    labels.push(Label {
        transcript: transcript.to_owned(),
        eval: rating.eval,
        passed,
        score: rating.score,
        by: by.map(|by| by.0.into_owned()),
        note: rating.reasoning,
        ..Label::default()
    });
}

/// Returns the text of a value, or its JSON, as a copy.
pub(super) fn owned_text(raw: &RawValue) -> String {
    text_or_compact_json(raw).0.into_owned()
}

/// Returns a part of an unknown kind, as written on one line, as a copy.
pub(super) fn owned_unknown_part(raw: &RawValue) -> TranscriptPart<'static> {
    // The native format has one record per line, so parts must not contain line breaks.
    let compact = super::super::fields::compact_json(raw.get());
    TranscriptPart::Other(super::super::native::owned_json(&compact).expect("a raw value is JSON"))
}

/// Returns a part that is not text, as written, as a copy.
pub(super) fn media_part(kind: &str, raw: &RawValue) -> TranscriptPart<'static> {
    match owned_unknown_part(raw) {
        TranscriptPart::Other(raw) => TranscriptPart::Media {
            kind: SourceText::from(kind.to_owned()),
            raw,
        },
        part => part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rating_that_states_neither_pass_nor_fail_is_not_unsure() {
        let keep = |value: &str| {
            let raw: &RawValue = serde_json::from_str(value).expect("JSON");
            let (mut labels, mut verdicts) = (Vec::new(), Vec::new());
            let rating = verdict_of("tool", "stars", Some(raw), None);
            keep_rating(rating, "t", None, &mut labels, &mut verdicts);
            let labels: Vec<_> = labels.iter().map(|one| (one.passed, one.score)).collect();
            (labels, verdicts.len())
        };
        for (value, label) in [
            ("true", Some((Some(true), None))),
            (r#""no""#, Some((Some(false), None))),
            ("0.7", Some((None, Some(0.7)))),
            ("4", None),
            (r#""polite""#, None),
            (r#"["a"]"#, None),
            ("null", None),
        ] {
            let (labels, verdicts) = keep(value);
            assert_eq!(labels.first().copied(), label, "{value}");
            assert_eq!(verdicts, usize::from(label.is_none()), "{value}");
        }
    }
}
