//! Content blocks built from their events.
//!
//! A block stays as the server wrote it. If deltas built it, it has the members of its start with the collected ones
//! set; unknown members stay. A call's `input` is the concatenated text if that is JSON, otherwise that text as a
//! JSON string. That records exactly what arrived, and `history` never sends it.

use std::collections::HashSet;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::super::ProviderError;
use super::super::client::{NewDelta, NewDeltas, malformed_error};
use crate::event::DeltaPart;
use crate::model::{CallIx, ReplyCall, TurnIx};

/// The most blocks of one reply.
const MAX_BLOCKS: usize = 2000;

type RawMembers = IndexMap<String, Box<RawValue>>;

/// The blocks of one reply, in the order they began.
#[derive(Debug)]
pub(super) struct AnthropicBlocks {
    turn: TurnIx,
    blocks: Vec<AnthropicBlock>,
    calls: u16,
}

#[derive(Debug)]
struct AnthropicBlock {
    /// The server's key of the block; not a position.
    index: u64,
    kind: String,
    /// The block as it began.
    start: Box<RawValue>,
    id: String,
    name: String,
    /// The content of the start: text, thinking, or a call's input.
    initial_text: String,
    /// The same content from deltas.
    delta_text: Option<String>,
    signature: Option<String>,
    citations: Vec<Value>,
    /// The number of the call in the reply.
    call_ix: Option<CallIx>,
}

/// The fields of a block that dicta reads.
#[derive(Debug, Default, serde::Deserialize)]
struct AnthropicBlockStart<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

impl<'a> AnthropicBlockStart<'a> {
    /// Parses a block; for a kind that dicta doesn't read, only the kind.
    fn parse(raw: &'a RawValue) -> Result<Self, ProviderError> {
        #[derive(serde::Deserialize)]
        struct Kind {
            #[serde(rename = "type")]
            kind: String,
        }
        let fault = |_| malformed_error("it contains an invalid block", raw.get());
        // Read the kind first: a later kind of block may use known keys for values of other types.
        let Kind { kind } = serde_json::from_str(raw.get()).map_err(fault)?;
        if !["text", "thinking", "tool_use"].contains(&kind.as_str()) {
            return Ok(Self {
                kind,
                ..Self::default()
            });
        }
        serde_json::from_str(raw.get()).map_err(fault)
    }
}

