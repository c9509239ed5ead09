//! The first row: what is open, what runs, counts, cost, time left. What matters least goes first where there is no room;
//! badges that say what one looks at never do.

use std::borrow::Cow;

use crate::model::{Cost, Millis};
use crate::theme::{Glyphs, Role};
use crate::tui::model::cells::Counts;
use crate::tui::model::pane::Layout;
use crate::tui::model::runs::{Run, Stage, billed};
use crate::tui::model::{Model, Place, statistics};
use crate::tui::widget::canvas::Canvas;
use crate::tui::widget::line::{self, Row};

/// A piece of the row: how soon it is left out (0: never), what it says.
struct Bit {
    rank: u8,
    text: Row<'static>,
}

fn bit(rank: u8, text: impl Into<Cow<'static, str>>, role: Role) -> Bit {
    Bit {
        rank,
        text: Row::of(text, role),
    }
}

/// Draws it.
pub(super) fn draw(canvas: &mut Canvas<'_>, layout: &Layout, model: &Model) {
    let area = layout.header;
    if area.is_empty() {
        return;
    }
    canvas.fill(area, Role::Bar);
    let mut left = place(layout, model);
    left.extend(examples(model, canvas.glyphs()));
    let mut right = runs(model, canvas.glyphs());
    right.extend(counts(&model.desk().cells.total, canvas.glyphs()));
    right.extend(spent(model));
    right.extend(budget(model));
    right.sort_by_key(|(seat, _)| *seat);
    let mut right: Vec<Bit> = right.into_iter().map(|(_, bit)| bit).collect();
    fit(&mut left, &mut right, usize::from(area.width));
    let (left, right) = (joined(left, " "), joined(right, "  "));
    line::draw_ends(canvas, area, &left, &right, None);
}

/// Leaves out what matters least until the rest fits.
fn fit(left: &mut Vec<Bit>, right: &mut Vec<Bit>, width: usize) {
    let wide = |bits: &[Bit], gap: usize| -> usize {
        bits.iter().map(|bit| bit.text.width() + gap).sum::<usize>()
    };
    while wide(left, 1) + wide(right, 2) + 2 > width {
        let worst = left.iter().chain(right.iter()).map(|bit| bit.rank).max();
        let Some(worst) = worst.filter(|rank| *rank > 0) else {
            return;
        };
        if let Some(at) = right.iter().rposition(|bit| bit.rank == worst) {
            right.remove(at);
        } else {
            left.retain(|bit| bit.rank != worst);
        }
    }
}

