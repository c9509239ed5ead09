//! The decisions of an eval as queues and figures need them: a copy, so that other threads can work on it.

use std::collections::{BTreeMap, BTreeSet};

use super::{CellsRow, CellsState, LabelValue, RowId, RowKey, RowSlot, RowSlotState, StaleReason};
use crate::compare::statistics::RepeatedCell;
use crate::compare::{
    FigureLabel, QueueEval, QueueItem, QueueLabel, VerdictDifferences, count_certain_repeats,
    find_repeats, name_judge,
};
use crate::model::{DisagreementCause, Outcome};
use crate::record::RepeatedQuestion;

/// The decisions of an eval that can be labelled, with their rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueueRows {
    pub(crate) eval: QueueEval,
    /// The row of each item.
    pub(crate) rows: Vec<RowId>,
}

impl CellsRow {
    /// Returns true if the verdict answers another question than the eval asks now.
    pub(super) fn has_other_question(&self) -> bool {
        !matches!(self.stale, None | Some(StaleReason::Origin))
    }

    /// Returns true if the verdict enters no figure: it answers another question, or a person edited it.
    pub(super) fn is_left_out_of_figures(&self) -> bool {
        self.has_other_question() || self.is_edited()
    }
}

/// A decision, as the figures of an eval need it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FigureDecision {
    /// The id of the transcript; empty if no draw has to find it.
    pub(crate) transcript: String,
    pub(crate) verdict: Option<bool>,
    pub(crate) score: Option<f64>,
    pub(crate) label: FigureLabel,
    pub(crate) people: Vec<(String, bool)>,
    pub(crate) judges: Vec<(String, bool)>,
    /// The verdict of the eval that this one names as its reference.
    pub(crate) reference: Option<bool>,
    /// The repeats of a noise run of exactly this question.
    pub(crate) repeats: Option<RepeatedCell>,
    /// The decision's own repeats, from which a vote decides.
    pub(crate) own_repeats: Option<RepeatedCell>,
}

impl CellsState {
    /// Returns the rows of an eval that can be labelled, in the order of the files.
    pub(super) fn labellable_rows(&self, eval: u32) -> Vec<(RowId, &CellsRow)> {
        // The rows of other evals are not visited, because figures ask for each eval.
        let rows = self.identified_members(eval);
        let mut rows: Vec<(RowId, &CellsRow)> =
            rows.filter(|(_, row)| row.message.is_none()).collect();
        rows.sort_by_key(|(id, row)| (row.bookkeeping.file_order, *id));
        rows
    }

    /// Returns the decisions of an eval for its queues. `tag` selects the transcripts of a stratum.
    pub(crate) fn queue_rows(&self, eval: u32, tag: Option<&str>) -> Option<QueueRows> {
        let info = self.evals.get(eval as usize)?;
        let rows = self.labellable_rows(eval);
        let items = rows.iter().map(|(_, row)| {
            let id = self
                .transcripts
                .get(row.transcript as usize)
                .map_or("", |transcript| transcript.id.as_str());
            let verdicts: Vec<(Option<u32>, bool)> = slot_verdicts(row)
                .map(|(judge, _, passed)| (judge, passed))
                .collect();
            let differs = VerdictDifferences::of(&verdicts);
            let decision = row.decision.as_ref();
            QueueItem {
                transcript: id.to_owned(),
                outcome: decision.map(|decision| decision.outcome),
                score: decision.and_then(|decision| decision.score),
                judges_differ: differs.between_judges,
                repeats_differ: differs.between_repeats,
                is_noisy: self.is_noisy(row),
                is_hidden: self.is_sealed(id),
                label: match (row.label, row.to_confirm) {
                    // A queue depends on the existence of a sealed label and never on its answer.
                    _ if row.sealed => QueueLabel::Sealed,
                    (Some(label), _) => QueueLabel::Counted(label.passed()),
                    (None, Some(_)) => QueueLabel::ToConfirm,
                    (None, None) => QueueLabel::Unlabelled,
                },
                has_tag: tag.is_some_and(|tag| self.tags.of(id).iter().any(|one| one == tag)),
            }
        });
        let eval = QueueEval {
            rubric: info.rubric.clone(),
            eval: info.id.clone(),
            bounds: info.decision_rule.bounds,
            items: items.collect(),
        };
        Some(QueueRows {
            eval,
            rows: rows.into_iter().map(|(id, _)| id).collect(),
        })
    }

