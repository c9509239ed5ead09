//! Draws the first row: what is open, the live runs, counts, cost, time left. If the row is too narrow, the least
//! important items are left out. Badges such as REPLAY always stay, because they explain the whole screen.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::model::{Cost, JudgeConfig, Millis, pluralize};
use crate::theme::{Glyphs, Role};
use crate::tools::loosened_seen_rule;
use crate::tui::content;
use crate::tui::state::cells::RowCounts;
use crate::tui::state::pane::ScreenLayout;
use crate::tui::state::runs::{RateLimitWait, RunStage, TrackedRun, format_bill};
use crate::tui::state::{App, OpenedItem, statistics};
use crate::tui::view::Canvas;
use crate::tui::widget::styled_row::{self, StyledRow};

/// The longest breakpoint that the row shows, in bytes.
const MAX_BREAKPOINT_BYTES: usize = 24;

/// An item of the row. Items with a high rank are left out first, 0 never.
struct HeaderItem {
    rank: u8,
    text: StyledRow<'static>,
}

fn header_item(rank: u8, text: impl Into<Cow<'static, str>>, role: Role) -> HeaderItem {
    HeaderItem {
        rank,
        text: StyledRow::new(text, role),
    }
}

/// Draws the row.
pub(super) fn draw(canvas: &mut Canvas<'_>, layout: &ScreenLayout, app: &App) {
    let area = layout.header;
    if area.is_empty() {
        return;
    }
    canvas.fill(area, Role::Bar);
    let mut left = open_items(layout, app);
    left.extend(load_error_item(app, canvas.glyphs()));
    left.extend(example_item(app, canvas.glyphs()));
    let mut right = run_items(app, canvas.glyphs());
    // While the user labels blind, the first row shows no verdict either.
    if !app.shows_labelling() && !app.shows_review() {
        let total = &app.session().cells.total;
        right.extend(count_items(
            total,
            canvas.glyphs(),
            app.reads_past_verdicts(),
        ));
    }
    right.extend(cost_items(app));
    right.extend(budget_item(app));
    right.extend(breakpoints_item(app));
    right.extend(stopped_judge_item(app));
    right.extend(rate_limit_item(app));
    // The functions return the items in another order than the row shows.
    right.sort_by_key(|(position, _)| *position);
    let mut right: Vec<HeaderItem> = right.into_iter().map(|(_, item)| item).collect();
    fit_items(&mut left, &mut right, usize::from(area.width));
    let (left, right) = (join_items(left, " "), join_items(right, "  "));
    styled_row::draw_ends(canvas, area, &left, &right, None);
}

/// Leaves out the least important items until the others fit.
fn fit_items(left: &mut Vec<HeaderItem>, right: &mut Vec<HeaderItem>, width: usize) {
    let wide = |items: &[HeaderItem], gap: usize| -> usize {
        items
            .iter()
            .map(|item| item.text.width() + gap)
            .sum::<usize>()
    };
    // Gaps of 1 and 2 columns follow the items. The margins of the row take 2 more.
    while wide(left, 1) + wide(right, 2) + 2 > width {
        let worst = left.iter().chain(right.iter()).map(|item| item.rank).max();
        // Items of rank 0 always stay.
        let Some(worst) = worst.filter(|rank| *rank > 0) else {
            return;
        };
        // On the right, leave out one item at a time from the end. On the left, items of one rank belong
        // together.
        if let Some(at) = right.iter().rposition(|item| item.rank == worst) {
            right.remove(at);
        } else {
            left.retain(|item| item.rank != worst);
        }
    }
}

fn join_items(items: Vec<HeaderItem>, gap: &'static str) -> StyledRow<'static> {
    // The margins of an empty end would cut the other one.
    if items.is_empty() {
        return StyledRow::default();
    }
    let mut row = StyledRow::new(" ", Role::Bar);
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            row = row.with(gap, Role::Bar);
        }
        row.0.extend(item.text.0);
    }
    row.with(" ", Role::Bar)
}

