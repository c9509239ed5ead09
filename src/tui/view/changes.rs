//! Draws the changes pane: the flips next to the diff.

use ratatui::layout::Rect;

use super::trace::draw_text_pane;
use super::{decision_name, scrolled_text};
use crate::model::{find_reason, pluralize};
use crate::report::wrap_line;
use crate::theme::{Glyphs, Role};
use crate::tui::click_target::ClickTarget;
use crate::tui::content;
use crate::tui::state::App;
use crate::tui::state::cells::{CellsState, RowFlip};
use crate::tui::state::edit_report::{
    EditReport, RemovedDecision, describe_changes, describe_first_verdicts, describe_removed,
    describe_renames, describe_replaced, outcome_glyph, summarize_verdicts,
};
use crate::tui::state::pane::Pane;
use crate::tui::view::Canvas;
use crate::tui::widget::flow;
use crate::tui::widget::styled_row::{self, StyledRow};

/// The narrowest diff, in columns, next to the flips. A narrower pane has the diff below the flips.
const MIN_DIFF_WIDTH: u16 = 50;
/// The narrowest row, in columns, that spells out the direction of a flip.
const MIN_FULL_FLIP_WIDTH: u16 = 60;
/// The narrowest pane, in columns, whose title has room for the longer text about a file that does not load.
const MIN_FULL_SUBTITLE_WIDTH: u16 = 70;
/// The largest number of rows of a missed example, so that several of them have room.
const MAX_EXAMPLE_ROWS: usize = 2;
/// The largest number of rows of a sentence in the summary.
const MAX_SUMMARY_ROWS: usize = 4;
/// The number of rows of the selected flip: the flip, the previous reason, the new reason. Other flips have one row.
const SELECTED_FLIP_ROWS: u16 = 3;

/// Draws the pane.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, app: &App) {
    if app.shows_load_errors() {
        // The text below the errors names the version in use, too.
        let subtitle = if area.width < MIN_FULL_SUBTITLE_WIDTH {
            "a file does not load"
        } else {
            "a file does not load; the last valid version is in use"
        };
        return draw_text_pane(canvas, Pane::Changes, area, app, subtitle.to_owned());
    }
    let title = format!("{} {}", Pane::Changes.number(), Pane::Changes.title());
    let inside = canvas.draw_frame(
        area,
        &StyledRow::new(title, Role::Title),
        app.ui.focus == Pane::Changes,
        ClickTarget::Pane(Pane::Changes),
    );
    // The rows from top to bottom: examples, the summary of the save, then flips and diff.
    let mut used: u16 = 0;
    for (text, role) in example_rows(app, canvas.glyphs(), inside.height) {
        for row in wrap_rows(&text, usize::from(inside.width), MAX_EXAMPLE_ROWS) {
            styled_row::draw_row(
                canvas,
                row_at(inside, used),
                &StyledRow::new(row, role),
                None,
            );
            used += 1;
        }
    }
    let Some(report) = &app.visible_report() else {
        let below = area_below(inside, used);
        flow::draw(
            canvas,
            below,
            &explain_no_changes(app),
            &flow::ScrollState::top(),
        );
        return;
    };
    let offer = describe_label_offer(app).or_else(|| describe_labels_to_confirm(app, report));
    // A run over everything judges the cells that the sentence says wait.
    let judges_all = report.running_runs.iter().any(|ticket| {
        let run = app.live_session.runs.by_ticket.get(ticket);
        run.is_some_and(|run| run.covers_everything)
    });
    let waiting = report.not_judged.as_ref().filter(|_| !judges_all);
    let width = usize::from(inside.width);
    for (text, role) in summary_rows(report, (offer, waiting), canvas.glyphs(), width) {
        styled_row::draw_row(
            canvas,
            row_at(inside, used),
            &StyledRow::new(text, role),
            None,
        );
        used += 1;
    }
    // The rest of the pane shows the flips and the diff.
    let (left, right) = split_area(area_below(inside, used), report.count_entries());
    draw_entries(canvas, left, app, report);
    scrolled_text::draw(
        canvas,
        right,
        &*content::pane_source(app, Pane::Changes),
        &app.saves.scroll,
    );
}