impl AnthropicBlocks {
    pub(super) fn new(turn: TurnIx) -> Self {
        Self {
            turn,
            blocks: Vec::new(),
            calls: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Begins a block.
    pub(super) fn start(
        &mut self,
        index: u64,
        raw: &RawValue,
        new: &mut NewDeltas,
    ) -> Result<(), ProviderError> {
        let start = AnthropicBlockStart::parse(raw)?;
        let id = start.id.unwrap_or_default();
        // From the end, because gateways may reuse an index for a later block.
        let known = self.blocks.iter().rev().find(|block| block.index == index);
        // Some gateways send the same start twice.
        let again =
            |b: &AnthropicBlock| b.kind == start.kind && b.id == id && b.delta_text.is_none();
        if known.is_some_and(again) {
            return Ok(());
        }
        if self.blocks.len() >= MAX_BLOCKS {
            return Err(ProviderError::Malformed(format!(
                "it contains more than {MAX_BLOCKS} blocks"
            )));
        }
        let mut call = None;
        let name = start.name.unwrap_or_default();
        if start.kind == "tool_use" {
            if name.is_empty() {
                return Err(malformed_error("a call names no function", raw.get()));
            }
            call = Some(CallIx(self.calls));
            self.calls = self.calls.saturating_add(1);
        }
        // The content may already be in the start instead of in deltas.
        let given = match start.kind.as_str() {
            "text" => start.text.unwrap_or_default(),
            "thinking" => start.thinking.unwrap_or_default(),
            "tool_use" => start.input.map(initial_arguments).unwrap_or_default(),
            _ => String::new(),
        };
        let part = match start.kind.as_str() {
            "text" => Some(DeltaPart::Text),
            "thinking" => Some(DeltaPart::Thought),
            _ => None,
        };
        if let Some(part) = part.filter(|_| !given.is_empty()) {
            new.push(NewDelta {
                part,
                text: given.clone(),
            });
        }
        self.blocks.push(AnthropicBlock {
            index,
            kind: start.kind,
            start: raw.to_owned(),
            id,
            name,
            initial_text: given,
            delta_text: None,
            signature: None,
            citations: Vec::new(),
            call_ix: call,
        });
        Ok(())
    }

    /// Adds a delta to a block. Unknown kinds of deltas change nothing.
    pub(super) fn add_delta(
        &mut self,
        index: u64,
        delta: &Value,
        new: &mut NewDeltas,
    ) -> Result<(), ProviderError> {
        let text = |key: &str| delta.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = text("type");
        // The kind of block that each delta belongs to, and its text.
        let (block_kind, more) = match kind {
            "text_delta" => ("text", text("text")),
            "thinking_delta" => ("thinking", text("thinking")),
            "signature_delta" => ("thinking", text("signature")),
            "citations_delta" => ("text", ""),
            "input_json_delta" => ("tool_use", text("partial_json")),
            _ => return Ok(()),
        };
        if !self.blocks.iter().any(|block| block.index == index) {
            // Some servers omit the start of a text.
            let start = to_raw_value(&serde_json::json!({"type": block_kind, block_kind: ""}));
            let start = start.expect("a map of strings is JSON");
            self.start(index, &start, new)?;
        }
        let block = self.blocks.iter_mut().rfind(|block| block.index == index);
        let Some(block) = block else { return Ok(()) };
        // Blocks of the server's own tools also receive `input_json_delta`.
        if block_kind != block.kind
            && !(block_kind == "tool_use" && block.kind.ends_with("_tool_use"))
        {
            let what = format!("a {kind} for a block of kind {}", block.kind);
            return Err(malformed_error(&what, &delta.to_string()));
        }
        match kind {
            "signature_delta" => block.signature = Some(more.to_owned()),
            "citations_delta" => block.citations.extend(delta.get("citation").cloned()),
            _ => {
                let came = block.delta_text.get_or_insert_default();
                came.push_str(more);
                let part = match (block_kind, block.call_ix) {
                    ("text", _) => Some(DeltaPart::Text),
                    ("thinking", _) => Some(DeltaPart::Thought),
                    (_, call) => call.map(DeltaPart::Args),
                };
                if let Some(part) = part.filter(|_| !more.is_empty()) {
                    new.push(NewDelta {
                        part,
                        text: more.to_owned(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Ends the reply: emits arguments that arrived with the start, or never, and creates missing ids.
    ///
    /// Tool responses refer to ids, so each call needs a unique one.
    pub(super) fn finish(&mut self, new: &mut NewDeltas) {
        let mut ids = HashSet::new();
        for block in self
            .blocks
            .iter_mut()
            .filter(|block| block.call_ix.is_some())
        {
            let Some(ix) = block.call_ix else { continue };
            // No delta arrived: the arguments are those of the start, or none.
            if block.delta_text.as_ref().is_none_or(String::is_empty) {
                if block.initial_text.is_empty() {
                    "{}".clone_into(&mut block.initial_text);
                }
                block.delta_text = None;
                new.push(NewDelta {
                    part: DeltaPart::Args(ix),
                    text: block.initial_text.clone(),
                });
            }
            if block.id.is_empty() || ids.contains(&block.id) {
                block.id = format!("call_{}_{}", self.turn.0, ix.0);
            }
            ids.insert(block.id.clone());
        }
    }

    /// Returns all text of a kind.
    pub(super) fn text_of_type(&self, kind: &str) -> String {
        let all = self.blocks.iter().filter(|block| block.kind == kind);
        all.flat_map(|block| [Some(&block.initial_text), block.delta_text.as_ref()])
            .flatten()
            .map(String::as_str)
            .collect()
    }

    /// Returns the calls as dicta reads them.
    pub(super) fn calls(&self) -> Vec<ReplyCall> {
        let calls = self.blocks.iter().filter(|block| block.call_ix.is_some());
        let calls = calls.map(|block| ReplyCall {
            id: block.id.clone(),
            name: block.name.clone(),
            raw: block.arguments().to_owned(),
        });
        calls.collect()
    }

    /// Returns the blocks to send back, without texts of only white space, which the service refuses.
    pub(super) fn native(&self) -> Vec<Arc<RawValue>> {
        let sent = self.blocks.iter().filter(|block| !block.is_blank());
        sent.map(|block| Arc::from(block.native())).collect()
    }
}

impl AnthropicBlock {
    fn is_blank(&self) -> bool {
        let came = self.delta_text.as_deref().unwrap_or_default();
        self.kind == "text" && self.initial_text.trim().is_empty() && came.trim().is_empty()
    }

    fn arguments(&self) -> &str {
        self.delta_text.as_deref().unwrap_or(&self.initial_text)
    }

    fn native(&self) -> Box<RawValue> {
        // Keep every member that dicta doesn't know, because the service checks blocks that it gets back.
        let Ok(mut members) = serde_json::from_str::<RawMembers>(self.start.get()) else {
            return self.start.clone();
        };
        let mut changed = false;
        let mut set = |key: &str, value: Box<RawValue>| {
            let same = members.get(key).is_some_and(|v| v.get() == value.get());
            if !same {
                members.insert(key.to_owned(), value);
                changed = true;
            }
        };
        let join_text = |came: &str| to_json_string(&[self.initial_text.as_str(), came].concat());
        match (self.kind.as_str(), &self.delta_text) {
            ("text", Some(came)) => set("text", join_text(came)),
            ("thinking", Some(came)) => set("thinking", join_text(came)),
            (kind, Some(came)) if kind.ends_with("tool_use") => {
                set("input", keep_json_or_quote(came));
            }
            ("tool_use", None) if self.lacks_input() => set("input", keep_json_or_quote("{}")),
            _ => {}
        }
        if let Some(signature) = &self.signature {
            set("signature", to_json_string(signature));
        }
        if !self.citations.is_empty() {
            let all = to_raw_value(&self.citations);
            set("citations", all.expect("JSON values can be written"));
        }
        if self.call_ix.is_some() {
            let id = find_member_id(self.start.get());
            if id.as_deref() != Some(self.id.as_str()) {
                set("id", to_json_string(&self.id));
            }
        }
        // An unchanged block goes back byte for byte.
        if !changed {
            return self.start.clone();
        }
        to_raw_value(&members).expect("JSON members make a JSON object")
    }

    fn lacks_input(&self) -> bool {
        let start: Result<AnthropicBlockStart<'_>, _> = serde_json::from_str(self.start.get());
        start.is_ok_and(|start| start.input.is_none())
    }
}

fn find_member_id(start: &str) -> Option<String> {
    serde_json::from_str::<AnthropicBlockStart<'_>>(start)
        .ok()?
        .id
}

/// Returns the arguments in a block's start. An empty object means that deltas bring them.
fn initial_arguments(input: &RawValue) -> String {
    match serde_json::from_str::<Value>(input.get()) {
        Ok(Value::Object(map)) if map.is_empty() => String::new(),
        Ok(Value::Null) => String::new(),
        // Some gateways quote the object.
        Ok(Value::String(text)) => text,
        _ => input.get().to_owned(),
    }
}

fn to_json_string(text: &str) -> Box<RawValue> {
    to_raw_value(text).expect("a string is JSON")
}

fn keep_json_or_quote(text: &str) -> Box<RawValue> {
    // Arguments that aren't JSON are sent back as a string, so that the body stays valid JSON.
    RawValue::from_string(text.trim().to_owned()).unwrap_or_else(|_| to_json_string(text))
}
