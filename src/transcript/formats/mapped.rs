//! Records in any JSON or CSV layout, read with a field mapping.
//!
//! Responsible for the evaluation of a mapping. An expression that is only a path (`data.turns`) returns the value as
//! written. Any other expression goes through JMESPath, which loses the order of object keys. Messages have OpenAI's
//! shapes, with other names for roles (`human`, `gpt`, `bot` …). A record without its required part (messages, an
//! output) is a fault. A missing optional part is counted. Does not parse `map:`: that is `field_mapping.rs`.

mod record;
mod table;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use self::record::{ExpressionValue, MappedRecord, RawMappedRecord, format_serde_error};
use self::table::CsvTableReader;
use super::csv::CsvLayout;
use crate::model::{
    JsonText, Label, MessageRole, SourceText, Transcript, TranscriptMessage, TranscriptPart,
    parse_pass_or_fail,
};
use crate::query::JmesPathQuery;
use crate::transcript::content::ObjectOnly;
use crate::transcript::detect::{self, DetectError};
use crate::transcript::field_mapping::{
    ConversationMapping, FieldMapping, LabelMapping, MetadataMapping,
};
use crate::transcript::native;
use crate::transcript::reader::{
    PerRecordReader, RecordCx, RecordParser, TranscriptReader, TranscriptSink,
};
use crate::transcript::source::SourceFile;
use crate::transcript::walk::{BLOCK_SIZE, RecordLayout};

/// Returns the name of the format and the reader of a file with a field mapping.
pub(in crate::transcript) fn open(
    source: &SourceFile,
    head: &[u8],
    map: &Arc<FieldMapping>,
) -> Result<(&'static str, Box<dyn TranscriptReader>), DetectError> {
    if let Some(found) = super::BINARY_FORMATS
        .iter()
        .find(|found| head.starts_with(found.magic))
    {
        return Err(DetectError::Unknown(format!(
            "it is {}, and `map` is for JSON and tables of text",
            found.name
        )));
    }
    let preview = detect::preview_file(head)?;
    let is_json = matches!(preview.layout, RecordLayout::Values { .. })
        || preview.bytes[preview.start..].starts_with(b"{");
    if is_json {
        let reader =
            PerRecordReader::new(preview.record_walker(), MappedRecordParser(Arc::clone(map)));
        return Ok(("JSON, read by a map", Box::new(reader)));
    }
    // A small file may be a header without a line end.
    let is_complete = source.size() <= BLOCK_SIZE as u64;
    let layout = CsvLayout::detect(head, is_complete).map_err(DetectError::Unknown)?;
    Ok((
        "a table, read by a map",
        Box::new(CsvTableReader::new(layout, map)),
    ))
}

/// The parser of one JSON record.
#[derive(Debug)]
struct MappedRecordParser(Arc<FieldMapping>);

