//! Groups with their counts, and sorted and filtered rows.
//!
//! Counts change with each row. A group is sorted again only if a row in it changed, and a large list at most a few
//! times per second.

use std::collections::HashMap;

use super::{CellsEntry, CellsRow, CellsState, LabelValue, RowId, RowSort};
use crate::model::{Millis, Outcome, RunId};

/// The sort class of rows without problems.
pub(super) const LAST_SORT_CLASS: u8 = 3;
/// The maximum number of rows that are sorted after every batch of results.
const MAX_ROWS_ORDERED_AT_ONCE: usize = 2000;
/// The number of rows that are sorted or filtered per wake, at least one group. That takes a few milliseconds.
const ROWS_PER_WAKE: usize = 20_000;
/// The maximum delay of a larger list's order behind the results.
const MAX_ORDER_LAG: Millis = Millis(250);

/// The state of a row in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowStatus {
    NeverRun,
    Live,
    Decided(Outcome),
    /// Decided, and hidden until it is labelled.
    Hidden,
}

/// The number of rows per state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RowCounts {
    pub(crate) rows: usize,
    pub(crate) never_run: usize,
    pub(crate) live: usize,
    pub(crate) pass: usize,
    pub(crate) fail: usize,
    pub(crate) error: usize,
    pub(crate) not_applicable: usize,
    pub(crate) skipped: usize,
    pub(crate) flipped: usize,
    pub(crate) stale: usize,
    /// Rows that keep an earlier verdict because their last re-run ended without one.
    pub(crate) failed_reruns: usize,
    /// The number of these rows whose re-run was cancelled.
    pub(crate) cancelled_reruns: usize,
    /// The number of these rows whose re-run a budget stopped.
    pub(crate) budget_reruns: usize,
    /// Verdicts that are hidden until they are labelled.
    pub(crate) hidden: usize,
    /// Labelled rows whose verdict equals the label, and those whose verdict differs.
    pub(crate) agree: usize,
    pub(crate) disagree: usize,
    /// Rows whose label waits for a confirmation.
    pub(crate) to_confirm: usize,
}

/// The rows of one eval.
#[derive(Debug, Clone, Default)]
pub(crate) struct EvalGroup {
    pub(crate) counts: RowCounts,
    /// All rows, sorted.
    rows: Vec<RowId>,
    /// The rows that match the filter.
    pub(super) matching: Vec<RowId>,
    /// The user's choice to open or close the group; `None`: automatic.
    pub(super) opened_by_user: Option<bool>,
    /// True if its rows are visible.
    pub(crate) open: bool,
    /// True if the group stays open: it had a problem, a working judge or the cursor since the session began.
    pub(super) stays_open: bool,
    /// True if its rows must be sorted and filtered again.
    needs_sorting: bool,
}

/// The state of the ordering.
#[derive(Debug, Clone, Default)]
pub(super) struct OrderState {
    /// The indexes of the evals in the order of the newest header.
    pub(super) evals: Vec<u32>,
    /// The evals in the order of the pane: those with disagreements first, if the user chose that order.
    listed: Vec<u32>,
    /// True if a row changed since the last update.
    needs_update: bool,
    /// True if the update must not be delayed.
    urgent: bool,
    updated_at: Option<Millis>,
    /// The next group to update.
    next_group: usize,
    /// True if the user moved the cursor.
    pub(super) user_moved: bool,
    /// The row that the cursor goes to by itself, until the user moves it.
    pub(super) home: Option<RowId>,
    /// The row whose judge is watched, until the user moves the cursor.
    pub(super) watched: Option<CellsEntry>,
    /// The user's last selection. It is restored when a filter shows it again.
    pub(super) user_choice: Option<CellsEntry>,
    pub(super) run_ranks: Vec<u64>,
    /// The highest of these ranks.
    pub(super) highest_rank: u64,
    pub(super) run_numbers: HashMap<RunId, u32>,
    /// The number of rows sorted or filtered so far, for tests.
    #[cfg(test)]
    pub(super) rows_processed: usize,
}

