//! The changes pane: what flipped, next to what was edited.

use ratatui::layout::Rect;

use crate::theme::{Glyphs, Role};
use crate::tui::content;
use crate::tui::model::Model;
use crate::tui::model::cells::Flip;
use crate::tui::model::pane::Pane;
use crate::tui::model::saves::{Report, mark, moved, saved};
use crate::tui::msg::Target;
use crate::tui::widget::canvas::Canvas;
use crate::tui::widget::flow;
use crate::tui::widget::line::{self, Row};

/// From this width on, flips and diff stand side by side.
const SIDE_BY_SIDE: u16 = 96;
/// From this width on, a flip says in full where it went.
const IN_FULL: usize = 60;
/// Rows of the selected flip: what, before's why, after's why. The others take one.
const OPENED: u16 = 3;

/// Draws it.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, model: &Model) {
    let title = format!("{} {}", Pane::Changes.number(), Pane::Changes.title());
    let inside = canvas.frame(
        area,
        &Row::of(title, Role::Title),
        model.ui.focus == Pane::Changes,
        Target::Pane(Pane::Changes),
    );
    let mut used: u16 = 0;
    for (text, role) in examples(model, canvas.glyphs(), inside.height) {
        for row in wrap(&text, usize::from(inside.width)) {
            line::draw(canvas, row_at(inside, used), &Row::of(row, role), None);
            used += 1;
        }
    }
    let Some(report) = &model.report() else {
        let below = below(inside, used);
        flow::draw(canvas, below, &nothing_yet(model), &flow::Scroll::top());
        return;
    };
    for (text, role) in said(report, canvas.glyphs(), usize::from(inside.width)) {
        line::draw(canvas, row_at(inside, used), &Row::of(text, role), None);
        used += 1;
    }
    let (left, right) = split(below(inside, used), report.flips.len());
    flips(canvas, left, model, &report.flips);
    flow::draw(
        canvas,
        right,
        &*content::of(model, Pane::Changes),
        &model.saves.scroll,
    );
}

/// What is left of an area below its first rows.
fn below(area: Rect, used: u16) -> Rect {
    Rect {
        y: area.y.saturating_add(used).min(area.bottom()),
        height: area.height.saturating_sub(used),
        ..area
    }
}

/// What became of examples, before all else: those that miss, as far as half of the rows hold them; or that they are
/// mended. Nothing where there are none.
fn examples(model: &Model, glyphs: &Glyphs, height: u16) -> Vec<(String, Role)> {
    let examples = &model.examples;
    // Two rows each, in a narrow pane.
    let most = usize::from(height / 4).max(1);
    let all = examples.misses().count();
    let shown = if all > most {
        most.saturating_sub(1)
    } else {
        all
    };
    let mut rows: Vec<(String, Role)> = Vec::new();
    for trial in examples.misses().take(shown) {
        let said = match trial.author_note.as_str() {
            "" => String::new(),
            said => format!(": {said}"),
        };
        let text = format!("{} {} {}{said}", glyphs.fail, trial.eval, trial.sentence());
        rows.push((text, Role::Error));
    }
    if all > shown {
        let text = match (shown, examples.missing()) {
            (0, Some(missing)) => format!("{} {missing}", glyphs.fail),
            _ => format!("{} {} more miss", glyphs.fail, all - shown),
        };
        rows.push((text, Role::Error));
    }
    if let Some(holding) = examples.holding().filter(|_| examples.mended) {
        rows.push((format!("{} {holding}", glyphs.pass), Role::Pass));
    }
    if examples.judging() {
        rows.push(("judging examples …".to_owned(), Role::Muted));
    }
    let wait = examples.waiting.iter();
    rows.extend(wait.map(|wait| (wait.clone(), Role::Stale)));
    rows
}

/// What would fill the pane, and how: also from an editor next door.
fn nothing_yet(model: &Model) -> Vec<flow::Block<'_>> {
    let mut out = vec![flow::Block::new(
        "nothing changed yet: what a save moves is shown here, beside what was edited",
        Role::Muted,
    )];
    let open = model.workspace().filter(|all| !all.rubrics.is_empty());
    if let Some(workspace) = open {
        out.push(flow::Block::default());
        out.push(flow::Block::new(
            "e edits the focused eval's rubric; or open one in an editor next door:",
            Role::Muted,
        ));
        out.extend(workspace.rubrics.iter().map(|rubric| flow::Block {
            indent: 2,
            ..flow::Block::new(
                workspace.root.join(&rubric.path).display().to_string(),
                Role::Text,
            )
        }));
    }
    out
}

/// What moved, in as few rows as it takes; what waits, where it is not said already.
fn said(report: &Report, glyphs: &Glyphs, width: usize) -> Vec<(String, Role)> {
    let whole = saved(report, glyphs);
    let brief = moved(report, glyphs);
    let rest = report.rest.clone().filter(|rest| *rest != brief);
    let mut said = Vec::new();
    if Row::of(whole.as_str(), Role::Title).width() <= width {
        said.push((whole, Role::Title));
    } else {
        said.extend(
            wrap(&brief, width)
                .into_iter()
                .map(|row| (row, Role::Title)),
        );
    }
    for (text, role) in [(rest, Role::Stale), (report.frozen.clone(), Role::Muted)] {
        let rows = text.map(|text| wrap(&text, width)).unwrap_or_default();
        said.extend(rows.into_iter().map(|row| (row, role)));
    }
    said
}

