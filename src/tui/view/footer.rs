//! The last row: the typed line, the toast, the tour, or the keys that work now. And the tabs.

use ratatui::layout::Rect;

use crate::theme::Role;
use crate::tui::command::{self, COMMANDS, Command, CommandSpec};
use crate::tui::model::notices::Level;
use crate::tui::model::pane::{Layout, Pane};
use crate::tui::model::saves;
use crate::tui::model::trace;
use crate::tui::model::{Model, Typing};
use crate::tui::msg::Target;
use crate::tui::widget::canvas::Canvas;
use crate::tui::widget::input::Input;
use crate::tui::widget::line::{self, Row};

/// Draws it.
pub(super) fn draw(canvas: &mut Canvas<'_>, layout: &Layout, model: &Model) {
    if layout.too_small {
        return too_small(canvas);
    }
    tabs(canvas, layout.tabs, layout, model);
    tour(canvas, layout.tour, model);
    let area = layout.footer;
    if let Some(typing) = &model.ui.typing {
        return typed(canvas, area, typing);
    }
    if let Some(notice) = model.notices.toast(model.now) {
        let role = match notice.level {
            Level::Info => Role::Toast,
            Level::Warning => Role::Warning,
            Level::Error => Role::Error,
        };
        let mark = match notice.level {
            Level::Info => " ",
            Level::Warning => " warning: ",
            Level::Error => " error: ",
        };
        // One row; the log keeps the lines.
        let text: Vec<&str> = notice.text.split('\n').map(str::trim).collect();
        let row = Row::of(mark, role).with(text.join(" "), role);
        let more = match notice.level {
            Level::Info => Row::default(),
            _ => Row::of(" L ", Role::Key).with("log ", Role::Muted),
        };
        line::draw_ends(canvas, area, &row, &more, None);
        return;
    }
    let area = summary(canvas, area, model);
    let area = if layout.tour.is_empty() {
        tour(canvas, area, model)
    } else {
        area
    };
    hints(canvas, area, model);
}

fn too_small(canvas: &mut Canvas<'_>) {
    let screen = canvas.buffer.area;
    let (width, height) = (screen.width, screen.height);
    let text = format!("{width}×{height} is too small: dicta needs 30×8 (q quits)");
    let row = Rect::new(
        screen.x,
        screen.y + height / 2,
        width,
        u16::from(height > 0),
    );
    line::draw(canvas, row, &Row::of(text, Role::Text), None);
}

fn typed(canvas: &mut Canvas<'_>, area: Rect, typing: &Typing) {
    let (label, input, problem): (String, &Input, Option<&str>) = match typing {
        Typing::Filter { input, problem, .. } => (" filter: ".into(), input, problem.as_deref()),
        Typing::Search { input, pane, .. } => (format!(" find in {}: ", pane.title()), input, None),
    };
    let note = match problem {
        Some(why) => Row::of(format!(" {why} "), Role::Error),
        None => Row::of(" enter", Role::Key)
            .with(" keeps  ", Role::Muted)
            .with("esc", Role::Key)
            .with(" as before ", Role::Muted),
    };
    let used = line::draw(canvas, area, &Row::of(label, Role::Key), None);
    let tail = u16::try_from(note.width())
        .unwrap_or(u16::MAX)
        .min(area.width / 2);
    let width = area.width.saturating_sub(used).saturating_sub(tail);
    // What is typed needs room; of a long reason the beginning is here.
    let at = Rect {
        x: area.x + used + width,
        width: tail.min(area.width.saturating_sub(used)),
        ..area
    };
    line::draw(canvas, at, &note, None);
    input.draw(
        canvas,
        Rect {
            x: area.x + used,
            width,
            ..area
        },
        Role::Text,
    );
}