/// Returns the items on what is open.
fn open_items(layout: &ScreenLayout, app: &App) -> Vec<HeaderItem> {
    let mut items = vec![header_item(8, "dicta", Role::Title)];
    if let Some(replay) = &app.replay {
        if let Some(number) = replay.state_number {
            items.push(header_item(0, format!(" STATE {number} "), Role::Badge));
            items.push(header_item(3, "read only, q goes back", Role::Title));
        } else {
            items.push(header_item(0, " REPLAY ", Role::Badge));
            items.push(header_item(3, replay.run.letters().to_owned(), Role::Title));
        }
        if let Some(mark) = replay.mark {
            let badge = format!(" {} ", mark.to_uppercase());
            items.push(header_item(1, badge, Role::Badge));
        }
        let header = app
            .runs()
            .find(&replay.run)
            .and_then(|run| run.state.header.as_ref());
        if let Some(header) = header {
            if header.demo {
                items.push(header_item(0, " DEMO ", Role::Badge));
            }
            items.extend(seen_rule_item(
                header.judges.iter().map(|judge| &judge.config),
            ));
            // Otherwise the bar of the replay shows the date.
            if layout.replay.is_empty() {
                items.push(header_item(
                    7,
                    format!("recorded {}", replay.recorded_at),
                    Role::Muted,
                ));
            }
        }
        return items;
    }
    match &app.opened {
        OpenedItem::Workspace(workspace) => {
            if workspace.is_demo {
                items.push(header_item(0, " DEMO ", Role::Badge));
            }
            items.extend(seen_rule_item(workspace.judges.values()));
            if app.live_session.cells.blind {
                items.push(header_item(0, " BLIND ", Role::Badge));
            }
            items.extend(labelling_item(app));
            items.push(header_item(4, workspace.name.clone(), Role::Title));
            if let Some(judge) = &workspace.judge {
                items.push(header_item(7, format!("· judge {judge}"), Role::Muted));
            }
            let auto = match (app.saves.paused, app.saves.unjudged_saves) {
                (false, _) => "· auto: on".to_owned(),
                (true, 0) => "· auto: paused".to_owned(),
                (true, missed) => format!("· auto: paused, {missed} skipped"),
            };
            // Without this item, a save that starts no run would surprise the user.
            items.push(header_item(
                if app.saves.paused { 3 } else { 9 },
                auto,
                Role::Muted,
            ));
        }
        OpenedItem::TranscriptFile(file) => {
            // A path such as `..` has no file name.
            let name = file.file_name().unwrap_or(file.as_os_str());
            items.push(header_item(
                4,
                name.to_string_lossy().into_owned(),
                Role::Title,
            ));
            items.push(header_item(7, "· no rubric yet", Role::Muted));
        }
        OpenedItem::Recording => {}
    }
    items
}

/// Returns the badge with the purpose of the labels, the queue and its progress: ` to measure: random 12 of 40 `.
fn labelling_item(app: &App) -> Option<HeaderItem> {
    let (purpose, what) = app.describe_labelling()?;
    let purpose = purpose.describe();
    // Without a queue and with visible verdicts, warnings about a run are more important.
    let guides = app.labelling.queue.is_some() || app.live_session.cells.blind;
    let rank = if guides { 0 } else { 5 };
    Some(header_item(
        rank,
        format!(" {purpose}: {what} "),
        Role::Badge,
    ))
}

/// Returns the badge of a workspace with a judge that may fetch URLs which a model writes.
fn seen_rule_item<'a>(judges: impl Iterator<Item = &'a JudgeConfig>) -> Option<HeaderItem> {
    // `seen: off` allows more than `seen: host`, and comes later in the alphabet.
    let rules = judges.filter_map(|judge| loosened_seen_rule(&judge.tools));
    let loosest = rules.max()?;
    Some(header_item(0, format!(" {loosest} "), Role::Badge))
}

/// Returns the item on files that do not load: the screen shows an older version of them.
fn load_error_item(app: &App, glyphs: &Glyphs) -> Option<HeaderItem> {
    let text = format!("{} file does not load", glyphs.fail);
    app.shows_load_errors()
        .then(|| header_item(1, text, Role::Error))
}

/// Returns the item on missed examples; the row of problems names them.
fn example_item(app: &App, glyphs: &Glyphs) -> Option<HeaderItem> {
    let missing = app
        .examples
        .describe_misses()
        .filter(|_| app.shows_example_misses())?;
    // The names of the evals are too long for this row.
    let (many, _names) = missing.split_once(':')?;
    Some(header_item(
        1,
        format!("{} {many}", glyphs.fail),
        Role::Error,
    ))
}

