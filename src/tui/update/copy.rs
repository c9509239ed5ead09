//! Commands that copy text to the clipboard (`y`).

use super::notices::push_info;
use crate::model::{make_visible, quote_shell_word};
use crate::tui::content;
use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::document::DocumentState;
use crate::tui::state::pane::Pane;

/// The largest text in bytes. No terminal accepts more.
const MAX_COPY_BYTES: usize = 4 << 20;

/// Copies a text with visible marks: a terminal obeys the control characters of a pasted text, and a reader does not
/// see hidden ones.
fn copy_effect(what: impl Into<String>, text: &str) -> Vec<Effect> {
    let text = make_visible(text, true).into_owned();
    copy_raw_effect(what, text)
}

/// Copies a text unchanged.
fn copy_raw_effect(what: impl Into<String>, text: String) -> Vec<Effect> {
    let what = what.into();
    vec![Effect::Copy { what, text }]
}

/// Copies the text of the focused pane; in the cells pane, the text of the verdict.
pub(super) fn copy_pane_text(app: &mut App) -> Vec<Effect> {
    match read_pane_text(app) {
        Ok((pane, text)) => copy_effect(app.pane_title(pane), &text),
        Err(why) => push_info(app, why),
    }
}

/// Copies the same text as [`copy_pane_text`], unchanged.
pub(super) fn copy_raw_pane_text(app: &mut App) -> Vec<Effect> {
    match read_pane_text(app) {
        Ok((pane, text)) => copy_raw_effect(format!("{}, raw", app.pane_title(pane)), text),
        Err(why) => push_info(app, why),
    }
}

/// Returns the text of the focused pane, or the reason why it cannot be copied.
fn read_pane_text(app: &App) -> Result<(Pane, String), &'static str> {
    // Rows of the cells pane have no text to copy.
    let pane = if app.ui.focus == Pane::Cells {
        Pane::Verdict
    } else {
        app.ui.focus
    };
    let mut text = String::new();
    let source = content::pane_source_for_copy(app, pane);
    for at in 0..source.len() {
        let block = source.block(at);
        if text.len() + block.text.len() > MAX_COPY_BYTES {
            return Err("this text is too large for a clipboard");
        }
        text.push_str(&block.text);
        text.push('\n');
    }
    Ok((pane, text))
}

/// Copies the message at the top of the transcript pane.
pub(super) fn copy_message(app: &mut App) -> Vec<Effect> {
    let document = &app.session().transcript_pane;
    let DocumentState::Loaded(doc) = &document.document else {
        return Vec::new();
    };
    // Computed from the layout, because a pane that follows its end stores no position.
    let source = content::pane_source(app, Pane::Transcript);
    let area = app.layout().inner_size(Pane::Transcript);
    let top = document.scroll.row_position(&*source, area, 0);
    drop(source);
    let top = top.map_or(document.scroll.top.block, |place| place.block);
    let Some(message) = doc.pieces.get(top).map(|piece| piece.message as usize) else {
        return push_info(app, "this transcript has no message");
    };
    let text = doc.message_text(message);
    copy_effect(format!("message {message}"), &text)
}

/// Copies the name of the focused cell.
pub(super) fn copy_cell_name(app: &mut App) -> Vec<Effect> {
    let cells = &app.session().cells;
    let name = cells
        .selected_row()
        .and_then(|row| cells.decision_name(row));
    name.map_or_else(Vec::new, |name| {
        copy_effect("the cell's name", &name.to_string())
    })
}

/// Copies the `dicta` command that does the same without the screen.
pub(super) fn copy_command_line(app: &mut App) -> Vec<Effect> {
    let cells = &app.session().cells;
    let Some(name) = cells
        .selected_row()
        .and_then(|row| cells.decision_name(row))
    else {
        return Vec::new();
    };
    let command = match (&app.replay, app.workspace()) {
        // In a replay the recorded cell is shown, so the command shows it too.
        (Some(replay), _) => format!(
            "dicta show {} {}",
            quote_shell_word(&replay.dir.display().to_string()),
            quote_shell_word(&name.to_string())
        ),
        (None, Some(workspace)) => {
            let filter = format!(
                "transcript:{} rubric:{} eval:{}",
                // Names are quoted twice: as words of the filter, and the filter as a word of the shell.
                quote_filter_word(&name.transcript),
                quote_filter_word(&name.rubric),
                quote_filter_word(&name.eval)
            );
            format!(
                "dicta run {} --where {}",
                quote_shell_word(&workspace.root.display().to_string()),
                quote_shell_word(&filter)
            )
        }
        (None, None) => {
            return push_info(app, "no workspace is open, so no command does the same");
        }
    };
    copy_effect("the command", &command)
}

/// Quotes one word of a filter.
fn quote_filter_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    // Other characters, such as a colon, have a meaning in a filter.
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("\"{text}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_text_has_visible_marks_and_raw_text_does_not() {
        let hostile = "a\u{1b}[201~\rq\u{9b}\n\tb\u{202e}";
        let visible = "a␛[201~␍q‹U+009B›\n\tb‹U+202E›";
        let copied = copy_effect("it", hostile);
        assert!(matches!(&copied[..], [Effect::Copy { text, .. }] if text == visible));
        let raw = copy_raw_effect("it", hostile.to_owned());
        assert!(matches!(&raw[..], [Effect::Copy { text, .. }] if text == hostile));
    }

    #[test]
    fn word_of_a_filter_has_quotes_if_it_has_other_characters() {
        assert_eq!(quote_filter_word("beam-1"), "beam-1");
        assert_eq!(quote_filter_word("support:3"), "\"support:3\"");
    }
}