/// The values that counts and order depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OrderInputs {
    status: RowStatus,
    flipped: bool,
    stale: bool,
    failed_rerun: Option<Outcome>,
    is_to_confirm: bool,
    removed: bool,
    sort_class: u8,
    label: Option<LabelValue>,
    agrees: Option<bool>,
}

impl CellsRow {
    /// Returns the state of the row.
    pub(crate) fn status(&self) -> RowStatus {
        match &self.decision {
            Some(_) if self.hidden => RowStatus::Hidden,
            Some(decision) => RowStatus::Decided(decision.outcome),
            None if self.is_live() => RowStatus::Live,
            None => RowStatus::NeverRun,
        }
    }

    fn order_inputs(&self) -> OrderInputs {
        OrderInputs {
            status: self.status(),
            // A flip would reveal a hidden verdict.
            flipped: self.flipped.is_some() && !self.hidden,
            stale: self.stale.is_some(),
            failed_rerun: self.visible_failed_rerun().map(|failed| failed.outcome),
            is_to_confirm: self.to_confirm.is_some(),
            removed: self.bookkeeping.removed,
            sort_class: self.bookkeeping.sort_class,
            label: self.label,
            agrees: self.agrees_with_label(),
        }
    }

    /// Returns the sort class: lower comes first.
    pub(super) fn compute_sort_class(&self, sort: RowSort) -> u8 {
        match (sort, self.label) {
            // A row about one message can't have a label, so it never counts as unlabelled.
            (RowSort::Unlabelled, None) if self.message.is_none() => return 0,
            (RowSort::Unlabelled, Some(LabelValue::Unsure)) => return 1,
            (RowSort::Unlabelled | RowSort::FileOrder, _) => return LAST_SORT_CLASS,
            (RowSort::ProblemsFirst | RowSort::Disagreements, _) => {}
        }
        let flipped = self.flipped.is_some() && !self.hidden;
        match (self.visible_decision(), flipped) {
            // While it is judged again, a row keeps its place.
            (None, _) if self.is_live() => self.bookkeeping.sort_class,
            _ if sort == RowSort::Disagreements => match self.agrees_with_label() {
                Some(false) => 0,
                _ => LAST_SORT_CLASS,
            },
            // Flips come before failures, and failures before errors: the user looks for effects of an edit.
            (_, true) => 0,
            (Some(d), false) if d.outcome == Outcome::Fail => 1,
            (Some(d), false) if d.outcome.is_error() => 2,
            _ if self.visible_failed_rerun().is_some() => 2,
            _ => LAST_SORT_CLASS,
        }
    }
}

impl EvalGroup {
    /// Schedules sorting and filtering of the rows.
    pub(super) fn request_sorting(&mut self) {
        self.needs_sorting = true;
    }
}

impl RowCounts {
    fn add(&mut self, inputs: OrderInputs, by: isize) {
        // A removed row is not in the pane, so it counts nowhere.
        if inputs.removed {
            return;
        }
        let count = |field: &mut usize| *field = field.saturating_add_signed(by);
        count(&mut self.rows);
        count(match inputs.status {
            RowStatus::NeverRun => &mut self.never_run,
            RowStatus::Live => &mut self.live,
            RowStatus::Decided(Outcome::Pass) => &mut self.pass,
            RowStatus::Decided(Outcome::Fail) => &mut self.fail,
            RowStatus::Decided(Outcome::NotApplicable) => &mut self.not_applicable,
            RowStatus::Decided(Outcome::Skipped) => &mut self.skipped,
            RowStatus::Decided(_) => &mut self.error,
            RowStatus::Hidden => &mut self.hidden,
        });
        if inputs.flipped {
            count(&mut self.flipped);
        }
        if inputs.stale {
            count(&mut self.stale);
        }
        if let Some(outcome) = inputs.failed_rerun {
            count(&mut self.failed_reruns);
            match outcome {
                Outcome::Cancelled => count(&mut self.cancelled_reruns),
                Outcome::Budget => count(&mut self.budget_reruns),
                _ => {}
            }
        }
        if inputs.is_to_confirm {
            count(&mut self.to_confirm);
        }
        match inputs.agrees {
            Some(true) => count(&mut self.agree),
            Some(false) => count(&mut self.disagree),
            None => {}
        }
    }

