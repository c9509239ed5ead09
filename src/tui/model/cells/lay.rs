//! The board's results, under every row that no run of this session touched.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use super::known::mark;
use super::live::{decided, side};
use super::{Cells, Decides, Origin, RowId, Slot, SlotState};
use crate::model::{CellName, CellVote, RunId};
use crate::record::{NewestVerdicts, RecordedResult};

/// More repeats than any eval asks for.
const REPEATS: u32 = 1000;

/// Rows that a board is laid under at once.
const BITE: u32 = 2000;

/// A board, kept so that rows an outline adds later find their results.
#[derive(Debug, Clone)]
pub(super) struct Laid {
    board: Arc<NewestVerdicts>,
    runs: HashMap<RunId, u32>,
    /// Rows that still wait for it.
    left: std::ops::Range<u32>,
}

impl Cells {
    pub(super) fn lay_board(&mut self, board: &Arc<NewestVerdicts>) {
        let rows = u32::try_from(self.rows.len()).expect("a desk holds fewer than 2^32 rows");
        self.board = Some(Laid {
            board: Arc::clone(board),
            runs: HashMap::new(),
            left: 0..rows,
        });
        self.lay_on();
        self.reorder();
    }

    /// Whether rows still wait for the board.
    pub(super) fn is_laying(&self) -> bool {
        self.board
            .as_ref()
            .is_some_and(|laid| !laid.left.is_empty())
    }

    /// Lays it under some more rows: a few milliseconds' work.
    pub(super) fn lay_on(&mut self) {
        let Some(laid) = &mut self.board else {
            return;
        };
        let to = laid.left.end.min(laid.left.start + BITE);
        let bite = laid.left.start..to;
        laid.left.start = to;
        if bite.is_empty() {
            return;
        }
        for row in bite.map(RowId) {
            self.lay_row(row);
            self.restale(row);
        }
        if !self.is_laying() {
            self.reorder();
        }
    }

    /// Gives a row what the board knows of it, unless a run of this session knows better.
    pub(super) fn lay_row(&mut self, id: RowId) {
        let Some(mut laid) = self.board.take() else {
            return;
        };
        if let Some(row) = self.row(id)
            && row.keep.rank == 0
        {
            let found = self.find(&mut laid, id);
            let by = self.by(id);
            if let Some((slots, verdicts)) = found {
                self.change(id, |row| {
                    row.slots = slots;
                    row.decision = decided(row, &by);
                    row.flipped = None;
                    row.verdict = match &row.decision {
                        Some(now) if now.outcome.is_verdict() => side(row),
                        _ => verdicts,
                    };
                });
            }
        }
        self.board = Some(laid);
    }

    /// The slots of a row with their results, and the newest verdict where the newest results are none.
    fn find(&mut self, laid: &mut Laid, id: RowId) -> Option<(Vec<Slot>, Option<super::Side>)> {
        let row = self.row(id)?;
        let mut slots = Vec::with_capacity(row.slots.len());
        let mut verdicts = Vec::new();
        let mut name = String::new();
        let planned: Vec<(Option<u32>, Option<u32>)> =
            row.slots.iter().map(|s| (s.judge, s.repeat)).collect();
        let board = Arc::clone(&laid.board);
        for (judge, repeat) in &planned {
            self.write_name(&mut name, id, *judge, *repeat);
            let cell = board.get(&name);
            verdicts.extend(board.verdict(&name));
            slots.push(self.slot(laid, *judge, *repeat, cell));
        }
        if self.by(id).panel.is_some() {
            let more = self.of_panel(laid, &board, id, &planned);
            for (slot, named) in more {
                verdicts.extend(board.verdict(&named));
                slots.push(slot);
            }
        } else if let Some((judge, Some(last))) = planned.last().copied() {
            // A vote that was split had more cells than are certain.
            let run = |at: &Slot| at.at.map(|(run, _)| run);
            for repeat in last + 1..REPEATS {
                self.write_name(&mut name, id, judge, Some(repeat));
                let Some(cell) = board.get(&name) else { break };
                let slot = self.slot(laid, judge, Some(repeat), Some(cell));
                if slots.first().is_none_or(|first| run(first) != run(&slot)) {
                    break;
                }
                verdicts.extend(board.verdict(&name));
                slots.push(slot);
            }
        }
        if slots.iter().all(|slot| slot.at.is_none())
            && let Some(other) = self.judged_otherwise(laid, &board, id)
        {
            slots = other;
        }
        let verdict = (verdicts.len() >= slots.len())
            .then(|| verdict_of(&verdicts, &slots, &self.by(id)))
            .flatten();
        Some((slots, verdict))
    }

