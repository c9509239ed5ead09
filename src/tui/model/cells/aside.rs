//! What a judge said that was asked besides the eval's own: it stands beside the decision and never in its place.
//!
//! Asides are numbered from [`FIRST`], so that a vote that grows leaves their numbers alone.

use super::known::Origin;
use super::{Row, Slot, SlotState};

/// The number of a row's first aside.
const FIRST: u16 = 1 << 15;

/// Whether a slot's number is an aside's.
pub(super) const fn is_aside(at: u16) -> bool {
    at >= FIRST
}

impl Row {
    /// A cell of the row, by its number.
    pub(crate) fn slot(&self, at: u16) -> Option<&Slot> {
        match at.checked_sub(FIRST) {
            Some(aside) => self.asides.get(usize::from(aside)),
            None => self.slots.get(usize::from(at)),
        }
    }

    /// Whether a number is that of a cell beside.
    pub(crate) fn is_aside(&self, at: u16) -> bool {
        is_aside(at) && self.slot(at).is_some()
    }

    pub(super) fn slot_mut(&mut self, at: u16) -> Option<&mut Slot> {
        match at.checked_sub(FIRST) {
            Some(aside) => self.asides.get_mut(usize::from(aside)),
            None => self.slots.get_mut(usize::from(at)),
        }
    }

    /// The cells that decide, then those beside; with their numbers.
    pub(crate) fn all_slots(&self) -> impl Iterator<Item = (u16, &Slot)> {
        let own = (0..FIRST).zip(&self.slots);
        own.chain((FIRST..).zip(&self.asides))
    }

    /// The number of the cell after this one, or before it.
    pub(crate) fn slot_beside(&self, at: u16, after: bool) -> Option<u16> {
        let numbers = || self.all_slots().map(|(number, _)| number);
        if after {
            numbers().find(|number| *number > at)
        } else {
            numbers().take_while(|number| *number < at).last()
        }
    }

    /// Whether the eval's own judge is known, and another one.
    pub(super) fn has_other_judge(&self, judge: Option<u32>) -> bool {
        let own = self.keep.expected.and_then(|(own, _)| own);
        own.is_some() && judge.is_some() && own != judge
    }

    /// A judge is asked besides: in the place of what it said before.
    pub(super) fn put_aside(&mut self, slot: Slot) -> Option<u16> {
        let same = |old: &Slot| (old.judge, old.repeat) == (slot.judge, slot.repeat);
        let at = self.asides.iter().position(same);
        let at = at.unwrap_or(self.asides.len());
        if at == self.asides.len() {
            self.asides.push(slot);
        } else {
            self.asides[at] = slot;
        }
        FIRST.checked_add(u16::try_from(at).ok()?)
    }

    /// Its run was left before it said anything.
    pub(super) fn aside_left(&mut self, at: u16, run: u32) {
        let Some(slot) = self.slot_mut(at) else {
            return;
        };
        if slot.state == SlotState::Live && slot.at.is_some_and(|(from, _)| from == run) {
            slot.state = SlotState::Never;
            slot.at = None;
        }
        // The numbers of those before it stay.
        while self
            .asides
            .last()
            .is_some_and(|slot| slot.state == SlotState::Never)
        {
            self.asides.pop();
        }
    }

