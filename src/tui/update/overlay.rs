//! Overlays: opening, answering, closing.

use std::sync::Arc;

use crossterm::event::KeyCode;
use ratatui::layout::Size;

use super::keys::{self, told};
use super::{replay, runs};
use crate::run::{CachePolicy, RunPreview};
use crate::theme::{self, Theme};
use crate::tui::effect::Effect;
use crate::tui::keymap::Chord;
use crate::tui::model::cells::RowId;
use crate::tui::model::notices::Level;
use crate::tui::model::overlay::{self, AtHand, Overlay};
use crate::tui::model::runs::Ticket;
use crate::tui::model::source::SourceView;
use crate::tui::model::{Model, statistics};
use crate::tui::widget::flow::Scroll;
use crate::tui::widget::input::Input;

/// Every key, searchable.
pub(super) fn help(model: &mut Model) -> Vec<Effect> {
    let search = Input::default();
    model.overlays.push(Overlay::Help {
        search,
        selected: 0,
    });
    Vec::new()
}

/// All messages so far, the newest in view.
pub(super) fn log(model: &mut Model) -> Vec<Effect> {
    let scroll = Scroll::tail();
    model.overlays.push(Overlay::Log { scroll });
    Vec::new()
}

/// What the run's judges and tools did.
pub(super) fn statistics(model: &mut Model) -> Vec<Effect> {
    let scroll = Scroll::top();
    model.overlays.push(Overlay::Statistics { scroll });
    Vec::new()
}

/// The bundled themes.
pub(super) fn themes(model: &mut Model) -> Vec<Effect> {
    let before = Arc::clone(&model.ui.theme);
    let selected = theme::names().iter().position(|name| *name == before.name);
    let selected = selected.unwrap_or(0);
    model.overlays.push(Overlay::Themes { selected, before });
    Vec::new()
}

/// Real judges that could be asked about the focused cell, on the pages it was judged on.
pub(super) fn judges(model: &mut Model) -> Vec<Effect> {
    let cells = &model.live.cells;
    let Some(row) = cells.selected() else {
        return told(model, "select a cell first (j, k)");
    };
    let Some(name) = cells.name(row) else {
        return Vec::new();
    };
    let slot = cells.row(row).and_then(|row| row.slots.first());
    let run = slot.and_then(|slot| {
        let own = slot.at.and_then(|(run, _)| cells.runs.get(run as usize));
        slot.cached.clone().or_else(|| own.cloned())
    });
    let only = Some(vec![name.to_string()]);
    let Some(mut order) = runs::order(model, only, None, CachePolicy::Refresh, None) else {
        return Vec::new();
    };
    if order.workspace.replayed_evidence_run.is_none() {
        order.frozen = run.map(|run| run.0.clone());
    }
    model.overlays.push(Overlay::Judges {
        row,
        order: order.clone(),
        found: None,
        selected: 0,
    });
    vec![Effect::FindJudges { row, order }]
}

/// What an order would take is known: ask if it costs, else start it.
pub(super) fn previewed(
    model: &mut Model,
    ticket: Ticket,
    preview: Result<RunPreview, String>,
) -> Vec<Effect> {
    let waiting = &mut model.previewing;
    let Some(at) = waiting.iter().position(|order| order.ticket == ticket) else {
        return Vec::new();
    };
    let order = waiting.remove(at);
    match preview {
        Err(why) => {
            let why = format!("nothing was run: {why}");
            model.notices.tell(model.now, Level::Error, why);
            Vec::new()
        }
        Ok(preview) if overlay::cost(&preview) == Some(0.0) => {
            vec![runs::launch(model, order, None)]
        }
        Ok(preview) => {
            model.overlays.push(Overlay::Money { order, preview });
            Vec::new()
        }
    }
}

/// Judges at hand are known.
pub(super) fn judges_found(model: &mut Model, row: RowId, judges: Vec<AtHand>) -> Vec<Effect> {
    for overlay in &mut model.overlays {
        if let Overlay::Judges { row: of, found, .. } = overlay
            && *of == row
            && found.is_none()
        {
            *found = Some(judges);
            break;
        }
    }
    Vec::new()
}

