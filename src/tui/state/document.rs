//! The judged transcript as a text to scroll through.
//!
//! Owns [`TranscriptDocument`], which is built once in the background, and the marks in it. Does not read files or
//! wrap lines.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use super::finding_marks::FindingMarks;
use super::metadata_text;
use super::piece_range::PieceRange;
use crate::handlers::{JudgedPart, TranscriptSpan};
use crate::judge::SearchedMessage;
use crate::model::{MessageRole, Transcript, TranscriptMessage, TranscriptPart, TranscriptRef};
use crate::tui::widget::flow::ScrollState;

/// A transcript as one text with ranges in it. A million messages take a few vectors.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct TranscriptDocument {
    pub(crate) id: String,
    /// The texts of all pieces in order, each after its heading.
    pub(crate) text: String,
    /// The pieces in reading order: a tool call is followed by its result.
    pub(crate) pieces: Vec<DocumentPiece>,
    /// The index of each message's first piece.
    pub(crate) first_pieces: Vec<u32>,
    /// The pieces with the text of an assistant message.
    pub(crate) answer_pieces: Vec<u32>,
    /// The pieces with a tool call or a tool result.
    pub(crate) call_pieces: Vec<u32>,
}

/// A piece of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocumentPiece {
    /// The message that contains the piece, from 0.
    pub(crate) message: u32,
    /// The part of the message, from 0.
    pub(crate) part: u32,
    pub(crate) kind: PieceKind,
    /// The length in bytes of the heading before the text, such as the role.
    pub(crate) heading_len: u16,
    /// The range of the text in [`TranscriptDocument::text`], without the heading.
    pub(crate) range: Range<usize>,
}

/// The kind of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceKind {
    System,
    User,
    Assistant,
    /// A role with another name.
    Other,
    Reasoning,
    /// A tool call. Its text is `name(arguments)`, as judges quote it.
    Call,
    /// A tool result; `paired` if it follows its call.
    Result {
        error: bool,
        paired: bool,
    },
    Media,
    /// Metadata of the whole transcript, above the first message.
    Metadata,
}

/// The state of the transcript pane.
#[derive(Debug, Clone, Default)]
pub(crate) struct TranscriptPane {
    pub(crate) transcript: Option<TranscriptRef>,
    pub(crate) document: DocumentState,
    pub(crate) scroll: ScrollState,
    /// The selected quote.
    pub(crate) selected_quote: Option<PieceRange>,
    /// All quotes of the shown verdict in this transcript. Sorted.
    pub(crate) quotes: Vec<PieceRange>,
    /// The verdict that [`Self::quotes`] belong to.
    pub(crate) quotes_key: Option<QuotesKey>,
    /// The ranges that the shown check's finding rests on.
    pub(crate) marks: FindingMarks,
}

/// The verdict whose quotes were located.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QuotesKey {
    pub(crate) id: String,
    pub(crate) sources: Vec<QuoteSource>,
}

/// A citation of a verdict: the cited source and the quote.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QuoteSource {
    pub(crate) source: String,
    pub(crate) quote: String,
}

/// The loading state of a document.
#[derive(Debug, Clone, Default)]
pub(crate) enum DocumentState {
    /// Nothing to load.
    #[default]
    Unloaded,
    /// Being read.
    Loading,
    /// Loaded.
    Loaded(Arc<TranscriptDocument>),
    /// Unreadable, for this reason.
    Failed(String),
}

impl TranscriptPane {
    /// Returns the transcript, if it is loaded.
    pub(crate) fn loaded_document(&self) -> Option<&Arc<TranscriptDocument>> {
        match &self.document {
            DocumentState::Loaded(doc) => Some(doc),
            _ => None,
        }
    }
}

/// The maximum length of a heading in bytes: a role and a few figures.
const MAX_HEADING_LEN: usize = 96;

impl TranscriptDocument {
    /// Builds a document. `id` is the transcript's own id until the reader sets a unique one.
    pub(crate) fn from_transcript(transcript: &Transcript<'_>) -> Self {
        let mut doc = Self {
            id: transcript.id.to_string(),
            first_pieces: vec![0; transcript.messages.len()],
            ..Self::default()
        };
        for head in metadata_text::format_transcript_facts(transcript) {
            // The metadata belongs to no message: judges don't see it and can't cite it.
            let no_message = PartPosition {
                message: usize::MAX,
                part: 0,
            };
            doc.push_piece(no_message, PieceKind::Metadata, "", &head);
        }
        let joined = CallResultPairs::from_messages(&transcript.messages);
        for (at, message) in transcript.messages.iter().enumerate() {
            doc.push_message(at, message, &transcript.messages, &joined);
        }
        doc
    }

