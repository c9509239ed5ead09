//! Groups with their counts; sorted and filtered rows. Counts move with each row; a group is sorted and filtered anew only
//! when something in it moved, and a large desk at most a few times a second while results stream in.

use std::collections::HashMap;

use super::{Cells, Entry, Human, Row, RowId, Sort};
use crate::model::{Millis, Outcome, RunId};

/// The class of rows that need no look.
pub(super) const LAST: u8 = 3;
/// Up to so many rows, order is worked out with every batch.
const SMALL: usize = 2000;
/// So many rows are sorted or filtered at one wake: a few milliseconds' work. One group at least.
const BITE: usize = 20_000;
/// How long a larger desk's order may lag behind results.
const LAG: Millis = Millis(250);

/// Where a row stands, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Never,
    Live,
    Decided(Outcome),
    /// Decided, and hidden until a person said their own.
    Hidden,
}

/// How many rows stand where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) rows: usize,
    pub(crate) never: usize,
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
pub(crate) struct Group {
    pub(crate) counts: Counts,
    /// All of them, sorted.
    rows: Vec<RowId>,
    /// Those the filter lets through.
    pub(super) matching: Vec<RowId>,
    /// What the user chose; `None`: as it seems best.
    pub(super) chosen: Option<bool>,
    /// Its rows are shown.
    pub(crate) open: bool,
    /// Something to look at was in it since the desk was made.
    pub(super) worth: bool,
    /// Rows must be sorted and filtered anew.
    moved: bool,
}

/// What ordering remembers.
#[derive(Debug, Clone, Default)]
pub(super) struct Order {
    /// Positions of evals, as the newest header has them.
    pub(super) evals: Vec<u32>,
    /// Something moved since the last settling.
    moved: bool,
    /// It must not wait.
    urgent: bool,
    settled: Option<Millis>,
    /// The group whose turn it is.
    turn: usize,
    /// The user moved the cursor.
    pub(super) touched: bool,
    /// Until then: the row whose judge is watched.
    pub(super) watches: Option<Entry>,
    /// What the user chose last; gone back to when a filter lets it through again.
    pub(super) wish: Option<Entry>,
    pub(super) ranks: Vec<u64>,
    pub(super) run_numbers: HashMap<RunId, u32>,
    /// Rows sorted or filtered so far, counted for tests.
    #[cfg(test)]
    pub(super) worked: usize,
}

/// All that counts and order depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stand {
    mark: Mark,
    flipped: bool,
    stale: bool,
    gone: bool,
    class: u8,
    label: Option<Human>,
    agrees: Option<bool>,
}

impl Row {
    /// Where it stands.
    pub(crate) fn mark(&self) -> Mark {
        match &self.decision {
            Some(_) if self.veiled => Mark::Hidden,
            Some(decision) => Mark::Decided(decision.outcome),
            None if self.is_live() => Mark::Live,
            None => Mark::Never,
        }
    }

    fn stand(&self) -> Stand {
        Stand {
            mark: self.mark(),
            flipped: self.flipped.is_some() && !self.veiled,
            stale: self.stale.is_some(),
            gone: self.keep.gone,
            class: self.keep.class,
            label: self.label,
            agrees: self.agrees(),
        }
    }

    /// How soon it comes.
    pub(super) fn class(&self, sort: Sort) -> u8 {
        match (sort, self.label) {
            (Sort::Unlabelled, None) if self.message.is_none() => return 0,
            (Sort::Unlabelled, Some(Human::Unsure)) => return 1,
            (Sort::Unlabelled | Sort::FileOrder, _) => return LAST,
            (Sort::ProblemsFirst | Sort::Disagreements, _) => {}
        }
        let flipped = self.flipped.is_some() && !self.veiled;
        match (self.seen(), flipped) {
            // While it is judged anew it stays where it is.
            (None, _) if self.is_live() => self.keep.class,
            _ if sort == Sort::Disagreements => match self.agrees() {
                Some(false) => 0,
                _ => LAST,
            },
            (_, true) => 0,
            (Some(d), false) if d.outcome == Outcome::Fail => 1,
            (Some(d), false) if d.outcome.is_error() => 2,
            _ => LAST,
        }
    }
}