/// Returns the part of an area below its first `used` rows.
fn area_below(area: Rect, used: u16) -> Rect {
    Rect {
        y: area.y.saturating_add(used).min(area.bottom()),
        height: area.height.saturating_sub(used),
        ..area
    }
}

/// Returns the rows on examples, which come first: the misses, in at most half of the rows, or a note that all are
/// fixed. Empty without examples.
fn example_rows(app: &App, glyphs: &Glyphs, height: u16) -> Vec<(String, Role)> {
    let examples = &app.examples;
    // In a narrow pane a miss takes two rows.
    let most = usize::from(height / 4).max(1);
    let all = examples.misses().count();
    let listed = if all > most {
        // The last row is for the number of further misses.
        most.saturating_sub(1)
    } else {
        all
    };
    let mut rows: Vec<(String, Role)> = Vec::new();
    for trial in examples.misses().take(listed) {
        let text = match trial.author_note.as_str() {
            "" => String::new(),
            text => format!(": {text}"),
        };
        let text = format!("{} {} {}{text}", glyphs.fail, trial.eval, trial.sentence());
        rows.push((text, Role::Error));
    }
    if all > listed {
        let text = match (listed, examples.describe_misses()) {
            (0, Some(missing)) => format!("{} {missing}", glyphs.fail),
            _ => format!("{} {} more missed", glyphs.fail, all - listed),
        };
        rows.push((text, Role::Error));
    }
    // Passing examples are news only if a save fixed them.
    if let Some(holding) = examples
        .describe_passes()
        .filter(|_| examples.fixed_by_save)
    {
        rows.push((format!("{} {holding}", glyphs.pass), Role::Pass));
    }
    if examples.is_judging() {
        rows.push(("judging examples …".to_owned(), Role::Muted));
    }
    let wait = examples.not_judged_reason.iter();
    rows.extend(wait.map(|wait| (wait.clone(), Role::Stale)));
    rows
}

/// Returns the text of an empty pane: its future content, and how to edit, also in an editor outside dicta.
fn explain_no_changes(app: &App) -> Vec<flow::TextBlock<'_>> {
    let mut out = vec![flow::TextBlock::new(
        "no changes yet: this pane shows the verdicts that a save changes, next to the diff",
        Role::Muted,
    )];
    let open = app.workspace().filter(|all| !all.rubrics.is_empty());
    if let Some(workspace) = open {
        out.push(flow::TextBlock::default());
        out.push(flow::TextBlock::new(
            "press e to edit the focused eval's rubric, or edit it in your own editor:",
            Role::Muted,
        ));
        out.extend(workspace.rubrics.iter().map(|rubric| flow::TextBlock {
            indent: 2,
            ..flow::TextBlock::new(
                workspace.root.join(&rubric.path).display().to_string(),
                Role::Text,
            )
        }));
    }
    out
}

/// Returns the summary of the changes in as few rows as possible, and the waiting cells unless shown elsewhere.
fn summary_rows(
    report: &EditReport,
    (offer, waiting): (Option<String>, Option<&String>),
    glyphs: &Glyphs,
    width: usize,
) -> Vec<(String, Role)> {
    let full_summary = summarize_verdicts(report, glyphs);
    let brief = describe_changes(report, glyphs);
    // The brief text may already contain this reason.
    let rest = waiting.cloned().filter(|rest| *rest != brief);
    let mut parts = Vec::new();
    if StyledRow::new(full_summary.as_str(), Role::Title).width() <= width {
        parts.push((full_summary, Role::Title));
    } else {
        parts.extend(
            wrap_rows(&brief, width, MAX_SUMMARY_ROWS)
                .into_iter()
                .map(|row| (row, Role::Title)),
        );
    }
    // The summary has one line, so it leaves these parts out if there are flips.
    let first = describe_first_verdicts(report, glyphs).filter(|first| *first != brief);
    let renames = (!report.renames.is_empty())
        .then(|| describe_renames(report, glyphs))
        .filter(|renames| *renames != brief);
    for (text, role) in [
        (renames, Role::Text),
        (describe_replaced(report), Role::Text),
        (offer, Role::Accent),
        (first, Role::Text),
        (describe_removed(report), Role::Text),
        (rest, Role::Stale),
        (report.replayed_evidence.clone(), Role::Muted),
    ] {
        let rows = text
            .map(|text| wrap_rows(&text, width, MAX_SUMMARY_ROWS))
            .unwrap_or_default();
        parts.extend(rows.into_iter().map(|row| (row, role)));
    }
    parts
}

