//! The texts of the table of modes: its columns, the facts below it, and the selected mode in full.

use std::fmt::Write as _;

use super::visible_pieces::join_pieces;
use crate::model::pluralize;
use crate::review::{FailureMode, ModeCounts, format_share};
use crate::theme::Role;
use crate::tui::state::review::{CountedModes, ReviewScreen};
use crate::tui::widget::flow::TextBlock;

/// The headings of the columns after the name, each with its width.
const COLUMNS: [(&str, usize); 4] = [
    ("n read", 8),
    ("count", 7),
    ("share (95% interval)", 22),
    ("first · last", 14),
];
/// The heading of the column that is only there if someone picked transcripts by hand.
const BY_HAND: (&str, usize) = ("by hand", 10);

/// Returns the width of the columns after the name.
pub(crate) fn columns_width(counted: &CountedModes) -> usize {
    let columns: usize = COLUMNS.iter().map(|(_, width)| width).sum();
    columns + if shows_by_hand(counted) { BY_HAND.1 } else { 0 }
}

fn shows_by_hand(counted: &CountedModes) -> bool {
    counted.table.read.1 > 0
}

/// Returns the headings after the name.
pub(crate) fn headings(counted: &CountedModes) -> String {
    join_columns(
        counted,
        &COLUMNS.map(|(heading, _)| heading.to_owned()),
        BY_HAND.0,
    )
}

/// Returns the columns of a mode after its name.
pub(crate) fn columns(counted: &CountedModes, counts: &ModeCounts) -> String {
    let ends = counts.first_and_last;
    let ends = ends.map_or_else(String::new, |(first, last)| format!("{first} · {last}"));
    let by_hand = match counts.by_hand {
        (0, _) => String::new(),
        (read, yes) => format!("{yes} of {read}"),
    };
    let columns = [
        counts.read.to_string(),
        counts.count.to_string(),
        format_share(&counts.share),
        ends,
    ];
    join_columns(counted, &columns, &by_hand)
}

fn join_columns(counted: &CountedModes, columns: &[String; 4], by_hand: &str) -> String {
    let mut row = String::new();
    for (text, (_, width)) in columns.iter().zip(COLUMNS) {
        let _infallible = write!(row, "{text:>width$}");
    }
    if shows_by_hand(counted) {
        let width = BY_HAND.1;
        let _infallible = write!(row, "{by_hand:>width$}");
    }
    row
}

/// Returns the selected mode: its definition, the modes that occur with it, its first and last transcript, and examples.
pub(super) fn describe_mode_counts(screen: &ReviewScreen) -> Vec<TextBlock<'static>> {
    let Some(Ok(counted)) = &screen.counts.counted else {
        return Vec::new();
    };
    let Some(session) = &screen.session else {
        return Vec::new();
    };
    let modes = &session.book.modes.modes;
    let Some(mode) = modes.get(screen.modes.selected_mode) else {
        return vec![TextBlock::new(
            "no mode yet: esc, m and c create one",
            Role::Muted,
        )];
    };
    let Some(counts) = counted.table.modes.iter().find(|one| one.mode == mode.id) else {
        return Vec::new();
    };
    let definition = match mode.definition.trim() {
        "" => "no definition yet",
        text => text,
    };
    let head = format!("{}: ", mode.name);
    let mut blocks = vec![
        join_pieces(&[(head.as_str(), Role::Accent), (definition, Role::Text)]),
        join_pieces(&[(describe_company(modes, counts).as_str(), Role::Muted)]),
    ];
    for id in &counts.examples {
        let note = session.book.find(id);
        if let Some((note, text)) = note.and_then(|note| Some((note, note.text()?))) {
            let place = note
                .message
                .map_or_else(String::new, |at| format!(" [{at}]"));
            let head = format!("{}{place} ", note.transcript);
            blocks.push(join_pieces(&[
                (head.as_str(), Role::Muted),
                (text, Role::Text),
            ]));
        }
    }
    blocks
}

/// Returns the modes that occur in the same transcripts, and the transcripts of the first and last occurrence.
fn describe_company(modes: &[FailureMode], counts: &ModeCounts) -> String {
    let names = counts.together_with.iter().map(|(id, count)| {
        let mode = modes.iter().find(|mode| mode.id == *id);
        let name = mode.map_or(id.as_str(), |mode| mode.name.as_str());
        format!("{name} in {}", pluralize(*count, "transcript"))
    });
    let names: Vec<String> = names.collect();
    let together = if names.is_empty() {
        "occurs together with no other mode".to_owned()
    } else {
        format!("occurs together with {}", names.join(", "))
    };
    match &counts.first_and_last_transcripts {
        None => "does not occur in what was read".to_owned(),
        Some((first, last)) if first == last => format!("{together}; only in {first}"),
        Some((first, last)) => format!("{together}; first in {first}, last in {last}"),
    }
}