impl RecordParser for MappedRecordParser {
    fn parse_record(
        &self,
        record: &str,
        _: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        MappedRecord::from_json(record)?.write_transcript(&self.0, out)
    }
}
impl MappedRecord<'_> {
    /// Adds the transcript that a mapping finds in the record. The error is a sentence fragment.
    pub(super) fn write_transcript(
        &self,
        map: &FieldMapping,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        let id = self.find_id(map)?;
        // All lookups come first, because a record is either a transcript or a fault.
        let mut message_lists: Vec<(&str, Cow<'_, str>)> = Vec::new();
        let mut missing: Vec<String> = Vec::new();
        if let Some(system) = &map.system {
            match self.evaluate(system, false)?.into_text() {
                Some(text) if !text.is_empty() => {
                    message_lists.push(("system", single_message_list("system", &text)));
                }
                _ => missing.push(format!("`system` ({}) finds nothing", system.as_str())),
            }
        }
        match &map.conversation {
            ConversationMapping::Messages(query) => {
                let value = self.evaluate(query, true)?;
                let describe_query = || format!("`messages` ({}) finds", query.as_str());
                let list = value
                    .into_list()
                    .map_err(|what| format!("{} {what}", describe_query()))?;
                message_lists.push(("messages", list));
            }
            ConversationMapping::Pair { input, output } => {
                if let Some(input) = input {
                    match self.find_messages("input", "user", input)? {
                        Some(list) => message_lists.push(("input", list)),
                        None => missing.push(format!("`input` ({}) finds nothing", input.as_str())),
                    }
                }
                let output_messages = self.find_messages("output", "assistant", output)?;
                let not_found = || format!("`output` ({}) finds nothing", output.as_str());
                message_lists.push(("output", output_messages.ok_or_else(not_found)?));
            }
        }
        let metadata = self.build_metadata(map, &mut missing)?;
        let tags = self.find_tags(map)?;
        // The wrapper reuses the native parser, so mapped messages follow the same rules as native ones.
        let wrapped: Vec<(&str, String)> = message_lists
            .into_iter()
            .map(|(name, list)| (name, format!("{{\"messages\":{list}}}")))
            .collect();
        let mut messages = Vec::new();
        for (name, list_json) in &wrapped {
            messages
                .extend(parse_conversation(list_json).map_err(|why| format!("`{name}`: {why}"))?);
        }
        // The transcript comes before its counts and labels, which refer to the last transcript.
        let transcript = Transcript {
            id: SourceText(id.clone()),
            messages,
            metadata,
            tags,
            verdicts: Vec::new(),
        };
        out.push_transcript(&transcript);
        for what in missing {
            out.count_missing(&what);
        }
        // An unreadable label must not make the transcript a fault, so it is only counted.
        for label in &map.labels {
            match self.find_label(label, &id) {
                Ok(Some(label)) => out.attach_label(label),
                Ok(None) => {}
                Err(why) => out.count_missing(&why),
            }
        }
        Ok(())
    }

    fn find_id(&self, map: &FieldMapping) -> Result<Cow<'_, str>, String> {
        let Some(query) = &map.id else {
            return Ok(Cow::Borrowed(""));
        };
        let value = self.evaluate(query, false)?;
        match value {
            ExpressionValue::Nothing => Ok(Cow::Borrowed("")),
            // Cells of spreadsheets often have white space around an id.
            ExpressionValue::Text(text) => Ok(match text {
                Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
                Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
            }),
            value @ ExpressionValue::Json(_) if value.describe_type() == "a number" => {
                Ok(value.into_text().unwrap_or_default())
            }
            value @ ExpressionValue::Json(_) => Err(format!(
                "`id` ({}) finds {}, not a text or a number",
                query.as_str(),
                value.describe_type()
            )),
        }
    }

    /// Finds the input or output: a list of messages as it is, or one message of `role`.
    fn find_messages(
        &self,
        name: &str,
        role: &str,
        query: &JmesPathQuery,
    ) -> Result<Option<Cow<'_, str>>, String> {
        Ok(match self.evaluate(query, false)? {
            ExpressionValue::Nothing => None,
            ExpressionValue::Json(json) if json.starts_with('[') => Some(json),
            value => {
                // An empty input cell means that the input is absent. An empty output is a valid output.
                let text = value.into_text().unwrap_or_default();
                let is_absent = name == "input" && text.is_empty();
                (!is_absent).then(|| single_message_list(role, &text))
            }
        })
    }

    fn build_metadata(
        &self,
        map: &FieldMapping,
        missing: &mut Vec<String>,
    ) -> Result<Option<JsonText<'_>>, String> {
        match &map.metadata {
            None => Ok(None),
            Some(MetadataMapping::Expression(query)) => {
                let value = self.evaluate(query, true)?;
                let kind = value.describe_type();
                match value {
                    ExpressionValue::Nothing => {
                        missing.push(format!("`metadata` ({}) finds nothing", query.as_str()));
                        Ok(None)
                    }
                    // An empty cell is an absent value.
                    ExpressionValue::Text(text) if text.is_empty() => Ok(None),
                    ExpressionValue::Text(text) | ExpressionValue::Json(text) => {
                        parse_object(&text).map(Some).ok_or_else(|| {
                            format!(
                                "`metadata` ({}) finds {kind}, not an object",
                                query.as_str()
                            )
                        })
                    }
                }
            }
            Some(named) => {
                let value = self.find_metadata(named, "metadata", missing)?;
                Ok((!value.is_null()).then(|| JsonText::from_value(&value)))
            }
        }
    }

    /// Finds metadata; null if there is none.
    fn find_metadata(
        &self,
        meta: &MetadataMapping,
        name: &str,
        missing: &mut Vec<String>,
    ) -> Result<Value, String> {
        match meta {
            MetadataMapping::Expression(query) => {
                let value = match self.evaluate(query, false)? {
                    ExpressionValue::Nothing => Value::Null,
                    ExpressionValue::Text(text) => Value::String(text.into_owned()),
                    ExpressionValue::Json(json) => {
                        serde_json::from_str(&json).map_err(|why| format_serde_error(&why))?
                    }
                };
                if value.is_null() {
                    missing.push(format!("`{name}` ({}) finds nothing", query.as_str()));
                }
                Ok(value)
            }
            MetadataMapping::Named(all) => {
                let mut map = Map::new();
                for (name, meta) in all {
                    let value = self.find_metadata(meta, name, missing)?;
                    // An absent value leaves its key out, so that `metadata.x` is absent and not null.
                    if !value.is_null() {
                        map.insert(name.clone(), value);
                    }
                }
                Ok(if map.is_empty() {
                    Value::Null
                } else {
                    Value::Object(map)
                })
            }
        }
    }

    fn find_tags(&self, map: &FieldMapping) -> Result<Vec<SourceText<'_>>, String> {
        let Some(query) = &map.tags else {
            return Ok(Vec::new());
        };
        let value = self.evaluate(query, true)?;
        let split_commas = |text: &str| -> Vec<SourceText<'static>> {
            let tags = text.split(',').map(str::trim).filter(|tag| !tag.is_empty());
            tags.map(|tag| SourceText::from(tag.to_owned())).collect()
        };
        let parse_list = |json: &str| {
            let all: Option<Vec<Value>> = serde_json::from_str(json).ok();
            let tag = |value: Value| match value {
                Value::String(tag) => Some(SourceText::from(tag)),
                Value::Number(n) => Some(SourceText::from(n.to_string())),
                _ => None,
            };
            all.map(|all| all.into_iter().filter_map(tag).collect::<Vec<_>>())
        };
        match value {
            ExpressionValue::Nothing => Ok(Vec::new()),
            // A cell contains all tags in one text.
            ExpressionValue::Text(text) if matches!(self.raw, RawMappedRecord::Row { .. }) => {
                Ok(parse_list(&text).unwrap_or_else(|| split_commas(&text)))
            }
            ExpressionValue::Text(text) if text.is_empty() => Ok(Vec::new()),
            ExpressionValue::Text(text) => Ok(vec![SourceText::from(text.into_owned())]),
            // A path such as `[tag]` gives a list; any other JSON cannot be tags.
            ExpressionValue::Json(json) => parse_list(&json).ok_or_else(|| {
                format!(
                    "`tags` ({}) finds neither a text nor a list",
                    query.as_str()
                )
            }),
        }
    }

    /// Finds a label. The error describes a label that dicta can't read.
    fn find_label(&self, map: &LabelMapping, id: &str) -> Result<Option<Label>, String> {
        let query = &map.passed;
        let value = self
            .evaluate(query, false)
            .map_err(|why| format!("label: {why}"))?;
        let passed = match value {
            ExpressionValue::Nothing => return Ok(None),
            ExpressionValue::Text(text) | ExpressionValue::Json(text) => {
                match parse_pass_or_fail(&text) {
                    Some(passed) => passed,
                    // An empty cell: no one has labelled this record.
                    None if text.trim().is_empty() => return Ok(None),
                    None => {
                        let word: String = text.trim().chars().take(20).collect();
                        return Err(format!(
                            "the label `{}` is {word:?}, neither pass nor fail",
                            query.as_str()
                        ));
                    }
                }
            }
        };
        let find_text = |query: &Option<JmesPathQuery>| -> Option<String> {
            let text = self.evaluate(query.as_ref()?, false).ok()?.into_text()?;
            (!text.trim().is_empty()).then(|| text.into_owned())
        };
        Ok(Some(Label {
            transcript: id.to_owned(),
            rubric: map.rubric.clone(),
            eval: map.eval.clone(),
            passed: Some(passed),
            score: find_text(&map.score)
                .and_then(|score| score.trim().parse().ok())
                // A label on another scale is not a score.
                .filter(|score| (0.0..=1.0).contains(score)),
            by: find_text(&map.by),
            at: None,
            note: find_text(&map.note),
        }))
    }
}