fn joined(bits: Vec<Bit>, gap: &'static str) -> Row<'static> {
    let mut row = Row::of(" ", Role::Bar);
    for (at, bit) in bits.into_iter().enumerate() {
        if at > 0 {
            row = row.with(gap, Role::Bar);
        }
        row.0.extend(bit.text.0);
    }
    row.with(" ", Role::Bar)
}

/// What is open.
fn place(layout: &Layout, model: &Model) -> Vec<Bit> {
    let mut bits = vec![bit(8, "dicta", Role::Title)];
    if let Some(replay) = &model.replay {
        bits.push(bit(0, " REPLAY ", Role::Badge));
        bits.push(bit(3, replay.run.letters().to_owned(), Role::Title));
        let header = model
            .runs()
            .of(&replay.run)
            .and_then(|run| run.state.header.as_ref());
        if let Some(header) = header {
            if header.demo {
                bits.push(bit(0, " DEMO ", Role::Badge));
            }
            if layout.replay.is_empty() {
                bits.push(bit(7, format!("recorded {}", header.started), Role::Muted));
            }
        }
        return bits;
    }
    match &model.place {
        Place::Workspace(workspace) => {
            if workspace.is_demo {
                bits.push(bit(0, " DEMO ", Role::Badge));
            }
            if model.live.cells.blind {
                bits.push(bit(0, " BLIND ", Role::Badge));
            }
            bits.push(bit(4, workspace.name.clone(), Role::Title));
            if let Some(judge) = &workspace.judge {
                bits.push(bit(7, format!("· judge {judge}"), Role::Muted));
            }
            let auto = match (model.saves.paused, model.saves.missed) {
                (false, _) => "· auto: on".to_owned(),
                (true, 0) => "· auto: paused".to_owned(),
                (true, missed) => format!("· auto: paused, {missed} missed"),
            };
            // That nothing happens on a save must not be a surprise.
            bits.push(bit(
                if model.saves.paused { 3 } else { 9 },
                auto,
                Role::Muted,
            ));
        }
        Place::Bare(file) => {
            let name = file.file_name().unwrap_or(file.as_os_str());
            bits.push(bit(4, name.to_string_lossy().into_owned(), Role::Title));
            bits.push(bit(7, "· no rubric yet", Role::Muted));
        }
        Place::Recording => {}
    }
    bits
}

/// That examples miss, whatever else is told; which, the row of problems says.
fn examples(model: &Model, glyphs: &Glyphs) -> Option<Bit> {
    let missing = model
        .examples
        .missing()
        .filter(|_| model.example_misses())?;
    let (many, _names) = missing.split_once(':')?;
    Some(bit(1, format!("{} {many}", glyphs.fail), Role::Error))
}

/// What runs: how many traces are live, how far, how long still.
fn runs(model: &Model, glyphs: &Glyphs) -> Vec<(u8, Bit)> {
    let now = model.now;
    let live: Vec<&Run> = model.runs().live().map(|(_, run)| run).collect();
    if live.is_empty() || model.replay.is_some() {
        return Vec::new();
    }
    let turning = glyphs.live[model.ui.frame % glyphs.live.len()];
    let done: u64 = live.iter().map(|run| run.done).sum();
    let planned: u64 = live.iter().map(|run| run.planned()).sum();
    let word = if live.iter().all(|run| run.stage == Stage::Cancelling) {
        "cancelling".to_owned()
    } else if planned == 0 {
        "starting".to_owned()
    } else {
        format!("{} live", live.iter().map(|run| run.traces()).sum::<u64>())
    };
    let mut bits = vec![(0, bit(1, format!("{turning} {word}"), Role::Live))];
    if planned > 0 {
        bits.push((1, bit(3, format!("{done}/{planned}"), Role::Text)));
    }
    let eta = live
        .iter()
        .map(|run| run.eta(now))
        .collect::<Option<Vec<_>>>();
    if let Some(eta) = eta.and_then(|all| all.into_iter().max()) {
        bits.push((4, bit(5, left(eta), Role::Muted)));
    }
    bits
}

/// `18 s left`, `3 min left`.
fn left(eta: Millis) -> String {
    match eta.0.div_ceil(1000) {
        secs @ ..100 => format!("{secs} s left"),
        secs => format!("{} min left", secs.div_ceil(60)),
    }
}

/// How all decisions stand.
fn counts(total: &Counts, glyphs: &Glyphs) -> Vec<(u8, Bit)> {
    let mut bits = Vec::new();
    let mut tell = |rank, mark: &str, n: usize, role| {
        bits.push((2, bit(rank, format!("{mark} {n}"), role)));
    };
    let decided = total.rows > total.never + total.live;
    if decided && (total.hidden == 0 || total.pass + total.fail > 0) {
        tell(1, glyphs.pass, total.pass, Role::Pass);
        tell(1, glyphs.fail, total.fail, Role::Fail);
    }
    if total.hidden > 0 {
        tell(1, "?", total.hidden, Role::Muted);
    }
    if total.error > 0 {
        tell(2, glyphs.error, total.error, Role::Error);
    }
    if total.not_applicable > 0 {
        tell(
            7,
            glyphs.not_applicable,
            total.not_applicable,
            Role::NotApplicable,
        );
    }
    if total.never > 0 {
        let n = total.never;
        let text = format!("{} {n} not run", glyphs.never);
        bits.push((3, bit(6, text, Role::Muted)));
    }
    let mut tell = |rank, mark: &str, n: usize, role| {
        bits.push((2, bit(rank, format!("{mark} {n}"), role)));
    };
    if total.flipped > 0 {
        tell(2, glyphs.flipped, total.flipped, Role::Flipped);
    }
    if total.stale > 0 {
        tell(6, glyphs.stale, total.stale, Role::Stale);
    }
    bits
}

/// That a limit stopped the run, and what is left of it.
fn budget(model: &Model) -> Option<(u8, Bit)> {
    let why = statistics::stopped(model)?;
    Some((6, bit(2, format!("budget: {why}"), Role::Warning)))
}

/// What the live runs cost so far, as far as it is known.
fn spent(model: &Model) -> Vec<(u8, Bit)> {
    let live = model
        .runs()
        .live()
        .map(|(_, run)| run.state.stats.cost_so_far());
    let text = billed(live.fold(Cost::ZERO, Cost::plus));
    text.map(|text| (3, bit(4, text, Role::Text)))
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests;
