//! Tool calls built from deltas. Servers agree on little except the order of the pieces.

use serde_json::{Map, Value, json};

use super::super::ProviderError;
use crate::model::{CallIx, ReplyCall, TurnIx};

/// The most calls of one reply.
const MAX_CALLS: usize = 1000;

/// The calls of one reply, in the order they began.
#[derive(Debug)]
pub(super) struct ChatToolCalls {
    turn: TurnIx,
    calls: Vec<ChatToolCall>,
}

#[derive(Debug, Default)]
struct ChatToolCall {
    /// The server's key of the call; not a position, and it may begin at 1.
    index: Option<u64>,
    id: String,
    generated_id: bool,
    name: String,
    arguments: String,
    /// `true` for the `function_call` of the protocol before tools.
    is_legacy: bool,
    /// The other members of the call (signatures of gateways), which are sent back with it.
    extra_members: Map<String, Value>,
}

impl ChatToolCalls {
    pub(super) fn new(turn: TurnIx) -> Self {
        Self {
            turn,
            calls: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns whether a call has an id that dicta created.
    pub(super) fn has_generated_ids(&self) -> bool {
        self.calls.iter().any(|call| call.generated_id)
    }

    /// Reads a delta; returns its call and the arguments that it adds.
    pub(super) fn add_delta(
        &mut self,
        delta: &Value,
    ) -> Result<Option<(CallIx, String)>, ProviderError> {
        let Value::Object(fields) = delta else {
            return Ok(None);
        };
        let index = fields.get("index").and_then(Value::as_u64);
        let id = fields.get("id").and_then(Value::as_str).unwrap_or_default();
        let (name, arguments) = fields
            .get("function")
            .map(read_function)
            .unwrap_or_default();
        let at = match self.find_continued(index, id, name) {
            Some(at) => at,
            // An empty piece without a position or a name belongs to no call.
            None if index.is_none() && id.is_empty() && name.is_empty() => {
                return Ok(None);
            }
            None => self.begin(index)?,
        };
        let call = &mut self.calls[at];
        // The server's id replaces a created one, even if it arrives late.
        if !id.is_empty() && (call.id.is_empty() || call.generated_id) {
            id.clone_into(&mut call.id);
            call.generated_id = false;
        }
        call.add_piece(name, &arguments);
        for (key, value) in fields {
            // Gateways attach signatures of other vendors here, which must go back.
            if !["index", "id", "type", "function"].contains(&key.as_str()) && !value.is_null() {
                call.extra_members.insert(key.clone(), value.clone());
            }
        }
        Ok(Some((CallIx::from_position(at), arguments)))
    }

    /// Reads the `function_call` of the protocol before tools, or a piece of it; returns its call and the arguments that
    /// it adds.
    ///
    /// A gateway can send it next to `tool_calls`, and each of them can have a verdict, so it counts like any call.
    pub(super) fn add_function_call(
        &mut self,
        function: &Value,
    ) -> Result<Option<(CallIx, String)>, ProviderError> {
        let (name, arguments) = read_function(function);
        // Some servers send an empty one next to every text.
        if name.is_empty() && arguments.is_empty() {
            return Ok(None);
        }
        let at = match self.calls.iter().position(|call| call.is_legacy) {
            Some(at) => at,
            None => self.begin(None)?,
        };
        let call = &mut self.calls[at];
        call.is_legacy = true;
        call.add_piece(name, &arguments);
        Ok(Some((CallIx::from_position(at), arguments)))
    }

    /// Returns the call that a delta continues.
    fn find_continued(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let at = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index)?,
            None => self.calls.iter().rposition(|call| !call.is_legacy)?,
        };
        let call = &self.calls[at];
        let names_itself = !id.is_empty() || !name.is_empty();
        let other_id = !id.is_empty() && !call.generated_id && call.id != id;
        let begins = match index {
            // Gateways send the same index for all calls. A name with another id begins another call.
            Some(_) => other_id && !name.is_empty(),
            // Without an index a call begins with a name, unless the delta only repeats the last name.
            None => names_itself && (other_id || !name.is_empty() && call.is_complete()),
        };
        (!begins).then_some(at)
    }

    fn begin(&mut self, index: Option<u64>) -> Result<usize, ProviderError> {
        let at = self.calls.len();
        if at >= MAX_CALLS {
            return Err(ProviderError::Malformed(format!(
                "it makes more than {MAX_CALLS} calls"
            )));
        }
        self.calls.push(ChatToolCall {
            index,
            id: format!("call_{}_{at}", self.turn.0),
            generated_id: true,
            ..ChatToolCall::default()
        });
        Ok(at)
    }

    /// Returns the calls as dicta reads them.
    pub(super) fn to_reply_calls(&self) -> Vec<ReplyCall> {
        let calls = self.calls.iter().map(|call| ReplyCall {
            id: call.id.clone(),
            name: call.name.clone(),
            raw: call.arguments.clone(),
        });
        calls.collect()
    }

    /// Returns the calls as members of an assistant message.
    pub(super) fn native(&self) -> Value {
        let calls = self.calls.iter().map(|call| {
            let mut native = json!({"id": call.id, "type": "function",
                "function": {"name": call.name, "arguments": call.arguments}});
            if let Value::Object(map) = &mut native {
                map.extend(call.extra_members.clone());
            }
            native
        });
        calls.collect()
    }
}

impl ChatToolCall {
    /// Adds a piece of the name and of the arguments.
    fn add_piece(&mut self, name: &str, arguments: &str) {
        // Some servers stream the name in pieces, and others repeat it whole.
        if self.name != name && self.arguments.is_empty() {
            self.name.push_str(name);
        }
        self.arguments.push_str(arguments);
    }

    fn is_complete(&self) -> bool {
        serde_json::from_str::<Map<String, Value>>(&self.arguments).is_ok()
    }
}

/// Returns the name and the arguments of a function, or of a piece of one.
fn read_function(function: &Value) -> (&str, String) {
    let name = function.get("name").and_then(Value::as_str);
    let arguments = match function.get("arguments") {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        // Some servers send the arguments as an object instead of a text.
        Some(other) => other.to_string(),
    };
    (name.unwrap_or_default(), arguments)
}