/// Returns the items on the live runs: judge traces, progress, time left.
fn run_items(app: &App, glyphs: &Glyphs) -> Vec<(u8, HeaderItem)> {
    let now = app.now;
    let live: Vec<&TrackedRun> = app.runs().live().map(|(_, run)| run).collect();
    // The bar of a replay shows its progress.
    if live.is_empty() || app.replay.is_some() {
        return Vec::new();
    }
    let turning = glyphs.live[app.ui.spinner_frame % glyphs.live.len()];
    let done: u64 = live.iter().map(|run| run.finished_cells).sum();
    let planned: u64 = live.iter().map(|run| run.planned_cells()).sum();
    let word = if live.iter().all(|run| run.stage == RunStage::Cancelling) {
        "cancelling".to_owned()
    } else if planned == 0 {
        "starting".to_owned()
    } else {
        format!(
            "{} live",
            live.iter().map(|run| run.live_traces()).sum::<u64>()
        )
    };
    let mut items = vec![(0, header_item(1, format!("{turning} {word}"), Role::Live))];
    if planned > 0 {
        let total: u64 = live.iter().map(|run| run.total_cells()).sum();
        items.push((1, header_item(3, format!("{done}/{total}"), Role::Text)));
    }
    let paused: usize = live.iter().map(|run| run.paused.len()).sum();
    if paused > 0 {
        let text = format!("{} {paused} paused", content::pause_mark(glyphs));
        items.push((0, header_item(1, text, Role::Warning)));
    }
    // The time left is unknown if it is unknown for one of the runs.
    let eta = live
        .iter()
        .map(|run| run.eta(now))
        .collect::<Option<Vec<_>>>();
    if let Some(eta) = eta.and_then(|all| all.into_iter().max()) {
        items.push((4, header_item(5, format_time_left(eta), Role::Muted)));
    }
    items
}

/// Returns the item on the breakpoints, because every run pauses at them.
fn breakpoints_item(app: &App) -> Option<(u8, HeaderItem)> {
    let names: Vec<String> = app.breakpoints.iter().map(ToString::to_string).collect();
    let text = match names.as_slice() {
        [] => return None,
        [one] if one.len() <= MAX_BREAKPOINT_BYTES => format!("break {one}"),
        many => pluralize(many.len() as u64, "breakpoint"),
    };
    let shown = app.replay.is_none();
    shown.then(|| (5, header_item(2, text, Role::Warning)))
}

/// Formats the time left: `18 s left`, `3 min left`.
fn format_time_left(eta: Millis) -> String {
    match eta.0.div_ceil(1000) {
        secs @ ..100 => format!("{secs} s left"),
        secs => format!("{} min left", secs.div_ceil(60)),
    }
}

/// Returns the items on the outcomes of all decisions. `reads_past_verdicts`: decisions may lack their verdict.
fn count_items(
    total: &RowCounts,
    glyphs: &Glyphs,
    reads_past_verdicts: bool,
) -> Vec<(u8, HeaderItem)> {
    let mut items = Vec::new();
    let mut push_count = |rank, mark: &str, n: usize, role| {
        items.push((2, header_item(rank, format!("{mark} {n}"), role)));
    };
    // Before the first decision, counts of 0 would look like results.
    let decided = total.rows > total.never_run + total.live;
    if decided && (total.hidden == 0 || total.pass + total.fail > 0) {
        push_count(1, glyphs.pass, total.pass, Role::Pass);
        push_count(1, glyphs.fail, total.fail, Role::Fail);
    }
    if total.hidden > 0 {
        push_count(1, "?", total.hidden, Role::Muted);
    }
    if total.error > 0 {
        push_count(2, glyphs.error, total.error, Role::Error);
    }
    items.extend(rerun_item(total, glyphs));
    // Defined again, because `items` changes between the two uses.
    let mut push_count = |rank, mark: &str, n: usize, role| {
        items.push((2, header_item(rank, format!("{mark} {n}"), role)));
    };
    if total.not_applicable > 0 {
        push_count(
            7,
            glyphs.not_applicable,
            total.not_applicable,
            Role::NotApplicable,
        );
    }
    if total.never_run > 0 {
        let text = if reads_past_verdicts {
            "reading earlier verdicts".to_owned()
        } else {
            format!("{} {} not run", glyphs.never, total.never_run)
        };
        items.push((3, header_item(6, text, Role::Muted)));
    }
    // Defined again, because `items` changes between the two uses.
    let mut push_count = |rank, mark: &str, n: usize, role| {
        items.push((2, header_item(rank, format!("{mark} {n}"), role)));
    };
    if total.flipped > 0 {
        push_count(2, glyphs.flipped, total.flipped, Role::Flipped);
    }
    if total.stale > 0 {
        push_count(6, glyphs.stale, total.stale, Role::Stale);
    }
    items
}

