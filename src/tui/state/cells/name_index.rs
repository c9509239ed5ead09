//! The evals, judges and transcripts of the newest header, and the stale rows.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::RunCellIx;
use super::order::EvalGroup;
use super::votes::compute_decision;
use super::{
    BranchOrigin, CellsJudge, CellsRow, CellsState, DecisionRule, EvalInfo, ExpectedCells,
    FlipSide, RowId, RowKey, RowSlot, RowSlotState, RunIndexMap, SlotId, StaleReason,
};
use crate::event::{CellKey, RunHeader, RunPurpose};
use crate::model::{Digest, Panel, ProviderKind, ScoreBounds, TranscriptRef, compares_pairs};

/// Hashes of a cell's inputs. Hashes instead of texts keep a hundred thousand cells small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct VerdictInputs {
    pub(super) eval: u64,
    pub(super) judge: u64,
    pub(super) transcript: u64,
    /// True if the user called a judge that the rubrics do not name.
    pub(super) second_opinion: bool,
    pub(super) is_branch: bool,
    /// True if this installation did not record the verdict, or if its record was changed.
    pub(super) is_foreign: bool,
}

impl VerdictInputs {
    /// Returns the hash of the eval's digest.
    pub(crate) fn eval_hash(self) -> u64 {
        self.eval
    }

    /// Returns true if eval and transcript are equal, with any judge.
    pub(super) fn has_same_subject(self, other: Self) -> bool {
        (self.eval, self.transcript) == (other.eval, other.transcript)
    }
}

/// The indexes of names in the lists of [`CellsState`].
#[derive(Debug, Clone, Default)]
pub(super) struct NameIndex {
    transcripts: HashMap<String, u32>,
    evals: HashMap<String, HashMap<String, u32>>,
    judges: HashMap<String, u32>,
    eval_hashes: Vec<u64>,
    judge_hashes: Vec<u64>,
    transcript_hashes: Vec<u64>,
    /// Increases with each outline.
    outline_epoch: u32,
    /// The next row's position in the order of the files.
    next_file_order: u32,
}

impl NameIndex {
    pub(super) fn transcript_ix(&self, id: &str) -> Option<u32> {
        self.transcripts.get(id).copied()
    }

    pub(super) fn eval_ix(&self, rubric: &str, id: &str) -> Option<u32> {
        self.evals.get(rubric)?.get(id).copied()
    }

    pub(super) fn judge_ix(&self, name: &str) -> Option<u32> {
        self.judges.get(name).copied()
    }
}

