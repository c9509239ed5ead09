//! A conversation in the making from items of OpenAI's Responses API, which Codex records as well.
//!
//! Owns which items make one message: reasoning, text and calls of the model that follow each other stand in one message
//! of the assistant, up to the next text of its own; a tool's answer is a message of role `tool`. Tools that the service
//! runs itself (`web_search_call`, `mcp_call` …) are calls like any other, with their answer behind them where the item
//! holds it. Encrypted reasoning without a readable word leaves nothing. An item of an unknown kind is kept as written.

use serde_json::value::RawValue;

use super::super::fields::{Fields, compact, list};
use super::super::meta::Meta;
use super::super::native::{message, other, part_of, string};
use crate::model::{Message, Part, Role, Text, ToolCall, ToolResult};

/// A message and the metadata that is still put together.
#[derive(Debug, Clone)]
pub(super) struct Turn<'a> {
    /// Who speaks.
    pub(super) role: Role<'a>,
    /// What it holds.
    pub(super) parts: Vec<Part<'a>>,
    /// Its metadata so far.
    pub(super) meta: Meta,
}

/// Messages in the making.
#[derive(Debug, Clone, Default)]
pub(super) struct Talk<'a> {
    /// In order.
    pub(super) turns: Vec<Turn<'a>>,
    /// The last one is the assistant's, and what it says next belongs to it.
    open: bool,
    /// The open one holds a text already.
    said: bool,
}

/// Why an item is no part of the conversation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Odd {
    /// It is kept as written, and of this kind.
    Kind(String),
    /// It is broken: a sentence.
    Bad(String),
}

impl<'a> Talk<'a> {
    /// The next item.
    pub(super) fn item(&mut self, raw: &'a RawValue) -> Result<(), Odd> {
        let item = Fields::of(raw).ok_or_else(|| Odd::Bad("it is no object".to_owned()))?;
        let kind = item.text("type").unwrap_or_default();
        match &*kind {
            "" | "message" => return self.message(raw, &item),
            "reasoning" => self.assistant(reasoning(&item)),
            "mcp_list_tools"
            | "mcp_approval_request"
            | "item_reference"
            | "image_generation_call" => self.assistant(vec![other(raw)]),
            "mcp_approval_response" => self.push(Role::User, vec![other(raw)]),
            // What the service keeps for itself.
            "compaction" | "compaction_summary" | "context_compaction" | "ghost_snapshot" => {}
            _ if kind.ends_with("_output") => self.output(&item),
            _ if kind.ends_with("_call") => self.call(&kind, &item),
            _ => {
                self.assistant(vec![other(raw)]);
                return Err(Odd::Kind(kind.0.into_owned()));
            }
        }
        Ok(())
    }

    /// A whole message of its own.
    pub(super) fn push(&mut self, role: Role<'a>, parts: Vec<Part<'a>>) {
        self.open = false;
        self.turns.push(Turn {
            role,
            parts,
            meta: Meta::default(),
        });
    }

    /// What comes next from the model begins a message of its own.
    pub(super) fn close(&mut self) {
        self.open = false;
    }

    /// The assistant's message that still takes parts.
    pub(super) fn open(&mut self) -> Option<&mut Turn<'a>> {
        if self.open {
            self.turns.last_mut()
        } else {
            None
        }
    }

    /// Something the model brought forth.
    pub(super) fn assistant(&mut self, parts: Vec<Part<'a>>) {
        if parts.is_empty() {
            return;
        }
        let text = parts.iter().any(|part| matches!(part, Part::Text(_)));
        if self.open && !(text && self.said) {
            if let Some(turn) = self.turns.last_mut() {
                turn.parts.extend(parts);
            }
            self.said |= text;
        } else {
            self.push(Role::Assistant, parts);
            self.open = true;
            self.said = text;
        }
    }

    /// A tool's answer, and what of it is no text.
    pub(super) fn answer(&mut self, result: ToolResult<'a>, rest: Vec<Part<'a>>) {
        let mut parts = vec![Part::ToolResult(result)];
        parts.extend(rest);
        self.push(Role::Tool, parts);
    }

    /// The messages, finished.
    pub(super) fn finish(self) -> Vec<Message<'a>> {
        let messages = self.turns.into_iter().map(|turn| Message {
            role: turn.role,
            parts: turn.parts,
            metadata: turn.meta.finish(),
        });
        messages.collect()
    }

    fn message(&mut self, raw: &'a RawValue, item: &Fields<'a>) -> Result<(), Odd> {
        let Message {
            role,
            parts,
            metadata,
        } = message(raw).map_err(Odd::Bad)?;
        let is_item = item.has("type");
        if role == Role::Assistant && is_item {
            if parts.is_empty() {
                return Ok(());
            }
            self.assistant(parts);
        } else {
            self.push(role, parts);
        }
        let last = self.turns.last_mut();
        if let (Some(turn), Some(metadata)) = (last, metadata)
            && let Ok(own) = Fields::parse(metadata.get())
        {
            turn.meta.adopt_written(&own);
        }
        Ok(())
    }

    fn call(&mut self, kind: &str, item: &Fields<'a>) {
        let kind = kind.strip_suffix("_call").unwrap_or(kind);
        let name = match item.text("name").filter(|name| !name.is_empty()) {
            Some(name) => name,
            None => Text::from(kind.to_owned()),
        };
        let id = item
            .id("call_id")
            .or_else(|| item.id("id"))
            .unwrap_or_default();
        let arguments = match item.either(&["arguments", "input", "action", "actions", "operation"])
        {
            Some(raw) => arguments(raw),
            None => Text::from(own_arguments(item)),
        };
        self.assistant(vec![Part::ToolCall(ToolCall {
            id: id.clone(),
            name,
            arguments,
        })]);
        // A tool that the service ran: the answer stands in the same item.
        let answer = item.either(&["output", "outputs", "results", "result", "error"]);
        if let Some(answer) = answer {
            let (content, rest) = content_of(answer);
            self.answer(
                ToolResult {
                    call_id: id,
                    content,
                    is_error: failed(item),
                    duration_ms: None,
                },
                rest,
            );
        }
    }

    fn output(&mut self, item: &Fields<'a>) {
        let call_id = item
            .id("call_id")
            .or_else(|| item.id("id"))
            .unwrap_or_default();
        let raw = item.either(&["output", "result", "tools"]);
        let inner = raw.and_then(Fields::of);
        // Some wrap the text with a word on whether it went well.
        let told = inner.filter(|inner| inner.has("content") && inner.flag("success").is_some());
        let is_error = match &told {
            Some(told) => told.flag("success").map(|success| !success),
            None => failed(item),
        };
        let raw = told.and_then(|told| told.get("content")).or(raw);
        let (content, rest) = raw.map(content_of).unwrap_or_default();
        self.answer(
            ToolResult {
                call_id,
                content,
                is_error,
                duration_ms: None,
            },
            rest,
        );
    }
}

