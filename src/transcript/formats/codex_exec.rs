//! The output of `codex exec --json`: a thread, its turns and its items.
//!
//! Responsible for the items of this stream, which differ from those of rollouts: commands, patches, searches and MCP
//! calls include their results. The stream does not contain the user's prompt. `usage` of a finished turn is the total
//! of the thread so far.

use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::metadata::MetadataBuilder;
use super::super::native::unknown_part;
use super::super::reader::{
    PerSessionReader, RecordCx, SessionParser, TranscriptReader, TranscriptSink, record_text,
};
use super::exchange::parse_usage;
use super::record_readers::NOT_JSON;
use super::response_items::{ConversationBuilder, arguments_text, object_text};
use crate::model::{SourceText, ToolCall, ToolResult, Transcript, TranscriptPart};

/// Returns the reader of an output of `codex exec --json`.
pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    Box::new(PerSessionReader::new(
        preview.record_walker(),
        CodexExecParser,
    ))
}

#[derive(Debug)]
struct CodexExecParser;

impl SessionParser for CodexExecParser {
    fn starts_session(&mut self, line: &[u8]) -> bool {
        // The type is at the beginning of the line; a scan of every long line would be slow.
        let begin = &line[..line.len().min(64)];
        memchr::memmem::find(begin, b"\"thread.started\"").is_some()
    }

    fn parse_session(&self, lines: &[&[u8]], _: RecordCx<'_>, out: &mut TranscriptSink) {
        let mut thread = CodexExecThread::default();
        thread.meta.set("source", "codex-exec");
        for line in lines {
            match record_text(line).and_then(RawFields::parse) {
                Ok(line) => thread.add_line(&line, out),
                Err(_) => out.count_unknown(NOT_JSON),
            }
        }
        thread.finish(out);
    }
}

/// An item that started but has not ended.
#[derive(Debug)]
struct StartedItem<'a> {
    id: SourceText<'a>,
    raw: &'a RawValue,
}

#[derive(Debug, Default)]
struct CodexExecThread<'a> {
    id: SourceText<'a>,
    builder: ConversationBuilder<'a>,
    meta: MetadataBuilder,
    /// The items that started but have not ended, in order.
    started_items: Vec<StartedItem<'a>>,
    /// The id of the plan that the transcript already has.
    plan: Option<SourceText<'a>>,
    /// The last error that Codex has not recovered from.
    error: Option<SourceText<'a>>,
    /// The errors that did not end the turn, such as a connection that Codex opened again.
    warnings: Vec<SourceText<'a>>,
}

impl<'a> CodexExecThread<'a> {
    fn add_line(&mut self, line: &RawFields<'a>, out: &mut TranscriptSink) {
        let kind = line.text("type").unwrap_or_default();
        match &*kind {
            "thread.started" => self.id = line.id_text("thread_id").unwrap_or_default(),
            // `item.updated` repeats the state of an item that `item.completed` also has.
            "turn.started" | "item.updated" => {}
            "item.started" => {
                let item = line.object("item");
                if let (Some(item), Some(raw)) = (item, line.get("item"))
                    && let Some(id) = item.id_text("id")
                {
                    if item.text("type").as_deref() == Some("todo_list") {
                        // A plan stays open for the whole turn, so it is added when it starts.
                        self.add_item(&item, raw);
                        self.plan = Some(id);
                    } else {
                        self.started_items.push(StartedItem { id, raw });
                    }
                }
            }
            "item.completed" => {
                if let (Some(item), Some(raw)) = (line.object("item"), line.get("item")) {
                    let id = item.id_text("id");
                    // The plan is already a message, at the place where it started.
                    if id.is_some() && id == self.plan {
                        return;
                    }
                    self.started_items
                        .retain(|started| Some(&started.id) != id.as_ref());
                    self.add_item(&item, raw);
                }
            }
            "turn.completed" => {
                if let Some(usage) = line.object("usage") {
                    // Each turn reports the total of the thread, so the last one replaces the others.
                    self.meta.set("usage", parse_usage(&usage).to_json());
                }
                // A turn that ended well shows that Codex recovered from its error.
                self.warnings.extend(self.error.take());
                self.builder.close_message();
            }
            "turn.failed" => {
                let error = line.object("error");
                let why = error.and_then(|error| error.text_or_json("message"));
                let why = why.or_else(|| line.text_or_json("error"));
                self.set_error(why.unwrap_or_else(|| SourceText::from("the turn failed")));
            }
            // Codex also prints this line before it tries again.
            "error" => self.set_error(line.text_or_json("message").unwrap_or_default()),
            other => out.count_unknown(other),
        }
    }

