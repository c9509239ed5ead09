//! What the rows are about: evals, judges and transcripts as the newest header has them; and so what is stale.

use std::collections::HashMap;
use std::sync::Arc;

use super::live::decided;
use super::order::Group;
use super::{Cells, Decides, EvalInfo, Names, Row, RowId, Side, Slot, SlotAt, SlotState, Stale};
use crate::event::{CellKey, RunHeader};
use crate::model::{CellIx, Digest, Panel, ScoreBounds, TranscriptRef};

/// What a cell was judged with: marks of digests, so that a hundred thousand cells hold no texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Origin {
    pub(super) eval: u64,
    pub(super) judge: u64,
    pub(super) transcript: u64,
    /// A judge was asked for by hand that the rubrics do not name.
    pub(super) aside: bool,
}

impl Origin {
    /// The same eval and the same transcript, whoever was asked.
    pub(super) fn is_about_the_same(self, other: Self) -> bool {
        (self.eval, self.transcript) == (other.eval, other.transcript)
    }
}

/// Where things stand in the lists of [`Cells`].
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    transcripts: HashMap<String, u32>,
    evals: HashMap<String, HashMap<String, u32>>,
    judges: HashMap<String, u32>,
    eval_marks: Vec<u64>,
    judge_marks: Vec<u64>,
    transcript_marks: Vec<u64>,
    /// Rises with every outline.
    epoch: u32,
    /// The next row's seat in the order of the files.
    seat: u32,
}

impl Known {
    pub(super) fn transcript(&self, id: &str) -> Option<u32> {
        self.transcripts.get(id).copied()
    }

    pub(super) fn eval(&self, rubric: &str, id: &str) -> Option<u32> {
        self.evals.get(rubric)?.get(id).copied()
    }

    pub(super) fn judge(&self, name: &str) -> Option<u32> {
        self.judges.get(name).copied()
    }
}

