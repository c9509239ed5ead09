//! The tools `list_messages`, `read_message` and `search_transcript`, with which a judge reads a transcript that its
//! prompt omits.
//!
//! Responsible for the declarations and responses of these tools. They read [`JudgedMessages`], which the prompt's
//! renderer creates from the judged messages only. It contains no later message, no metadata and no label, so no tool
//! can reveal them. Transcript text in a response is either between delimiting lines, whose marker the transcript
//! cannot contain, or a JSON string on one line. Responses come from the transcript, so they are never recorded as
//! evidence.
//!
//! A response has at most [`MAX_RESPONSE_BYTES`] bytes and states how to continue. A search checks the time between
//! slices of `search::SLICE_BYTES` bytes and reports where it stopped. Patterns take linear time and have a size
//! limit.

mod list;
mod read;
mod search;

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{SeenUrls, Tool, ValidatedCall, check_schema};
use crate::clock::BoxFuture;
use crate::event::CallCx;
use crate::model::{
    CallIx, Digest, RawJson, Rejection, ToolDeclaration, ToolResponse, escape_invisible_json,
};
use crate::schema::CompiledSchema;

/// The name of the tool that lists messages.
pub const LIST_MESSAGES: &str = "list_messages";
/// The name of the tool that reads one message.
pub const READ_MESSAGE: &str = "read_message";
/// The name of the tool that searches all messages.
pub const SEARCH_TRANSCRIPT: &str = "search_transcript";

/// The limit of transcript text in a response, in bytes.
pub const MAX_RESPONSE_BYTES: usize = 20_000;

/// The number of characters in a preview of a text.
const PREVIEW_CHARS: usize = 100;

/// The judged messages in order, as the prompt shows them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JudgedMessages {
    /// The parts that a prompt with the whole transcript would show.
    pub parts: Vec<MessagePart>,
    /// The number of judged messages; a message without parts is omitted.
    pub message_count: usize,
    /// The delimiter of the parts.
    pub delimiter: LineDelimiter,
}

/// The text around the label of a delimiting line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineDelimiter {
    /// The text before the label.
    pub start: String,
    /// The text after the label.
    pub end: String,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessagePart {
    /// The message's number.
    pub message: usize,
    /// The label in the delimiting line: `[4] assistant calls search (c1)`. It contains no raw text of the
    /// transcript.
    pub label: String,
    /// The part's text.
    pub text: String,
}

impl JudgedMessages {
    /// Returns a delimiting line with its line break.
    fn delimiting_line(&self, label: &str) -> String {
        format!("{}{label}{}\n", self.delimiter.start, self.delimiter.end)
    }

    /// Returns the parts of a message.
    fn parts_of(&self, message: usize) -> &[MessagePart] {
        // Parts are in the order of messages, so both ends are found by binary search.
        let from = self.parts.partition_point(|leaf| leaf.message < message);
        let to = self.parts.partition_point(|leaf| leaf.message <= message);
        &self.parts[from..to]
    }

    /// Returns the digest of all readable text, without the delimiters.
    pub fn digest(&self) -> Digest {
        let count = self.message_count.to_string();
        let parts = self
            .parts
            .iter()
            .flat_map(|leaf| [leaf.label.as_bytes(), leaf.text.as_bytes()]);
        Digest::hash_parts(std::iter::once(count.as_bytes()).chain(parts))
    }

    /// Returns one line per part of these messages: label, size, preview.
    pub fn list_parts(&self, from: usize, to: usize) -> String {
        let mut out = String::new();
        for message in from..to.min(self.message_count) {
            self.list_message_parts(message, &mut out);
        }
        out
    }

    fn list_message_parts(&self, message: usize, out: &mut String) {
        let leaves = self.parts_of(message);
        if leaves.is_empty() {
            let _infallible = writeln!(out, "[{message}] left out");
        }
        for leaf in leaves {
            let size = leaf.text.len();
            let _infallible = write!(out, "{}, {size} bytes", leaf.label);
            // A part without text has no preview.
            if size > 0 {
                let _infallible = write!(out, ": {}", quote_preview(&leaf.text, PREVIEW_CHARS));
            }
            out.push('\n');
        }
    }
}