    /// Returns true if a row of the group is a problem.
    pub(crate) fn has_problems(&self) -> bool {
        self.fail + self.error + self.flipped + self.failed_reruns > 0
    }
}

impl CellsState {
    /// Changes a row and updates all counts.
    pub(super) fn update_row<T>(
        &mut self,
        id: RowId,
        change: impl FnOnce(&mut CellsRow) -> T,
    ) -> Option<T> {
        // Copied, because the closure can't borrow the cells while a row is changed.
        let sort = self.sort;
        self.update_row_in_place(id, |row| {
            let out = change(row);
            row.bookkeeping.sort_class = row.compute_sort_class(sort);
            out
        })
    }

    /// Like [`Self::update_row`], for a change that does not affect the order.
    pub(super) fn update_row_in_place<T>(
        &mut self,
        id: RowId,
        change: impl FnOnce(&mut CellsRow) -> T,
    ) -> Option<T> {
        let row = self.rows.get_mut(id.0 as usize)?;
        let before = row.order_inputs();
        let out = change(row);
        let after = row.order_inputs();
        let eval = row.eval;
        // Most updates change a text only, so counts and order stay valid.
        if before != after
            && let Some(group) = self.groups.get_mut(eval as usize)
        {
            for counts in [&mut group.counts, &mut self.total] {
                counts.add(before, -1);
                counts.add(after, 1);
            }
            // A row that is only being judged again keeps its place, unless the filter matches live rows.
            group.needs_sorting |=
                before.sort_class != after.sort_class || before.removed != after.removed;
            // A filter may match the changed state, for example `is:live`.
            group.needs_sorting |= !self.query.is_empty();
            self.order.needs_update = true;
            if !self.query.is_empty() {
                self.refilter_sibling_parts(eval);
            }
        }
        Some(out)
    }

    /// Counts a new row and schedules the ordering.
    pub(super) fn count_new_row(&mut self, id: RowId) {
        let Some(row) = self.rows.get(id.0 as usize) else {
            return;
        };
        if let Some(group) = self.groups.get_mut(row.eval as usize) {
            group.counts.add(row.order_inputs(), 1);
            self.total.add(row.order_inputs(), 1);
            group.rows.push(id);
            group.needs_sorting = true;
            self.order.needs_update = true;
        }
    }

    pub(super) fn set_eval_order(&mut self, evals: &[u32]) {
        if self.order.evals != evals {
            self.order.evals = evals.to_vec();
            self.order.needs_update = true;
            // A new order of the evals comes from the user's rubric, so it appears at once.
            self.order.urgent = true;
        }
    }

    /// An eval that is not in the order comes last.
    pub(super) fn append_to_eval_order(&mut self, eval: u32) {
        self.order.evals.push(eval);
        self.order.needs_update = true;
    }

    /// Schedules an update of the whole order.
    pub(super) fn mark_order_outdated(&mut self) {
        for group in &mut self.groups {
            group.needs_sorting = true;
        }
        self.order.needs_update = true;
        self.order.urgent = true;
    }

    /// Requests an update without delay, because the user asked for it.
    pub(super) fn mark_order_urgent(&mut self) {
        self.order.needs_update = true;
        self.order.urgent = true;
    }

    /// Returns the number of rows sorted or filtered so far.
    #[cfg(test)]
    pub(crate) fn rows_processed(&self) -> usize {
        self.order.rows_processed
    }

    /// Returns the rows of an eval, also those that the filter hides.
    pub(super) fn group_members(&self, eval: u32) -> impl Iterator<Item = &CellsRow> {
        self.identified_members(eval).map(|(_, row)| row)
    }