    /// What further members and repeats said, and what they are called there: a jury that was split and a cascade that was
    /// unsure had more cells than are certain. What is no longer needed is left out by what decides.
    fn of_panel(
        &mut self,
        laid: &mut Laid,
        board: &NewestVerdicts,
        id: RowId,
        planned: &[(Option<u32>, Option<u32>)],
    ) -> Vec<(Slot, String)> {
        let by = self.by(id);
        let judges = by.panel.as_ref().map_or(&[][..], |panel| &panel.judges);
        let mut slots = Vec::new();
        let mut name = String::new();
        for judge in judges.iter().map(|judge| Some(*judge)) {
            let numbers = (1..=by.repeat).map(|number| (by.repeat > 1).then_some(number));
            for repeat in numbers.filter(|repeat| !planned.contains(&(judge, *repeat))) {
                self.write_name(&mut name, id, judge, repeat);
                let Some(cell) = board.get(&name) else { break };
                slots.push((self.slot(laid, judge, repeat, Some(cell)), name.clone()));
            }
        }
        slots
    }

    /// What another judge, or another number of repeats, said before the eval asked for this one.
    fn judged_otherwise(
        &mut self,
        laid: &mut Laid,
        board: &NewestVerdicts,
        id: RowId,
    ) -> Option<Vec<Slot>> {
        let mut name = String::new();
        self.write_name(&mut name, id, None, None);
        let found: CellName = board.newest_judged_cell(&name)?.parse().ok()?;
        let newest = board.get(&found.to_string())?.run.clone();
        let mut slots = Vec::new();
        let mut next = found;
        while let Some(cell) = board.get(&next.to_string())
            && cell.run == newest
        {
            let judge = match (&next.judge, &cell.judge) {
                (Some(name), Some(digest)) => Some(self.judge_named(name, digest)),
                _ => None,
            };
            slots.push(self.slot(laid, judge, next.repeat, Some(cell)));
            let Some(repeat) = next.repeat else { break };
            next.repeat = Some(repeat + 1);
        }
        Some(slots)
    }

    fn write_name(&self, into: &mut String, id: RowId, judge: Option<u32>, repeat: Option<u32>) {
        into.clear();
        let name = self
            .row(id)
            .and_then(|row| self.name_with(row, judge, repeat));
        if let Some(name) = name {
            let _infallible = write!(into, "{name}");
        }
    }

    fn slot(
        &mut self,
        laid: &mut Laid,
        judge: Option<u32>,
        repeat: Option<u32>,
        cell: Option<&RecordedResult>,
    ) -> Slot {
        let Some(cell) = cell else {
            return Slot {
                judge,
                repeat,
                ..Slot::default()
            };
        };
        let run = laid.runs.get(&cell.run).copied().unwrap_or_else(|| {
            let run = self.run_number(&cell.run, 0);
            laid.runs.insert(cell.run.clone(), run);
            run
        });
        Slot {
            judge,
            repeat,
            at: Some((run, cell.cell)),
            cached: cell.cached_from.clone(),
            state: SlotState::Done {
                outcome: cell.outcome,
                score: cell.score,
                why: Arc::from(cell.error.as_deref().unwrap_or(&cell.explanation)),
                probability: cell.probability,
                doubt: cell.doubt,
            },
            origin: Origin {
                eval: mark(&cell.eval),
                judge: cell.judge.as_ref().map_or(0, |digest| mark(digest)),
                transcript: mark(&cell.transcript),
                aside: false,
            },
        }
    }
}

/// The verdict that some cells make together, if they make one; `slots` say whose each is.
fn verdict_of(cells: &[&RecordedResult], slots: &[Slot], by: &Decides) -> Option<super::Side> {
    let casts: Vec<CellVote> = cells
        .iter()
        .zip(slots)
        .map(|(cell, slot)| CellVote {
            judge: slot.judge,
            repeat: slot.repeat,
            ballot: Some(cell.ballot()),
        })
        .collect();
    let decision = by.terms().decide(&casts)?;
    let said = cells
        .iter()
        .zip(slots)
        .filter(|(_, slot)| decision.counts_judge(slot.judge))
        .find(|(cell, _)| cell.outcome == decision.outcome)?
        .0;
    decision.outcome.is_verdict().then(|| super::Side {
        outcome: decision.outcome,
        score: decision.score,
        why: Arc::from(said.explanation.as_str()),
    })
}
