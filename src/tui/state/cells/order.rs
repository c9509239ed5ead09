//! Groups with their counts; sorted and filtered rows. Counts move with each row; a group is sorted and filtered anew only
//! when something in it moved, and a large desk at most a few times a second while results stream in.

use std::collections::HashMap;

use super::{CellsEntry, CellsRow, CellsState, LabelValue, RowId, RowSort};
use crate::model::{Millis, Outcome, RunId};

/// The class of rows that need no look.
pub(super) const LAST_SORT_CLASS: u8 = 3;
/// Up to so many rows, order is worked out with every batch.
const MAX_ROWS_ORDERED_AT_ONCE: usize = 2000;
/// So many rows are sorted or filtered at one wake: a few milliseconds' work. One group at least.
const ROWS_PER_WAKE: usize = 20_000;
/// How long a larger desk's order may lag behind results.
const MAX_ORDER_LAG: Millis = Millis(250);

/// Where a row stands, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowStatus {
    NeverRun,
    Live,
    Decided(Outcome),
    /// Decided, and hidden until a person said their own.
    Hidden,
}

/// How many rows stand where.
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
    /// Verdicts that wait for a label to be shown.
    pub(crate) hidden: usize,
    /// Labelled, and the verdict is the same; or another.
    pub(crate) agree: usize,
    pub(crate) disagree: usize,
}

/// The rows of one eval.
#[derive(Debug, Clone, Default)]
pub(crate) struct EvalGroup {
    pub(crate) counts: RowCounts,
    /// All of them, sorted.
    rows: Vec<RowId>,
    /// Those the filter lets through.
    pub(super) matching: Vec<RowId>,
    /// What the user chose; `None`: as it seems best.
    pub(super) opened_by_user: Option<bool>,
    /// Its rows are shown.
    pub(crate) open: bool,
    /// Something to look at was in it since the desk was made.
    pub(super) had_problems: bool,
    /// Rows must be sorted and filtered anew.
    needs_sorting: bool,
}

/// What ordering remembers.
#[derive(Debug, Clone, Default)]
pub(super) struct OrderState {
    /// Positions of evals, as the newest header has them.
    pub(super) evals: Vec<u32>,
    /// Something moved since the last settling.
    needs_update: bool,
    /// It must not wait.
    urgent: bool,
    updated_at: Option<Millis>,
    /// The group whose turn it is.
    next_group: usize,
    /// The user moved the cursor.
    pub(super) user_moved: bool,
    /// Until then: the row whose judge is watched.
    pub(super) watched: Option<CellsEntry>,
    /// What the user chose last; gone back to when a filter lets it through again.
    pub(super) user_choice: Option<CellsEntry>,
    pub(super) run_ranks: Vec<u64>,
    pub(super) run_numbers: HashMap<RunId, u32>,
    /// Rows sorted or filtered so far, counted for tests.
    #[cfg(test)]
    pub(super) rows_processed: usize,
}

/// All that counts and order depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OrderInputs {
    status: RowStatus,
    flipped: bool,
    stale: bool,
    removed: bool,
    sort_class: u8,
    label: Option<LabelValue>,
    agrees: Option<bool>,
}

impl CellsRow {
    /// Where it stands.
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
            flipped: self.flipped.is_some() && !self.hidden,
            stale: self.stale.is_some(),
            removed: self.bookkeeping.removed,
            sort_class: self.bookkeeping.sort_class,
            label: self.label,
            agrees: self.agrees_with_label(),
        }
    }

    /// How soon it comes.
    pub(super) fn compute_sort_class(&self, sort: RowSort) -> u8 {
        match (sort, self.label) {
            (RowSort::Unlabelled, None) if self.message.is_none() => return 0,
            (RowSort::Unlabelled, Some(LabelValue::Unsure)) => return 1,
            (RowSort::Unlabelled | RowSort::FileOrder, _) => return LAST_SORT_CLASS,
            (RowSort::ProblemsFirst | RowSort::Disagreements, _) => {}
        }
        let flipped = self.flipped.is_some() && !self.hidden;
        match (self.visible_decision(), flipped) {
            // While it is judged anew it stays where it is.
            (None, _) if self.is_live() => self.bookkeeping.sort_class,
            _ if sort == RowSort::Disagreements => match self.agrees_with_label() {
                Some(false) => 0,
                _ => LAST_SORT_CLASS,
            },
            (_, true) => 0,
            (Some(d), false) if d.outcome == Outcome::Fail => 1,
            (Some(d), false) if d.outcome.is_error() => 2,
            _ => LAST_SORT_CLASS,
        }
    }
}

