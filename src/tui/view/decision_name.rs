//! The name of a decision in a row: its transcript, its message and its eval, each shortened in the middle.
//!
//! Responsible for the room of the parts. A row that is cut at its end would lose the eval, or what distinguishes two
//! transcripts.

use std::borrow::Cow;

use crate::model::{CellName, make_visible};
use crate::theme::{Glyphs, Role};
use crate::tui::widget::styled_row::{StyledRow, elide_middle};

/// The narrowest name, in columns. A row without this room cuts what follows the name.
const MIN_NAME_WIDTH: usize = 12;
/// The separator of transcript and eval.
const SEPARATOR: &str = " · ";

/// Returns the columns that a name takes in full: `sup-03-address @2 · grounded`.
pub(super) fn measure_name(name: &CellName, shows_eval: bool) -> usize {
    let full = fit_name(name, shows_eval, usize::MAX, &Glyphs::ASCII);
    columns(&full)
}

/// Returns the name in at most `room` columns. Both parts keep their ends.
pub(super) fn fit_name(name: &CellName, shows_eval: bool, room: usize, glyphs: &Glyphs) -> String {
    let transcript = make_visible(&name.transcript, false);
    let message = name.message.map(|at| format!(" @{at}")).unwrap_or_default();
    let eval = make_visible(&name.eval, false);
    let eval = if shows_eval { &*eval } else { "" };
    let separator = if eval.is_empty() { "" } else { SEPARATOR };
    let room = room.max(MIN_NAME_WIDTH);
    let room = room.saturating_sub(columns(&message) + columns(separator));
    let (transcript, eval) = fit_ids(&transcript, eval, room, glyphs);
    format!("{transcript}{message}{separator}{eval}")
}

/// Returns the ids of a transcript and an eval in at most `room` columns together. Both keep their ends.
pub(super) fn fit_ids<'n>(
    transcript: &'n str,
    eval: &'n str,
    room: usize,
    glyphs: &Glyphs,
) -> (Cow<'n, str>, Cow<'n, str>) {
    let wants_transcript = columns(transcript);
    let eval_room = columns(eval).min(room.saturating_sub(wants_transcript).max(room / 2));
    (
        elide_middle(transcript, room.saturating_sub(eval_room), glyphs.ellipsis),
        elide_middle(eval, eval_room, glyphs.ellipsis),
    )
}

fn columns(text: &str) -> usize {
    StyledRow::new(text, Role::Text).width()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(transcript: &str, eval: &str, message: Option<u32>) -> CellName {
        CellName {
            transcript: transcript.to_owned(),
            rubric: "r".to_owned(),
            eval: eval.to_owned(),
            message,
            judge: None,
            repeat: None,
        }
    }

    #[test]
    fn long_names_keep_what_distinguishes_them() {
        let long = "customer-conversation-2026-11-23-refund";
        let eval = "the-answer-is-grounded-in-the-tool-results";
        let fit = |transcript: String, eval: String, room| {
            fit_name(
                &name(&transcript, &eval, None),
                true,
                room,
                &Glyphs::UNICODE,
            )
        };
        let mut rows: Vec<String> = Vec::new();
        for transcript in 0..3 {
            for part in 0..3 {
                let row = fit(format!("{long}-{transcript}"), format!("{eval}-{part}"), 40);
                assert_eq!(columns(&row), 40, "{row}");
                assert!(!rows.contains(&row), "{row}");
                rows.push(row);
            }
        }
        // A short part gives its room to the other.
        let row = fit(long.to_owned(), "tone".to_owned(), 40);
        assert!(row.ends_with(" · tone"), "{row}");
        assert_eq!(columns(&row), 40);
        let row = fit("a".to_owned(), eval.to_owned(), 40);
        assert!(row.starts_with("a · the-"), "{row}");
        assert_eq!(columns(&row), 40);
    }

    #[test]
    fn short_name_stays_as_it_is() {
        let short = name("sup-03", "tone", Some(4));
        assert_eq!(
            fit_name(&short, true, 80, &Glyphs::UNICODE),
            "sup-03 @4 · tone"
        );
        assert_eq!(fit_name(&short, false, 80, &Glyphs::UNICODE), "sup-03 @4");
        assert_eq!(measure_name(&short, true), 16);
    }
}
