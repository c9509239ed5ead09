//! Second opinions: verdicts of judges that the user called in addition to the eval's own. They don't change the
//! decision.
//!
//! Their slots are numbered from [`FIRST_SECOND_OPINION`], so a vote that gets more cells does not change their
//! numbers.

use super::name_index::VerdictInputs;
use super::votes::compute_decision;
use super::{CellsRow, CellsState, DecisionRule, RowBeforeRun, RowSlot, RowSlotState};

/// The number of a row's first second opinion.
const FIRST_SECOND_OPINION: u16 = 1 << 15;
/// The number of the first slot of a failed re-run. It is below those of second opinions.
pub(super) const FIRST_FAILED_SLOT: u16 = 1 << 14;

/// The number of the first slot from before the last edit. It is below those of failed re-runs.
const FIRST_SLOT_BEFORE_EDIT: u16 = 1 << 13;

/// The number of the first slot of another run of the family. It is below those from before the last edit.
const FIRST_FAMILY_SLOT: u16 = 1 << 12;

/// Returns true if a slot number belongs to a cell from before the last edit.
const fn is_slot_before_edit(at: u16) -> bool {
    at >= FIRST_SLOT_BEFORE_EDIT && at < FIRST_FAILED_SLOT
}

/// Returns true if a slot number belongs to a second opinion.
pub(super) const fn is_second_opinion_slot(at: u16) -> bool {
    at >= FIRST_SECOND_OPINION
}

impl RowSlot {
    /// Returns true for an unchanged verdict: neither a branch, nor one that a person edited, nor an interrupted trace.
    pub(super) fn is_opinion(&self) -> bool {
        self.branch.is_none() && !self.by_human && !self.is_interrupted()
    }

    /// Returns true for a trace without a result, because its run was interrupted.
    pub(crate) fn is_interrupted(&self) -> bool {
        matches!(self.state, RowSlotState::Interrupted { .. })
    }
}

impl CellsState {
    /// Returns true if the verdict of a judge that the user asked gives no vote.
    pub(super) fn gives_second_opinion(
        &self,
        row: &CellsRow,
        judge: Option<u32>,
        repeat: Option<u32>,
    ) -> bool {
        let eval = self.evals.get(row.eval as usize);
        // A member of a panel that is called alone gives a second opinion and no vote.
        let is_panel = eval.is_some_and(|eval| eval.decision_rule.panel.is_some());
        is_panel || row.has_other_judge(judge) || row.is_extra_repeat(repeat)
    }
}

impl CellsRow {
    /// Returns true if the decision rests on a verdict that a person edited.
    pub(super) fn is_edited(&self) -> bool {
        self.slots.iter().any(|slot| slot.by_human)
    }

    /// Returns a cell of the row by its slot number.
    pub(crate) fn slot(&self, at: u16) -> Option<&RowSlot> {
        match at.checked_sub(FIRST_SECOND_OPINION) {
            Some(index) => self.second_opinions.get(usize::from(index)),
            None if at >= FIRST_FAILED_SLOT => {
                let mut failed = self.failed_slots();
                Some(failed.find(|(number, _)| *number == at)?.1)
            }
            None if at >= FIRST_SLOT_BEFORE_EDIT => {
                let index = at - FIRST_SLOT_BEFORE_EDIT;
                self.before_edit.get(usize::from(index))
            }
            None if at >= FIRST_FAMILY_SLOT => {
                let index = at - FIRST_FAMILY_SLOT;
                self.family.get(usize::from(index))
            }
            None => self.slots.get(usize::from(at)),
        }
    }

    /// Returns true if a slot number belongs to a second opinion of the row.
    pub(crate) fn is_second_opinion(&self, at: u16) -> bool {
        is_second_opinion_slot(at) && self.slot(at).is_some()
    }

    /// Returns true if a slot number belongs to another run of the family of an opened recording.
    pub(crate) fn is_family_slot(&self, at: u16) -> bool {
        (FIRST_FAMILY_SLOT..FIRST_SLOT_BEFORE_EDIT).contains(&at) && self.slot(at).is_some()
    }