    /// Returns the text of a piece.
    pub(crate) fn text_of(&self, piece: &DocumentPiece) -> &str {
        self.text.get(piece.range.clone()).unwrap_or_default()
    }

    /// Returns the texts of all messages, for a search.
    pub(crate) fn message_texts(&self) -> impl Iterator<Item = SearchedMessage<'_>> + Clone {
        let pieces = self.pieces.iter().enumerate();
        // The facts above the first message belong to no message.
        let pieces = pieces.filter(|(_, piece)| piece.message != u32::MAX);
        pieces.map(move |(at, piece)| SearchedMessage {
            number: piece.message,
            piece: at,
            text: self.text_of(piece),
        })
    }

    /// Returns the pieces that a check reads, or nothing if it reads the whole transcript. `message` is the message of
    /// a message eval.
    pub(crate) fn judged_pieces(&self, part: JudgedPart, message: Option<u32>) -> &[u32] {
        let message_of = |piece: &u32| self.pieces.get(*piece as usize).map(|piece| piece.message);
        let answers = self.answer_pieces.as_slice();
        match (part, message) {
            (JudgedPart::Transcript, _) => &[],
            (JudgedPart::Answers, None) => answers,
            (JudgedPart::Output, None) => {
                let Some(last) = answers.last().and_then(message_of) else {
                    return &[];
                };
                &answers[answers.partition_point(|piece| message_of(piece) < Some(last))..]
            }
            (JudgedPart::Output | JudgedPart::Answers, Some(message)) => {
                // Answers are in the order of their messages, so a binary search finds them.
                let begin = answers.partition_point(|piece| message_of(piece) < Some(message));
                let end = answers.partition_point(|piece| message_of(piece) <= Some(message));
                &answers[begin..end]
            }
            (JudgedPart::Calls, None) => &self.call_pieces,
            (JudgedPart::Calls, Some(message)) => {
                let mut calls = self.call_pieces.iter();
                let last = calls.rposition(|piece| message_of(piece) <= Some(message));
                &self.call_pieces[..last.map_or(0, |last| last + 1)]
            }
        }
    }

    /// Returns the text of a piece with its heading.
    pub(crate) fn text_with_heading(&self, piece: &DocumentPiece) -> &str {
        // The heading is directly before the text.
        let from = piece.range.start - usize::from(piece.heading_len);
        self.text.get(from..piece.range.end).unwrap_or_default()
    }

    /// Returns true if a piece is the first of its message.
    pub(crate) fn starts_message(&self, at: usize) -> bool {
        let first = |piece: &DocumentPiece| self.first_pieces.get(piece.message as usize).copied();
        self.pieces
            .get(at)
            .and_then(first)
            .is_some_and(|first| first as usize == at)
    }

    /// Returns the pieces of a message with their indexes.
    pub(crate) fn pieces_of(
        &self,
        message: usize,
    ) -> impl Iterator<Item = (usize, &DocumentPiece)> {
        let first = self.first_pieces.get(message).copied();
        // A message without pieces has no first piece, so the range is empty.
        let from = first.map_or(self.pieces.len(), |first| first as usize);
        // Only paired results can come between the pieces of a message.
        let near = move |piece: &&DocumentPiece| {
            piece.message as usize == message
                || matches!(piece.kind, PieceKind::Result { paired: true, .. })
        };
        (from..)
            .zip(&self.pieces[from.min(self.pieces.len())..])
            .take_while(move |(_, piece)| near(piece))
            .filter(move |(_, piece)| piece.message as usize == message)
    }

    /// Returns the text of a message, each piece on its own line.
    pub(crate) fn message_text(&self, message: usize) -> String {
        let texts: Vec<&str> = self
            .pieces_of(message)
            .map(|(_, piece)| self.text_of(piece))
            .collect();
        texts.join("\n")
    }

    fn push_message(
        &mut self,
        at: usize,
        message: &TranscriptMessage<'_>,
        all: &[TranscriptMessage<'_>],
        joined: &CallResultPairs,
    ) {
        let mut piece_count = 0;
        for (number, part) in message.parts.iter().enumerate() {
            let position = PartPosition {
                message: at,
                part: number,
            };
            // The result was already added after its call, maybe in another message.
            if joined.results.contains_key(&position) {
                piece_count += 1;
                continue;
            }
            // The figures of a message appear once, in the heading of its first piece.
            let figures = if piece_count == 0 {
                metadata_text::format_figures(message.metadata.as_ref())
            } else {
                String::new()
            };
            self.push_part(position, &message.role, part, (piece_count == 0, &figures));
            piece_count += 1;
            // The paired result follows its call, so that a reader sees both together.
            if let Some(&result_at) = joined.calls.get(&position)
                && let Some(TranscriptPart::ToolResult(result)) = all
                    .get(result_at.message)
                    .and_then(|m| m.parts.get(result_at.part))
            {
                let error = result.is_error == Some(true);
                let head = if error { "error" } else { "result" };
                let kind = PieceKind::Result {
                    error,
                    paired: true,
                };
                let head = append_duration(head, result.duration_ms);
                let piece = self.push_piece(result_at, kind, &head, &result.content);
                // 0 is the initial value, so the message has no piece yet.
                if let Some(first) = self.first_pieces.get_mut(result_at.message)
                    && *first == 0
                {
                    *first = piece;
                }
            }
        }
        // An empty message still gets a piece, so that a citation can go to it.
        if piece_count == 0 {
            let kind = piece_kind_from_role(&message.role);
            let piece = self.push_piece(
                PartPosition {
                    message: at,
                    part: 0,
                },
                kind,
                message.role.as_str(),
                "",
            );
            self.first_pieces[at] = piece;
        }
    }

    fn push_part(
        &mut self,
        at: PartPosition,
        role: &MessageRole<'_>,
        part: &TranscriptPart<'_>,
        (first, figures): (bool, &str),
    ) {
        let role_name = role.as_str();
        let (kind, head, text) = match part {
            TranscriptPart::Text(text) => (
                piece_kind_from_role(role),
                format_heading(role_name, "", first),
                text.to_string(),
            ),
            TranscriptPart::Reasoning(text) => (
                PieceKind::Reasoning,
                format_heading(role_name, "thinks", first),
                text.to_string(),
            ),
            TranscriptPart::ToolCall(call) => (
                PieceKind::Call,
                format_heading(role_name, "calls", first),
                format!("{}({})", &*call.name, &*call.arguments),
            ),
            TranscriptPart::ToolResult(result) => {
                let error = result.is_error == Some(true);
                let kind = PieceKind::Result {
                    error,
                    paired: false,
                };
                let what = if error { "error" } else { "result" };
                let head =
                    append_duration(&format_heading(role_name, what, first), result.duration_ms);
                (kind, head, result.content.to_string())
            }
            TranscriptPart::Media { kind, .. } => (
                PieceKind::Media,
                format_heading(role_name, "attaches", first),
                // Media are not loaded: the screen shows text only.
                format!("{}, not shown", &**kind),
            ),
            TranscriptPart::Other(raw) => (
                PieceKind::Media,
                format_heading(role_name, "a part of another kind", first),
                raw.get().to_owned(),
            ),
        };
        let head = if figures.is_empty() {
            head
        } else {
            format!("{head} · {figures}")
        };
        let piece = self.push_piece(at, kind, &head, &text);
        if first {
            self.first_pieces[at.message] = piece;
        }
    }

    /// Adds a piece and returns its index.
    fn push_piece(
        &mut self,
        position: PartPosition,
        kind: PieceKind,
        head: &str,
        text: &str,
    ) -> u32 {
        // A long role or tool name is cut at a character boundary.
        let mut cut = head.len().min(MAX_HEADING_LEN);
        while !head.is_char_boundary(cut) {
            cut -= 1;
        }
        let begin = self.text.len();
        self.text.push_str(&head[..cut]);
        if cut > 0 {
            self.text.push_str("  ");
        }
        let from = self.text.len();
        self.text.push_str(text);
        // A document never has 2^32 pieces; the limit only avoids a panic.
        let at = u32::try_from(self.pieces.len()).unwrap_or(u32::MAX);
        match kind {
            PieceKind::Assistant => self.answer_pieces.push(at),
            PieceKind::Call | PieceKind::Result { .. } => self.call_pieces.push(at),
            _ => {}
        }
        self.pieces.push(DocumentPiece {
            message: u32::try_from(position.message).unwrap_or(u32::MAX),
            part: u32::try_from(position.part).unwrap_or(u32::MAX),
            kind,
            heading_len: u16::try_from(from - begin).unwrap_or(0),
            range: from..self.text.len(),
        });
        at
    }

    /// Returns the length in bytes of a piece's heading.
    pub(crate) fn heading_len(&self, piece: usize) -> usize {
        self.pieces
            .get(piece)
            .map_or(0, |piece| usize::from(piece.heading_len))
    }

    /// Returns the piece and the bytes in it that a mark covers.
    pub(crate) fn locate_mark(&self, mark: &TranscriptSpan) -> Option<(usize, Range<usize>)> {
        let (at, piece) = self
            .pieces_of(mark.message)
            .find(|(_, piece)| piece.part as usize == mark.part)?;
        let text = self.text_of(piece);
        // The document contains a call as `name(arguments)`; marks count from the arguments.
        let from = match piece.kind {
            PieceKind::Call => text.find('(').map_or(0, |open| open + 1),
            _ => 0,
        };
        // A mark without bytes covers the first line of the part.
        let range = if mark.bytes.is_empty() {
            let line = text.find('\n').unwrap_or(text.len());
            0..line
        } else {
            mark.bytes.start + from..mark.bytes.end + from
        };
        // The range is checked: an old mark may not fit a changed text.
        text.get(range.clone()).map(|_| (at, range))
    }
}