    /// Returns the tags that some transcripts of an eval have and others do not, with the number of transcripts.
    pub(crate) fn list_queue_tags(&self, eval: u32) -> Vec<(String, usize)> {
        let rows = self.labellable_rows(eval);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, row) in &rows {
            let transcript = self.transcripts.get(row.transcript as usize);
            let tags = transcript.map_or(&[][..], |transcript| self.tags.of(&transcript.id));
            let tags: BTreeSet<&str> = tags.iter().map(String::as_str).collect();
            for tag in tags {
                *counts.entry(tag).or_default() += 1;
            }
        }
        let divides = |count: &usize| *count < rows.len();
        let counts = counts.into_iter().filter(|(_, count)| divides(count));
        counts.map(|(tag, count)| (tag.to_owned(), count)).collect()
    }

    /// Returns the decisions of an eval for its figures. A stale or edited verdict is in no figure.
    /// `reference` is the eval that code decides and that this one names.
    pub(crate) fn figure_decisions(
        &self,
        eval: u32,
        has_draws: bool,
        reference: Option<u32>,
    ) -> Vec<FigureDecision> {
        let rows = self.labellable_rows(eval).into_iter();
        let info = self.evals.get(eval as usize);
        let certain = info.map_or(1, |info| {
            info.decision_rule.vote_terms().count_certain_repeats()
        });
        let decisions = rows.map(|(id, row)| {
            let is_left_out = row.is_left_out_of_figures();
            let decision = row.decision.as_ref().filter(|_| !is_left_out);
            let named = slot_verdicts(row)
                .filter(|(_, repeat, _)| repeat.is_none_or(|repeat| repeat <= certain))
                .map(|(judge, repeat, passed)| {
                    let judge = judge.and_then(|judge| self.judges.get(judge as usize));
                    let judge = judge.map_or("", |judge| judge.name.as_str());
                    (name_judge(judge, repeat), passed)
                });
            let judges = if row.slots.len() > 1 && !is_left_out {
                named.collect()
            } else {
                Vec::new()
            };
            let people = if row.label.is_some() {
                let people = self.list_row_labels(id).into_iter();
                people
                    .filter_map(|(by, label)| Some((by, label.passed()?)))
                    .collect()
            } else {
                Vec::new()
            };
            FigureDecision {
                transcript: if has_draws {
                    let transcript = self.transcripts.get(row.transcript as usize);
                    transcript.map_or_else(String::new, |transcript| transcript.id.clone())
                } else {
                    String::new()
                },
                verdict: decision.and_then(|decision| decision.outcome.passed()),
                score: decision.and_then(|decision| decision.score),
                label: self.figure_label(id, row),
                people,
                judges,
                reference: reference.and_then(|eval| {
                    self.current_verdict(RowKey {
                        transcript: row.transcript,
                        eval,
                        message: row.message,
                    })
                }),
                repeats: if is_left_out {
                    None
                } else {
                    self.repeats_of(row)
                },
                own_repeats: if is_left_out {
                    None
                } else {
                    self.own_repeats_of(row)
                },
            }
        });
        decisions.collect()
    }

    /// Returns the repeats of noise runs of exactly the question of a row, as its first judge decided it.
    pub(crate) fn repeats_of(&self, row: &CellsRow) -> Option<RepeatedCell> {
        let eval = self.evals.get(row.eval as usize)?;
        if self.noise.is_empty() {
            return None;
        }
        let question = self.question_of_slot(row, row.slots.first()?)?;
        find_repeats(&self.noise, &question, eval.decision_rule.bounds)
    }

    /// Returns the repeats of the first judge of a row.
    fn own_repeats_of(&self, row: &CellsRow) -> Option<RepeatedCell> {
        let terms = self.evals.get(row.eval as usize)?;
        let cells = slot_verdicts(row).map(|(judge, repeat, passed)| (judge, repeat, Some(passed)));
        count_certain_repeats(terms.decision_rule.vote_terms(), cells)
    }

    /// Returns the repeats that noise runs judged of exactly this question.
    fn noise_repeats(&self, row: &CellsRow) -> Option<RepeatedCell> {
        if self.noise.is_empty() {
            return None;
        }
        let eval = self.evals.get(row.eval as usize)?;
        find_repeats(
            &self.noise,
            &self.repeated_question(row)?,
            eval.decision_rule.bounds,
        )
    }

    /// Returns the question of a row that rests on one verdict. A vote has other noise than its verdicts.
    pub(crate) fn repeated_question(&self, row: &CellsRow) -> Option<RepeatedQuestion> {
        let [slot] = &*row.slots else { return None };
        self.question_of_slot(row, slot)
    }

    fn question_of_slot(&self, row: &CellsRow, slot: &RowSlot) -> Option<RepeatedQuestion> {
        let judge = self.judges.get(slot.judge? as usize)?;
        Some(RepeatedQuestion {
            transcript: self
                .transcripts
                .get(row.transcript as usize)?
                .digest
                .clone(),
            eval: self.evals.get(row.eval as usize)?.digest.clone(),
            message: row.message,
            judge: judge.call_digest.clone(),
        })
    }

    /// Returns true if a repeated judge of the row gives different verdicts to the same question.
    fn is_noisy(&self, row: &CellsRow) -> bool {
        let Some(eval) = self.evals.get(row.eval as usize) else {
            return false;
        };
        if self.noise.is_empty() {
            return false;
        }
        let questions = row.slots.iter();
        let questions = questions.filter_map(|slot| self.question_of_slot(row, slot));
        let bounds = eval.decision_rule.bounds;
        let mut repeats = questions.filter_map(|one| find_repeats(&self.noise, &one, bounds));
        repeats.any(RepeatedCell::has_flip)
    }

    /// Returns the repeats of a flipped row if they differ without an edit, so that the flip proves nothing.
    pub(crate) fn noisy_repeats(&self, row: RowId) -> Option<RepeatedCell> {
        let repeats = self.noise_repeats(self.row(row)?)?;
        repeats.has_flip().then_some(repeats)
    }

    /// Returns the verdict of a decision, unless it is stale.
    fn current_verdict(&self, key: RowKey) -> Option<bool> {
        let row = self.row(*self.row_index.get(&key)?)?;
        let is_current = matches!(row.stale, None | Some(StaleReason::Origin));
        row.decision
            .as_ref()
            .filter(|_| is_current)?
            .outcome
            .passed()
    }

    fn figure_label(&self, id: RowId, row: &CellsRow) -> FigureLabel {
        let transcript = self.transcripts.get(row.transcript as usize);
        let is_hidden = transcript.is_some_and(|one| self.is_sealed(&one.id));
        if row.label.is_none() {
            return FigureLabel {
                is_sealed: row.sealed,
                is_shot: row.shot,
                is_hidden,
                is_to_confirm: row.to_confirm.is_some(),
                ..FigureLabel::default()
            };
        }
        let label = self.row_label(id);
        FigureLabel {
            answer: row.label.map(LabelValue::passed),
            score: label.and_then(|label| label.score),
            is_to_confirm: false,
            cause: label.and_then(|label| label.cause),
            is_sealed: row.sealed,
            is_shot: row.shot,
            is_hidden,
            has_sample: label.is_some_and(|label| label.sample.is_some()),
        }
    }

    /// Returns the cause with which the user closed the disagreement of a row.
    pub(crate) fn closed_cause(&self, id: RowId) -> Option<(DisagreementCause, Option<&str>)> {
        let label = self.row_label(id)?;
        Some((label.cause?, label.clause.as_deref()))
    }

    /// Returns true if people answered the question of a row differently.
    pub(crate) fn people_differ(&self, id: RowId) -> bool {
        let labels = self.list_row_labels(id);
        let mut decided = labels.iter().filter_map(|(_, label)| label.passed());
        let first = decided.next();
        first.is_some_and(|first| decided.any(|other| other != first))
    }
}

/// Returns the judge, repeat and verdict of each cell with a verdict.
fn slot_verdicts(row: &CellsRow) -> impl Iterator<Item = (Option<u32>, Option<u32>, bool)> {
    row.slots.iter().filter_map(|slot| match &slot.state {
        RowSlotState::Done { outcome, .. } => {
            Some((slot.judge, slot.repeat, Outcome::passed(*outcome)?))
        }
        RowSlotState::NeverRun | RowSlotState::Live | RowSlotState::Interrupted { .. } => None,
    })
}
