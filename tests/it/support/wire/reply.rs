//! A scripted reply: a function creates it, and methods change it.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::Pause;

/// A function call of the model.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(super) name: String,
    /// The arguments as sent, valid or not (Gemini: must be JSON).
    pub(super) arguments: String,
    /// Byte positions at which the arguments are split over deltas; empty: by `piece_len`.
    pub(super) split_at: Vec<usize>,
}

/// The content of a reply.
#[derive(Debug, Clone)]
pub(super) enum ReplyContent {
    /// A turn of a model, in the dialect of the request.
    Turn,
    /// A verdict: a call of `submit_verdict` if the request declares it, else JSON as text.
    Verdict(Value),
    /// These bytes.
    Raw(String),
}

/// A private character that represents half of a surrogate pair until the body is written.
fn mark_half(half: u16) -> char {
    char::from_u32(u32::from(half) + 0x800).expect("a private character")
}

/// One scripted reply. Constructors create it, and the other methods change it.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(super) content: ReplyContent,
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) thought: String,
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    pub(super) finish: Option<String>,
    pub(super) signature: Option<String>,
    pub(super) usage: Option<(u64, u64)>,
    /// Raw text that the server sends after the content, instead of the finish reason and the end mark.
    pub(super) tail: Option<String>,
    pub(super) error_tail: Option<Value>,
    pub(super) done: bool,
    pub(super) piece_len: usize,
    pub(super) endless: bool,
    /// The text that the server repeats without end. `None` repeats more of the content.
    pub(super) endless_of: Option<String>,
    pub(super) endless_head: bool,
    pub(super) split_every: Option<usize>,
    pub(super) cut_at: Option<usize>,
    pub(super) end_at: Option<usize>,
    pub(super) pause_before: Vec<(usize, Pause)>,
    pub(super) chunk_delay: Duration,
    pub(super) cuts_pairs: bool,
    /// Sends no reply at all and closes.
    pub(super) silent: bool,
    /// The bytes that answer the connection's next request, before the server closes it.
    pub(super) last_words: Option<String>,
    /// Bytes that replace the whole HTTP response.
    pub(super) response: Option<Vec<u8>>,
    /// Resets the connection where the server would close it.
    pub(super) resets: bool,
    /// Streams each event twice.
    pub(super) doubled: bool,
    /// The model that the reply names, instead of that of the request.
    pub(super) model: Option<String>,
    /// States a content length that is wrong by this many bytes.
    pub(super) length_error: Option<i64>,
}

impl Reply {
    fn new(content: ReplyContent) -> Self {
        Self {
            content,
            status: 200,
            headers: Vec::new(),
            thought: String::new(),
            text: String::new(),
            calls: Vec::new(),
            finish: None,
            signature: None,
            usage: Some((100, 20)),
            tail: None,
            error_tail: None,
            done: true,
            piece_len: 12,
            endless: false,
            endless_of: None,
            endless_head: false,
            split_every: None,
            cut_at: None,
            end_at: None,
            pause_before: Vec::new(),
            chunk_delay: Duration::ZERO,
            cuts_pairs: false,
            silent: false,
            last_words: None,
            response: None,
            resets: false,
            doubled: false,
            model: None,
            length_error: None,
        }
    }