/// Returns the start of a text as a JSON string on one line. White space becomes single spaces and hidden characters
/// become escapes, so the text can neither end its line nor look like a line of dicta.
fn quote_preview(text: &str, max: usize) -> String {
    let mut short = String::new();
    let mut more = false;
    for word in text.split_whitespace() {
        if short.chars().count() >= max {
            more = true;
            break;
        }
        if !short.is_empty() {
            short.push(' ');
        }
        // A word may be as long as the text.
        short.extend(word.chars().take(max));
    }
    let cut: String = short.chars().take(max).collect();
    let dots = if more || cut.len() < short.len() {
        "…"
    } else {
        ""
    };
    format!("{}{dots}", to_visible_json_string(&cut))
}

/// Returns a JSON string without invisible characters.
fn to_visible_json_string(text: &str) -> String {
    escape_invisible_json(&Value::from(text).to_string()).into_owned()
}

/// Returns true if a transcript tool has this name.
pub fn is_transcript_tool(name: &str) -> bool {
    [LIST_MESSAGES, READ_MESSAGE, SEARCH_TRANSCRIPT].contains(&name)
}

/// Returns the declarations of the tools.
pub fn transcript_tool_decls() -> Vec<ToolDeclaration> {
    let integer = |least: u64, most: Option<u64>, about: &str| {
        let mut field = json!({"type": "integer", "minimum": least, "description": about});
        if let Some(most) = most {
            field["maximum"] = json!(most);
        }
        field
    };
    let decl =
        |name: &str, description: &str, properties: Value, required: &[&str]| ToolDeclaration {
            name: name.to_owned(),
            description: description.to_owned(),
            schema: json!({
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false
            }),
        };
    vec![
        decl(
            LIST_MESSAGES,
            "Lists messages of the transcript you judge: number, role, calls, size, and how each part begins.",
            json!({
                "from": integer(0, None, "The first message to list; 0 if left out."),
                "limit": integer(1, Some(200), "How many messages; 50 if left out.")
            }),
            &[],
        ),
        decl(
            READ_MESSAGE,
            "Reads one message of the transcript you judge. A long one is cut; `from` goes on where it was cut.",
            json!({
                "message": integer(0, None, "The message's number."),
                "from": integer(0, None, "The byte to begin at; 0 if left out."),
                "limit": integer(1, Some(MAX_RESPONSE_BYTES as u64), "How many bytes; 20000 if left out.")
            }),
            &["message"],
        ),
        decl(
            SEARCH_TRANSCRIPT,
            "Searches all messages of the transcript you judge, and shows each place found with its message's number and \
             byte, for `read_message`.",
            json!({
                "query": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "The text to find."},
                "regex": {"type": "boolean", "description": "Whether `query` is a regular expression; false if left out."},
                "match_case": {"type": "boolean", "description": "Whether case counts; false if left out."},
                "from": integer(0, None, "The first message to search; 0 if left out."),
                "limit": integer(1, Some(50), "How many places to show; 20 if left out.")
            }),
            &["query"],
        ),
    ]
}

/// Creates the three tools for a transcript.
pub fn transcript_tools_for(messages: &Arc<JudgedMessages>) -> Vec<Arc<dyn Tool>> {
    // The declarations are the same for every transcript, so their schemas are compiled once.
    TRANSCRIPT_TOOL_SPECS
        .iter()
        .map(|spec_of| {
            let messages = Arc::clone(messages);
            Arc::new(TranscriptTool {
                spec: spec_of,
                messages,
            }) as Arc<dyn Tool>
        })
        .collect()
}

/// A declaration with its compiled schema.
struct TranscriptToolSpec {
    decl: ToolDeclaration,
    schema: CompiledSchema,
}

static TRANSCRIPT_TOOL_SPECS: LazyLock<Vec<TranscriptToolSpec>> = LazyLock::new(|| {
    let spec_of = |decl: ToolDeclaration| TranscriptToolSpec {
        schema: CompiledSchema::compile(&decl.schema).expect("our own schemas are valid"),
        decl,
    };
    transcript_tool_decls().into_iter().map(spec_of).collect()
});

