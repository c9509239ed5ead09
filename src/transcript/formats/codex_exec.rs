//! The stream that `codex exec --json` prints: a thread, its turns, its items.
//!
//! Owns its items, which are not those of rollouts: commands, patches, searches and MCP calls come with what became of
//! them. The stream does not hold what the user asked. `usage` of a finished turn counts the whole thread so far.

use serde_json::value::RawValue;

use super::super::detect::Look;
use super::super::fields::Fields;
use super::super::meta::Meta;
use super::super::native::other;
use super::super::reader::{BySession, Out, Reader, RecordCx, Sessions, text_of};
use super::exchange::tokens;
use super::items::{Talk, arguments, object_text};
use crate::model::{Part, Text, ToolCall, ToolResult, Transcript};

/// The output of `codex exec --json`.
pub(super) fn open(look: &Look<'_>) -> Box<dyn Reader> {
    Box::new(BySession::new(look.walk(), Threads))
}

#[derive(Debug)]
struct Threads;

impl Sessions for Threads {
    fn begins(&mut self, line: &[u8]) -> bool {
        let begin = &line[..line.len().min(64)];
        memchr::memmem::find(begin, b"\"thread.started\"").is_some()
    }

    fn read(&self, lines: &[&[u8]], _: RecordCx<'_>, out: &mut Out) {
        let mut thread = Thread::default();
        thread.meta.set("source", "codex-exec");
        for line in lines {
            match text_of(line).and_then(Fields::parse) {
                Ok(line) => thread.line(&line, out),
                Err(_) => out.unknown("a line that is not JSON"),
            }
        }
        thread.finish(out);
    }
}

#[derive(Debug, Default)]
struct Thread<'a> {
    id: Text<'a>,
    talk: Talk<'a>,
    meta: Meta,
    /// Items that were begun and not ended yet, in order.
    begun: Vec<(Text<'a>, &'a RawValue)>,
    /// The plan that was shown already.
    plan: Option<Text<'a>>,
}

impl<'a> Thread<'a> {
    fn line(&mut self, line: &Fields<'a>, out: &mut Out) {
        let kind = line.text("type").unwrap_or_default();
        match &*kind {
            "thread.started" => self.id = line.id("thread_id").unwrap_or_default(),
            "turn.started" | "item.updated" => {}
            "item.started" => {
                let item = line.object("item");
                if let (Some(item), Some(raw)) = (item, line.get("item"))
                    && let Some(id) = item.id("id")
                {
                    if item.text("type").as_deref() == Some("todo_list") {
                        // A plan goes along with the whole turn; it was made here.
                        self.item(&item, raw, out);
                        self.plan = Some(id);
                    } else {
                        self.begun.push((id, raw));
                    }
                }
            }
            "item.completed" => {
                if let (Some(item), Some(raw)) = (line.object("item"), line.get("item")) {
                    let id = item.id("id");
                    if id.is_some() && id == self.plan {
                        return;
                    }
                    self.begun.retain(|(begun, _)| Some(begun) != id.as_ref());
                    self.item(&item, raw, out);
                }
            }
            "turn.completed" => {
                if let Some(usage) = line.object("usage") {
                    self.meta.set("usage", tokens(&usage).value());
                }
                self.talk.close();
            }
            "turn.failed" => {
                let error = line.object("error");
                let why = error.and_then(|error| error.written("message"));
                let why = why.or_else(|| line.written("error"));
                self.meta
                    .set("error", why.as_deref().unwrap_or("the turn failed"));
            }
            "error" => {
                let why = line.written("message").unwrap_or_default();
                self.meta.set("error", &*why);
            }
            other => out.unknown(other),
        }
    }

    fn item(&mut self, item: &Fields<'a>, raw: &'a RawValue, out: &mut Out) {
        // Older versions name the kind otherwise.
        let kind = item
            .text("type")
            .or_else(|| item.text("item_type"))
            .unwrap_or_default();
        let id = item.id("id").unwrap_or_default();
        match &*kind {
            "agent_message" | "assistant_message" => {
                let text = item.text("text").unwrap_or_default();
                self.talk.assistant(vec![Part::Text(text)]);
            }
            "reasoning" => {
                let text = item.text("text").unwrap_or_default();
                self.talk.assistant(vec![Part::Reasoning(text)]);
            }
            "command_execution" => self.tool(id, kind, &["command"], "aggregated_output", item),
            "file_change" => self.tool(id, kind, &["changes"], "", item),
            "web_search" => self.tool(id, kind, &["query", "action"], "", item),
            "mcp_tool_call" => {
                let name = item.text("tool").unwrap_or(kind);
                self.tool(id, name, &["server"], "result", item);
            }
            "todo_list" => self.tool(id, kind, &["items"], "", item),
            "error" => {
                let why = item.written("message").unwrap_or_default();
                self.meta.set("error", &*why);
            }
            _ => {
                out.unknown(&format!("item {}", &*kind));
                self.talk.assistant(vec![other(raw)]);
            }
        }
    }

    fn tool(
        &mut self,
        id: Text<'a>,
        name: Text<'a>,
        asked: &[&str],
        answer: &str,
        item: &Fields<'a>,
    ) {
        let written = if let Some(raw) = item.get("arguments") {
            arguments(raw)
        } else {
            let mut all = Meta::default();
            for key in asked {
                all.keep(key, item.get(key));
            }
            Text::from(object_text(all))
        };
        self.talk.assistant(vec![Part::ToolCall(ToolCall {
            id: id.clone(),
            name,
            arguments: written,
        })]);
        let is_error = match item.text("status").as_deref() {
            Some("failed" | "declined") => Some(true),
            Some("completed") => Some(false),
            // Not ended, as far as the stream goes.
            Some(_) => return,
            None => None,
        };
        let content = item.get(answer).or_else(|| item.get("error"));
        if content.is_none() && is_error.is_none() {
            return;
        }
        let result = ToolResult {
            call_id: id,
            content: content.map(arguments).unwrap_or_default(),
            is_error,
            duration_ms: None,
        };
        self.talk.answer(result, Vec::new());
    }

    fn finish(mut self, out: &mut Out) {
        self.talk.close();
        // What was under way when the stream ended: calls without an answer.
        for (_, raw) in std::mem::take(&mut self.begun) {
            if let Some(item) = Fields::of(raw) {
                self.item(&item, raw, out);
            }
        }
        if self.talk.turns.is_empty() {
            out.fault("the thread holds no message");
            return;
        }
        out.transcript(&Transcript {
            id: self.id,
            messages: self.talk.finish(),
            metadata: self.meta.finish(),
            ..Transcript::default()
        });
    }
}