impl RowCounts {
    fn add(&mut self, stand: OrderInputs, by: isize) {
        if stand.removed {
            return;
        }
        let count = |field: &mut usize| *field = field.saturating_add_signed(by);
        count(&mut self.rows);
        count(match stand.status {
            RowStatus::NeverRun => &mut self.never_run,
            RowStatus::Live => &mut self.live,
            RowStatus::Decided(Outcome::Pass) => &mut self.pass,
            RowStatus::Decided(Outcome::Fail) => &mut self.fail,
            RowStatus::Decided(Outcome::NotApplicable) => &mut self.not_applicable,
            RowStatus::Decided(Outcome::Skipped) => &mut self.skipped,
            RowStatus::Decided(_) => &mut self.error,
            RowStatus::Hidden => &mut self.hidden,
        });
        if stand.flipped {
            count(&mut self.flipped);
        }
        if stand.stale {
            count(&mut self.stale);
        }
        match stand.agrees {
            Some(true) => count(&mut self.agree),
            Some(false) => count(&mut self.disagree),
            None => {}
        }
    }

    /// Whether there is something one should look at.
    pub(crate) fn has_problems(&self) -> bool {
        self.fail + self.error + self.flipped > 0
    }
}

impl CellsState {
    /// Changes a row, and all that is counted over rows.
    pub(super) fn update_row<T>(
        &mut self,
        id: RowId,
        change: impl FnOnce(&mut CellsRow) -> T,
    ) -> Option<T> {
        let sort = self.sort;
        self.update_row_in_place(id, |row| {
            let out = change(row);
            row.bookkeeping.sort_class = row.compute_sort_class(sort);
            out
        })
    }

    /// The same of what does not make it come sooner or later.
    pub(super) fn update_row_in_place<T>(
        &mut self,
        id: RowId,
        change: impl FnOnce(&mut CellsRow) -> T,
    ) -> Option<T> {
        let row = self.rows.get_mut(id.0 as usize)?;
        let before = row.order_inputs();
        let out = change(row);
        let after = row.order_inputs();
        let eval = row.eval as usize;
        if before != after
            && let Some(group) = self.groups.get_mut(eval)
        {
            for counts in [&mut group.counts, &mut self.total] {
                counts.add(before, -1);
                counts.add(after, 1);
            }
            // A row that is only judged anew does not move, unless a filter looks at that.
            group.needs_sorting |=
                before.sort_class != after.sort_class || before.removed != after.removed;
            group.needs_sorting |= !self.query.is_empty();
            self.order.needs_update = true;
        }
        Some(out)
    }