    /// Sets the error of the turn. An earlier one becomes a warning, unless the new line repeats it.
    fn set_error(&mut self, why: SourceText<'a>) {
        let earlier = self.error.take().filter(|earlier| *earlier != why);
        self.warnings.extend(earlier);
        self.error = Some(why);
    }

    fn add_item(&mut self, item: &RawFields<'a>, raw: &'a RawValue) {
        // Older versions use another key for the kind.
        let kind = item
            .text("type")
            .or_else(|| item.text("item_type"))
            .unwrap_or_default();
        let id = item.id_text("id").unwrap_or_default();
        match &*kind {
            "agent_message" | "assistant_message" => {
                let text = item.text("text").unwrap_or_default();
                self.builder
                    .add_assistant_parts(vec![TranscriptPart::Text(text)]);
            }
            "reasoning" => {
                let text = item.text("text").unwrap_or_default();
                self.builder
                    .add_assistant_parts(vec![TranscriptPart::Reasoning(text)]);
            }
            "command_execution" => {
                self.add_tool_call(id, kind, &["command"], "aggregated_output", item);
            }
            "file_change" => self.add_tool_call(id, kind, &["changes"], "", item),
            "web_search" => self.add_tool_call(id, kind, &["query", "action"], "", item),
            "mcp_tool_call" => {
                let name = item.text("tool").unwrap_or(kind);
                self.add_tool_call(id, name, &["server"], "result", item);
            }
            "todo_list" => self.add_tool_call(id, kind, &["items"], "", item),
            // An error as an item does not end the turn. It is metadata, because it is not the agent's text.
            "error" => self.warnings.extend(item.text_or_json("message")),
            _ => self.builder.add_assistant_parts(vec![unknown_part(raw)]),
        }
    }

    fn add_tool_call(
        &mut self,
        id: SourceText<'a>,
        name: SourceText<'a>,
        asked: &[&str],
        answer: &str,
        item: &RawFields<'a>,
    ) {
        // MCP calls have arguments. Other items keep theirs in several keys, which form one object.
        let written = if let Some(raw) = item.get("arguments") {
            arguments_text(raw)
        } else {
            let mut all = MetadataBuilder::default();
            for key in asked {
                all.set_raw(key, item.get(key));
            }
            SourceText::from(object_text(all))
        };
        self.builder
            .add_assistant_parts(vec![TranscriptPart::ToolCall(ToolCall {
                id: id.clone(),
                name,
                arguments: written,
            })]);
        let is_error = match item.text("status").as_deref() {
            Some("failed" | "declined") => Some(true),
            Some("completed") => Some(false),
            // The stream does not contain the end of this item.
            Some(_) => return,
            None => None,
        };
        let content = item.get(answer).or_else(|| item.get("error"));
        // Without content and status there is nothing to show as a result.
        if content.is_none() && is_error.is_none() {
            return;
        }
        let result = ToolResult {
            call_id: id,
            content: content.map(arguments_text).unwrap_or_default(),
            is_error,
            duration_ms: None,
        };
        self.builder.push_tool_result(result, Vec::new());
    }

    fn finish(mut self, out: &mut TranscriptSink) {
        self.builder.close_message();
        // Items that were still open at the end of the stream become calls without a result.
        for StartedItem { raw, .. } in std::mem::take(&mut self.started_items) {
            if let Some(item) = RawFields::from_raw(raw) {
                self.add_item(&item, raw);
            }
        }
        if self.builder.messages.is_empty() {
            out.push_fault("the thread holds no message");
            return;
        }
        if !self.warnings.is_empty() {
            let warnings: Vec<&str> = self.warnings.iter().map(|why| &**why).collect();
            self.meta.set("warnings", warnings);
        }
        if let Some(why) = &self.error {
            self.meta.set("error", &**why);
        }
        out.push_transcript(&Transcript {
            id: self.id,
            messages: self.builder.finish(),
            metadata: self.meta.finish(),
            ..Transcript::default()
        });
    }
}