/// A key, for the topmost overlay.
pub(super) fn pressed(model: &mut Model, chord: Chord) -> Vec<Effect> {
    let Some(mut top) = model.overlays.pop() else {
        return Vec::new();
    };
    let key = chord.to_string();
    if key == "ctrl-c" {
        // Closes the question; what runs goes on unless it was the question.
        let ends = matches!(top, Overlay::QuitWhileRunning);
        close(model, &top);
        return if ends {
            keys::cancel(model)
        } else {
            Vec::new()
        };
    }
    let types = matches!(top, Overlay::Help { .. } | Overlay::SeekTo(_));
    if key == "esc" || (key == "q" && !types && !matches!(top, Overlay::QuitWhileRunning)) {
        close(model, &top);
        return Vec::new();
    }
    let steps = match chord.code {
        KeyCode::Up => Some(-1),
        KeyCode::Down => Some(1),
        KeyCode::Char('k') if !types => Some(-1),
        KeyCode::Char('j') if !types => Some(1),
        KeyCode::PageUp => Some(-10),
        KeyCode::PageDown => Some(10),
        _ => None,
    };
    if let Some(steps) = steps {
        go(model, &mut top, steps);
        model.overlays.push(top);
        return Vec::new();
    }
    if chord.code == KeyCode::Enter {
        return enter(model, top);
    }
    match &mut top {
        Overlay::Help { search, selected } => {
            if key == "?" && search.text.is_empty() {
                return Vec::new();
            }
            if search.key(chord) {
                *selected = 0;
            }
        }
        Overlay::SeekTo(input) => {
            input.key(chord);
        }
        Overlay::Log { scroll }
        | Overlay::Statistics { scroll }
        | Overlay::Source(SourceView { scroll, .. }) => match key.as_str() {
            "home" | "g" => scroll.home(),
            "end" | "G" => scroll.end(),
            _ => {}
        },
        Overlay::Money { .. } | Overlay::QuitWhileRunning => {
            let again = key == "q" && matches!(top, Overlay::QuitWhileRunning);
            match key.as_str() {
                "y" | "Y" => return yes(model, top),
                _ if again => return yes(model, top),
                "n" | "N" => return Vec::new(),
                _ => {}
            }
        }
        Overlay::Themes { .. } | Overlay::Judges { .. } => {}
    }
    model.overlays.push(top);
    Vec::new()
}

/// A pasted text; whether the topmost overlay has a line for it.
pub(super) fn pasted(model: &mut Model, text: &str) -> bool {
    match model.overlays.last_mut() {
        Some(Overlay::Help { search: input, .. } | Overlay::SeekTo(input)) => {
            input.paste(text);
            true
        }
        _ => false,
    }
}

/// A click on a line: selects it; on the selected one, and on a command of help, it means enter.
pub(super) fn clicked(model: &mut Model, line: usize) -> Vec<Effect> {
    let Some(mut top) = model.overlays.pop() else {
        return Vec::new();
    };
    match &mut top {
        Overlay::Help { selected, .. } => {
            *selected = line;
            return enter(model, top);
        }
        Overlay::Themes { selected, .. } | Overlay::Judges { selected, .. } => {
            if *selected == line {
                return enter(model, top);
            }
            let steps = i64::try_from(line).unwrap_or(0) - i64::try_from(*selected).unwrap_or(0);
            go(model, &mut top, steps);
        }
        Overlay::Money { .. } | Overlay::QuitWhileRunning if line == 0 => return yes(model, top),
        Overlay::Money { .. } | Overlay::QuitWhileRunning => return Vec::new(),
        Overlay::Log { .. }
        | Overlay::Statistics { .. }
        | Overlay::Source(_)
        | Overlay::SeekTo(_) => {}
    }
    model.overlays.push(top);
    Vec::new()
}

/// The wheel over an overlay.
pub(super) fn scrolled(model: &mut Model, rows: i64) -> Vec<Effect> {
    if let Some(mut top) = model.overlays.pop() {
        go(model, &mut top, rows);
        model.overlays.push(top);
    }
    Vec::new()
}

