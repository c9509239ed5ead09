//! The line being typed in the footer: a filter of the cells, which works with every key, or a search in a text.

use crossterm::event::KeyCode;

use super::panes;
use crate::tui::content;
use crate::tui::effect::Effect;
use crate::tui::keymap::Chord;
use crate::tui::model::pane::Pane;
use crate::tui::model::{Model, Typing};
use crate::tui::widget::flow::Find;
use crate::tui::widget::input::Input;

/// `/`: what it means where one is.
pub(super) fn begin(model: &mut Model) -> Vec<Effect> {
    let pane = model.ui.focus;
    model.ui.typing = Some(if pane == Pane::Cells {
        let before = model.desk().cells.filter.clone();
        Typing::Filter {
            input: Input::new(before.clone()),
            before,
            problem: None,
        }
    } else {
        let before = content::scroll(model, pane).and_then(|scroll| scroll.find.clone());
        Typing::Search {
            input: Input::default(),
            pane,
            before,
        }
    });
    Vec::new()
}

/// A key.
pub(super) fn pressed(model: &mut Model, chord: Chord) -> Vec<Effect> {
    let cancel = chord.to_string() == "ctrl-c";
    match chord.code {
        KeyCode::Enter => keep(model),
        KeyCode::Esc => restore(model),
        _ if cancel => restore(model),
        _ => {
            let took = match &mut model.ui.typing {
                Some(Typing::Filter { input, .. } | Typing::Search { input, .. }) => {
                    input.key(chord)
                }
                None => false,
            };
            if took {
                apply(model);
            }
            Vec::new()
        }
    }
}

/// A pasted text; whether a line is being typed.
pub(super) fn pasted(model: &mut Model, text: &str) -> bool {
    match &mut model.ui.typing {
        Some(Typing::Filter { input, .. } | Typing::Search { input, .. }) => input.paste(text),
        None => return false,
    }
    apply(model);
    true
}

/// Shows at once what the line means so far.
fn apply(model: &mut Model) {
    let Some(mut typing) = model.ui.typing.take() else {
        return;
    };
    match &mut typing {
        Typing::Filter { input, problem, .. } => {
            *problem = model.desk_mut().cells.set_filter(&input.text).err();
        }
        Typing::Search { input, pane, .. } => mark(model, *pane, &input.text),
    }
    model.ui.typing = Some(typing);
}

fn mark(model: &mut Model, pane: Pane, needle: &str) {
    if let Some(scroll) = content::scroll_mut(model, pane) {
        scroll.find = (!needle.is_empty()).then(|| Find {
            needle: needle.to_owned(),
            at: None,
        });
    }
}

/// `enter`: a filter stays, a search goes to the first match from what is visible.
fn keep(model: &mut Model) -> Vec<Effect> {
    match model.ui.typing.take() {
        Some(Typing::Filter {
            problem: Some(why),
            input,
            before,
        }) => {
            // A line that is no filter is mended, not kept.
            model.ui.typing = Some(Typing::Filter {
                input,
                before,
                problem: Some(why),
            });
            Vec::new()
        }
        Some(Typing::Search { input, pane, .. }) if !input.text.is_empty() => {
            panes::seek(model, pane, true)
        }
        _ => Vec::new(),
    }
}

/// `esc`: as it was before.
fn restore(model: &mut Model) -> Vec<Effect> {
    match model.ui.typing.take() {
        Some(Typing::Filter { before, .. }) => {
            // It was a filter before.
            let _was_good = model.desk_mut().cells.set_filter(&before);
        }
        Some(Typing::Search { pane, before, .. }) => {
            if let Some(scroll) = content::scroll_mut(model, pane) {
                scroll.find = before;
            }
        }
        None => {}
    }
    Vec::new()
}