    /// A new row is counted and will be ordered.
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
            self.order.urgent = true;
        }
    }

    /// An eval no order names yet comes last.
    pub(super) fn append_to_eval_order(&mut self, eval: u32) {
        self.order.evals.push(eval);
        self.order.needs_update = true;
    }

    /// Everything is to be ordered anew, at the next settling.
    pub(super) fn mark_order_outdated(&mut self) {
        for group in &mut self.groups {
            group.needs_sorting = true;
        }
        self.order.needs_update = true;
        self.order.urgent = true;
    }

    /// The order must not wait: somebody asked for it.
    pub(super) fn mark_order_urgent(&mut self) {
        self.order.needs_update = true;
        self.order.urgent = true;
    }

    /// Rows sorted or filtered so far.
    #[cfg(test)]
    pub(crate) fn rows_processed(&self) -> usize {
        self.order.rows_processed
    }

    /// The positions of the evals that are shown, in order.
    pub(crate) fn eval_order(&self) -> &[u32] {
        &self.order.evals
    }

    /// Shows a desk of the same recording as another one was shown: selection, order, filter, open groups.
    pub(crate) fn restore_view_from(&mut self, was: &Self) {
        for (group, before) in self.groups.iter_mut().zip(&was.groups) {
            group.opened_by_user = before.opened_by_user;
            group.had_problems |= before.had_problems;
        }
        self.sort = was.sort;
        self.resort_all();
        self.list = was.list.clone();
        self.order.user_moved = was.order.user_moved;
        self.order.watched = was.order.watched;
        // What was typed, a mistake in it included.
        let _told_before = self.set_filter(&was.filter);
        self.mark_order_outdated();
        self.update_shown();
    }

    /// How the rows are ordered, from now on.
    pub(crate) fn set_sort(&mut self, sort: RowSort) {
        self.sort = sort;
        self.order.user_moved = true;
        self.resort_all();
    }

    /// Looks at each row anew, also at what was let stand where it was.
    pub(super) fn resort_all(&mut self) {
        let sort = self.sort;
        for row in &mut self.rows {
            row.bookkeeping.sort_class = row.compute_sort_class(sort);
        }
        self.mark_order_outdated();
        self.update_shown();
    }

    /// Works out [`Cells::shown`] anew if something moved, but a large desk's not with every batch of results. When
    /// it is due otherwise, if it waits.
    pub(crate) fn update_shown_if_due(&mut self, now: Millis) -> Option<Millis> {
        self.fill_next_rows();
        if !self.order.needs_update {
            return None;
        }
        if let Some(last) = self.order.updated_at
            && !self.order.urgent
            && self.rows.len() > MAX_ROWS_ORDERED_AT_ONCE
            && now < last + MAX_ORDER_LAG
        {
            return Some(last + MAX_ORDER_LAG);
        }
        self.order.updated_at = Some(now);
        self.update_some_groups(ROWS_PER_WAKE);
        None
    }

    /// When order that lags behind is due.
    pub(crate) fn next_order_update(&self) -> Option<Millis> {
        if self.has_rows_to_fill() || (self.order.needs_update && self.order.urgent) {
            return Some(Millis(0));
        }
        self.order
            .needs_update
            .then_some(self.order.updated_at)?
            .map(|last| last + MAX_ORDER_LAG)
    }

    /// Works out [`Cells::shown`] anew, keeping the selection; skipped if nothing moved.
    pub(crate) fn update_shown(&mut self) {
        self.update_some_groups(usize::MAX);
    }

    /// What a filter typed over many rows has left to be done is done now: a key is about to mean what is shown.
    pub(crate) fn finish_filtering(&mut self) {
        if self.order.urgent {
            self.update_shown();
        }
    }

    /// A large desk's groups come in turn: what is left goes on at the next wake.
    pub(super) fn update_some_groups(&mut self, mut rows: usize) {
        if !self.order.needs_update {
            return;
        }
        self.order.needs_update = false;
        let count = self.groups.len();
        let first = self.order.next_group;
        for at in (0..count).map(|nth| (first + nth) % count) {
            if !self.groups[at].needs_sorting {
                continue;
            }
            if rows == 0 {
                self.order.needs_update = true;
                self.order.next_group = at;
                break;
            }
            rows = rows.saturating_sub(self.groups[at].rows.len());
            self.sort_and_filter_group(at);
        }
        self.order.urgent &= self.order.needs_update;
        self.rebuild_shown();
        self.restore_cursor();
    }

    /// Sorts and filters a group.
    fn sort_and_filter_group(&mut self, at: usize) {
        let mut group = std::mem::take(&mut self.groups[at]);
        let rows = &self.rows;
        let key = |id: &RowId| {
            let keep = &rows[id.0 as usize].bookkeeping;
            (keep.sort_class, keep.file_order, *id)
        };
        // Rows lie far apart in memory: each is looked at once, and not at all where the order holds.
        if !group.rows.is_sorted_by_key(key) {
            group.rows.sort_by_cached_key(key);
        }
        let mut name = String::new();
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
        let mut shown = std::mem::take(&mut self.shown);
        shown.clear();
        self.matching = 0;
        let anything = self.total.rows > self.total.never_run + self.total.live;
        let mut first = true;
        for eval in &self.order.evals {
            let Some(group) = self.groups.get_mut(*eval as usize) else {
                continue;
            };
            if group.matching.is_empty() {
                continue;
            }
            self.matching += group.matching.len();
            shown.push(CellsEntry::Group(*eval));
            // Once it was worth a look it stays open: nothing closes under one's eyes. Before the first run one group
            // is open, so that there is a cell to look at.
            group.had_problems |= group.counts.has_problems();
            let best =
                group.had_problems || self.blind || !self.query.is_empty() || (first && !anything);
            first = false;
            group.open = group.opened_by_user.unwrap_or(best);
            if group.open {
                shown.extend(group.matching.iter().map(|row| CellsEntry::Row(*row)));
            }
        }
        self.shown = shown;
    }
}