    /// Returns the slot of the newest attempt of the eval's own judge, if its run left it without a result. `None` if a run
    /// judged the row since.
    pub(crate) fn interrupted_attempt(&self) -> Option<u16> {
        // A run of this session is newer than all recorded ones.
        if self.bookkeeping.run_rank > 0 {
            return None;
        }
        let is_own_attempt = |slot: &RowSlot| {
            let is_own = !self.has_other_judge(slot.judge) && !self.is_extra_repeat(slot.repeat);
            slot.is_interrupted() && slot.branch.is_none() && is_own
        };
        let at = self.second_opinions.iter().rposition(is_own_attempt)?;
        FIRST_SECOND_OPINION.checked_add(u16::try_from(at).ok()?)
    }

    /// Returns the slot that a row shows when it gets the focus: the newest attempt, if it was interrupted; else its first
    /// cell, or the first second opinion if no other cell was judged, as in the recording of a branch.
    pub(crate) fn first_shown_slot(&self) -> u16 {
        if let Some(interrupted) = self.interrupted_attempt() {
            return interrupted;
        }
        let is_unjudged = |slot: &RowSlot| slot.state == RowSlotState::NeverRun;
        let others = self.slots.iter().all(is_unjudged) && self.failed_rerun.is_none();
        if others && !self.second_opinions.is_empty() {
            FIRST_SECOND_OPINION
        } else {
            0
        }
    }

    pub(super) fn slot_mut(&mut self, at: u16) -> Option<&mut RowSlot> {
        match at.checked_sub(FIRST_SECOND_OPINION) {
            Some(index) => self.second_opinions.get_mut(usize::from(index)),
            None => self.slots.get_mut(usize::from(at)),
        }
    }

    /// Returns the deciding cells, those of other runs of the family, those of a failed re-run, then the second opinions,
    /// with their slot numbers.
    pub(crate) fn all_slots(&self) -> impl Iterator<Item = (u16, &RowSlot)> {
        let deciding = (0..FIRST_FAMILY_SLOT).zip(&self.slots);
        let family = (FIRST_FAMILY_SLOT..FIRST_SLOT_BEFORE_EDIT).zip(&self.family);
        let first = deciding.chain(family).chain(self.failed_slots());
        first.chain((FIRST_SECOND_OPINION..).zip(&self.second_opinions))
    }

    /// Returns the slot number of a deciding cell as it was before the last edit, if that has a trace of its own.
    pub(crate) fn slot_before_edit(&self, at: u16) -> Option<u16> {
        let before = FIRST_SLOT_BEFORE_EDIT.checked_add(at)?;
        let slot = self.slot(before).filter(|_| is_slot_before_edit(before))?;
        slot.run_cell.map(|_| before)
    }

    /// Keeps the cells of an earlier decision if the question changed since.
    pub(super) fn keep_cells_before_edit(&mut self, before: Vec<RowSlot>) {
        let (Some(now), Some(then)) = (self.slots.first(), before.first()) else {
            return;
        };
        let is_decided = |slot: &RowSlot| matches!(slot.state, RowSlotState::Done { .. });
        if now.inputs != then.inputs && before.iter().all(is_decided) {
            self.before_edit = before;
        }
    }

    /// Returns the slot number after this one, or before it.
    pub(crate) fn adjacent_slot(&self, at: u16, after: bool) -> Option<u16> {
        let numbers = || self.all_slots().map(|(number, _)| number);
        if after {
            numbers().find(|number| *number > at)
        } else {
            numbers().take_while(|number| *number < at).last()
        }
    }

    /// Returns true if the eval's own judge is known and differs.
    pub(super) fn has_other_judge(&self, judge: Option<u32>) -> bool {
        // The outline sets the expected judge; before it, no judge counts as another one.
        let expected = self.bookkeeping.expected.and_then(|planned| planned.judge);
        expected.is_some() && judge.is_some() && expected != judge
    }

    /// Returns true if a repeat is one more than the eval asks for, so that it shows only how stable the verdict is.
    pub(super) fn is_extra_repeat(&self, repeat: Option<u32>) -> bool {
        let expected = self.bookkeeping.expected;
        repeat.is_some() && expected.is_some_and(|planned| planned.repeats == 0)
    }