/// Returns a JSON list with one message.
fn single_message_list(role: &str, text: &str) -> Cow<'static, str> {
    let text = Value::from(text);
    format!("[{{\"role\":\"{role}\",\"content\":{text}}}]").into()
}

/// Parses the messages of `{"messages": [...]}`.
fn parse_conversation(wrapped: &str) -> Result<Vec<TranscriptMessage<'_>>, String> {
    // The wrapper has one record, so its number is 1, and its default id is not used.
    let parsed = native::parse_native(wrapped.as_bytes(), 1, "").map_err(|bad| {
        let hint = if bad.why.ends_with("has no `role`") {
            "; an expression such as turns[].{role: from, content: value} gives it one"
        } else {
            ""
        };
        format!("{}{hint}", bad.why)
    })?;
    let mut messages = parsed.messages;
    if !messages.is_empty()
        && messages.iter().all(|message| message.parts.is_empty())
        // Messages with empty content are valid; a wrong key name is the likely error.
        && !wrapped.contains("\"content\"")
    {
        return Err(
            "no message has `content`; an expression such as turns[].{role: role, content: text} gives it one"
                .to_owned(),
        );
    }
    for message in &mut messages {
        if let MessageRole::Other(name) = &message.role {
            // Names of roles in common datasets, such as ShareGPT.
            message.role = match name.to_lowercase().as_str() {
                "human" | "customer" | "person" => MessageRole::User,
                "ai" | "gpt" | "chatgpt" | "bot" | "chatbot" | "model" | "agent" | "llm" => {
                    MessageRole::Assistant
                }
                // ShareGPT files name tool results `observation`.
                "observation" => convert_to_tool_result(message),
                _ => continue,
            };
        }
    }
    Ok(messages)
}

/// Converts an `observation` message to a tool result and returns its role.
fn convert_to_tool_result<'m>(message: &mut TranscriptMessage<'m>) -> MessageRole<'m> {
    // An observation with several parts keeps them, because a result has only one text.
    if let [TranscriptPart::Text(text)] = &message.parts[..] {
        message.parts = vec![TranscriptPart::ToolResult(crate::model::ToolResult {
            call_id: SourceText::default(),
            content: text.clone(),
            is_error: None,
            duration_ms: None,
        })];
    }
    MessageRole::Tool
}

fn parse_object(json: &str) -> Option<JsonText<'static>> {
    // The first parse checks that it is an object; the second keeps the numbers as written.
    let ObjectOnly(_) = serde_json::from_str::<ObjectOnly<serde::de::IgnoredAny>>(json).ok()?;
    let json_text: JsonText<'_> = serde_json::from_str(json).ok()?;
    Some(json_text.into_owned())
}

#[cfg(test)]
mod tests;