/// Stands for a digest.
pub(super) fn mark(digest: &Digest) -> u64 {
    digest.0.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// What a row that no run of this session touched is compared with. It stays while no newer cell is there: a jury that
/// decides otherwise by what it said already has flipped, and one that asks another member has lost no verdict.
struct Baseline {
    cells: Vec<(u32, CellIx)>,
    verdict: Side,
}

impl Baseline {
    fn of(row: &Row) -> Option<Self> {
        let verdict = row.verdict.clone().filter(|_| row.keep.rank == 0)?;
        let cells = row.slots.iter().filter_map(|slot| slot.at).collect();
        Some(Self { cells, verdict })
    }

    fn stays(self, row: &mut Row) {
        let mut cells = row.slots.iter().filter_map(|slot| slot.at);
        if cells.all(|cell| self.cells.contains(&cell)) {
            row.verdict = Some(self.verdict);
        }
    }
}

/// Our judges of a header's panel.
fn seats(panel: &Panel, judges: &[u32]) -> Vec<u32> {
    let ours = panel.judges.iter();
    ours.filter_map(|judge| judges.get(*judge as usize).copied())
        .collect()
}

fn is_done(slot: &Slot) -> bool {
    matches!(slot.state, SlotState::Done { .. })
}

fn number(len: usize) -> u32 {
    u32::try_from(len).expect("a desk holds fewer than 2^32 of anything")
}

impl Cells {
    pub(super) fn learn(&mut self, header: &RunHeader, current: bool) -> Names {
        let mut names = Names {
            aside: header.plan.contains_key("judge"),
            ..Names::default()
        };
        let (mut moved, mut again) = (false, Vec::new());
        for spec in &header.judges {
            let ours = self.judge_named(&spec.config.name, &spec.digest);
            let digest = mark(&spec.digest);
            if current && self.names.judge_marks[ours as usize] != digest {
                self.names.judge_marks[ours as usize] = digest;
                self.judges[ours as usize].1 = spec.digest.clone();
                moved = true;
            }
            names.judges.push(ours);
            names.judge_marks.push(digest);
        }
        for spec in &header.evals {
            let rubric = header.rubrics.get(spec.rubric as usize);
            let info = EvalInfo {
                rubric: rubric.map_or_else(String::new, |rubric| rubric.id.clone()),
                id: spec.id.clone(),
                kind: spec.eval_type.clone(),
                digest: spec.digest.clone(),
                judged: spec.judged,
                groups: spec.groups.clone(),
                decides: Arc::new(Decides {
                    panel: spec.panel.as_ref().map(|panel| Panel {
                        rule: panel.rule,
                        judges: seats(panel, &names.judges),
                    }),
                    bounds: ScoreBounds::from_decision_settings(&spec.decision_settings),
                    repeat: spec.repeat,
                }),
            };
            let digest = mark(&info.digest);
            let ours = match self.names.eval(&info.rubric, &info.id) {
                Some(ours) => ours,
                None => self.new_eval(info.clone()),
            };
            if current {
                moved |= self.names.eval_marks[ours as usize] != digest;
                self.names.eval_marks[ours as usize] = digest;
                let was = std::mem::replace(&mut self.evals[ours as usize], info);
                if names.aside {
                    // One judge was asked in the place of the eval's own; these are as they were.
                    self.evals[ours as usize].decides = was.decides;
                } else if was.decides != self.evals[ours as usize].decides {
                    again.push(ours);
                }
            }
            names.evals.push(ours);
            names.eval_marks.push(digest);
        }
        self.decide_again(&again);
        if current {
            if !names.aside {
                self.seated.clone_from(&names.judges);
            }
            self.set_order(&names.evals);
        }
        if moved {
            for row in 0..self.rows.len() {
                self.restale(RowId(number(row)));
            }
        }
        names
    }

    /// Several judges of these evals decide otherwise now: by what they said already, where that is enough.
    fn decide_again(&mut self, evals: &[u32]) {
        for row in (0..number(self.rows.len())).map(RowId) {
            let of = self.row(row).filter(|row| evals.contains(&row.eval));
            let panel = of.is_some_and(|row| !row.is_live() && row.slots.iter().any(is_done));
            let by = self.by(row);
            if panel && by.panel.is_some() {
                self.change(row, |row| row.decision = decided(row, &by));
            }
        }
    }

    /// What decides a row.
    pub(super) fn by(&self, id: RowId) -> Arc<Decides> {
        let row = self.row(id);
        let eval = row.and_then(|row| self.evals.get(row.eval as usize));
        eval.map(|eval| Arc::clone(&eval.decides))
            .unwrap_or_default()
    }

    pub(super) fn judge_named(&mut self, name: &str, digest: &Digest) -> u32 {
        if let Some(ours) = self.names.judge(name) {
            return ours;
        }
        let ours = number(self.judges.len());
        self.judges.push((name.to_owned(), digest.clone()));
        self.names.judge_marks.push(mark(digest));
        self.names.judges.insert(name.to_owned(), ours);
        ours
    }

    /// An eval that is not known yet; its position.
    pub(in crate::tui::model) fn new_eval(&mut self, info: EvalInfo) -> u32 {
        let ours = number(self.evals.len());
        self.names.eval_marks.push(mark(&info.digest));
        self.names
            .evals
            .entry(info.rubric.clone())
            .or_default()
            .insert(info.id.clone(), ours);
        self.evals.push(info);
        self.groups.push(Group::default());
        self.order_knows(ours);
        ours
    }

    /// The transcript's number. If `newest`, this is how it stands now.
    pub(super) fn transcript(&mut self, transcript: &TranscriptRef, newest: bool) -> u32 {
        let digest = mark(&transcript.digest);
        if let Some(ours) = self.names.transcript(&transcript.id) {
            if newest {
                self.names.transcript_marks[ours as usize] = digest;
                let known = &mut self.transcripts[ours as usize];
                if known != transcript {
                    known.clone_from(transcript);
                }
            }
            return ours;
        }
        let ours = number(self.transcripts.len());
        self.names.transcripts.insert(transcript.id.clone(), ours);
        self.names.transcript_marks.push(digest);
        self.transcripts.push(transcript.clone());
        ours
    }

    /// The row of a decision, made if need be.
    pub(super) fn row_for(&mut self, transcript: u32, eval: u32, message: Option<u32>) -> RowId {
        if let Some(row) = self.index.get(&(transcript, eval, message)) {
            return *row;
        }
        let id = RowId(number(self.rows.len()));
        self.index.insert((transcript, eval, message), id);
        let mut row = Row {
            transcript,
            eval,
            message,
            ..Row::default()
        };
        row.keep.seat = self.names.seat;
        row.keep.epoch = self.names.epoch;
        (row.label, row.veiled) = self.said_of(&row);
        row.keep.class = row.class(self.sort);
        self.names.seat += 1;
        self.rows.push(row);
        self.joined(id);
        id
    }

    /// A new outline begins: what it does not name is gone when it is complete.
    pub(crate) fn outline_began(&mut self) {
        self.names.epoch += 1;
        self.names.seat = 0;
        self.complete = false;
        self.failed = None;
    }

    /// The outline is complete.
    pub(crate) fn outline_ended(&mut self) {
        self.complete = true;
        let epoch = self.names.epoch;
        for row in 0..self.rows.len() {
            if self.rows[row].keep.epoch != epoch {
                self.change(RowId(number(row)), |row| row.keep.gone = true);
            }
        }
        self.reorder();
    }

    /// Learns a transcript's cells from an outline; the places of the keys, in order.
    pub(crate) fn plan(
        &mut self,
        names: &Names,
        transcript: &TranscriptRef,
        keys: &[CellKey],
    ) -> Vec<Option<SlotAt>> {
        let transcript = self.transcript(transcript, true);
        let mut places = Vec::with_capacity(keys.len());
        let mut from = 0;
        while let Some(head) = keys.get(from) {
            let same = |key: &&CellKey| (key.eval, key.message) == (head.eval, head.message);
            let count = keys[from..].iter().take_while(same).count();
            let cells = &keys[from..from + count];
            from += count;
            let Some(eval) = names.evals.get(head.eval as usize) else {
                places.extend(cells.iter().map(|_| None));
                continue;
            };
            let row = self.row_for(transcript, *eval, head.message);
            self.expect(row, names, cells);
            places.extend((0..count).map(|slot| u16::try_from(slot).ok().map(|slot| (row, slot))));
        }
        places
    }

    /// The outline has these cells for a row.
    fn expect(&mut self, id: RowId, names: &Names, cells: &[CellKey]) {
        let judge = |key: &CellKey| Some(*names.judges.get(key.judge? as usize)?);
        let repeats = match cells {
            [only] if only.repeat.is_none() => 0,
            _ => number(cells.len()),
        };
        let (seat, epoch) = (self.names.seat, self.names.epoch);
        self.names.seat += 1;
        let before = self.row(id).and_then(Baseline::of);
        self.change(id, |row| {
            row.keep.expected = Some((cells.first().and_then(judge), repeats));
            row.keep.seat = seat;
            row.keep.epoch = epoch;
            row.keep.gone = false;
            if row.keep.rank == 0 {
                row.slots.clear();
                row.slots.extend(cells.iter().map(|key| Slot {
                    judge: judge(key),
                    repeat: key.repeat,
                    ..Slot::default()
                }));
                row.decision = None;
            }
        });
        self.lay_row(id);
        if let Some(before) = before {
            self.change(id, |row| before.stays(row));
        }
        self.restale(id);
    }

    /// Works out anew whether a row's verdict still holds.
    pub(super) fn restale(&mut self, id: RowId) {
        let stale = self.row(id).and_then(|row| self.staleness(row));
        if self.row(id).is_some_and(|row| row.stale != stale) {
            self.change(id, |row| row.stale = stale);
        }
    }

    fn staleness(&self, row: &Row) -> Option<Stale> {
        let known = &self.names;
        let at = |marks: &[u64], at: u32| marks.get(at as usize).copied();
        for slot in &row.slots {
            if !matches!(slot.state, SlotState::Done { .. }) {
                continue;
            }
            let origin = slot.origin;
            if at(&known.eval_marks, row.eval) != Some(origin.eval) {
                return Some(Stale::Eval);
            }
            if let Some(judge) = slot.judge {
                let expected = row.keep.expected.and_then(|(judge, _)| judge);
                let decides = self.evals.get(row.eval as usize).map(|eval| &eval.decides);
                let member = decides.is_some_and(|decides| decides.seats(Some(judge)));
                let other =
                    !origin.aside && !member && expected.is_some_and(|expected| expected != judge);
                if other || at(&known.judge_marks, judge) != Some(origin.judge) {
                    return Some(Stale::Judge);
                }
            }
            if at(&known.transcript_marks, row.transcript) != Some(origin.transcript) {
                return Some(Stale::Transcript);
            }
        }
        None
    }
}

/// What a run's cell is judged with.
pub(super) fn origin(names: &Names, key: &CellKey, transcript: &Digest) -> Origin {
    let at = |marks: &[u64], at: u32| marks.get(at as usize).copied().unwrap_or_default();
    Origin {
        eval: at(&names.eval_marks, key.eval),
        judge: key.judge.map_or(0, |judge| at(&names.judge_marks, judge)),
        transcript: mark(transcript),
        aside: names.aside,
    }
}