/// Formats a heading with a duration, such as `result · 420 ms`.
fn append_duration(head: &str, ms: Option<f64>) -> String {
    ms.map_or_else(
        || head.to_owned(),
        |ms| format!("{head} · {}", metadata_text::format_duration(ms)),
    )
}

/// Formats a heading such as `assistant calls`, or `calls` if the role is above it.
fn format_heading(role: &str, verb: &str, first: bool) -> String {
    match (first, verb.is_empty()) {
        (true, true) => role.to_owned(),
        (true, false) => format!("{role} {verb}"),
        (false, _) => verb.to_owned(),
    }
}

fn piece_kind_from_role(role: &MessageRole<'_>) -> PieceKind {
    match role {
        MessageRole::System => PieceKind::System,
        MessageRole::User => PieceKind::User,
        MessageRole::Assistant => PieceKind::Assistant,
        MessageRole::Tool => PieceKind::Result {
            error: false,
            paired: false,
        },
        MessageRole::Other(_) => PieceKind::Other,
    }
}

/// The position of a part in a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PartPosition {
    /// The index of the message.
    message: usize,
    /// The index of the part in the message.
    part: usize,
}

/// Pairs results with calls by id: each result belongs to the next unpaired call with its id.
#[derive(Default)]
struct CallResultPairs {
    calls: HashMap<PartPosition, PartPosition>,
    results: HashMap<PartPosition, PartPosition>,
}

impl CallResultPairs {
    fn from_messages(messages: &[TranscriptMessage<'_>]) -> Self {
        let mut open: HashMap<&str, VecDeque<PartPosition>> = HashMap::new();
        let mut joined = Self::default();
        for (at, message) in messages.iter().enumerate() {
            for (number, part) in message.parts.iter().enumerate() {
                let position = PartPosition {
                    message: at,
                    part: number,
                };
                match part {
                    // Calls without an id can't be paired.
                    TranscriptPart::ToolCall(call) if !call.id.is_empty() => {
                        open.entry(&call.id).or_default().push_back(position);
                    }
                    TranscriptPart::ToolResult(result) => {
                        // The first open call gets the result, so repeated ids are paired in order.
                        let call = open.get_mut(&*result.call_id).and_then(VecDeque::pop_front);
                        // Only a message without other parts moves to its call. Other texts keep their place in the
                        // order.
                        if let Some(call) = call.filter(|_| message.parts.len() == 1) {
                            joined.calls.insert(call, position);
                            joined.results.insert(position, call);
                        }
                    }
                    _ => {}
                }
            }
        }
        joined
    }
}

#[cfg(test)]
mod tests;