/// Wraps a text into at most `most` rows. The last row has the rest, which the screen cuts if it is too long.
fn wrap_rows(text: &str, width: usize, most: usize) -> Vec<String> {
    let wrapped = wrap_line(text, 0, 0, width);
    let mut rows: Vec<&str> = wrapped.lines().collect();
    let rest = if rows.len() > most {
        rows.split_off(most - 1).join(" ")
    } else {
        String::new()
    };
    let rows = rows.into_iter().map(str::to_owned);
    rows.chain((!rest.is_empty()).then_some(rest)).collect()
}

/// Splits an area into flips and diff. Without flips, the diff gets all of it.
fn split_area(area: Rect, flips: usize) -> (Rect, Rect) {
    if flips == 0 {
        return (Rect { height: 0, ..area }, area);
    }
    if area.width > MIN_FULL_FLIP_WIDTH + MIN_DIFF_WIDTH {
        // A flip needs its full width, or the zoomed pane would show less than the small one. One column between
        // flips and diff stays empty.
        let half = (area.width / 2).max(MIN_FULL_FLIP_WIDTH + 1);
        let left = Rect {
            width: half - 1,
            ..area
        };
        let right = Rect {
            x: area.x + half,
            width: area.width - half,
            ..area
        };
        return (left, right);
    }
    // Each flip has one row, and the selected one also has its reasons.
    let wanted = u16::try_from(flips)
        .unwrap_or(u16::MAX)
        .saturating_add(SELECTED_FLIP_ROWS - 1);
    // The diff keeps a third of the height.
    let height = wanted.min((area.height * 2).div_ceil(3));
    let top = Rect { height, ..area };
    let bottom = Rect {
        y: area.y + height,
        height: area.height - height,
        ..area
    };
    (top, bottom)
}

/// Draws one row per flip and per removed decision, and the reasons of the selected flip.
fn draw_entries(canvas: &mut Canvas<'_>, area: Rect, app: &App, report: &EditReport) {
    let many = report.count_entries();
    let flips = &report.flips;
    // A newer report may have fewer entries than the one in which the user selected.
    let selected = app.saves.selected.min(many.saturating_sub(1));
    let extra = if selected < flips.len() {
        SELECTED_FLIP_ROWS - 1
    } else {
        0
    };
    let needed = u16::try_from(many)
        .unwrap_or(u16::MAX)
        .saturating_add(extra);
    // The last row states how many entries do not fit.
    let room = if needed > area.height && area.height > 1 {
        area.height - 1
    } else {
        area.height
    };
    let opened = (extra + 1).min(room);
    let before = usize::from(room.saturating_sub(opened));
    // The list scrolls so far that all rows of the selected flip are visible.
    let top = selected.saturating_sub(before);
    let end = area.y + room;
    let (mut y, mut next) = (area.y, top);
    while next < many && y < end {
        let wanted = if next == selected { opened } else { 1 };
        let height = wanted.min(end - y);
        let block = Rect { y, height, ..area };
        let over = (next == selected).then_some(if app.ui.focus == Pane::Changes {
            Role::Selected
        } else {
            Role::SelectedUnfocused
        });
        match flips.get(next) {
            Some(flip) => draw_flip(canvas, block, &app.live_session.cells, flip, over),
            None => draw_removed(
                canvas,
                block,
                &report.removed[next - flips.len()],
                report,
                over,
            ),
        }
        canvas.add_hit(block, ClickTarget::Flip(next));
        y += height;
        next += 1;
    }
    if room < area.height {
        let row = StyledRow::new(count_hidden(report, top, next), Role::Muted);
        styled_row::draw_row(canvas, row_at(area, room), &row, None);
    }
}

