//! Cells that begin, end, or are left by a run that was cancelled. Of two runs with the same cell the newer one wins.

use std::sync::Arc;

use super::aside::is_aside;
use super::known::origin;
use super::{Cells, Decides, Flip, Human, Names, Past, Row, RowId, Side, Slot, SlotAt, SlotState};
use crate::event::CellKey;
use crate::model::{
    Ballot, CellIx, CellResult, CellVote, Decision, Doubt, Outcome, RunId, TranscriptRef,
    UndecidedPanel, verdict_probability,
};

impl Cells {
    /// A run begins; of runs with the same cell the one of the highest rank wins. Ranks count from 1.
    pub(crate) fn enrol(&mut self, run: &RunId, rank: u64) {
        self.run_number(run, rank);
    }

    /// A run's position in [`Cells::runs`].
    pub(super) fn run_number(&mut self, run: &RunId, rank: u64) -> u32 {
        if let Some(at) = self.run_at(run) {
            let known = &mut self.order.ranks[at as usize];
            *known = (*known).max(rank);
            return at;
        }
        let at = u32::try_from(self.runs.len()).expect("fewer than 2^32 runs");
        self.runs.push(run.clone());
        self.order.ranks.push(rank);
        self.order.run_numbers.insert(run.clone(), at);
        at
    }

    fn run_at(&self, run: &RunId) -> Option<u32> {
        // Events of one run come together.
        if let Some(last) = self.runs.last()
            && last == run
        {
            return u32::try_from(self.runs.len() - 1).ok();
        }
        self.order.run_numbers.get(run).copied()
    }

    fn rank(&self, run: u32) -> u64 {
        self.order.ranks.get(run as usize).copied().unwrap_or(0)
    }

    /// A judge began with a cell: its group is worth a look.
    pub(crate) fn begun(&mut self, (row, _): SlotAt) {
        let group = self.row(row).map(|row| row.eval as usize);
        let group = group.and_then(|eval| self.groups.get_mut(eval));
        if let Some(group) = group.filter(|group| !group.worth) {
            group.worth = true;
            self.hurry();
        }
    }

    /// A run planned a transcript's cells, numbered from `first`: they are live. A row that a newer run took is left
    /// alone, and its cells have no place.
    pub(crate) fn take(
        &mut self,
        run: &RunId,
        names: &Names,
        transcript: &TranscriptRef,
        first: CellIx,
        keys: &[CellKey],
    ) -> Vec<Option<SlotAt>> {
        let run = self.run_number(run, 1);
        let rank = self.rank(run).max(1);
        let newest = self.order.ranks.iter().all(|other| *other <= rank);
        let ours = self.transcript(transcript, newest);
        let mut places = Vec::with_capacity(keys.len());
        for (key, cell) in keys.iter().zip(first.0..) {
            let Some(eval) = names.evals.get(key.eval as usize) else {
                places.push(None);
                continue;
            };
            let row = self.row_for(ours, *eval, key.message);
            let judge = key
                .judge
                .and_then(|judge| names.judges.get(judge as usize).copied());
            // One of several judges, asked alone, is none of a jury's votes.
            let panel = self.by(row).panel.is_some();
            let aside = names.aside
                && self
                    .row(row)
                    .is_some_and(|row| panel || row.has_other_judge(judge));
            if !aside && self.row(row).is_some_and(|row| row.keep.rank > rank) {
                places.push(None);
                continue;
            }
            let slot = Slot {
                judge,
                repeat: key.repeat,
                at: Some((run, CellIx(cell))),
                cached: None,
                state: SlotState::Live,
                origin: origin(names, key, &transcript.digest),
            };
            if aside {
                let at = self.change(row, |row| row.put_aside(slot)).flatten();
                places.push(at.map(|at| (row, at)));
                continue;
            }
            let at = self.change(row, |row| {
                row.forget_asides(slot.origin);
                if row.keep.rank < rank {
                    let past = Past {
                        slots: std::mem::take(&mut row.slots),
                        flipped: row.flipped.take(),
                        rank: row.keep.rank,
                    };
                    // What an older run has not decided yet is nothing to go back to; what was before it is.
                    let live = past.slots.iter().any(|slot| slot.state == SlotState::Live);
                    if !live {
                        row.keep.past = Some(Box::new(past));
                    }
                    row.keep.rank = rank;
                }
                row.keep.gone = false;
                row.decision = None;
                row.stale = None;
                row.slots.push(slot);
                row.slots.len() - 1
            });
            let at = at.and_then(|at| u16::try_from(at).ok());
            places.push(at.map(|at| (row, at)));
        }
        places
    }