/// Returns the FNV-1a hash of a digest.
pub(crate) fn hash_digest(digest: &Digest) -> u64 {
    // The constants are the offset basis and the prime of 64-bit FNV-1a.
    digest.0.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The verdict that a row without runs of this session is compared with. It stays until a newer cell exists. So a
/// changed vote rule shows as a flip, and a changed member does not lose the verdict.
struct VerdictBaseline {
    cells: Vec<RunCellIx>,
    verdict: FlipSide,
}

impl VerdictBaseline {
    fn from_row(row: &CellsRow) -> Option<Self> {
        let verdict = row
            .verdict
            .clone()
            // A rank of 0 means that no run of this session wrote the row.
            .filter(|_| row.bookkeeping.run_rank == 0)?;
        let cells = row.slots.iter().filter_map(|slot| slot.run_cell).collect();
        Some(Self { cells, verdict })
    }

    fn restore_if_current(self, row: &mut CellsRow) {
        let mut cells = row.slots.iter().filter_map(|slot| slot.run_cell);
        // A cell of another run is newer, so its verdict is compared with.
        if cells.all(|cell| self.cells.contains(&cell)) {
            row.verdict = Some(self.verdict);
        }
    }
}

/// Maps the judges of a header's panel to the pane's.
fn map_panel_judges(panel: &Panel, judges: &[u32]) -> Vec<u32> {
    let ours = panel.judges.iter();
    ours.filter_map(|judge| judges.get(*judge as usize).copied())
        .collect()
}

fn is_done(slot: &RowSlot) -> bool {
    matches!(slot.state, RowSlotState::Done { .. })
}

fn to_u32_index(len: usize) -> u32 {
    u32::try_from(len).expect("a session holds fewer than 2^32 of anything")
}

impl CellsState {
    pub(super) fn update_from_header(&mut self, header: &RunHeader, current: bool) -> RunIndexMap {
        let measures_noise = header.purpose == RunPurpose::Noise;
        let mut names = RunIndexMap {
            // A judge option in the plan replaces the judges of the rubrics. A measurement repeats them.
            second_opinion: measures_noise || header.plan.contains_key("judge"),
            measures_noise,
            is_branch: header.purpose == RunPurpose::Branch,
            branch: header.branch_point().and_then(|point| {
                let parent = header.parent.as_ref()?;
                Some(Arc::new(BranchOrigin {
                    run: parent.run.clone(),
                    cell: parent.cell,
                    point: point.describe(),
                }))
            }),
            ..RunIndexMap::default()
        };
        let (mut digest_changed, mut redecided) = (false, HashSet::new());
        let mut question_changed = false;
        for spec in &header.judges {
            let ours = self.find_or_add_judge(&spec.config.name, &spec.digest);
            self.judges[ours as usize].has_traces = spec.config.provider != ProviderKind::Source;
            if current {
                self.judges[ours as usize].call_digest = spec.call_digest();
            }
            let digest = hash_digest(&spec.digest);
            // Past runs give their own digests; only the current workspace defines what is stale.
            if current && self.name_index.judge_hashes[ours as usize] != digest {
                self.name_index.judge_hashes[ours as usize] = digest;
                self.judges[ours as usize].digest = spec.digest.clone();
                digest_changed = true;
            }
            names.judges.push(ours);
            names.judge_hashes.push(digest);
        }
        for spec in &header.evals {
            let rubric = header.rubrics.get(spec.rubric as usize);
            let info = EvalInfo {
                rubric: rubric.map_or_else(String::new, |rubric| rubric.id.clone()),
                id: spec.id.clone(),
                eval_type: spec.eval_type.clone(),
                digest: spec.digest.clone(),
                question: spec.question.clone(),
                part_of: spec.part_of.clone(),
                shots: spec
                    .shots
                    .iter()
                    .map(|shot| &shot.transcript)
                    .chain(&spec.shot_copies)
                    .cloned()
                    .collect(),
                judged: spec.judged,
                groups: spec.groups.clone(),
                decision_rule: Arc::new(DecisionRule {
                    panel: spec.panel.as_ref().map(|panel| Panel {
                        rule: panel.rule,
                        judges: map_panel_judges(panel, &names.judges),
                    }),
                    bounds: ScoreBounds::from_decision_settings(&spec.decision_settings),
                    repeat: spec.repeat,
                    needs_all_repeats: compares_pairs(&spec.eval_type),
                }),
            };
            let digest = hash_digest(&info.digest);
            let ours = match self.name_index.eval_ix(&info.rubric, &info.id) {
                Some(ours) => ours,
                None => self.add_eval(info.clone()),
            };
            if current {
                digest_changed |= self.name_index.eval_hashes[ours as usize] != digest;
                self.name_index.eval_hashes[ours as usize] = digest;
                let was = std::mem::replace(&mut self.evals[ours as usize], info);
                question_changed |= was.question != self.evals[ours as usize].question;
                if names.second_opinion {
                    // The header names a judge in place of the eval's own, so the old rule stays.
                    self.evals[ours as usize].decision_rule = was.decision_rule;
                } else if was.decision_rule != self.evals[ours as usize].decision_rule {
                    redecided.insert(ours);
                }
            }
            names.evals.push(ours);
            names.eval_hashes.push(digest);
        }
        // Rows are decided again after all evals are stored.
        self.redecide_evals(&redecided);
        if current {
            if !names.second_opinion {
                // A second opinion names only one judge, so the earlier list stays.
                self.current_judges.clone_from(&names.judges);
            }
            self.set_eval_order(&names.evals);
        }
        // A label is about one version of a question.
        if question_changed {
            self.refresh_all_labels();
        }
        // A digest changed, so any row may be stale now.
        if digest_changed {
            for row in 0..self.rows.len() {
                self.update_staleness(RowId(to_u32_index(row)));
            }
        }
        names
    }

    /// Decides rows again whose vote rule changed, if the recorded verdicts are enough.
    fn redecide_evals(&mut self, evals: &HashSet<u32>) {
        for row in (0..to_u32_index(self.rows.len())).map(RowId) {
            let changed_row = self.row(row).filter(|row| evals.contains(&row.eval));
            // A live row is decided when its cells end.
            let is_complete =
                changed_row.is_some_and(|row| !row.is_live() && row.slots.iter().any(is_done));
            let rule = self.decision_rule(row);
            if is_complete && rule.panel.is_some() {
                self.update_row(row, |row| row.decision = compute_decision(row, &rule));
            }
        }
    }

    /// Returns the decision rule of a row.
    pub(super) fn decision_rule(&self, id: RowId) -> Arc<DecisionRule> {
        let row = self.row(id);
        let eval = row.and_then(|row| self.evals.get(row.eval as usize));
        eval.map(|eval| Arc::clone(&eval.decision_rule))
            .unwrap_or_default()
    }

    pub(super) fn find_or_add_judge(&mut self, name: &str, digest: &Digest) -> u32 {
        if let Some(ours) = self.name_index.judge_ix(name) {
            return ours;
        }
        let ours = to_u32_index(self.judges.len());
        self.judges.push(CellsJudge {
            name: name.to_owned(),
            digest: digest.clone(),
            call_digest: digest.clone(),
            // Only a header knows the provider, and it follows for every judge of the workspace.
            has_traces: true,
        });
        self.name_index.judge_hashes.push(hash_digest(digest));
        self.name_index.judges.insert(name.to_owned(), ours);
        ours
    }

    /// Gives an eval another name. Its rows keep their verdicts and traces. Returns the number of its verdicts.
    pub(crate) fn rename_eval(&mut self, from: (&str, &str), to: (&str, &str)) -> u64 {
        let evals = &mut self.name_index.evals;
        let Some(eval) = evals.get_mut(from.0).and_then(|ids| ids.remove(from.1)) else {
            return 0;
        };
        // A removed eval of the new name keeps its rows, but nothing finds it any more.
        evals
            .entry(to.0.to_owned())
            .or_default()
            .insert(to.1.to_owned(), eval);
        let info = &mut self.evals[eval as usize];
        (info.rubric, info.id) = (to.0.to_owned(), to.1.to_owned());
        let rows = self.group_members(eval);
        let verdicts = rows.filter(|row| row.verdict.is_some());
        u64::try_from(verdicts.count()).unwrap_or(u64::MAX)
    }

    /// Adds an eval and returns its index.
    pub(in crate::tui::state) fn add_eval(&mut self, info: EvalInfo) -> u32 {
        let ours = to_u32_index(self.evals.len());
        self.name_index.eval_hashes.push(hash_digest(&info.digest));
        self.name_index
            .evals
            .entry(info.rubric.clone())
            .or_default()
            .insert(info.id.clone(), ours);
        self.evals.push(info);
        self.groups.push(EvalGroup::default());
        self.append_to_eval_order(ours);
        ours
    }

    /// Returns the index of a transcript, and adds it if it is new. If `newest`, its current digest is stored.
    pub(super) fn find_or_add_transcript(
        &mut self,
        transcript: &TranscriptRef,
        newest: bool,
    ) -> u32 {
        let digest = hash_digest(&transcript.digest);
        if let Some(ours) = self.name_index.transcript_ix(&transcript.id) {
            if newest {
                self.name_index.transcript_hashes[ours as usize] = digest;
                let known = &mut self.transcripts[ours as usize];
                // Cloning a reference is skipped if it is equal, as for most of a hundred thousand rows.
                if known != transcript {
                    known.clone_from(transcript);
                }
            }
            return ours;
        }
        let ours = to_u32_index(self.transcripts.len());
        self.name_index
            .transcripts
            .insert(transcript.id.clone(), ours);
        self.name_index.transcript_hashes.push(digest);
        self.transcripts.push(transcript.clone());
        ours
    }

    /// Returns the row of a decision, and adds it if it is new.
    pub(super) fn find_or_add_row(
        &mut self,
        transcript: u32,
        eval: u32,
        message: Option<u32>,
    ) -> RowId {
        let key = RowKey {
            transcript,
            eval,
            message,
        };
        if let Some(row) = self.row_index.get(&key) {
            return *row;
        }
        let id = RowId(to_u32_index(self.rows.len()));
        self.row_index.insert(key, id);
        let mut row = CellsRow {
            transcript,
            eval,
            message,
            ..CellsRow::default()
        };
        row.bookkeeping.file_order = self.name_index.next_file_order;
        row.bookkeeping.outline_epoch = self.name_index.outline_epoch;
        // The label comes before the sort class, because the class depends on it.
        let label = self.resolve_label(&row);
        label.store_in(&mut row);
        row.bookkeeping.sort_class = row.compute_sort_class(self.sort);
        self.name_index.next_file_order += 1;
        self.rows.push(row);
        self.count_new_row(id);
        id
    }

    /// Begins an outline. Rows that it does not contain are removed when it is complete.
    pub(crate) fn begin_outline(&mut self) {
        self.name_index.outline_epoch += 1;
        self.name_index.next_file_order = 0;
        self.outline_complete = false;
        self.tags = super::tags::TagIndex::default();
        self.outline_error = None;
    }

    /// Completes an outline. Returns the rows that earlier outlines contained and this one does not.
    pub(crate) fn finish_outline(&mut self) -> Vec<RowId> {
        self.outline_complete = true;
        let epoch = self.name_index.outline_epoch;
        let mut removed = Vec::new();
        for row in 0..self.rows.len() {
            // Removed rows keep their index, because runs refer to rows by index.
            if self.rows[row].bookkeeping.outline_epoch != epoch {
                let id = RowId(to_u32_index(row));
                if !self.rows[row].bookkeeping.removed {
                    removed.push(id);
                }
                self.update_row(id, |row| {
                    row.bookkeeping.removed = true;
                });
            }
        }
        // The transcripts may have changed, and a label is about one version of a transcript.
        self.refresh_all_labels();
        self.mark_order_outdated();
        removed
    }

    /// Returns true if no outline or run contains the row any more.
    pub(crate) fn is_removed(&self, row: RowId) -> bool {
        self.row(row).is_none_or(|row| row.bookkeeping.removed)
    }

    /// Adds the cells of a transcript from an outline and returns their slots in order.
    pub(crate) fn add_outlined_cells(
        &mut self,
        names: &RunIndexMap,
        transcript: &TranscriptRef,
        keys: &[CellKey],
    ) -> Vec<Option<SlotId>> {
        let transcript = self.find_or_add_transcript(transcript, true);
        let mut places = Vec::with_capacity(keys.len());
        let mut from = 0;
        while let Some(head) = keys.get(from) {
            // A decision's cells are adjacent in a plan.
            let same = |key: &&CellKey| (key.eval, key.message) == (head.eval, head.message);
            let count = keys[from..].iter().take_while(same).count();
            let cells = &keys[from..from + count];
            from += count;
            let Some(eval) = names.evals.get(head.eval as usize) else {
                // The header does not list the eval, but the slots must keep the order of the keys.
                places.extend(cells.iter().map(|_| None));
                continue;
            };
            let row = self.find_or_add_row(transcript, *eval, head.message);
            self.set_expected_cells(row, names, cells);
            // A decision with more than 65,535 cells has no slot for the others.
            places.extend(
                (0..count).map(|slot| u16::try_from(slot).ok().map(|slot| SlotId { row, slot })),
            );
        }
        places
    }

    /// Sets the cells that the outline contains for a row.
    fn set_expected_cells(&mut self, id: RowId, names: &RunIndexMap, cells: &[CellKey]) {
        let judge = |key: &CellKey| Some(*names.judges.get(key.judge? as usize)?);
        let repeats = match cells {
            // A single cell without a repeat number is the plain case, so no count is shown.
            [only] if only.repeat.is_none() => 0,
            _ => to_u32_index(cells.len()),
        };
        let (file_order, epoch) = (
            self.name_index.next_file_order,
            self.name_index.outline_epoch,
        );
        self.name_index.next_file_order += 1;
        // The verdict before the change is kept to detect a flip.
        let before = self.row(id).and_then(VerdictBaseline::from_row);
        self.update_row(id, |row| {
            row.bookkeeping.expected = Some(ExpectedCells {
                judge: cells.first().and_then(judge),
                repeats,
            });
            row.bookkeeping.file_order = file_order;
            row.bookkeeping.outline_epoch = epoch;
            row.bookkeeping.removed = false;
            // A row with a run of this session shows the run's cells, not the planned ones.
            if row.bookkeeping.run_rank == 0 {
                row.slots.clear();
                row.slots.extend(cells.iter().map(|key| RowSlot {
                    judge: judge(key),
                    repeat: key.repeat,
                    ..RowSlot::default()
                }));
                row.failed_rerun = None;
                row.decision = None;
            }
        });
        // Past verdicts can fill the planned cells.
        self.fill_row(id);
        if let Some(before) = before {
            self.update_row(id, |row| before.restore_if_current(row));
        }
        self.update_staleness(id);
    }

    /// Updates the stale reason of a row.
    pub(super) fn update_staleness(&mut self, id: RowId) {
        let stale = self.row(id).and_then(|row| self.compute_staleness(row));
        if self.row(id).is_some_and(|row| row.stale != stale) {
            self.update_row(id, |row| row.stale = stale);
        }
    }

    /// Returns the hashes of the row's eval and transcript as they are now.
    pub(super) fn current_inputs(&self, row: &CellsRow) -> VerdictInputs {
        let known = &self.name_index;
        let at = |hashes: &[u64], at: u32| hashes.get(at as usize).copied().unwrap_or_default();
        VerdictInputs {
            eval: at(&known.eval_hashes, row.eval),
            transcript: at(&known.transcript_hashes, row.transcript),
            ..VerdictInputs::default()
        }
    }

    fn compute_staleness(&self, row: &CellsRow) -> Option<StaleReason> {
        let known = &self.name_index;
        let at = |hashes: &[u64], at: u32| hashes.get(at as usize).copied();
        for slot in &row.slots {
            // A cell without a verdict can't be stale.
            if !matches!(slot.state, RowSlotState::Done { .. }) {
                continue;
            }
            let origin = slot.inputs;
            if at(&known.eval_hashes, row.eval) != Some(origin.eval) {
                return Some(StaleReason::Eval);
            }
            if let Some(judge) = slot.judge {
                // A judge outside the panel makes a row stale, except if the user asked that judge.
                let expected = row.bookkeeping.expected.and_then(|planned| planned.judge);
                let rule = self
                    .evals
                    .get(row.eval as usize)
                    .map(|eval| &eval.decision_rule);
                let member = rule.is_some_and(|rule| rule.is_panel_judge(Some(judge)));
                let other = !origin.second_opinion
                    && !member
                    && expected.is_some_and(|expected| expected != judge);
                if other || at(&known.judge_hashes, judge) != Some(origin.judge) {
                    return Some(StaleReason::Judge);
                }
            }
            // The eval is checked first and the transcript last: the user edits rubrics most often.
            if at(&known.transcript_hashes, row.transcript) != Some(origin.transcript) {
                return Some(StaleReason::Transcript);
            }
            // The next run decides a check again, but the cache must not answer for a judge here.
            if origin.is_foreign && slot.judge.is_some() {
                return Some(StaleReason::Origin);
            }
        }
        None
    }
}

/// Returns the hashes of the inputs of a run's cell.
pub(super) fn hash_inputs(
    names: &RunIndexMap,
    key: &CellKey,
    transcript: &Digest,
) -> VerdictInputs {
    let at = |hashes: &[u64], at: u32| hashes.get(at as usize).copied().unwrap_or_default();
    VerdictInputs {
        eval: at(&names.eval_hashes, key.eval),
        judge: key.judge.map_or(0, |judge| at(&names.judge_hashes, judge)),
        transcript: hash_digest(transcript),
        second_opinion: names.second_opinion,
        is_branch: names.is_branch,
        is_foreign: false,
    }
}