    /// Returns a reply of these bytes, which replace the whole HTTP response. The connection then closes.
    pub(crate) fn response(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            response: Some(bytes.into()),
            ..Self::raw("")
        }
    }

    /// Resets the connection where the server would close it.
    pub(crate) fn resets(mut self) -> Self {
        self.resets = true;
        self
    }

    /// Names another model than the request.
    pub(crate) fn named(mut self, model: &str) -> Self {
        self.model = Some(model.to_owned());
        self
    }

    /// Streams each event twice.
    pub(crate) fn doubled(mut self) -> Self {
        self.doubled = true;
        self
    }

    /// States a content length that is wrong by this many bytes, and closes the connection after the body.
    pub(crate) fn length_error(mut self, bytes: i64) -> Self {
        self.length_error = Some(bytes);
        self
    }

    /// A text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::new(ReplyContent::Turn)
        }
    }

    /// A function call with valid arguments.
    pub(crate) fn call(name: &str, arguments: impl Into<Value>) -> Self {
        Self::raw_call(name, arguments.into().to_string())
    }

    /// A function call with these arguments, broken ones too.
    pub(crate) fn raw_call(name: &str, arguments: impl Into<String>) -> Self {
        Self::new(ReplyContent::Turn).and_raw_call(name, arguments)
    }

    /// A verdict: `submit_verdict` where the request declares it, else JSON as text.
    pub(crate) fn verdict(verdict: impl Into<Value>) -> Self {
        Self::new(ReplyContent::Verdict(verdict.into()))
    }

    /// A status with an error body in the dialect's shape.
    pub(crate) fn status(status: u16) -> Self {
        let error = json!({"error": {"code": status, "message": format!("scripted {status}")}});
        Self {
            status,
            ..Self::new(ReplyContent::Raw(error.to_string()))
        }
    }

    /// 200 and exactly this body, as an event stream.
    pub(crate) fn raw(body: impl Into<String>) -> Self {
        Self::new(ReplyContent::Raw(body.into()))
    }

    /// Reads the request and closes the connection without a byte.
    pub(crate) fn nothing() -> Self {
        Self {
            silent: true,
            ..Self::raw("")
        }
    }

    /// After this reply the connection looks open. Its next request is not recorded: the server sends these bytes and
    /// closes, as one that closed an idle connection a moment before (no byte), or that broke at once.
    pub(crate) fn then_close_with(mut self, bytes: &str) -> Self {
        self.last_words = Some(bytes.to_owned());
        self
    }

    /// Streams text and arguments in pieces of this many UTF-16 units, as a gateway in JavaScript does: a piece may end
    /// between the halves of a surrogate pair.
    pub(crate) fn cut_pairs(mut self, units: usize) -> Self {
        self.cuts_pairs = true;
        self.piece_len = units.max(1);
        self
    }

    /// Splits a text into the pieces in which it is streamed.
    pub(super) fn split(&self, text: &str) -> Vec<String> {
        if !self.cuts_pairs {
            let chars: Vec<char> = text.chars().collect();
            let pieces = chars.chunks(self.piece_len);
            return pieces.map(|piece| piece.iter().collect()).collect();
        }
        let units: Vec<u16> = text.encode_utf16().collect();
        let pieces = units.chunks(self.piece_len).map(|piece| {
            let read = char::decode_utf16(piece.iter().copied());
            read.map(|unit| unit.unwrap_or_else(|half| mark_half(half.unpaired_surrogate())))
                .collect()
        });
        pieces.collect()
    }

    /// Writes the marked halves in a body as escapes.
    pub(super) fn escape_halves(&self, body: String) -> String {
        if !self.cuts_pairs {
            return body;
        }
        let mut out = String::new();
        for c in body.chars() {
            match u32::from(c) {
                code @ 0xE000..=0xE7FF => {
                    write!(out, "\\u{:04x}", code - 0x800).expect("a string takes any text");
                }
                _ => out.push(c),
            }
        }
        out
    }

    /// Sets the body of a status or a raw reply.
    pub(crate) fn body(mut self, body: impl Into<String>) -> Self {
        self.content = ReplyContent::Raw(body.into());
        self
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Sets the text before the calls.
    pub(crate) fn saying(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }

    /// Sets the thinking before the text.
    pub(crate) fn thinking(mut self, thought: impl Into<String>) -> Self {
        self.thought = thought.into();
        self
    }

    /// Adds a call.
    pub(crate) fn and_call(self, name: &str, arguments: impl Into<Value>) -> Self {
        self.and_raw_call(name, arguments.into().to_string())
    }

    /// Adds a call with these arguments.
    pub(crate) fn and_raw_call(mut self, name: &str, arguments: impl Into<String>) -> Self {
        self.calls.push(Call {
            name: name.to_owned(),
            arguments: arguments.into(),
            split_at: Vec::new(),
        });
        self
    }

    /// Splits the last call's arguments at these byte positions.
    pub(crate) fn split_args_at(mut self, at: &[usize]) -> Self {
        if let Some(call) = self.calls.last_mut() {
            call.split_at = at.to_vec();
        }
        self
    }

    /// Sets a thought signature on the first call or the text, for Gemini.
    pub(crate) fn signed(mut self, signature: &str) -> Self {
        self.signature = Some(signature.to_owned());
        self
    }

    /// Sets another finish reason, in the dialect's spelling. An empty one sends none.
    pub(crate) fn finish(mut self, reason: &str) -> Self {
        self.finish = Some(reason.to_owned());
        self
    }

    pub(crate) fn usage(mut self, input: u64, output: u64) -> Self {
        self.usage = Some((input, output));
        self
    }

    pub(crate) fn no_usage(mut self) -> Self {
        self.usage = None;
        self
    }

    /// Leaves out `[DONE]`.
    pub(crate) fn no_done(mut self) -> Self {
        self.done = false;
        self
    }

    /// Sends this text after the content, and then ends.
    pub(crate) fn then_raw(mut self, text: impl Into<String>) -> Self {
        self.tail = Some(text.into());
        self
    }

    /// Sends an event with half of a JSON object after the content.
    pub(crate) fn then_malformed(self) -> Self {
        self.then_raw("data: {\"choices\":[{\"delta\":{\"content\":\n\n")
    }

    /// Sends an error after the content: a frame (OpenAI), or a bare JSON object outside SSE (Gemini).
    pub(crate) fn then_error(mut self, error: Value) -> Self {
        self.error_tail = Some(error);
        self
    }

    /// Sends text without end.
    pub(crate) fn endless(mut self) -> Self {
        self.endless = true;
        self
    }

    /// Repeats this text without end after the content.
    pub(crate) fn endless_of(mut self, piece: impl Into<String>) -> Self {
        self.endless = true;
        self.endless_of = Some(piece.into());
        self
    }

    /// Sends headers without end.
    pub(crate) fn endless_head(mut self) -> Self {
        self.endless_head = true;
        self
    }

    /// Sets the size of the pieces in which text and arguments are streamed, in characters.
    pub(crate) fn piece_len(mut self, chars: usize) -> Self {
        self.piece_len = chars.max(1);
        self
    }

    /// Sends the body in pieces of this many bytes, also if that cuts a character or an event.
    pub(crate) fn split_every(mut self, bytes: usize) -> Self {
        self.split_every = Some(bytes.max(1));
        self
    }

    /// Breaks the connection after this many bytes of the body.
    pub(crate) fn cut_at(mut self, bytes: usize) -> Self {
        self.cut_at = Some(bytes);
        self
    }

    /// Ends the body after this many bytes, as if it were complete.
    pub(crate) fn end_at(mut self, bytes: usize) -> Self {
        self.end_at = Some(bytes);
        self
    }

    /// Waits before this piece of the body, counted from 0. The headers are sent before the first piece.
    pub(crate) fn pause_before(mut self, piece: usize, pause: &Pause) -> Self {
        self.pause_before.push((piece, pause.clone()));
        self
    }

    /// Real time between pieces: for recorded samples only.
    pub(crate) fn chunk_delay(mut self, delay: Duration) -> Self {
        self.chunk_delay = delay;
        self
    }
}
