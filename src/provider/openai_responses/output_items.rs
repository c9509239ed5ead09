//! The output items of one reply, built from events. Servers disagree on how an event names its item.
//!
//! OpenAI counts items (`output_index`), llama.cpp names them by `item_id`, and other servers change the id between
//! events of one item. So dicta looks for the index if there is one, then for the id, then for the open item of that
//! kind.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::ProviderError;
use super::super::client::malformed_error;
use crate::model::{CallIx, ReplyCall, TurnIx};

/// The most items of one reply.
const MAX_ITEMS: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputItemKind {
    Message,
    Call(CallIx),
    Reasoning,
    /// Compactions, calls of the server's own tools, and future kinds: sent back, but not read.
    Other,
}

/// One output item.
#[derive(Debug)]
pub(super) struct OutputItem {
    index: Option<u64>,
    id: String,
    pub(super) kind: OutputItemKind,
    /// The text of a message, the arguments of a call, or the streamed reasoning so far.
    pub(super) text: String,
    /// `true` for a message that isn't the answer.
    pub(super) commentary: bool,
    name: String,
    call_id: String,
    /// The complete item as received, which later requests send back.
    pub(super) received: Option<Box<RawValue>>,
}

/// The items in the order in which they began.
#[derive(Debug)]
pub(super) struct OutputItems {
    turn: TurnIx,
    calls: u16,
    all: Vec<OutputItem>,
}

/// The reference of an event to its item.
#[derive(Debug, Clone, Copy)]
pub(super) struct ItemRef<'e> {
    pub(super) index: Option<u64>,
    pub(super) id: &'e str,
    pub(super) call_id: &'e str,
    /// The item's type in the protocol.
    pub(super) kind: &'e str,
}

impl<'e> ItemRef<'e> {
    /// The reference of an event about a part of an item.
    pub(super) fn from_part_event(event: &'e Value, kind: &'e str) -> Self {
        Self {
            index: event.get("output_index").and_then(Value::as_u64),
            id: str_member(event, "item_id"),
            call_id: str_member(event, "call_id"),
            kind,
        }
    }

    /// The reference of an event that contains the item.
    pub(super) fn from_item(index: Option<u64>, item: &'e Value) -> Self {
        Self {
            index,
            id: str_member(item, "id"),
            call_id: str_member(item, "call_id"),
            kind: str_member(item, "type"),
        }
    }
}

impl OutputItems {
    pub(super) fn new(turn: TurnIx) -> Self {
        Self {
            turn,
            calls: 0,
            all: Vec::new(),
        }
    }

    pub(super) fn all(&self) -> &[OutputItem] {
        &self.all
    }

    /// Returns the item that an event refers to, and begins a new one if none matches.
    pub(super) fn find_or_begin(
        &mut self,
        place: ItemRef<'_>,
    ) -> Result<&mut OutputItem, ProviderError> {
        let at = match self.find(place) {
            Some(at) => at,
            None => self.begin(place)?,
        };
        Ok(&mut self.all[at])
    }

    /// Returns the item that an event refers to; `None` if it didn't begin.
    pub(super) fn find_mut(&mut self, place: ItemRef<'_>) -> Option<&mut OutputItem> {
        let at = self.find(place)?;
        self.all.get_mut(at)
    }

    /// Begins an item. If it began already, the event only repeats it.
    pub(super) fn begin_item(
        &mut self,
        place: ItemRef<'_>,
    ) -> Result<&mut OutputItem, ProviderError> {
        let nameless = place.index.is_none() && place.id.is_empty();
        // Without an index and an id, a second item looks like a repeated event.
        let again = self.find(place).filter(|at| {
            let slot = &self.all[*at];
            let same = slot.id == place.id && slot.call_id == place.call_id;
            same && slot.received.is_none() && !nameless
        });
        let at = match again {
            Some(at) => at,
            None => self.begin(place)?,
        };
        Ok(&mut self.all[at])
    }