    /// Adds a second opinion in place of an earlier one of the same judge, and returns its slot number. A branch replaces
    /// nothing, and nothing replaces a branch or an edited trace.
    pub(super) fn put_second_opinion(&mut self, slot: RowSlot, is_branch: bool) -> Option<u16> {
        let same = |old: &RowSlot| {
            old.is_opinion() && (old.judge, old.repeat) == (slot.judge, slot.repeat)
        };
        let at = self.second_opinions.iter().position(same);
        let at = at.filter(|_| !is_branch);
        let at = at.unwrap_or(self.second_opinions.len());
        if at == self.second_opinions.len() {
            self.second_opinions.push(slot);
        } else {
            self.second_opinions[at] = slot;
        }
        FIRST_SECOND_OPINION.checked_add(u16::try_from(at).ok()?)
    }

    /// Restores the decision from before a run whose judge traces a person edited. The edited cells stay as second opinions.
    /// Returns the slot number of the first of them; else the earlier state, if no cell was edited or no verdict was known.
    pub(super) fn set_edited_cells_aside(
        &mut self,
        before: Box<RowBeforeRun>,
        by: &DecisionRule,
    ) -> Result<u16, Box<RowBeforeRun>> {
        let first = u16::try_from(self.second_opinions.len()).ok();
        let first = first.and_then(|at| FIRST_SECOND_OPINION.checked_add(at));
        let (true, Some(first)) = (self.is_edited(), first) else {
            return Err(before);
        };
        let edited = std::mem::replace(&mut self.slots, before.slots.clone());
        let earlier = compute_decision(self, by);
        if !earlier
            .as_ref()
            .is_some_and(|decision| decision.outcome.is_verdict())
        {
            self.slots = edited;
            return Err(before);
        }
        let before = *before;
        self.decision = earlier;
        self.flipped = before.flipped;
        self.failed_rerun = before.failed_rerun;
        self.second_opinions.extend(edited);
        Ok(first)
    }

    /// Resets a second opinion whose run was cancelled.
    pub(super) fn reset_second_opinion(&mut self, at: u16, run: u32) {
        let Some(slot) = self.slot_mut(at) else {
            return;
        };
        // A later run may have replaced the opinion.
        if slot.state == RowSlotState::Live && slot.run_cell.is_some_and(|at| at.run == run) {
            slot.state = RowSlotState::NeverRun;
            slot.run_cell = None;
        }
        // Only the last ones are removed, because the numbers of the others must not change.
        while self
            .second_opinions
            .last()
            .is_some_and(|slot| slot.state == RowSlotState::NeverRun)
        {
            self.second_opinions.pop();
        }
    }

