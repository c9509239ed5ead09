//! Draws the cells pane: groups with counts, decisions with marks. Reads only the visible rows, so large runs stay
//! fast.

use std::borrow::Cow;
use std::fmt::Write as _;

use ratatui::layout::Rect;

use crate::event::{CellPhase, CellState};
use crate::model::{Millis, Outcome};
use crate::report::describe_outcome;
use crate::theme::{Glyphs, Role};
use crate::tui::click_target::ClickTarget;
use crate::tui::content::{self, label_mark};
use crate::tui::state::cells::RunCellIx;
use crate::tui::state::cells::{
    self, CellsEntry, CellsState, RowId, RowSlotState, RowSort, RowStatus,
};
use crate::tui::state::pane::Pane;
use crate::tui::state::phase_text::{describe_cell_phase, describe_countdown};
use crate::tui::state::session_view::SessionView;
use crate::tui::state::{App, OpenedItem};
use crate::tui::view::Canvas;
use crate::tui::widget::flow::{self, ScrollState, TextBlock};
use crate::tui::widget::styled_row::{self, StyledRow};

/// The largest number of votes that are drawn as single marks.
const MAX_VOTE_MARKS: usize = 7;
/// The narrowest row, in columns, that has room for the word "label".
const MIN_LABEL_WORD_WIDTH: usize = 36;

/// Draws the pane.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, app: &App) {
    let session = app.session();
    let cells = &session.cells;
    let focused = app.ui.focus == Pane::Cells;
    // The frame: the title with the filter, and the counts in the corner.
    let mut title = StyledRow::new(
        format!("{} {}", Pane::Cells.number(), Pane::Cells.title()),
        Role::Title,
    );
    if !cells.filter.is_empty() {
        title = title.with(format!(" /{}", cells.filter), Role::Match);
    }
    let mut inside = canvas.draw_frame(area, &title, focused, ClickTarget::Pane(Pane::Cells));
    canvas.draw_corner_note(area, &corner_note(cells, count_unlisted(app)));
    // The error takes the first rows, unless the pane has only one.
    let problem = cells.filter_problem.as_ref().or_else(|| {
        // An id that nothing has explains an empty list.
        let unmatched = cells.unmatched_problem.as_ref();
        unmatched.filter(|_| cells.matching == 0 && cells.outline_complete)
    });
    if let Some(why) = problem.filter(|_| !app.offers_completion())
        && inside.height > 1
    {
        let rows = draw_filter_problem(canvas, inside, why);
        inside.y += rows;
        inside.height -= rows;
    }
    if cells.shown.is_empty() {
        return draw_empty(canvas, inside, app);
    }
    let view = CellsView {
        session,
        glyphs: canvas.glyphs(),
        width: usize::from(inside.width),
        frame: app.ui.spinner_frame,
        now: app.now,
        replay_time: app
            .replay
            .as_ref()
            .map(|replay| replay.player.recording_time(app.now)),
        has_several_rubrics: cells
            .evals
            .iter()
            .any(|eval| eval.rubric != cells.evals[0].rubric),
    };
    // The rows, from the first visible one on.
    for (at, y) in cells
        .visible_range(usize::from(inside.height))
        .zip(inside.y..)
    {
        let Some(entry) = cells.shown.get(at) else {
            break;
        };
        let selected = cells.list.selected == Some(*entry);
        let over = match (selected, focused) {
            (true, true) => Some(Role::Selected),
            (true, false) => Some(Role::SelectedUnfocused),
            (false, _) => None,
        };
        let area = Rect::new(inside.x, y, inside.width, 1);
        let (ends, target) = match entry {
            CellsEntry::Group(eval) => (view.group_row(*eval, selected), ClickTarget::Group(*eval)),
            CellsEntry::Row(id) => (view.decision_row(*id, selected), ClickTarget::Row(*id)),
        };
        styled_row::draw_ends(canvas, area, &ends.left, &ends.right, over);
        canvas.add_hit(area, target);
    }
}

/// Draws the error of a filter in as many rows as it needs, but leaves one for the list. Returns the rows.
fn draw_filter_problem(canvas: &mut Canvas<'_>, area: Rect, why: &str) -> u16 {
    let text = vec![TextBlock::new(why, Role::Warning)];
    let top = ScrollState::top();
    let most = area.height.saturating_sub(1);
    let rows = (0..most)
        .find(|below| top.row_position(&text, area.as_size(), below + 1).is_none())
        .map_or(most, |last| last + 1);
    let area = Rect {
        height: rows,
        ..area
    };
    flow::draw(canvas, area, &text, &top);
    rows
}