    /// A cell ended. The flip, where its decision is complete and another verdict than before.
    pub(crate) fn ended(
        &mut self,
        at: SlotAt,
        run: &RunId,
        cell: CellIx,
        result: &CellResult,
    ) -> Ended {
        let Some(run) = self.run_at(run) else {
            return Ended::default();
        };
        let waits = |row: &Row| {
            let slot = row.slot(at.1)?;
            (slot.at == Some((run, cell))).then_some(())
        };
        if self.row(at.0).and_then(waits).is_none() {
            return Ended::default();
        }
        let by = self.by(at.0);
        let ended = self.change(at.0, |row| {
            let Some(slot) = row.slot_mut(at.1) else {
                return Ended::default();
            };
            slot.cached.clone_from(&result.cached);
            slot.state = SlotState::Done {
                outcome: result.outcome,
                score: result.score,
                why: Arc::from(result.error.as_deref().unwrap_or(&result.explanation)),
                probability: verdict_probability(result),
                doubt: Doubt::from_result(result),
            };
            if is_aside(at.1) {
                return Ended {
                    decided: true,
                    ..Ended::default()
                };
            }
            row.decision = decided(row, &by);
            if row.decision.is_none() {
                return Ended::default();
            }
            row.keep.past = None;
            Ended {
                decided: true,
                fresh: row.verdict.is_none(),
                flip: flip(at.0, row, result.by_human),
            }
        });
        self.restale(at.0);
        ended.unwrap_or_default()
    }

    /// A run is over: cells it planned and did not decide are what they were before it.
    pub(crate) fn left(&mut self, run: &RunId, places: &[Option<SlotAt>]) {
        let Some(run) = self.run_at(run) else { return };
        for (row, at) in places.iter().flatten() {
            if is_aside(*at) {
                self.change(*row, |row| row.aside_left(*at, run));
                continue;
            }
            let waits = |slot: &Slot| {
                slot.state == SlotState::Live && slot.at.is_some_and(|(from, _)| from == run)
            };
            if !self
                .row(*row)
                .is_some_and(|row| row.slots.iter().any(waits))
            {
                continue;
            }
            let by = self.by(*row);
            self.change(*row, |row| {
                if let Some(past) = row.keep.past.take() {
                    row.slots = past.slots;
                    row.flipped = past.flipped;
                    row.keep.rank = past.rank;
                } else {
                    for slot in row.slots.iter_mut().filter(|slot| waits(slot)) {
                        slot.state = SlotState::Never;
                        slot.at = None;
                    }
                }
                row.decision = decided(row, &by);
            });
            self.restale(*row);
        }
        self.reorder();
    }
}

/// What the end of a cell brought about.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Ended {
    /// Its decision is complete.
    pub(crate) decided: bool,
    /// It had no verdict before.
    pub(crate) fresh: bool,
    pub(crate) flip: Option<Flip>,
}

/// What a row's cells decide; `None` until all have results.
pub(super) fn decided(row: &Row, by: &Decides) -> Option<Decision> {
    by.terms().decide(&casts(row))
}

/// Why they have not decided though all have results, where several judge.
pub(super) fn undecided(row: &Row, by: &Decides) -> Option<UndecidedPanel> {
    by.terms().find_undecided(&casts(row))
}

fn casts(row: &Row) -> Vec<CellVote> {
    let cast = |slot: &Slot| CellVote {
        judge: slot.judge,
        repeat: slot.repeat,
        ballot: match slot.state {
            SlotState::Done {
                outcome,
                score,
                probability,
                doubt,
                ..
            } => Some(Ballot {
                outcome,
                score,
                probability,
                doubt,
            }),
            SlotState::Never | SlotState::Live => None,
        },
    };
    row.slots.iter().map(cast).collect()
}

/// A decided row as one side of a flip.
pub(super) fn side(row: &Row) -> Option<Side> {
    let decision = row.decision.as_ref()?;
    Some(Side {
        outcome: decision.outcome,
        score: decision.score,
        why: row.why().cloned().unwrap_or_default(),
    })
}

/// Whether a verdict is what a person said; `None` where nobody said pass or fail.
pub(crate) fn towards(label: Option<Human>, outcome: Outcome) -> Option<bool> {
    let said = label?.passed()?;
    Some(Some(said) == outcome.passed())
}

/// Takes a decision as the newest verdict, if it is one; the flip, if it is another than before.
fn flip(id: RowId, row: &mut Row, by_human: bool) -> Option<Flip> {
    // What a person changed is no baseline.
    let after = side(row).filter(|side| side.outcome.is_verdict() && !by_human)?;
    let before = row.verdict.replace(after.clone());
    row.flipped = before.filter(|before| before.outcome != after.outcome);
    let before = row.flipped.clone()?;
    Some(Flip {
        row: id,
        before,
        towards: towards(row.label, after.outcome),
        after,
    })
}