/// What the last save did, at the right; the room that is left.
fn summary(canvas: &mut Canvas<'_>, area: Rect, model: &Model) -> Rect {
    let report = model
        .report()
        .filter(|report| report.number > 0 && model.replay.is_none());
    let Some(report) = &report.filter(|_| area.width >= 60) else {
        return area;
    };
    let glyphs = canvas.glyphs();
    let mut row = Row::of(saves::summary_with(report, glyphs), Role::Flipped);
    if row.width() > usize::from(area.width / 2) {
        row = Row::of(saves::brief(report, glyphs), Role::Flipped);
    }
    let wide = u16::try_from(row.width())
        .unwrap_or(u16::MAX)
        .min(area.width / 2);
    let left = area.width - wide - 1;
    let at = Rect {
        x: area.x + left,
        width: wide,
        ..area
    };
    line::draw(canvas, at, &row, None);
    canvas.hit(at, Target::Pane(Pane::Changes));
    Rect {
        width: left.saturating_sub(1),
        ..area
    }
}

fn tour(canvas: &mut Canvas<'_>, area: Rect, model: &Model) -> Rect {
    let (Some(tour), Some(workspace)) = (&model.tour, model.workspace()) else {
        return area;
    };
    if !model.tour_shown() || area.is_empty() {
        return area;
    }
    let rubric = workspace.root.join("rubrics/beamline.yaml");
    let row = |(mark, text): (String, String)| {
        Row::of(format!(" {mark} "), Role::Badge)
            .with(" ", Role::Text)
            .with(text, Role::Accent)
            .with("  ", Role::Text)
    };
    // The first wording there is room for.
    let mut lines = tour.lines(canvas.glyphs(), &rubric).into_iter().map(row);
    let fits = |row: &Row<'_>| row.width() <= usize::from(area.width) + 2;
    let Some(row) = lines.find(fits).or_else(|| {
        let lines = tour.lines(canvas.glyphs(), &rubric);
        lines.into_iter().next_back().map(row)
    }) else {
        return area;
    };
    let used = line::draw(canvas, area, &row, None);
    Rect {
        x: area.x + used,
        width: area.width - used,
        ..area
    }
}

/// The keys that do something now, as many as fit; `?` always.
fn hints(canvas: &mut Canvas<'_>, area: Rect, model: &Model) {
    let mut specs: Vec<&CommandSpec> = COMMANDS
        .iter()
        .filter(|spec| spec.hint > 0 && spec.id != "help" && spec.usable(model).is_ok())
        .collect();
    specs.sort_by_key(|spec| spec.hint);
    // In the panes of a trace one asks first for another step of it, and for what was sent to the byte.
    let in_trace = matches!(
        model.ui.focus,
        Pane::Prompt | Pane::FunctionCall | Pane::FetchedContent
    );
    if in_trace && trace::shown(model).is_some_and(|shown| !shown.turns().is_empty()) {
        let first = specs.partition_point(|spec| spec.hint < 2);
        let of_trace = |id| COMMANDS.iter().find(|spec| spec.id == id);
        specs.splice(
            first..first,
            ["step.previous", "raw"].into_iter().filter_map(of_trace),
        );
    }
    // Of what others wrote one asks how it stands there.
    if model.ui.focus == Pane::Transcript || model.is_bare() {
        let first = specs.partition_point(|spec| spec.hint < 2);
        let source = COMMANDS.iter().find(|spec| spec.id == "source");
        specs.splice(
            first..first,
            source.filter(|spec| spec.usable(model).is_ok()),
        );
    }
    // Three keys, one hint: after what judges.
    let labels = matches!(model.ui.focus, Pane::Cells | Pane::Verdict)
        && LABELS.iter().all(|command| usable(*command, model));
    // What is being paid for can be ended: nobody should have to look for how.
    if model.replay.is_none() && model.runs().live().next().is_some() {
        let cancel = COMMANDS.iter().find(|spec| spec.id == "cancel");
        specs.splice(0..0, cancel);
    }
    let judging = |spec: &&CommandSpec| spec.hint < 2 || spec.id == "source";
    let labels_at = specs.iter().take_while(|spec| judging(spec)).count();
    let help = COMMANDS.iter().find(|spec| spec.id == "help");
    let kept = help.map_or(0, |spec| hint(spec).width());
    let mut room = usize::from(area.width);
    let mut at = area;
    for (place, spec) in specs.into_iter().chain(help).enumerate() {
        if labels && place == labels_at {
            let used = labelling(canvas, at, room.saturating_sub(kept));
            at = Rect {
                x: at.x + used,
                width: at.width - used,
                ..at
            };
            room -= usize::from(used);
        }
        let row = hint(spec);
        let last = spec.id == "help";
        if row.width() + if last { 0 } else { kept } > room {
            continue;
        }
        let used = line::draw(canvas, at, &row, None);
        canvas.hit(Rect { width: used, ..at }, Target::Command(spec.command));
        at = Rect {
            x: at.x + used,
            width: at.width - used,
            ..at
        };
        room -= usize::from(used);
    }
}