    /// Removes second opinions about an older eval or transcript, and interrupted attempts, when the row's own judge runs.
    pub(super) fn drop_outdated_second_opinions(&mut self, now: VerdictInputs) {
        let live = |slot: &RowSlot| slot.state == RowSlotState::Live;
        // An attempt is no longer the newest one. A branch stays next to the trace that it continues.
        let is_replaced = |slot: &RowSlot| slot.is_interrupted() && slot.branch.is_none();
        // While a second opinion is being judged, its number must stay valid.
        if !self.second_opinions.iter().any(live) {
            self.second_opinions
                .retain(|slot| slot.inputs.has_same_subject(now) && !is_replaced(slot));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{board, digest, header, keys, outline, outlined, row, transcript};
    use super::super::{RunIndexMap, SlotId};
    use super::*;
    use crate::model::{CellIx, CellResult, Outcome, RunId};

    fn add_second_judge(cells: &mut CellsState, run: &str) -> RunIndexMap {
        let mut header = header(run, &["tone?"], "v1");
        header.judges[0].config.name = "gemini".into();
        header.judges[0].digest = digest("gemini");
        header.plan.insert("judge".into(), "gemini".into());
        cells.register_header(&header, true)
    }

    fn start_run(cells: &mut CellsState, run: &RunId, rank: u64, names: &RunIndexMap) -> SlotId {
        cells.register_run(run, rank);
        let places = cells.start_cells(run, names, &transcript("a"), CellIx(0), &keys(&["tone?"]));
        places[0].expect("a place")
    }

    fn finish(
        cells: &mut CellsState,
        at: SlotId,
        run: &RunId,
        outcome: Outcome,
    ) -> super::super::run_cells::CellCompletion {
        cells.finish_cell(at, run, CellIx(0), &CellResult::new(outcome, "so"))
    }

    #[test]
    fn second_opinion_decides_nothing() {
        let mut cells = outlined(&["a"], &["tone?"]);
        cells.apply_newest_verdicts(&board(&[("a/r/tone~one", Outcome::NotApplicable)]));
        let id = row(&cells, "a/r/tone");
        let before = cells.row(id).cloned().expect("a row");

        let other = RunId("20260102T000000Z-besi".into());
        let names = add_second_judge(&mut cells, &other.0);
        let at = start_run(&mut cells, &other, 1, &names);
        assert_eq!((at.row, at.slot), (id, FIRST_SECOND_OPINION));
        let ended = finish(&mut cells, at, &other, Outcome::Fail);
        assert_eq!((ended.decided, ended.flip), (true, None), "no flip");

        let after = cells.row(id).cloned().expect("a row");
        assert_eq!(after.second_opinions.len(), 1);
        let name = cells.cell_name(at).expect("a name").to_string();
        assert_eq!(name, "a/r/tone~gemini");
        let unmoved = CellsRow {
            second_opinions: Vec::new(),
            ..after
        };
        assert_eq!(unmoved, before, "what the eval's own judge said stands");
    }

    #[test]
    fn second_opinion_stays_until_eval_changes() {
        let mut cells = outlined(&["a"], &["tone?"]);
        let id = row(&cells, "a/r/tone");
        let other = RunId("20260102T000000Z-besi".into());
        let names = add_second_judge(&mut cells, &other.0);
        let at = start_run(&mut cells, &other, 1, &names);
        finish(&mut cells, at, &other, Outcome::Fail);
        assert_eq!(cells.row(id).and_then(|row| row.decision.clone()), None);
        let shown = cells.row(id).map(CellsRow::first_shown_slot);
        assert_eq!(shown, Some(FIRST_SECOND_OPINION), "nothing else was judged");

        let own_run = RunId("20260103T000000Z-ownn".into());
        let names = cells.register_header(&header(&own_run.0, &["tone?"], "v1"), true);
        let at = start_run(&mut cells, &own_run, 2, &names);
        assert_eq!((at.row, at.slot), (id, 0));
        finish(&mut cells, at, &own_run, Outcome::Pass);
        let held = cells.row(id).expect("a row");
        assert_eq!((held.slots.len(), held.second_opinions.len()), (1, 1));
        assert_eq!(held.first_shown_slot(), 0);
        let decided = held.decision.as_ref().map(|d| d.outcome);
        assert_eq!(decided, Some(Outcome::Pass));

        outline(&mut cells, &["a"], &["tone?"], "v2");
        let newer = RunId("20260104T000000Z-newr".into());
        let names = cells.register_header(&header(&newer.0, &["tone?"], "v2"), true);
        start_run(&mut cells, &newer, 3, &names);
        assert!(cells.row(id).expect("a row").second_opinions.is_empty());
    }

    #[test]
    fn cancelled_second_opinion_is_removed() {
        let mut cells = outlined(&["a"], &["tone?"]);
        let id = row(&cells, "a/r/tone");
        let other = RunId("20260102T000000Z-besi".into());
        let names = add_second_judge(&mut cells, &other.0);
        let at = start_run(&mut cells, &other, 1, &names);
        assert_eq!(
            cells.row(id).expect("a row").adjacent_slot(0, true),
            Some(FIRST_SECOND_OPINION)
        );
        cells.abandon_cells(&other, &[Some(at)]);
        let held = cells.row(id).expect("a row");
        assert_eq!((held.slots.len(), held.second_opinions.len()), (1, 0));
    }
}