/// Describes the entries above `top` and from `next` on: `2 above, 3 more flips below`.
fn count_hidden(report: &EditReport, top: usize, next: usize) -> String {
    let below = report.count_entries() - next;
    let what = if report.removed.is_empty() {
        pluralize(below as u64, "more flip")
    } else {
        format!("{below} more")
    };
    match (top, below) {
        (0, _) => format!("  {what} below"),
        (above, 0) => format!("  {above} above"),
        (above, _) => format!("  {above} above, {what} below"),
    }
}

/// Draws a decision that the revision no longer plans.
fn draw_removed(
    canvas: &mut Canvas<'_>,
    area: Rect,
    removed: &RemovedDecision,
    report: &EditReport,
    over: Option<Role>,
) {
    let glyphs = canvas.glyphs();
    let cursor = if over.is_some() { glyphs.cursor } else { " " };
    let outcome = removed.outcome.filter(|_| !report.hides_outcomes);
    let mark = outcome.map_or(" ", |outcome| outcome_glyph(outcome, glyphs));
    let head = StyledRow::new(cursor, Role::Accent)
        .with(format!("{mark} {}   ", glyphs.arrow), Role::Muted);
    let end = StyledRow::new("no longer planned ", Role::Muted);
    let room = room_for_name(area.width, [&head, &end]);
    let name = decision_name::fit_name(&removed.name, true, room, glyphs);
    let head = head.with(name, Role::Muted);
    styled_row::draw_ends(canvas, row_at(area, 0), &head, &end, over);
}

/// Returns the row that offers to move the labels of renamed evals.
fn describe_label_offer(app: &App) -> Option<String> {
    let many: u64 = app.movable_labels().iter().map(|(_, many)| many).sum();
    let (its, go) = if many == 1 {
        ("1 label", "has")
    } else {
        ("labels", "have")
    };
    let labels = if many == 1 {
        its.to_owned()
    } else {
        format!("{many} {its}")
    };
    (many > 0).then(|| format!("{labels} still {go} the old name: M moves them"))
}

/// Returns the row about the labels of the edited evals that wait for a confirmation, which no flip counts against.
fn describe_labels_to_confirm(app: &App, report: &EditReport) -> Option<String> {
    let cells = &app.live_session.cells;
    let evals = cells.evals.iter().zip(&cells.groups);
    let touched = evals.filter(|(eval, _)| {
        let name = format!("{}/{}", eval.rubric, eval.id);
        // An edit of an earlier session that was judged names no evals.
        let is_any = report.is_restored && report.touched_evals.is_empty();
        is_any || report.touched_evals.contains(&name)
    });
    let waiting = touched.map(|(_, group)| group.counts.to_confirm as u64);
    let many: u64 = waiting.sum();
    let labels = pluralize(many, "label");
    (many > 0)
        .then(|| format!("{labels} of the old question: a confirms the focused one, Q lists them"))
}

/// Returns the columns of a row that its other parts leave for the name.
fn room_for_name<const N: usize>(width: u16, others: [&StyledRow<'_>; N]) -> usize {
    let taken: usize = others.iter().map(|row| row.width()).sum();
    // One blank separates the name from the end of the row.
    usize::from(width).saturating_sub(taken + 1)
}

fn describe_direction(flip: &RowFlip, full: bool) -> StyledRow<'static> {
    match flip.agrees_with_label {
        Some(true) if full => StyledRow::new("towards your label ", Role::Towards),
        Some(true) => StyledRow::new("towards", Role::Towards),
        Some(false) if full => StyledRow::new("away from your label ", Role::Away),
        Some(false) => StyledRow::new("away", Role::Away),
        None => StyledRow::default(),
    }
}

