//! What `y` puts on the clipboard.

use std::fmt::Write as _;

use super::keys::told;
use crate::model::is_invisible;
use crate::tui::content;
use crate::tui::effect::Effect;
use crate::tui::model::Model;
use crate::tui::model::document::Shown;
use crate::tui::model::pane::Pane;

/// More of a text is not gathered: no clipboard takes it.
const MOST: usize = 4 << 20;

fn copy(what: impl Into<String>, text: String) -> Vec<Effect> {
    let what = what.into();
    vec![Effect::Copy { what, text }]
}

/// The focused pane's text; in the cells the reason of the focused one.
pub(super) fn value(model: &mut Model) -> Vec<Effect> {
    let pane = if model.ui.focus == Pane::Cells {
        Pane::Verdict
    } else {
        model.ui.focus
    };
    let mut text = String::new();
    let mut whole = true;
    {
        let source = content::to_copy(model, pane);
        for at in 0..source.len() {
            let block = source.block(at);
            if text.len() + block.text.len() > MOST {
                whole = false;
                break;
            }
            text.push_str(&block.text);
            text.push('\n');
        }
    }
    if !whole {
        return told(model, "this text is too large for a clipboard");
    }
    copy(pane.title(), text)
}

/// The message at the top of the transcript.
pub(super) fn message(model: &mut Model) -> Vec<Effect> {
    let document = &model.desk().document;
    let Shown::Here(doc) = &document.doc else {
        return Vec::new();
    };
    // What is on top now: a pane that follows its end keeps no place of its own.
    let source = content::of(model, Pane::Transcript);
    let area = model.layout().inside(Pane::Transcript);
    let top = document.scroll.row(&*source, area, 0);
    drop(source);
    let top = top.map_or(document.scroll.top.block, |place| place.block);
    let Some(message) = doc.pieces.get(top).map(|piece| piece.message as usize) else {
        return told(model, "this transcript has no message");
    };
    copy(format!("message {message}"), doc.message_text(message))
}

/// The focused cell's name.
pub(super) fn name(model: &mut Model) -> Vec<Effect> {
    let cells = &model.desk().cells;
    let name = cells.selected().and_then(|row| cells.name(row));
    name.map_or_else(Vec::new, |name| copy("the cell's name", name.to_string()))
}

/// The command that does the same without the screen.
pub(super) fn command(model: &mut Model) -> Vec<Effect> {
    let cells = &model.desk().cells;
    let Some(name) = cells.selected().and_then(|row| cells.name(row)) else {
        return Vec::new();
    };
    let command = match (&model.replay, model.workspace()) {
        (Some(replay), _) => format!(
            "dicta show {} {}",
            quoted(&replay.dir.display().to_string()),
            quoted(&name.to_string())
        ),
        (None, Some(workspace)) => {
            let filter = format!(
                "transcript:{} rubric:{} eval:{}",
                word(&name.transcript),
                word(&name.rubric),
                word(&name.eval)
            );
            let root = quoted(&workspace.root.display().to_string());
            format!("dicta run {root} --where {}", quoted(&filter))
        }
        (None, None) => return told(model, "no workspace is open: there is no command for it"),
    };
    copy("the command", command)
}

/// One word of a filter, whatever it holds.
fn word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("\"{text}\"")
    }
}

/// One word of a shell, whatever it holds.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else if text.chars().any(|c| c.is_control() || is_invisible(c)) {
        // Pasted into a shell, a control is a key that is pressed: it is spelled, as bash, zsh and ksh read it.
        let mut out = String::from("$'");
        for c in text.chars() {
            match c {
                '\'' | '\\' => out.extend(['\\', c]),
                c if c.is_control() || is_invisible(c) => {
                    let _infallible = write!(out, "\\U{:08X}", u32::from(c));
                }
                c => out.push(c),
            }
        }
        out.push('\'');
        out
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_stays_one_word() {
        assert_eq!(quoted("beam-1/a"), "beam-1/a");
        assert_eq!(quoted("a'; rm -rf /"), r"'a'\''; rm -rf /'");
        assert_eq!(
            quoted("a\u{1b}[201~\n'"),
            r"$'a\U0000001B[201~\U0000000A\''"
        );
        assert_eq!(word("support:3"), "\"support:3\"");
    }
}