/// Two rows at most, between words; the second is cut by whoever draws it.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let fits = |part: &str| Row::of(part, Role::Text).width() <= width;
    let end = text
        .match_indices(' ')
        .map(|(at, _)| at)
        .take_while(|at| fits(&text[..*at]))
        .last();
    match end.filter(|_| !fits(text)) {
        Some(end) => vec![text[..end].to_owned(), text[end + 1..].to_owned()],
        None => vec![text.to_owned()],
    }
}

/// Room for the flips and for the diff; no flips, no room.
fn split(area: Rect, flips: usize) -> (Rect, Rect) {
    if flips == 0 {
        return (Rect { height: 0, ..area }, area);
    }
    if area.width >= SIDE_BY_SIDE {
        let half = area.width / 2;
        let left = Rect {
            width: half.saturating_sub(1),
            ..area
        };
        let right = Rect {
            x: area.x + half,
            width: area.width - half,
            ..area
        };
        return (left, right);
    }
    let wanted = u16::try_from(flips)
        .unwrap_or(u16::MAX)
        .saturating_add(OPENED - 1);
    let height = wanted.min((area.height * 2).div_ceil(3));
    let top = Rect { height, ..area };
    let bottom = Rect {
        y: area.y + height,
        height: area.height - height,
        ..area
    };
    (top, bottom)
}

/// One row a flip, and why for the selected one.
fn flips(canvas: &mut Canvas<'_>, area: Rect, model: &Model, flips: &[Flip]) {
    let selected = model.saves.selected.min(flips.len().saturating_sub(1));
    let opened = OPENED.min(area.height);
    let room = usize::from(area.height.saturating_sub(opened)) + 1;
    let top = (selected + 1).saturating_sub(room);
    let mut y = area.y;
    for (at, flip) in flips.iter().enumerate().skip(top) {
        let height = if at == selected { opened } else { 1 };
        let height = height.min(area.bottom().saturating_sub(y));
        if height == 0 {
            break;
        }
        let block = Rect { y, height, ..area };
        let over = (at == selected).then_some(if model.ui.focus == Pane::Changes {
            Role::Selected
        } else {
            Role::SelectedUnfocused
        });
        one(canvas, block, model, flip, over);
        canvas.hit(block, Target::Flip(at));
        y += height;
    }
}

fn one(canvas: &mut Canvas<'_>, area: Rect, model: &Model, flip: &Flip, over: Option<Role>) {
    let glyphs = canvas.glyphs();
    let (was, is) = (
        mark(flip.before.outcome, glyphs),
        mark(flip.after.outcome, glyphs),
    );
    let name = model.live.cells.name(flip.row).map_or_else(
        || "?".to_owned(),
        |name| {
            let message = name.message.map(|at| format!(" @{at}")).unwrap_or_default();
            format!("{}{message} · {}", name.transcript, name.eval)
        },
    );
    let cursor = if over.is_some() { glyphs.cursor } else { " " };
    let head = Row::of(cursor, Role::Accent)
        .with(format!("{was} {} {is} ", glyphs.arrow), Role::Flipped)
        .with(name, Role::Text);
    let full = usize::from(area.width) >= IN_FULL;
    let end = match flip.towards {
        Some(true) if full => Row::of("towards your label ", Role::Towards),
        Some(true) => Row::of("towards", Role::Towards),
        Some(false) if full => Row::of("away from your label ", Role::Away),
        Some(false) => Row::of("away", Role::Away),
        None => Row::default(),
    };
    line::draw_ends(canvas, row_at(area, 0), &head, &end, over);
    let first = |why: &str| why.lines().next().unwrap_or_default().to_owned();
    for (at, (mark, why)) in (1_u16..).zip([(was, &flip.before.why), (is, &flip.after.why)]) {
        let row = Row::of(format!("     {mark} {}", first(why)), Role::Muted);
        line::draw(canvas, row_at(area, at), &row, None);
    }
}

/// One row of an area; empty past its end.
fn row_at(area: Rect, at: u16) -> Rect {
    Rect {
        y: area.y.saturating_add(at).min(area.bottom()),
        height: u16::from(at < area.height),
        ..area
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_file_has_no_room_what_moved_is_still_said() {
        let report = Report {
            rest: Some("12 cells of gemini wait for R: about $0.04".to_owned()),
            judged: 18,
            touched: vec!["a/b".to_owned()],
            ..Report::default()
        };
        let rows = |width| -> Vec<String> {
            let said = said(&report, &Glyphs::UNICODE, width);
            said.into_iter().map(|(text, _)| text).collect()
        };
        assert_eq!(
            rows(60),
            [
                "no verdict moved (18 judged)",
                "12 cells of gemini wait for R: about $0.04"
            ]
        );
        assert_eq!(
            rows(30),
            [
                "no verdict moved (18 judged)",
                "12 cells of gemini wait for R:",
                "about $0.04"
            ]
        );
    }
}