/// Whether the item says that its tool failed. `incomplete` says neither.
fn failed(item: &Fields<'_>) -> Option<bool> {
    if item.has("error") {
        return Some(true);
    }
    match item.text("status").as_deref() {
        Some("failed") => Some(true),
        // Of an answer it says only that all of it is there.
        Some("completed") if !item.text("type")?.ends_with("_output") => Some(false),
        _ => None,
    }
}

/// Arguments as text: a string's own, an object's compact JSON.
pub(super) fn arguments(raw: &RawValue) -> Text<'_> {
    match string(raw) {
        Some(text) => text,
        None => Text(compact(raw.get())),
    }
}

/// Those of a service's tool that stand in the item itself.
fn own_arguments(item: &Fields<'_>) -> String {
    let known = ["queries", "query", "code", "container_id", "server_label"];
    let mut meta = Meta::default();
    for key in known {
        meta.keep(key, item.get(key));
    }
    object_text(meta)
}

/// An object that was put together, as arguments.
pub(super) fn object_text(meta: Meta) -> String {
    let all = meta.finish();
    all.map_or_else(|| "{}".to_owned(), |all| compact(all.get()).into_owned())
}

/// An answer's text, and what is not text.
pub(super) fn content_of(raw: &RawValue) -> (Text<'_>, Vec<Part<'_>>) {
    let Some(pieces) = list(raw) else {
        return (arguments(raw), Vec::new());
    };
    let (mut texts, mut rest) = (Vec::new(), Vec::new());
    for piece in &pieces {
        let logs = Fields::of(piece).and_then(|fields| fields.text("logs"));
        match logs.map(Part::Text).or_else(|| part_of(piece)) {
            Some(Part::Text(text)) => texts.push(text),
            Some(part @ Part::Media { .. }) => rest.push(part),
            // Results of a search and the like: what is no content stays JSON.
            _ => return (Text(compact(raw.get())), Vec::new()),
        }
    }
    let mut texts = texts.into_iter();
    let text = match (texts.next(), texts.len()) {
        (None, _) => Text::default(),
        (Some(only), 0) => only,
        (Some(first), _) => {
            let mut all = first.0.into_owned();
            for text in texts {
                all.push('\n');
                all.push_str(&text);
            }
            Text::from(all)
        }
    };
    (text, rest)
}

/// What can be read of the model's thoughts: all of them, else their summary.
fn reasoning<'a>(item: &Fields<'a>) -> Vec<Part<'a>> {
    let texts = |key: &str| -> Vec<Part<'a>> {
        let Some(raw) = item.get(key) else {
            return Vec::new();
        };
        let whole = string(raw).into_iter();
        let pieces = list(raw).unwrap_or_default().into_iter();
        let pieces = pieces.filter_map(|piece| match Fields::of(piece) {
            Some(piece) => piece.text("text"),
            None => string(piece),
        });
        let all = whole.chain(pieces).filter(|text| !text.is_empty());
        all.map(Part::Reasoning).collect()
    };
    let whole = texts("content");
    if whole.is_empty() {
        texts("summary")
    } else {
        whole
    }
}