    fn find(&self, place: ItemRef<'_>) -> Option<usize> {
        let open = |slot: &OutputItem| slot.received.is_none() && slot.is_of_type(place.kind);
        let by = |wanted: &dyn Fn(&OutputItem) -> bool| {
            let all = &self.all;
            // Open items first: a later event rarely refers to a complete one.
            all.iter()
                .rposition(|slot| open(slot) && wanted(slot))
                .or_else(|| {
                    all.iter()
                        .rposition(|slot| slot.is_of_type(place.kind) && wanted(slot))
                })
        };
        let by_index = place
            .index
            .and_then(|index| by(&|slot| slot.index == Some(index)));
        // Items with different indexes differ, even with the same id.
        let same = |slot: &OutputItem| slot.index.is_none() || place.index.is_none();
        let by_id = || {
            let named =
                |slot: &OutputItem| !place.id.is_empty() && slot.id == place.id && same(slot);
            let called = |slot: &OutputItem| {
                !place.call_id.is_empty() && slot.call_id == place.call_id && same(slot)
            };
            by(&named).or_else(|| by(&called))
        };
        // Without an index, an unknown id means the first open item, because some servers change ids.
        let first = || {
            self.all
                .iter()
                .position(open)
                .filter(|_| place.index.is_none())
        };
        // From the most reliable reference to the least.
        by_index.or_else(by_id).or_else(first)
    }

    fn begin(&mut self, place: ItemRef<'_>) -> Result<usize, ProviderError> {
        let at = self.all.len();
        if at >= MAX_ITEMS {
            return Err(ProviderError::Malformed(format!(
                "it holds more than {MAX_ITEMS} items"
            )));
        }
        let kind = match place.kind {
            "message" => OutputItemKind::Message,
            "reasoning" => OutputItemKind::Reasoning,
            "function_call" => {
                self.calls += 1;
                OutputItemKind::Call(CallIx(self.calls - 1))
            }
            _ => OutputItemKind::Other,
        };
        self.all.push(OutputItem {
            index: place.index,
            id: place.id.to_owned(),
            kind,
            text: String::new(),
            commentary: false,
            name: String::new(),
            call_id: place.call_id.to_owned(),
            received: None,
        });
        Ok(at)
    }

    /// Sorts the items by index if all have one, and creates missing call ids, also in the items that are sent back.
    ///
    /// Tool responses refer to these ids.
    pub(super) fn assign_order_and_ids(&mut self) {
        if self.all.iter().all(|slot| slot.index.is_some()) {
            self.all.sort_by_key(|slot| slot.index);
        }
        let calls = self
            .all
            .iter_mut()
            .filter(|slot| slot.is_of_type("function_call"));
        for (at, slot) in calls.enumerate() {
            if slot.call_id.is_empty() {
                slot.call_id = format!("call_{}_{at}", self.turn.0);
                slot.received = slot.received.take().map(|raw| with_id(raw, &slot.call_id));
            }
        }
    }

    /// Returns the calls as dicta reads them.
    pub(super) fn to_reply_calls(&self) -> Vec<ReplyCall> {
        let calls = self
            .all
            .iter()
            .filter(|slot| slot.is_of_type("function_call"));
        calls
            .map(|slot| ReplyCall {
                id: slot.call_id.clone(),
                name: slot.name.clone(),
                raw: slot.text.clone(),
            })
            .collect()
    }
}

impl OutputItem {
    fn is_of_type(&self, kind: &str) -> bool {
        match self.kind {
            OutputItemKind::Message => kind == "message",
            OutputItemKind::Call(_) => kind == "function_call",
            OutputItemKind::Reasoning => kind == "reasoning",
            OutputItemKind::Other => !["message", "function_call", "reasoning"].contains(&kind),
        }
    }

    /// Copies the fields of an item from its first or its last event.
    pub(super) fn update_from_item(&mut self, item: &Value) {
        let take = |into: &mut String, key: &str| {
            let word = str_member(item, key);
            // The end of an item may omit what its beginning stated.
            if !word.is_empty() {
                word.clone_into(into);
            }
        };
        take(&mut self.id, "id");
        take(&mut self.name, "name");
        take(&mut self.call_id, "call_id");
        // Only what is called the final answer is one; servers without phases have no other.
        self.commentary = !matches!(str_member(item, "phase"), "" | "final_answer");
    }

    /// Compares the final text with the deltas so far; returns the rest that they lack.
    pub(super) fn find_missing_text(&mut self, final_text: &str) -> Result<String, ProviderError> {
        let Some(rest) = final_text.strip_prefix(&*self.text) else {
            return Err(malformed_error(
                "an item's pieces are not what it says at its end",
                final_text,
            ));
        };
        let rest = rest.to_owned();
        self.text.push_str(&rest);
        Ok(rest)
    }
}

fn with_id(raw: Box<RawValue>, id: &str) -> Box<RawValue> {
    match serde_json::from_str(raw.get()) {
        Ok(Value::Object(mut map)) => {
            map.insert("call_id".to_owned(), id.into());
            serde_json::value::to_raw_value(&map).unwrap_or(raw)
        }
        _ => raw,
    }
}

pub(super) fn str_member<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
