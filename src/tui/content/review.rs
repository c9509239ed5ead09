//! The transcript on the reading screen, numbered and without any verdict, and the lines below it.

use std::borrow::Cow;
use std::sync::Arc;

use ratatui::layout::{Rect, Size};

use super::review_counts::describe_mode_counts;
use super::transcript::{body_role, speaker_role};
use super::visible_pieces::join_pieces;
use crate::model::{make_visible, pluralize};
use crate::review::{NoteOutcome, ReviewNote};
use crate::theme::{Glyphs, Role, StyledSpan};
use crate::tui::state::App;
use crate::tui::state::document::{PieceKind, TranscriptDocument};
use crate::tui::state::review::{ModesSide, ReviewScreen, ReviewView};
use crate::tui::widget::flow::{self, TextBlock, TextSource};

/// The least rows below the frame: the view of modes changes them with each selected note, so it has more.
const LEAST_ROWS: u16 = 2;
const LEAST_ROWS_OF_MODES: u16 = 4;
/// The width at which two rows are enough for the most notes.
const WIDE: u16 = 120;

/// The areas of the screen between header and footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReviewAreas {
    /// The row with the progress.
    pub(crate) progress: Rect,
    /// The frame or the frames.
    pub(crate) frame: Rect,
    /// The rows below.
    pub(crate) below: Rect,
}

/// Returns the areas. A long note or definition gets more rows, up to a third of the screen.
pub(crate) fn find_areas(app: &App) -> ReviewAreas {
    let area = app.layout().middle();
    let least = match app.review.view {
        ReviewView::Modes | ReviewView::Counts if area.width < WIDE => LEAST_ROWS_OF_MODES,
        _ => LEAST_ROWS,
    };
    let blocks = list_below(&app.review);
    let most = (area.height / 3).max(least);
    let rows = flow::count_rows(&blocks, area.width, most).max(least);
    let rows = rows.min(area.height.saturating_sub(1));
    let progress = Rect {
        height: area.height.min(1),
        ..area
    };
    let frame = Rect {
        y: area.y + progress.height,
        height: area.height.saturating_sub(1 + rows),
        ..area
    };
    ReviewAreas {
        progress,
        frame,
        below: Rect {
            y: frame.bottom(),
            height: rows,
            ..area
        },
    }
}

/// Returns the size of the transcript inside its frame.
pub(crate) fn text_size(app: &App) -> Size {
    let frame = find_areas(app).frame;
    Size::new(
        frame.width.saturating_sub(2),
        frame.height.saturating_sub(2),
    )
}

/// Returns the lines below the frame, which wrap.
pub(crate) fn list_below(screen: &ReviewScreen) -> Vec<TextBlock<'static>> {
    let blocks = match screen.view {
        ReviewView::Reading => vec![
            describe_own_note(screen),
            TextBlock::new(
                format!(
                    "n notes the first failure at message {}; j, k move to another one",
                    screen.message
                ),
                Role::Muted,
            ),
        ],
        ReviewView::Answers => describe_question(screen),
        ReviewView::Modes => {
            let mut blocks = vec![describe_selected(screen)];
            let text = describe_suggestion(screen);
            blocks.push(TextBlock::new(text, Role::Muted));
            blocks
        }
        ReviewView::Drafts => Vec::new(),
        ReviewView::Counts => describe_mode_counts(screen),
    };
    let blocks = blocks.into_iter();
    blocks
        .map(|block| TextBlock { indent: 1, ..block })
        .collect()
}

/// Returns the reader's note on the shown transcript. A note about an earlier text counts nowhere.
fn describe_own_note(screen: &ReviewScreen) -> TextBlock<'static> {
    let Some(note) = screen.current_note() else {
        return TextBlock::new(
            "not read yet: p no failure, n note, u unsure, s skip",
            Role::Muted,
        );
    };
    let session = screen.session.as_ref();
    let is_stale = session.is_some_and(|session| session.book.is_stale(note));
    if is_stale {
        describe_note(
            "the transcript changed since you read it; answer again. Before: ",
            note,
        )
    } else {
        describe_note("", note)
    }
}

