//! The changes pane: what flipped, next to what was edited.

use ratatui::layout::Rect;
use ratatui::widgets::{Block, BorderType, Widget as _};

use crate::theme::Role;
use crate::tui::content;
use crate::tui::model::Model;
use crate::tui::model::cells::Flip;
use crate::tui::model::pane::Pane;
use crate::tui::model::saves::{mark, summary_with};
use crate::tui::msg::Target;
use crate::tui::widget::canvas::Canvas;
use crate::tui::widget::flow;
use crate::tui::widget::line::{self, Row};

/// From this width on, flips and diff stand side by side.
const SIDE_BY_SIDE: u16 = 90;
/// Rows of a flip: what, before's why, after's why.
const FLIP: u16 = 3;

/// Draws it.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, model: &Model) {
    let inside = frame(canvas, area, model);
    let Some(report) = &model.saves.report else {
        flow::draw(canvas, inside, &nothing_yet(model), &flow::Scroll::top());
        return;
    };
    let said = summary_with(report, canvas.glyphs());
    line::draw(
        canvas,
        row_at(inside, 0),
        &Row::default().with(said, Role::Title),
        None,
    );
    let mut used: u16 = 1;
    if let Some(rest) = report.rest.as_ref().filter(|_| !report.flips.is_empty()) {
        let row = Row::default().with(rest.as_str(), Role::Stale);
        line::draw(canvas, row_at(inside, used), &row, None);
        used += 1;
    }
    let below = Rect {
        y: inside.y.saturating_add(used).min(inside.bottom()),
        height: inside.height.saturating_sub(used),
        ..inside
    };
    let (left, right) = split(below, report.flips.len());
    flips(canvas, left, model, &report.flips);
    flow::draw(
        canvas,
        right,
        &*content::of(model, Pane::Changes),
        &model.saves.scroll,
    );
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

fn frame(canvas: &mut Canvas<'_>, area: Rect, model: &Model) -> Rect {
    let focused = model.ui.focus == Pane::Changes;
    let role = if focused {
        Role::BorderFocus
    } else {
        Role::Border
    };
    let kind = if focused {
        BorderType::Thick
    } else {
        BorderType::Plain
    };
    let block = Block::bordered()
        .border_type(kind)
        .border_style(canvas.style(role))
        .title(format!(
            " {} {} ",
            Pane::Changes.number(),
            Pane::Changes.title()
        ));
    let inside = block.inner(area);
    block.render(area, canvas.buffer);
    canvas.hit(area, Target::Pane(Pane::Changes));
    inside
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
        .saturating_mul(FLIP);
    let height = wanted.min(area.height.div_ceil(2));
    let top = Rect { height, ..area };
    let bottom = Rect {
        y: area.y + height,
        height: area.height - height,
        ..area
    };
    (top, bottom)
}

fn flips(canvas: &mut Canvas<'_>, area: Rect, model: &Model, flips: &[Flip]) {
    let room = usize::from(area.height / FLIP).max(1);
    let selected = model.saves.selected.min(flips.len().saturating_sub(1));
    let top = (selected + 1).saturating_sub(room);
    for (at, flip) in flips.iter().enumerate().skip(top).take(room) {
        let y = u16::try_from(at - top)
            .unwrap_or(u16::MAX)
            .saturating_mul(FLIP);
        let block = Rect {
            y: area.y.saturating_add(y),
            height: FLIP.min(area.height.saturating_sub(y)),
            ..area
        };
        let over = (at == selected).then_some(if model.ui.focus == Pane::Changes {
            Role::Selected
        } else {
            Role::SelectedUnfocused
        });
        one(canvas, block, model, flip, over);
        canvas.hit(block, Target::Flip(at));
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
        |name| format!("{} · {}", name.transcript, name.eval),
    );
    let mut head = Row::default()
        .with(format!("{was} {} {is} ", glyphs.arrow), Role::Flipped)
        .with(name, Role::Text);
    head = match flip.towards {
        Some(true) => head.with("   towards your label", Role::Towards),
        Some(false) => head.with("   away from your label", Role::Away),
        None => head,
    };
    line::draw(canvas, row_at(area, 0), &head, over);
    let first = |why: &str| why.lines().next().unwrap_or_default().to_owned();
    for (at, (mark, why)) in (1_u16..).zip([(was, &flip.before.why), (is, &flip.after.why)]) {
        let row = Row::default().with(format!("    {mark} {}", first(why)), Role::Muted);
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