/// Returns the number of records without a row. They get rows when the user comes near them.
fn count_unlisted(app: &App) -> u64 {
    match &app.opened {
        OpenedItem::TranscriptFile(_) => app
            .opened_file
            .counted_records
            .saturating_sub(app.opened_file.listed_records),
        _ => 0,
    }
}

/// Returns the corner note: `12/240`, and the sort order unless it is the default.
fn corner_note(cells: &CellsState, unlisted: u64) -> StyledRow<'static> {
    let mut text = match (cells.matching, cells.total.rows) {
        (_, 0) => String::new(),
        (some, all) if some == all => format!("{all}"),
        (some, all) => format!("{some}/{all}"),
    };
    if unlisted > 0 {
        let _infallible = write!(text, ", {unlisted} more below");
    }
    if cells.sort != RowSort::ProblemsFirst {
        let _infallible = write!(text, " {}", cells.sort.title());
    }
    StyledRow::new(text, Role::Muted)
}

/// Draws the text of an empty pane: its future content, and the key that produces it.
fn draw_empty(canvas: &mut Canvas<'_>, area: Rect, app: &App) {
    let cells = &app.session().cells;
    let filtered = !cells.filter.is_empty() && cells.total.rows > 0;
    let why = match &app.opened {
        OpenedItem::TranscriptFile(_) => app.opened_file.problem.as_deref(),
        _ => cells.outline_error.as_deref(),
    };
    if let Some(why) = why.filter(|_| !filtered) {
        // A long message in the footer can be cut and disappears, so the pane repeats the way out.
        let way_out = match app.opened {
            OpenedItem::TranscriptFile(_) if app.opened_file.needs_field_mapping => {
                "W creates a workspace with the guessed field mapping, which you can correct; q quits"
            }
            OpenedItem::TranscriptFile(_) => {
                "q quits; `dicta open --help` lists what dicta can open"
            }
            _ => "Fix the file; dicta reloads it automatically.",
        };
        let text = vec![
            TextBlock::new(why, Role::Error),
            TextBlock::new(way_out, Role::Muted),
        ];
        flow::draw(canvas, area, &text, &ScrollState::default());
        return;
    }
    let lines: [&str; 2] = if cells.filter_problem.is_some() {
        // The error of the filter appears above.
        ["The filter is invalid.", "continue typing, or esc cancels"]
    } else if filtered {
        ["No cell matches the filter.", "esc clears it, / changes it"]
    } else if app.replay.is_some() {
        ["The run has no cells yet.", "space continues the replay"]
    } else if let (OpenedItem::TranscriptFile(_), true) = (&app.opened, cells.outline_complete) {
        ["The file contains no transcripts.", ""]
    } else if !cells.outline_complete {
        ["Reading the transcripts …", ""]
    } else {
        explain_empty_outline(app)
    };
    for (text, y) in lines.iter().zip(area.y..area.bottom()) {
        let role = if y == area.y { Role::Text } else { Role::Muted };
        canvas.draw_text(Rect::new(area.x, y, area.width, 1), text, role);
    }
}

/// Returns why a workspace has no cells, and what to do.
fn explain_empty_outline(app: &App) -> [&'static str; 2] {
    let workspace = app.workspace();
    let has_transcripts = workspace.is_some_and(|workspace| !workspace.transcripts.is_empty());
    let mut rubrics = workspace
        .into_iter()
        .flat_map(|workspace| &workspace.rubrics);
    // A config of another tool can have no assertions.
    if rubrics.all(|rubric| rubric.evals.is_empty()) {
        [
            "No rubric has an eval.",
            "list a rubric under rubrics: in dicta.yaml",
        ]
    } else if has_transcripts {
        [
            "No rubric applies to any transcript.",
            "change applies_to: of the rubric, or list other files under transcripts: in dicta.yaml",
        ]
    } else {
        [
            "No rubric applies to any transcript.",
            "list files under transcripts: in dicta.yaml",
        ]
    }
}

/// The context for drawing a row.
struct CellsView<'v> {
    session: &'v SessionView,
    glyphs: &'v Glyphs,
    width: usize,
    frame: usize,
    now: Millis,
    /// The time in the recording, during a replay.
    replay_time: Option<Millis>,
    /// True if there are several rubrics, so that an eval's name may be ambiguous.
    has_several_rubrics: bool,
}

/// The two ends of a row.
#[derive(Default)]
struct RowEnds<'r> {
    left: StyledRow<'r>,
    right: StyledRow<'r>,
}