    /// Like [`Self::group_members`], with the ids of the rows.
    pub(super) fn identified_members(&self, eval: u32) -> impl Iterator<Item = (RowId, &CellsRow)> {
        let group = self.groups.get(eval as usize);
        let rows = group.into_iter().flat_map(|group| &group.rows);
        let rows = rows.filter_map(|id| Some((*id, self.row(*id)?)));
        rows.filter(|(_, row)| !row.bookkeeping.removed)
    }

    /// Returns the indexes of the visible evals in order.
    pub(crate) fn eval_order(&self) -> &[u32] {
        &self.order.evals
    }

    /// Returns the indexes of the evals in the order of the pane.
    pub(super) fn listed_evals(&self) -> &[u32] {
        &self.order.listed
    }

    fn list_evals(&self) -> Vec<u32> {
        let mut evals = self.order.evals.clone();
        if self.sort == RowSort::Disagreements {
            // A row's class stays while the user labels, so no group moves meanwhile.
            let disagrees = |eval: &u32| {
                let group = self.groups.get(*eval as usize);
                let first = group.and_then(|group| self.row(*group.matching.first()?));
                first.is_some_and(|row| row.bookkeeping.sort_class == 0)
            };
            evals.sort_by_key(|eval| !disagrees(eval));
        }
        evals
    }

    /// Takes over the view of another session of the same recording: selection, order, filter, open groups.
    pub(crate) fn restore_view_from(&mut self, was: &Self) {
        for (group, before) in self.groups.iter_mut().zip(&was.groups) {
            // The sessions show one recording, so their groups have the same indexes.
            group.opened_by_user = before.opened_by_user;
            group.stays_open |= before.stays_open;
        }
        self.sort = was.sort;
        self.resort_all();
        self.list = was.list.clone();
        self.order.user_moved = was.order.user_moved;
        self.order.watched = was.order.watched;
        // The typed filter is copied with its error, which the user has already seen.
        let _known_problem = self.set_filter(&was.filter);
        self.mark_order_outdated();
        self.update_shown();
    }

    /// Sets the order of the rows.
    pub(crate) fn set_sort(&mut self, sort: RowSort) {
        self.sort = sort;
        // Otherwise the cursor would jump to the first problem of the new order.
        self.order.user_moved = true;
        self.resort_all();
    }

    /// Sorts all rows, also those that were kept in place.
    pub(super) fn resort_all(&mut self) {
        let sort = self.sort;
        for row in &mut self.rows {
            row.bookkeeping.sort_class = row.compute_sort_class(sort);
        }
        self.mark_order_outdated();
        self.update_shown();
    }

    /// Updates [`CellsState::shown`] if a row changed. A large list waits; then the time of the update is returned.
    pub(crate) fn update_shown_if_due(&mut self, now: Millis) -> Option<Millis> {
        // Rows without verdicts would be sorted wrongly, so they are filled first.
        self.fill_next_rows();
        if !self.order.needs_update {
            return None;
        }
        if let Some(last) = self.order.updated_at
            && !self.order.urgent
            // A small list is sorted at once; a large one at most every 250 ms.
            && self.rows.len() > MAX_ROWS_ORDERED_AT_ONCE
            && now < last + MAX_ORDER_LAG
        {
            return Some(last + MAX_ORDER_LAG);
        }
        self.order.updated_at = Some(now);
        self.update_some_groups(ROWS_PER_WAKE);
        None
    }

    /// Returns the time of the next delayed update.
    pub(crate) fn next_order_update(&self) -> Option<Millis> {
        // A time in the past means the next round of the event loop.
        if self.has_rows_to_fill() || (self.order.needs_update && self.order.urgent) {
            return Some(Millis(0));
        }
        self.order
            .needs_update
            .then_some(self.order.updated_at)?
            .map(|last| last + MAX_ORDER_LAG)
    }

    /// Updates [`CellsState::shown`] and keeps the selection. Does nothing if no row changed.
    pub(crate) fn update_shown(&mut self) {
        self.update_some_groups(usize::MAX);
    }