fn draw_flip(
    canvas: &mut Canvas<'_>,
    area: Rect,
    cells: &CellsState,
    flip: &RowFlip,
    over: Option<Role>,
) {
    let glyphs = canvas.glyphs();
    let (mark_before, mark_after) = (
        outcome_glyph(flip.before.outcome, glyphs),
        outcome_glyph(flip.after.outcome, glyphs),
    );
    let name = cells.decision_name(flip.row);
    // The headline: the marks, the name, and the direction on the right.
    let cursor = if over.is_some() { glyphs.cursor } else { " " };
    let head = StyledRow::new(cursor, Role::Accent).with(
        format!("{mark_before} {} {mark_after} ", glyphs.arrow),
        Role::Flipped,
    );
    let noise = match cells.noisy_repeats(flip.row) {
        // The same words as on the progress screen.
        Some(cell) => StyledRow::new(
            format!("  noise: {} of {} pass", cell.passes, cell.repeats),
            Role::Warning,
        ),
        None => StyledRow::default(),
    };
    let mut end = describe_direction(flip, area.width >= MIN_FULL_FLIP_WIDTH);
    let mut room = room_for_name(area.width, [&head, &noise, &end]);
    // The name is more than a long word for the direction, which the color repeats.
    let wanted = name
        .as_ref()
        .map_or(1, |name| decision_name::measure_name(name, true));
    if wanted > room {
        end = describe_direction(flip, false);
        room = room_for_name(area.width, [&head, &noise, &end]);
    }
    let name = name.map_or_else(
        || "?".to_owned(),
        |name| decision_name::fit_name(&name, true, room, glyphs),
    );
    let mut head = head.with(name, Role::Text);
    head.0.extend(noise.0);
    styled_row::draw_ends(canvas, row_at(area, 0), &head, &end, over);
    // A reason has one row.
    let reason = |mark: &str, why: &str| format!("     {mark} {}", find_reason(why));
    let reasons = match &flip.arithmetic {
        // The two reasons are the same sentence, because only the bounds changed.
        Some(arithmetic) => [
            format!("     {arithmetic}"),
            reason(mark_after, &flip.after.explanation),
        ],
        None => [
            reason(mark_before, &flip.before.explanation),
            reason(mark_after, &flip.after.explanation),
        ],
    };
    for (at, text) in (1_u16..).zip(reasons) {
        let row = StyledRow::new(text, Role::Muted);
        styled_row::draw_row(canvas, row_at(area, at), &row, None);
    }
}

/// Returns one row of an area, empty past its end.
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
    fn long_sentence_takes_as_many_rows_as_it_may() {
        let text = "judged on the same pages: 21 pages of run hbrl and 1 more, others are fetched";
        assert_eq!(
            wrap_rows(text, 30, 4),
            [
                "judged on the same pages: 21",
                "pages of run hbrl and 1 more,",
                "others are fetched"
            ]
        );
        assert_eq!(
            wrap_rows(text, 30, 2),
            [
                "judged on the same pages: 21",
                "pages of run hbrl and 1 more, others are fetched"
            ]
        );
        assert_eq!(wrap_rows("short", 30, 2), ["short"]);
    }

    #[test]
    fn summary_wraps_in_a_narrow_pane() {
        let report = EditReport {
            not_judged: Some("12 cells of gemini wait for R: about $0.04".to_owned()),
            judged: 18,
            touched_evals: indexmap::IndexSet::from(["a/b".to_owned()]),
            ..EditReport::default()
        };
        let rows = |width| -> Vec<String> {
            let waiting = report.not_judged.as_ref();
            let lines = summary_rows(&report, (None, waiting), &Glyphs::UNICODE, width);
            lines.into_iter().map(|(text, _)| text).collect()
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