/// Moves the selection, or the text.
fn go(model: &mut Model, top: &mut Overlay, steps: i64) {
    let moved = |selected: usize, count: usize| {
        let to = i64::try_from(selected).unwrap_or(0).saturating_add(steps);
        usize::try_from(to.max(0))
            .unwrap_or(0)
            .min(count.saturating_sub(1))
    };
    match top {
        Overlay::Help { search, selected } => {
            *selected = moved(*selected, overlay::help(&search.text).len());
        }
        Overlay::Themes { selected, .. } => {
            *selected = moved(*selected, theme::names().len());
            if let Some(name) = theme::names().get(*selected) {
                show(model, name);
            }
        }
        Overlay::Judges {
            found, selected, ..
        } => {
            *selected = moved(*selected, found.as_ref().map_or(0, Vec::len));
        }
        Overlay::Log { scroll } => {
            let area = log_area(model.ui.size);
            scroll.by(&overlay::log(model), area, steps);
        }
        Overlay::Statistics { scroll } => {
            let area = log_area(model.ui.size);
            scroll.by(&statistics::statistics(model), area, steps);
        }
        Overlay::Source(view) => {
            let area = log_area(model.ui.size);
            let mut scroll = view.scroll.clone();
            scroll.by(&view.blocks(), area, steps);
            view.scroll = scroll;
        }
        Overlay::Money { .. } | Overlay::QuitWhileRunning | Overlay::SeekTo(_) => {}
    }
}

/// The room for the log's text.
pub(crate) fn log_area(size: Size) -> Size {
    Size::new(
        size.width.saturating_sub(6).min(120).saturating_sub(2),
        size.height.saturating_sub(4).saturating_sub(2),
    )
}

/// A theme, on this terminal.
fn show(model: &mut Model, name: &str) {
    match Theme::bundled(name) {
        Ok(theme) => model.ui.theme = Arc::new(model.ui.theme.switched(theme)),
        Err(why) => model.notices.tell(model.now, Level::Error, why.to_string()),
    }
}

/// What closing means where nothing was chosen.
fn close(model: &mut Model, top: &Overlay) {
    if let Overlay::Themes { before, .. } = top {
        model.ui.theme = Arc::clone(before);
    }
}

/// `enter`: the selected line. No answer to a question: those want a letter.
fn enter(model: &mut Model, top: Overlay) -> Vec<Effect> {
    match top {
        Overlay::Help { search, selected } => {
            let found = overlay::help(&search.text);
            let Some(spec) = found.get(selected) else {
                model.overlays.push(Overlay::Help { search, selected });
                return told(model, "no key is called that");
            };
            keys::run(model, spec.command)
        }
        Overlay::Themes { selected, .. } => {
            let name = theme::names().get(selected).copied().unwrap_or_default();
            told(
                model,
                format!("theme {name}; `--theme {name}` starts with it"),
            )
        }
        Overlay::Judges {
            row,
            order,
            found,
            selected,
        } => {
            let chosen = found.as_ref().and_then(|found| found.get(selected));
            let Some(at_hand) = chosen else {
                model.overlays.push(Overlay::Judges {
                    row,
                    order,
                    found,
                    selected,
                });
                return Vec::new();
            };
            let Some(judge) = at_hand.judge.clone() else {
                let note = at_hand.note.clone();
                model.overlays.push(Overlay::Judges {
                    row,
                    order,
                    found,
                    selected,
                });
                return told(model, note);
            };
            let mut order = order;
            order.judge = Some(judge);
            vec![runs::launch(model, order, None)]
        }
        Overlay::SeekTo(input) => match replay::seek_text(model, &input.text) {
            Ok(effects) => effects,
            Err(why) => {
                model.overlays.push(Overlay::SeekTo(input));
                told(model, why)
            }
        },
        Overlay::Money { .. }
        | Overlay::QuitWhileRunning
        | Overlay::Log { .. }
        | Overlay::Statistics { .. }
        | Overlay::Source(_) => Vec::new(),
    }
}

fn yes(model: &mut Model, top: Overlay) -> Vec<Effect> {
    match top {
        Overlay::Money { order, .. } => vec![runs::launch(model, order, None)],
        Overlay::QuitWhileRunning => keys::end(model, 0),
        _ => Vec::new(),
    }
}