    /// The row is judged by its own judge: what others said of another eval or transcript is about nothing any more.
    pub(super) fn forget_asides(&mut self, now: Origin) {
        let live = |slot: &Slot| slot.state == SlotState::Live;
        if !self.asides.iter().any(live) {
            self.asides
                .retain(|slot| slot.origin.is_about_the_same(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{board, digest, header, keys, outline, outlined, row, transcript};
    use super::super::{Cells, Names, SlotAt};
    use super::*;
    use crate::model::{CellIx, CellResult, Outcome, RunId};

    fn asked_besides(cells: &mut Cells, run: &str) -> Names {
        let mut header = header(run, &["tone?"], "v1");
        header.judges[0].config.name = "gemini".into();
        header.judges[0].digest = digest("gemini");
        header.plan.insert("judge".into(), "gemini".into());
        cells.meet(&header, true)
    }

    fn take(cells: &mut Cells, run: &RunId, rank: u64, names: &Names) -> SlotAt {
        cells.enrol(run, rank);
        let places = cells.take(run, names, &transcript("a"), CellIx(0), &keys(&["tone?"]));
        places[0].expect("a place")
    }

    fn ends(
        cells: &mut Cells,
        at: SlotAt,
        run: &RunId,
        outcome: Outcome,
    ) -> super::super::live::Ended {
        cells.ended(at, run, CellIx(0), &CellResult::new(outcome, "so"))
    }

    #[test]
    fn another_judge_is_shown_beside_and_decides_nothing() {
        let mut cells = outlined(&["a"], &["tone?"]);
        cells.lay(&board(&[("a/r/tone~one", Outcome::NotApplicable)]));
        let id = row(&cells, "a/r/tone");
        let before = cells.row(id).cloned().expect("a row");

        let other = RunId("20260102T000000Z-besi".into());
        let names = asked_besides(&mut cells, &other.0);
        let at = take(&mut cells, &other, 1, &names);
        assert_eq!(at, (id, FIRST));
        let ended = ends(&mut cells, at, &other, Outcome::Fail);
        assert_eq!((ended.decided, ended.flip), (true, None), "no flip");

        let after = cells.row(id).cloned().expect("a row");
        assert_eq!(after.asides.len(), 1);
        let name = cells.cell_name(at).expect("a name").to_string();
        assert_eq!(name, "a/r/tone~gemini");
        let unmoved = Row {
            asides: Vec::new(),
            ..after
        };
        assert_eq!(unmoved, before, "what the eval's own judge said stands");
    }

    #[test]
    fn the_own_judge_again_leaves_the_other_beside_until_the_eval_changes() {
        let mut cells = outlined(&["a"], &["tone?"]);
        let id = row(&cells, "a/r/tone");
        let other = RunId("20260102T000000Z-besi".into());
        let names = asked_besides(&mut cells, &other.0);
        let at = take(&mut cells, &other, 1, &names);
        ends(&mut cells, at, &other, Outcome::Fail);
        assert_eq!(cells.row(id).and_then(|row| row.decision.clone()), None);

        let own = RunId("20260103T000000Z-ownn".into());
        let names = cells.meet(&header(&own.0, &["tone?"], "v1"), true);
        let at = take(&mut cells, &own, 2, &names);
        assert_eq!(at, (id, 0));
        ends(&mut cells, at, &own, Outcome::Pass);
        let held = cells.row(id).expect("a row");
        assert_eq!((held.slots.len(), held.asides.len()), (1, 1));
        let decided = held.decision.as_ref().map(|d| d.outcome);
        assert_eq!(decided, Some(Outcome::Pass));

        outline(&mut cells, &["a"], &["tone?"], "v2");
        let newer = RunId("20260104T000000Z-newr".into());
        let names = cells.meet(&header(&newer.0, &["tone?"], "v2"), true);
        take(&mut cells, &newer, 3, &names);
        assert!(cells.row(id).expect("a row").asides.is_empty());
    }

    #[test]
    fn one_that_is_cancelled_leaves_nothing_behind() {
        let mut cells = outlined(&["a"], &["tone?"]);
        let id = row(&cells, "a/r/tone");
        let other = RunId("20260102T000000Z-besi".into());
        let names = asked_besides(&mut cells, &other.0);
        let at = take(&mut cells, &other, 1, &names);
        assert_eq!(
            cells.row(id).expect("a row").slot_beside(0, true),
            Some(FIRST)
        );
        cells.left(&other, &[Some(at)]);
        let held = cells.row(id).expect("a row");
        assert_eq!((held.slots.len(), held.asides.len()), (1, 0));
    }
}