/// The keys that label.
const LABELS: [Command; 3] = [Command::LabelPass, Command::LabelFail, Command::LabelUnsure];

fn usable(command: Command, model: &Model) -> bool {
    command::spec(command).is_some_and(|spec| spec.usable(model).is_ok())
}

/// `p f u label`, each key for itself; the width used, which is 0 where there is no room.
fn labelling(canvas: &mut Canvas<'_>, area: Rect, room: usize) -> u16 {
    let mut row = Row::default();
    let mut hits = Vec::new();
    for command in LABELS {
        let key = command::spec(command).and_then(|spec| spec.keys.first());
        row = row.with(" ", Role::Text);
        hits.push((row.width(), command));
        row = row.with(key.copied().unwrap_or_default(), Role::Key);
    }
    row = row.with(" label ", Role::Muted);
    if row.width() > room {
        return 0;
    }
    let used = line::draw(canvas, area, &row, None);
    for (from, command) in hits {
        let x = area.x + u16::try_from(from).unwrap_or_default();
        let key = Rect {
            x,
            width: 1,
            ..area
        };
        canvas.hit(key, Target::Command(command));
    }
    used
}

fn hint(spec: &CommandSpec) -> Row<'static> {
    Row::of(" ", Role::Text)
        .with(spec.keys.first().copied().unwrap_or_default(), Role::Key)
        .with(" ", Role::Text)
        .with(spec.title, Role::Muted)
        .with(" ", Role::Text)
}

/// Panes by number and title; by shorter names, then by number alone, where there is no room.
fn tabs(canvas: &mut Canvas<'_>, area: Rect, layout: &Layout, model: &Model) {
    if area.is_empty() {
        return;
    }
    let alone = layout.panes.len() == 1;
    let panes: Vec<Pane> = Pane::ALL
        .into_iter()
        .filter(|pane| alone || *pane != Pane::Cells)
        .collect();
    let shown = |pane: Pane| layout.area(pane).is_some();
    let forms: [fn(Pane) -> String; 4] = [
        |pane| format!(" {} {} ", pane.number(), pane.title()),
        |pane| format!(" {} {}", pane.number(), pane.title()),
        |pane| format!(" {} {} ", pane.number(), pane.short()),
        |pane| format!(" {} ", pane.number()),
    ];
    let named = |form: fn(Pane) -> String, pane: Pane| {
        if shown(pane) {
            format!(" {} {} ", pane.number(), pane.title())
        } else {
            form(pane)
        }
    };
    let width = |form: fn(Pane) -> String| -> usize {
        panes.iter().map(|pane| named(form, *pane).len()).sum()
    };
    let form = forms
        .into_iter()
        .find(|form| width(*form) <= usize::from(area.width))
        .unwrap_or(forms[3]);
    let mut at = area;
    for pane in panes {
        let role = match (shown(pane), model.ui.focus == pane) {
            (true, true) => Role::Selected,
            (true, false) => Role::SelectedUnfocused,
            _ => Role::Muted,
        };
        let used = line::draw(canvas, at, &Row::of(named(form, pane), role), None);
        canvas.hit(Rect { width: used, ..at }, Target::Pane(pane));
        at = Rect {
            x: at.x + used,
            width: at.width - used,
            ..at
        };
    }
}