fn describe_note(before: &str, note: &ReviewNote) -> TextBlock<'static> {
    let place = note
        .message
        .map_or_else(String::new, |at| format!(" [{at}]"));
    let text = note
        .text()
        .map_or_else(String::new, |text| format!(": {text}"));
    let head = format!("{}{place}", note.outcome.title());
    join_pieces(&[
        (before, Role::Warning),
        (head.as_str(), Role::Key),
        (text.as_str(), Role::Text),
    ])
}

fn describe_question(screen: &ReviewScreen) -> Vec<TextBlock<'static>> {
    let question = screen.questions.get(screen.question);
    let mode = question.and_then(|(_, mode)| {
        let session = screen.session.as_ref()?;
        session.book.modes.find(mode)
    });
    let (name, definition) = mode.map_or(("", ""), |mode| (&*mode.name, &*mode.definition));
    let definition = match definition.trim() {
        "" => "no definition yet: esc, then d on the mode",
        text => text,
    };
    let answer = question.and_then(|(transcript, mode)| {
        let session = screen.session.as_ref()?;
        let answers = session.book.answers_by_reader(transcript, mode);
        let reader = session.reader.as_deref().unwrap_or("unknown");
        answers.get(reader).copied()
    });
    let answer = match answer {
        Some(true) => "  your answer: yes",
        Some(false) => "  your answer: no",
        None => "",
    };
    let mut blocks = vec![
        join_pieces(&[
            ("does this mode occur here? ", Role::Text),
            (name, Role::Accent),
            (answer, Role::Key),
        ]),
        join_pieces(&[(definition, Role::Muted)]),
    ];
    // The note is about the first failure, so it helps to answer for the others.
    let session = screen.session.as_ref();
    let is_current = |note: &&ReviewNote| {
        let is_stale = session.is_some_and(|session| session.book.is_stale(note));
        note.text().is_some() && !is_stale
    };
    if let Some(note) = screen.current_note().filter(is_current) {
        blocks.push(describe_note("", note));
    }
    blocks
}

/// Returns the text of a note in a list, with its role. A yes to a question about a mode has none.
pub(crate) fn text_of_note(note: &ReviewNote) -> (&str, Role) {
    match note.text() {
        Some(text) => (text, Role::Text),
        None => ("answered yes, without a note", Role::Muted),
    }
}

/// Returns the selected note or mode in full.
fn describe_selected(screen: &ReviewScreen) -> TextBlock<'static> {
    if screen.modes.side == ModesSide::Modes {
        return describe_mode(screen);
    }
    let notes = screen.listed_notes();
    let Some(note) = notes.get(screen.modes.selected_note) else {
        return TextBlock::default();
    };
    let place = note
        .message
        .map_or_else(String::new, |at| format!(" [{at}]"));
    let head = format!("{}{place} ", note.transcript);
    join_pieces(&[(head.as_str(), Role::Muted), text_of_note(note)])
}

fn describe_mode(screen: &ReviewScreen) -> TextBlock<'static> {
    let session = screen.session.as_ref();
    let mode = session.and_then(|one| one.book.modes.modes.get(screen.modes.selected_mode));
    mode.map_or_else(TextBlock::default, |mode| {
        let definition = match mode.definition.trim() {
            "" => "no definition yet: d writes one",
            text => text,
        };
        let head = format!("{}: ", mode.name);
        join_pieces(&[(head.as_str(), Role::Accent), (definition, Role::Text)])
    })
}