impl Counts {
    fn add(&mut self, stand: Stand, by: isize) {
        if stand.gone {
            return;
        }
        let count = |field: &mut usize| *field = field.saturating_add_signed(by);
        count(&mut self.rows);
        count(match stand.mark {
            Mark::Never => &mut self.never,
            Mark::Live => &mut self.live,
            Mark::Decided(Outcome::Pass) => &mut self.pass,
            Mark::Decided(Outcome::Fail) => &mut self.fail,
            Mark::Decided(Outcome::NotApplicable) => &mut self.not_applicable,
            Mark::Decided(Outcome::Skipped) => &mut self.skipped,
            Mark::Decided(_) => &mut self.error,
            Mark::Hidden => &mut self.hidden,
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

impl Cells {
    /// Changes a row, and all that is counted over rows.
    pub(super) fn change<T>(&mut self, id: RowId, change: impl FnOnce(&mut Row) -> T) -> Option<T> {
        let sort = self.sort;
        self.change_in_place(id, |row| {
            let out = change(row);
            row.keep.class = row.class(sort);
            out
        })
    }

    /// The same of what does not make it come sooner or later.
    pub(super) fn change_in_place<T>(
        &mut self,
        id: RowId,
        change: impl FnOnce(&mut Row) -> T,
    ) -> Option<T> {
        let row = self.rows.get_mut(id.0 as usize)?;
        let before = row.stand();
        let out = change(row);
        let after = row.stand();
        let eval = row.eval as usize;
        if before != after
            && let Some(group) = self.groups.get_mut(eval)
        {
            for counts in [&mut group.counts, &mut self.total] {
                counts.add(before, -1);
                counts.add(after, 1);
            }
            // A row that is only judged anew does not move, unless a filter looks at that.
            group.moved |= before.class != after.class || before.gone != after.gone;
            group.moved |= !self.query.is_empty();
            self.order.moved = true;
        }
        Some(out)
    }

    /// A new row is counted and will be ordered.
    pub(super) fn joined(&mut self, id: RowId) {
        let Some(row) = self.rows.get(id.0 as usize) else {
            return;
        };
        if let Some(group) = self.groups.get_mut(row.eval as usize) {
            group.counts.add(row.stand(), 1);
            self.total.add(row.stand(), 1);
            group.rows.push(id);
            group.moved = true;
            self.order.moved = true;
        }
    }

    pub(super) fn set_order(&mut self, evals: &[u32]) {
        if self.order.evals != evals {
            self.order.evals = evals.to_vec();
            self.order.moved = true;
            self.order.urgent = true;
        }
    }

    /// An eval no order names yet comes last.
    pub(super) fn order_knows(&mut self, eval: u32) {
        self.order.evals.push(eval);
        self.order.moved = true;
    }

    /// Everything is to be ordered anew, at the next settling.
    pub(super) fn reorder(&mut self) {
        for group in &mut self.groups {
            group.moved = true;
        }
        self.order.moved = true;
        self.order.urgent = true;
    }

    /// The order must not wait: somebody asked for it.
    pub(super) fn hurry(&mut self) {
        self.order.moved = true;
        self.order.urgent = true;
    }

    /// Rows sorted or filtered so far.
    #[cfg(test)]
    pub(crate) fn worked(&self) -> usize {
        self.order.worked
    }

    /// The positions of the evals that are shown, in order.
    pub(crate) fn eval_order(&self) -> &[u32] {
        &self.order.evals
    }

    /// Shows a desk of the same recording as another one was shown: selection, order, filter, open groups.
    pub(crate) fn as_before(&mut self, was: &Self) {
        for (group, before) in self.groups.iter_mut().zip(&was.groups) {
            group.chosen = before.chosen;
            group.worth |= before.worth;
        }
        self.sort = was.sort;
        self.sort_anew();
        self.list = was.list.clone();
        self.order.touched = was.order.touched;
        self.order.watches = was.order.watches;
        // What was typed, a mistake in it included.
        let _told_before = self.set_filter(&was.filter);
        self.reorder();
        self.settle();
    }

    /// How the rows are ordered, from now on.
    pub(crate) fn set_sort(&mut self, sort: Sort) {
        self.sort = sort;
        self.order.touched = true;
        self.sort_anew();
    }

    /// Looks at each row anew, also at what was let stand where it was.
    pub(super) fn sort_anew(&mut self) {
        let sort = self.sort;
        for row in &mut self.rows {
            row.keep.class = row.class(sort);
        }
        self.reorder();
        self.settle();
    }

    /// Works out [`Cells::shown`] anew if something moved, but a large desk's not with every batch of results. When
    /// it is due otherwise, if it waits.
    pub(crate) fn settle_at(&mut self, now: Millis) -> Option<Millis> {
        self.lay_on();
        if !self.order.moved {
            return None;
        }
        if let Some(last) = self.order.settled
            && !self.order.urgent
            && self.rows.len() > SMALL
            && now < last + LAG
        {
            return Some(last + LAG);
        }
        self.order.settled = Some(now);
        self.settle_some(BITE);
        None
    }

    /// When order that lags behind is due.
    pub(crate) fn due(&self) -> Option<Millis> {
        if self.is_laying() || (self.order.moved && self.order.urgent) {
            return Some(Millis(0));
        }
        self.order
            .moved
            .then_some(self.order.settled)?
            .map(|last| last + LAG)
    }

    /// Works out [`Cells::shown`] anew, keeping the selection; skipped if nothing moved.
    pub(crate) fn settle(&mut self) {
        self.settle_some(usize::MAX);
    }

    /// What a filter typed over many rows has left to be done is done now: a key is about to mean what is shown.
    pub(crate) fn finish(&mut self) {
        if self.order.urgent {
            self.settle();
        }
    }

    /// A large desk's groups come in turn: what is left goes on at the next wake.
    pub(super) fn settle_some(&mut self, mut rows: usize) {
        if !self.order.moved {
            return;
        }
        self.order.moved = false;
        let count = self.groups.len();
        let first = self.order.turn;
        for at in (0..count).map(|nth| (first + nth) % count) {
            if !self.groups[at].moved {
                continue;
            }
            if rows == 0 {
                self.order.moved = true;
                self.order.turn = at;
                break;
            }
            rows = rows.saturating_sub(self.groups[at].rows.len());
            self.arrange(at);
        }
        self.order.urgent &= self.order.moved;
        self.show();
        self.place();
    }

    /// Sorts and filters a group.
    fn arrange(&mut self, at: usize) {
        let mut group = std::mem::take(&mut self.groups[at]);
        let rows = &self.rows;
        let key = |id: &RowId| {
            let keep = &rows[id.0 as usize].keep;
            (keep.class, keep.seat, *id)
        };
        // Rows lie far apart in memory: each is looked at once, and not at all where the order holds.
        if !group.rows.is_sorted_by_key(key) {
            group.rows.sort_by_cached_key(key);
        }
        let mut name = String::new();
        let matching = std::mem::take(&mut group.matching);
        group.matching = self.passing(&group.rows, matching, &mut name);
        group.moved = false;
        #[cfg(test)]
        {
            self.order.worked += group.rows.len();
        }
        self.groups[at] = group;
    }

    fn passing(&self, rows: &[RowId], mut into: Vec<RowId>, name: &mut String) -> Vec<RowId> {
        into.clear();
        let passes = |id: &&RowId| {
            let gone = self.row(**id).is_none_or(|row| row.keep.gone);
            !gone && self.lets_through_with(**id, name)
        };
        into.extend(rows.iter().filter(passes));
        into
    }

    fn show(&mut self) {
        let mut shown = std::mem::take(&mut self.shown);
        shown.clear();
        self.matching = 0;
        let anything = self.total.rows > self.total.never + self.total.live;
        let mut first = true;
        for eval in &self.order.evals {
            let Some(group) = self.groups.get_mut(*eval as usize) else {
                continue;
            };
            if group.matching.is_empty() {
                continue;
            }
            self.matching += group.matching.len();
            shown.push(Entry::Group(*eval));
            // Once it was worth a look it stays open: nothing closes under one's eyes. Before the first run one group
            // is open, so that there is a cell to look at.
            group.worth |= group.counts.has_problems();
            let best = group.worth || self.blind || !self.query.is_empty() || (first && !anything);
            first = false;
            group.open = group.chosen.unwrap_or(best);
            if group.open {
                shown.extend(group.matching.iter().map(|row| Entry::Row(*row)));
            }
        }
        self.shown = shown;
    }
}