    /// Finishes the filtering of many rows, because a key acts on the visible rows.
    pub(crate) fn finish_filtering(&mut self) {
        // Only a change that the user requested leaves groups in this state.
        if self.order.urgent {
            self.update_shown();
        }
    }

    /// Updates groups one by one up to a number of rows. The rest follows at the next wake.
    pub(super) fn update_some_groups(&mut self, mut rows: usize) {
        if !self.order.needs_update {
            return;
        }
        self.order.needs_update = false;
        let count = self.groups.len();
        // The update continues with the group at which the last one stopped, so each group gets its turn.
        let first = self.order.next_group;
        for at in (0..count).map(|nth| (first + nth) % count) {
            if !self.groups[at].needs_sorting {
                continue;
            }
            // The limit is reached, so the next wake continues here.
            if rows == 0 {
                self.order.needs_update = true;
                self.order.next_group = at;
                break;
            }
            // The first group is always updated, even if it is larger than the limit.
            rows = rows.saturating_sub(self.groups[at].rows.len());
            self.sort_and_filter_group(at);
        }
        self.order.urgent &= self.order.needs_update;
        self.rebuild_shown();
        self.restore_cursor();
    }

    /// Sorts and filters a group.
    fn sort_and_filter_group(&mut self, at: usize) {
        // Taken out, because filtering borrows the rest of the cells.
        let mut group = std::mem::take(&mut self.groups[at]);
        let rows = &self.rows;
        let key = |id: &RowId| {
            let keep = &rows[id.0 as usize].bookkeeping;
            (keep.sort_class, keep.file_order, *id)
        };
        // Rows are far apart in memory, so an ordered group is not sorted again.
        if !group.rows.is_sorted_by_key(key) {
            group.rows.sort_by_cached_key(key);
        }
        let mut name = String::new();
        // The old list is reused for its memory.
        let matching = std::mem::take(&mut group.matching);
        group.matching = self.filter_rows(&group.rows, matching, &mut name);
        group.needs_sorting = false;
        #[cfg(test)]
        {
            self.order.rows_processed += group.rows.len();
        }
        self.groups[at] = group;
    }

    fn filter_rows(&self, rows: &[RowId], mut into: Vec<RowId>, name: &mut String) -> Vec<RowId> {
        into.clear();
        let passes = |id: &&RowId| {
            let gone = self.row(**id).is_none_or(|row| row.bookkeeping.removed);
            !gone && self.matches_filter_with_buffer(**id, name)
        };
        into.extend(rows.iter().filter(passes));
        into
    }

    fn rebuild_shown(&mut self) {
        let mut entries = std::mem::take(&mut self.shown);
        entries.clear();
        self.matching = 0;
        let eval_of = |cells: &Self, row: Option<RowId>| Some(cells.row(row?)?.eval);
        let before = eval_of(self, self.order.home);
        self.order.listed = self.list_evals();
        self.order.home = self.find_home();
        let home = eval_of(self, self.order.home);
        // The user moved the cursor, so the group that it was in stays open.
        if home.is_none()
            && let Some(group) = before.and_then(|eval| self.groups.get_mut(eval as usize))
        {
            group.stays_open = true;
        }
        for eval in &self.order.listed {
            let Some(group) = self.groups.get_mut(*eval as usize) else {
                continue;
            };
            if group.matching.is_empty() {
                continue;
            }
            self.matching += group.matching.len();
            entries.push(CellsEntry::Group(*eval));
            // An open group stays open, so that nothing closes while the user reads. The group of the cursor is open, so
            // that a cell is selected.
            group.stays_open |= group.counts.has_problems();
            let opens_by_default =
                group.stays_open || home == Some(*eval) || self.blind || !self.query.is_empty();
            group.open = group.opened_by_user.unwrap_or(opens_by_default);
            if group.open {
                entries.extend(group.matching.iter().map(|row| CellsEntry::Row(*row)));
            }
        }
        self.shown = entries;
    }
}