/// One of the three tools.
struct TranscriptTool {
    spec: &'static TranscriptToolSpec,
    messages: Arc<JudgedMessages>,
}

/// The arguments of all three tools; each tool's schema allows a part of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TranscriptToolArgs {
    message: Option<usize>,
    from: usize,
    limit: Option<usize>,
    query: String,
    regex: bool,
    match_case: bool,
}

impl TranscriptToolArgs {
    /// Reads arguments. In JSON Schema, `1.0` is an integer, and a number may exceed every transcript.
    fn read(args: &RawJson) -> Result<Self, String> {
        let mut value: Value =
            serde_json::from_str(args.get()).map_err(|error| error.to_string())?;
        for field in value
            .as_object_mut()
            .into_iter()
            .flat_map(|map| map.values_mut())
        {
            // Some models write whole numbers as `2.0`.
            if let Some(number) = field.as_f64().filter(|_| !field.is_u64()) {
                // A number past the end saturates; the call then reports that there is no such message.
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it saturates, which is what is meant"
                )]
                let number = number as u64;
                *field = json!(number);
            }
        }
        serde_json::from_value(value).map_err(|error| error.to_string())
    }
}

impl TranscriptTool {
    /// Checks a call against the transcript.
    fn check_args(&self, args: &TranscriptToolArgs) -> Result<(), String> {
        let last = || match self.messages.message_count {
            0 => "the transcript holds no messages".to_owned(),
            1 => "the transcript holds message 0 alone".to_owned(),
            n => format!("messages are numbered 0 to {}", n - 1),
        };
        if let Some(message) = args.message {
            if message >= self.messages.message_count {
                return Err(format!("there is no message {message}: {}", last()));
            }
            let size = read::message_size(&self.messages, message);
            // The start of an empty message is valid, so that a judge can read that it is empty.
            if args.from > 0 && args.from >= size {
                return Err(format!(
                    "message {message} ends before byte {}: it has {size} bytes",
                    args.from
                ));
            }
        } else if args.from > 0 && args.from >= self.messages.message_count {
            return Err(format!("there is no message {}: {}", args.from, last()));
        }
        // Compiled here to reject an invalid pattern before the call, and again in the call.
        if self.spec.decl.name == SEARCH_TRANSCRIPT {
            search::compile_search_pattern(args)?;
        }
        Ok(())
    }
}

impl Tool for TranscriptTool {
    fn decl(&self) -> &ToolDeclaration {
        &self.spec.decl
    }

    fn reads_transcript(&self) -> bool {
        true
    }

    fn prepare(&self, canonical: &RawJson, _seen: &SeenUrls) -> Result<ValidatedCall, Rejection> {
        let name = &self.spec.decl.name;
        check_schema(name, &self.spec.schema, canonical)?;
        TranscriptToolArgs::read(canonical)
            .and_then(|args| self.check_args(&args))
            .map_err(|why| Rejection {
                rule: "arguments".to_owned(),
                text: format!("Error: {name}: {why}"),
            })?;
        Ok(ValidatedCall::unchanged(name, canonical))
    }

    fn call<'a>(
        &'a self,
        prepared: &'a ValidatedCall,
        _call: CallIx,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse> {
        Box::pin(async move {
            let args = match TranscriptToolArgs::read(&prepared.values) {
                Ok(args) => args,
                Err(why) => return ToolResponse::error(why),
            };
            match self.spec.decl.name.as_str() {
                LIST_MESSAGES => list::list_messages(&self.messages, &args),
                READ_MESSAGE => read::read_message(&self.messages, &args),
                _ => search::search_transcript(&self.messages, &args, cx).await,
            }
        })
    }
}

/// Creates a response with `bytes` of transcript text, cut or complete.
fn new_response(text: String, bytes: usize, cut: bool) -> ToolResponse {
    ToolResponse {
        bytes: bytes as u64,
        truncated: cut,
        ..ToolResponse::ok(text)
    }
}

#[cfg(test)]
mod tests;