impl CellsView<'_> {
    fn spinner_frame(&self) -> &'static str {
        self.glyphs.live[self.frame % self.glyphs.live.len()]
    }

    fn cursor_mark(&self, selected: bool) -> (Cow<'static, str>, Role) {
        let mark = if selected { self.glyphs.cursor } else { " " };
        (mark.into(), Role::Accent)
    }

    fn group_row(&self, at: u32, selected: bool) -> RowEnds<'_> {
        let cells = &self.session.cells;
        let (Some(eval), Some(group)) =
            (cells.evals.get(at as usize), cells.groups.get(at as usize))
        else {
            return RowEnds::default();
        };
        let glyphs = self.glyphs;
        let fold = if group.open {
            glyphs.open
        } else {
            glyphs.closed
        };
        let counts = &group.counts;
        // The last number is the rank. In a narrow pane, the counts with the highest ranks are left out
        // first, and failures last.
        let mut tallies = vec![
            (counts.live, self.spinner_frame(), Role::Live, 3),
            (counts.pass, glyphs.pass, Role::Pass, 4),
            (counts.fail, glyphs.fail, Role::Fail, 0),
            (counts.error, glyphs.error, Role::Error, 1),
            (counts.flipped, glyphs.flipped, Role::Flipped, 2),
            (counts.stale, glyphs.stale, Role::Stale, 5),
            (counts.never_run, glyphs.never, Role::Muted, 6),
            (
                counts.not_applicable,
                glyphs.not_applicable,
                Role::NotApplicable,
                7,
            ),
            (counts.skipped, glyphs.skipped, Role::Skipped, 8),
            (counts.hidden, "?", Role::Muted, 4),
            // The number of verdicts that agree with the labels.
            (counts.agree, "=", Role::Label, 10),
            (counts.disagree, unequal_sign(glyphs), Role::Away, 9),
        ];
        tallies.retain(|(n, ..)| *n > 0);
        let text =
            |(n, mark, role, _): &(usize, &'static str, Role, u8)| (format!(" {mark} {n}"), *role);
        let wide = |tallies: &[_]| -> usize {
            tallies.iter().map(|one| text(one).0.chars().count()).sum()
        };
        let name = StyledRow::new(eval.id.as_str(), Role::Title).width();
        // The cursor, the fold mark and the blanks take 5 columns.
        if wide(&tallies) + name + 5 > self.width {
            // The eval's row shows the agreement, and the rows below mark disagreements. In a narrow pane
            // names have priority.
            tallies.retain(|(.., rank)| *rank < 9);
        }
        // The counts get at least 40% of the row, because they are the reason to look at a group.
        let room = self
            .width
            .saturating_sub((name + 3).min(self.width * 6 / 10));
        // A sign in front of the counts shows that some are hidden.
        let all = tallies.len();
        let hidden_sign = format!(" {}", glyphs.ellipsis);
        let sign_width = |shown: usize| {
            if shown < all {
                hidden_sign.chars().count()
            } else {
                0
            }
        };
        while wide(&tallies) + sign_width(tallies.len()) > room
            && let Some(worst) = tallies.iter().map(|(.., rank)| *rank).max()
            && tallies.len() > 1
        {
            tallies.retain(|(.., rank)| *rank != worst);
        }
        let is_cut = tallies.len() < all;
        let right = wide(&tallies) + sign_width(tallies.len());
        let mut left = StyledRow(vec![self.cursor_mark(selected)])
            .with(format!("{fold} "), Role::Muted)
            .with(
                styled_row::elide_middle(
                    &eval.id,
                    // The same 5 columns.
                    self.width.saturating_sub(right + 5),
                    glyphs.ellipsis,
                ),
                Role::Title,
            );
        if self.has_several_rubrics && left.width() + right + eval.rubric.len() + 3 < self.width {
            left = left.with(format!("  {}", eval.rubric), Role::Muted);
        }
        let sign = is_cut.then_some((hidden_sign, Role::Muted)).into_iter();
        let row = StyledRow(
            sign.chain(tallies.iter().map(text))
                .map(|(text, role)| (text.into(), role))
                .collect(),
        );
        RowEnds {
            left,
            right: row.with(" ", Role::Text),
        }
    }

    fn decision_row(&self, id: RowId, selected: bool) -> RowEnds<'_> {
        let cells = &self.session.cells;
        let Some(row) = cells.row(id) else {
            return RowEnds::default();
        };
        let glyphs = self.glyphs;
        let old = row.outcome_before.filter(|_| !row.hidden);
        let (mark, mut role) = match (row.status(), old) {
            (RowStatus::NeverRun, _) => (glyphs.never, Role::Muted),
            // The old verdict stays, in the color of a verdict that may no longer hold.
            (RowStatus::Live, Some(old)) => (outcome_style(old, glyphs).0, Role::Stale),
            (RowStatus::Live, None) => self.live_mark(row),
            (RowStatus::Decided(outcome), _) => outcome_style(outcome, glyphs),
            (RowStatus::Hidden, _) => ("?", Role::Muted),
        };
        let flipped = row.flipped.is_some() && !row.hidden;
        let (before, before_role) = match (flipped, row.stale.is_some()) {
            _ if row.status() == RowStatus::Live && old.is_some() => self.live_mark(row),
            (_, true) => (glyphs.stale, Role::Stale),
            (true, false) => (glyphs.flipped, Role::Flipped),
            (false, false) => (" ", Role::Text),
        };
        // Stale has priority over the outcome's color: the verdict may no longer hold.
        if row.stale.is_some() {
            role = Role::Stale;
        }
        let name = cells
            .transcripts
            .get(row.transcript as usize)
            .map_or("?", |transcript| transcript.id.as_str());
        let message = row.message.map(|at| format!(" @{at}")).unwrap_or_default();
        let words = self.width >= MIN_LABEL_WORD_WIDTH;
        let phases = self.describe_phases(row);
        // The name has priority over the details: they get shorter until both fit. The cursor, the marks and the
        // blanks take 6 columns.
        let used = 6 + message.len() + StyledRow::new(name, Role::Text).width();
        let mut choices = Vec::new();
        for phase in &phases {
            choices.push(self.decision_details(row, phase, words));
            choices.push(self.decision_details(row, phase, false));
        }
        let fits = |details: &StyledRow<'_>| used + details.width() <= self.width;
        let at = choices.iter().position(fits).unwrap_or(choices.len() - 1);
        let right = choices.swap_remove(at);
        let room = self
            .width
            .saturating_sub(6 + message.len() + right.width())
            .max(4);
        let text = styled_row::elide_middle(name, room, glyphs.ellipsis);
        let text_role = if row.stale.is_some() {
            Role::Stale
        } else {
            Role::Text
        };
        let left = StyledRow(vec![self.cursor_mark(selected)])
            .with(format!(" {before}"), before_role)
            .with(format!("{mark} "), role)
            .with(text, text_role)
            .with(message, Role::Muted);
        RowEnds { left, right }
    }

    /// Returns the right side of a row: the phase, or score and votes, and the label.
    fn decision_details(
        &self,
        row: &cells::CellsRow,
        phase: &str,
        words: bool,
    ) -> StyledRow<'static> {
        let mut out = StyledRow::default();
        if !phase.is_empty() {
            out = out.with(format!(" {phase}"), Role::Live);
        }
        // Blind labelling hides everything that follows, because it reveals the verdict.
        if row.hidden {
            return out.with(" ", Role::Text);
        }
        if let Some(failed) = row.visible_failed_rerun() {
            // The mark is on every width, because the verdict at the left looks like a new one.
            out = out.with(format!(" {}", self.glyphs.error), Role::Error);
            if words {
                out = out.with(
                    format!(" {}", describe_outcome(failed.outcome)),
                    Role::Error,
                );
            }
        }
        let edited = content::edited_mark(self.glyphs);
        // The edited verdicts of second opinions have their marks below. Other runs of the family don't decide the row.
        let is_own = |at: u16| !row.is_second_opinion(at) && !row.is_family_slot(at);
        let mut own = row.all_slots().filter(|(at, _)| is_own(*at));
        if own.any(|(_, slot)| slot.by_human) {
            out = out.with(format!(" {edited}"), Role::Warning);
        }
        let score = row.decision.as_ref().and_then(|decision| decision.score);
        if let Some(score) = score {
            out = out.with(format!(" {score:.2}"), Role::Muted);
        }
        // Repeats and panel members have one mark each.
        if row.slots.len() > 1 {
            out = out.with(" ", Role::Text);
            for slot in row.slots.iter().take(MAX_VOTE_MARKS) {
                let (mark, role) = self.slot_mark(slot);
                out = out.with(mark, role);
            }
            if row.slots.len() > MAX_VOTE_MARKS {
                out = out.with(self.glyphs.ellipsis, Role::Muted);
            }
        }
        if !row.second_opinions.is_empty() {
            // The verdict of a second opinion, `+✗`; it doesn't change the decision.
            out = out.with(" +", Role::Muted);
            for slot in row.second_opinions.iter().take(MAX_VOTE_MARKS) {
                let (mark, role) = self.slot_mark(slot);
                out = out.with(mark, role);
                if slot.by_human {
                    out = out.with(edited, Role::Warning);
                }
            }
        }
        if let Some(label) = row.label {
            let mark = label_mark(label, self.glyphs);
            let (sign, role) = match row.agrees_with_label() {
                Some(true) => ("=", Role::Label),
                Some(false) => (unequal_sign(self.glyphs), Role::Away),
                None => ("", Role::Label),
            };
            out = match (words, sign) {
                (true, "") => out.with(format!(" label {mark}"), role),
                (true, sign) => out.with(format!(" {sign} label {mark}"), role),
                (false, "") => out.with(format!(" ({mark})"), role),
                (false, sign) => out.with(format!(" {sign}{mark}"), role),
            };
        }
        if row.shot {
            out = out.with(" shot", Role::Muted);
        }
        if row.to_confirm.is_some() {
            // A label to confirm is stale. `(?)` is a label of unsure.
            let text = if words { " label to confirm" } else { " (~)" };
            out = out.with(text, Role::Muted);
        }
        out.with(" ", Role::Text)
    }

    fn slot_mark(&self, slot: &cells::RowSlot) -> (&'static str, Role) {
        match &slot.state {
            RowSlotState::NeverRun => (self.glyphs.never, Role::Muted),
            RowSlotState::Live => (self.spinner_frame(), Role::Live),
            RowSlotState::Interrupted { .. } => (content::pause_mark(self.glyphs), Role::Warning),
            RowSlotState::Done { outcome, .. } => outcome_style(*outcome, self.glyphs),
        }
    }

    /// Returns the live cells of a row, each with the time of its run.
    fn live_cells<'r>(
        &'r self,
        row: &'r cells::CellsRow,
    ) -> impl Iterator<Item = (&'r CellState, Millis)> {
        let live = |slot: &&cells::RowSlot| slot.state == RowSlotState::Live;
        let slots = row.all_slots().map(|(_, slot)| slot).filter(live);
        slots.filter_map(|slot| {
            let RunCellIx { run, cell } = slot.run_cell?;
            let run = self
                .session
                .runs
                .find(self.session.cells.runs.get(run as usize)?)?;
            // A replay has the time of the recording, a live run the current time.
            let now = self.replay_time.unwrap_or_else(|| run.run_time(self.now));
            Some((run.state.cells.get(cell.index())?, now))
        })
    }

    fn has_paused_cell(&self, row: &cells::CellsRow) -> bool {
        let mut cells = self.live_cells(row);
        cells.any(|(cell, _)| matches!(cell.phase, CellPhase::Paused(_)))
    }

    /// Returns the mark of a running row. A paused trace waits for the user, so nothing turns.
    fn live_mark(&self, row: &cells::CellsRow) -> (&'static str, Role) {
        if self.has_paused_cell(row) {
            (content::pause_mark(self.glyphs), Role::Warning)
        } else {
            (self.spinner_frame(), Role::Live)
        }
    }

    /// Returns the phase of the first live cell in three lengths: in words, as a countdown, and empty. A paused cell
    /// comes first.
    fn describe_phases(&self, row: &cells::CellsRow) -> Vec<String> {
        let mut slots = row.all_slots();
        if !slots.any(|(_, slot)| slot.state == RowSlotState::Live) {
            return vec![String::new()];
        }
        let is_paused = |cell: &CellState| matches!(cell.phase, CellPhase::Paused(_));
        let paused = self.live_cells(row).find(|(cell, _)| is_paused(cell));
        if let Some((cell, now)) = paused {
            let words = describe_cell_phase(cell, now);
            return vec![words, "paused".to_owned(), String::new()];
        }
        match self.live_cells(row).next() {
            Some((cell, now)) => {
                let countdown = describe_countdown(&cell.phase, now).unwrap_or_default();
                vec![describe_cell_phase(cell, now), countdown, String::new()]
            }
            None => vec!["queued".to_owned(), String::new(), String::new()],
        }
    }
}

/// Returns the sign for a verdict that differs from the label.
const fn unequal_sign(glyphs: &Glyphs) -> &'static str {
    if glyphs.ascii { "!=" } else { "≠" }
}

/// Returns the mark and role of an outcome.
fn outcome_style(outcome: Outcome, glyphs: &Glyphs) -> (&'static str, Role) {
    match outcome {
        Outcome::Pass => (glyphs.pass, Role::Pass),
        Outcome::Fail => (glyphs.fail, Role::Fail),
        Outcome::NotApplicable => (glyphs.not_applicable, Role::NotApplicable),
        Outcome::Skipped => (glyphs.skipped, Role::Skipped),
        // All other outcomes are errors.
        _ => (glyphs.error, Role::Error),
    }
}

#[cfg(test)]
mod tests;