/// Returns the item on re-runs that ended without a verdict: `! 5 re-runs failed, 3 cancelled`. What a person or a budget
/// stopped did not fail.
fn rerun_item(total: &RowCounts, glyphs: &Glyphs) -> Option<(u8, HeaderItem)> {
    let (cancelled, budget) = (total.cancelled_reruns, total.budget_reruns);
    let failed = total.failed_reruns.saturating_sub(cancelled + budget);
    let mut parts = Vec::new();
    for (count, how) in [
        (failed, "failed"),
        (cancelled, "cancelled"),
        (budget, "stopped by a budget"),
    ] {
        match count {
            0 => {}
            // The first part names what is counted.
            many if parts.is_empty() => {
                parts.push(format!("{} {how}", pluralize(many as u64, "re-run")));
            }
            many => parts.push(format!("{many} {how}")),
        }
    }
    let role = if failed > 0 {
        Role::Error
    } else {
        Role::Warning
    };
    let text = format!("{} {}", glyphs.error, parts.join(", "));
    (!parts.is_empty()).then(|| (2, header_item(5, text, role)))
}

/// Returns the item on the judges that a rate limit holds back: `house: rate limit, 8 wait, 3 s`.
fn rate_limit_item(app: &App) -> Option<(u8, HeaderItem)> {
    // The bar of a replay shows a past run.
    if app.replay.is_some() {
        return None;
    }
    let mut waits: BTreeMap<&str, RateLimitWait> = BTreeMap::new();
    for (_, run) in app.runs().live() {
        for (judge, wait) in run.rate_limits(run.run_time(app.now)) {
            let all = waits.entry(judge).or_default();
            all.cells += wait.cells;
            all.longest = all.longest.max(wait.longest);
        }
    }
    let cells: u64 = waits.values().map(|wait| wait.cells).sum();
    let longest = waits.values().map(|wait| wait.longest).max()?;
    let judge = match waits.len() {
        1 => (*waits.keys().next()?).to_owned(),
        several => pluralize(several, "judge"),
    };
    let rest = match longest.0.div_ceil(1000) {
        0 => String::new(),
        seconds => format!(", {seconds} s"),
    };
    let wait = if cells == 1 { "waits" } else { "wait" };
    let text = format!("{judge}: rate limit, {cells} {wait}{rest}");
    Some((5, header_item(2, text, Role::Warning)))
}

/// Returns the item on a run that a budget stopped, with the number of cells left.
fn budget_item(app: &App) -> Option<(u8, HeaderItem)> {
    let why = statistics::describe_budget_stop(app)?;
    Some((6, header_item(2, format!("budget: {why}"), Role::Warning)))
}

/// Returns the item on the judges that a run stopped calling, with the key that calls them again.
fn stopped_judge_item(app: &App) -> Option<(u8, HeaderItem)> {
    let names = statistics::list_stopped_judges(app);
    if names.is_empty() || app.replay.is_some() {
        return None;
    }
    let text = format!("{} stopped: equal errors, R tries again", names.join(", "));
    Some((7, header_item(2, text, Role::Warning)))
}

/// Returns the item on the known cost of the live runs.
fn cost_items(app: &App) -> Vec<(u8, HeaderItem)> {
    let live = app
        .runs()
        .live()
        .map(|(_, run)| run.state.stats.cost_so_far());
    let text = format_bill(live.fold(Cost::ZERO, Cost::plus));
    text.map(|text| (3, header_item(4, text, Role::Text)))
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests;