/// Returns the next step: before the first failure is noted, for a note without a suggested group, and once every note has
/// a mode.
fn describe_next(screen: &ReviewScreen) -> String {
    let session = screen.session.as_ref();
    let is_failure = |note: &ReviewNote| note.outcome == NoteOutcome::Failure;
    if session.is_some_and(|one| !one.book.notes.iter().any(is_failure)) {
        return "no failure is noted yet: esc goes back to the transcripts, n notes the first one"
            .to_owned();
    }
    let has_modes = session.is_some_and(|one| !one.book.modes.modes.is_empty());
    if !has_modes || screen.modes.opened.is_some() {
        return String::new();
    }
    if !screen.listed_notes().is_empty() {
        let mode = session.and_then(|one| one.book.modes.modes.get(screen.modes.selected_mode));
        let name = mode.map_or("", |mode| &mode.name);
        return match screen.modes.side {
            ModesSide::Notes => format!(
                "no similar note: enter adds it to {}, c creates a mode, space marks several",
                make_visible(name, false)
            ),
            ModesSide::Modes => String::new(),
        };
    }
    match screen.open_questions {
        0 => {
            "every question has an answer: t counts the modes, E on a mode makes an eval".to_owned()
        }
        open => format!(
            "every note has a mode: A asks the {}",
            pluralize(open as u64, "open question")
        ),
    }
}

/// Returns the progress of a question to a judge, else the suggested group of the selected note.
fn describe_suggestion(screen: &ReviewScreen) -> String {
    let show = |text: &str| make_visible(text, false).into_owned();
    if let Some((judge, progress)) = &screen.judged.asking {
        return format!("{}: {}; J stops it", show(judge), show(progress));
    }
    if let Some(group) = screen.selected_group() {
        let (number, name) = (group.number + 1, show(group.name));
        let notes = pluralize(group.notes.len() as u64, "note");
        return match group.judge {
            Some(judge) => {
                let judge = show(judge);
                let definition = match group.definition {
                    "" => String::new(),
                    text => format!(": {}", show(text)),
                };
                format!("{judge} suggests group {number} (a, D, c): {name} ({notes}){definition}")
            }
            None => format!("suggested group {number}: {name} ({notes}); c names and creates it"),
        };
    }
    if screen.modes.is_grouping {
        return "grouping similar notes …".to_owned();
    }
    let written = screen.modes.written.as_deref();
    written.map_or_else(|| describe_next(screen), show)
}

/// A transcript as blocks. Metadata is empty, because it contains the verdicts of other tools.
pub(crate) struct ReviewSource<'a> {
    doc: &'a Arc<TranscriptDocument>,
    /// The focused message.
    focused: Option<u32>,
    indent: u16,
    glyphs: &'a Glyphs,
}

impl<'a> ReviewSource<'a> {
    /// Creates the source.
    pub(crate) fn new(
        doc: &'a Arc<TranscriptDocument>,
        focused: Option<u32>,
        glyphs: &'a Glyphs,
    ) -> Self {
        let digits = doc.first_pieces.len().saturating_sub(1).max(1).ilog10() + 1;
        Self {
            doc,
            focused,
            indent: u16::try_from(digits + 4).unwrap_or(8),
            glyphs,
        }
    }
}

impl TextSource for ReviewSource<'_> {
    fn len(&self) -> usize {
        self.doc.pieces.len()
    }

    fn block(&self, at: usize) -> TextBlock<'_> {
        let piece = self.doc.pieces.get(at);
        let Some(piece) = piece.filter(|piece| piece.kind != PieceKind::Metadata) else {
            return TextBlock::default();
        };
        let head = usize::from(piece.heading_len);
        let starts = self.doc.starts_message(at);
        let cursor = if self.focused == Some(piece.message) {
            self.glyphs.cursor
        } else {
            " "
        };
        let joined = matches!(piece.kind, PieceKind::Result { paired: true, .. });
        let lead = match (joined, starts) {
            (true, _) => format!("  {cursor}[{}] ", piece.message),
            (false, true) => format!("{cursor}[{}] ", piece.message),
            (false, false) => String::new(),
        };
        let spans = if head > 0 {
            vec![StyledSpan::new(0..head, speaker_role(piece.kind))]
        } else {
            Vec::new()
        };
        TextBlock {
            text: Cow::Borrowed(self.doc.text_with_heading(piece)),
            role: body_role(piece.kind),
            spans: spans.into(),
            indent: self.indent + if joined { 3 } else { 0 },
            lead: lead.into(),
        }
    }
}
