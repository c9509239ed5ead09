//! The repeats of the same judge calls, from the noise runs of a workspace.
//!
//! Responsible for reading them and for the identity of a repeated question: a transcript, an eval, a message and a
//! judge, by digest. So an edit of any of them separates the repeats before and after it. Excludes results that a
//! person changed or that came from a cache. Does not compute rates.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::newest_verdicts::stated_verdict;
use super::recorded_plan::{PlannedCell, RecordedPlan};
use super::{History, RecordError, RecordedRun, State, StateDecision};
use crate::event::{EventKind, EventTag, JudgeSpec, RunPurpose};
use crate::model::{CellIx, CellName, CellResult, Digest, Outcome, ScoreBounds, VerdictSummary};

const NOISE_EVENT_TAGS: &[EventTag] = &[
    EventTag::RunStarted,
    EventTag::CellsPlanned,
    EventTag::CellsSettled,
    EventTag::CellFinished,
    EventTag::Resumed,
];

/// A question that a judge answers, by everything that determines the request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RepeatedQuestion {
    /// The digest of the transcript.
    pub transcript: Digest,
    /// The digest of the eval, without its decision settings.
    pub eval: Digest,
    /// The judged message; `None` for the whole transcript.
    pub message: Option<u32>,
    /// The digest of the judge as it is called, with its tools.
    pub judge: Digest,
}

/// The verdicts of all repeats of one question.
#[derive(Debug, Clone, PartialEq)]
pub struct RepeatedVerdicts {
    /// The name of the cell in the newest run, without the repeat.
    pub name: CellName,
    verdicts: Vec<RepeatedVerdict>,
}

/// The verdict of one repeat.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RepeatedVerdict {
    outcome: Outcome,
    /// The judge's own statement, which other bounds can decide.
    stated: Option<VerdictSummary>,
    bounds: ScoreBounds,
}

impl RepeatedVerdicts {
    /// Returns the numbers of passes and of verdicts under these bounds. Repeats without a verdict do not count.
    pub fn count(&self, bounds: ScoreBounds) -> (u64, u64) {
        let decide = |one: &RepeatedVerdict| {
            if one.bounds == bounds {
                return one.outcome.passed();
            }
            bounds.decide(one.stated?).ok()?.passed()
        };
        let (mut passes, mut verdicts) = (0, 0);
        for is_pass in self.verdicts.iter().filter_map(decide) {
            verdicts += 1;
            passes += u64::from(is_pass);
        }
        (passes, verdicts)
    }
}

/// The repeats of all noise runs of a workspace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NoiseRecords {
    questions: HashMap<RepeatedQuestion, RepeatedVerdicts>,
}

impl NoiseRecords {
    /// Reads the noise runs of the workspace with the folder `root`. A run that cannot be read adds nothing. The history
    /// knows which runs judged, so their logs stay closed.
    pub fn read(history: &History, root: &Path) -> Self {
        let mut records = Self::default();
        // Oldest first, so that the newest run decides the name.
        for run in history.outside_runs() {
            let _unreadable = records.add_run(run, root);
        }
        records
    }

    /// Reads one run, if it is a noise run of the workspace.
    pub fn add_run(&mut self, run: &RecordedRun, root: &Path) -> Result<(), RecordError> {
        let mut plan = RecordedPlan::default();
        let mut results: HashMap<CellIx, Arc<CellResult>> = HashMap::new();
        let mut edited = Vec::new();
        for event in run.events_with_tags(NOISE_EVENT_TAGS)? {
            let event = event?;
            match event.kind {
                // The header is the first event, so another run costs one line.
                EventKind::RunStarted(ref header)
                    if header.purpose != RunPurpose::Noise || header.workspace != root =>
                {
                    return Ok(());
                }
                EventKind::CellsSettled(settled) => {
                    results.extend(settled.into_iter().map(|one| (one.cell, one.result)));
                }
                EventKind::CellFinished { cell, result } => {
                    results.insert(cell, result);
                }
                EventKind::Resumed { cell, ref how } if how.by == "human" && how.what != "go" => {
                    edited.push(cell);
                }
                _ => plan.apply(&event),
            }
        }
        for (cell, result) in results {
            if result.by_human || result.cached.is_some() || edited.contains(&cell) {
                continue;
            }
            if let Some(cell) = plan.cell(cell) {
                self.add_result(cell, &result);
            }
        }
        Ok(())
    }

    /// Adds the repeats of runs that are all newer than those of these repeats.
    pub(super) fn add_newer(&mut self, newer: &Self) {
        for (question, repeats) in &newer.questions {
            match self.questions.get_mut(question) {
                Some(known) => {
                    known.name.clone_from(&repeats.name);
                    known.verdicts.extend_from_slice(&repeats.verdicts);
                }
                None => {
                    self.questions.insert(question.clone(), repeats.clone());
                }
            }
        }
    }

    fn add_result(&mut self, cell: PlannedCell<'_>, result: &CellResult) {
        let (Some(eval), Some(judge), Some(name)) = (cell.eval(), cell.judge(), cell.name()) else {
            return;
        };
        if !result.outcome.is_verdict() {
            return;
        }
        let question = RepeatedQuestion {
            transcript: cell.transcript.digest.clone(),
            eval: eval.digest.clone(),
            message: name.message,
            judge: judge.call_digest(),
        };
        let name = CellName {
            repeat: None,
            ..name
        };
        let repeats = self
            .questions
            .entry(question)
            .or_insert_with(|| RepeatedVerdicts {
                name: name.clone(),
                verdicts: Vec::new(),
            });
        repeats.name = name;
        repeats.verdicts.push(RepeatedVerdict {
            outcome: result.outcome,
            stated: stated_verdict(result),
            bounds: ScoreBounds::from_decision_settings(&eval.decision_settings),
        });
    }

    /// Returns the repeats of one question without score bounds, for tests.
    #[cfg(test)]
    pub(crate) fn of_one_question(
        question: RepeatedQuestion,
        name: CellName,
        outcomes: &[Outcome],
    ) -> Self {
        let verdict = |outcome: &Outcome| RepeatedVerdict {
            outcome: *outcome,
            stated: None,
            bounds: ScoreBounds::default(),
        };
        let repeats = RepeatedVerdicts {
            name,
            verdicts: outcomes.iter().map(verdict).collect(),
        };
        Self {
            questions: HashMap::from([(question, repeats)]),
        }
    }

    /// Returns true if no repeat is recorded.
    pub fn is_empty(&self) -> bool {
        self.questions.is_empty()
    }

    /// Returns the repeats of a question.
    pub fn get(&self, question: &RepeatedQuestion) -> Option<&RepeatedVerdicts> {
        self.questions.get(question)
    }

    /// Returns all questions with their repeats, unordered.
    pub fn iter(&self) -> impl Iterator<Item = (&RepeatedQuestion, &RepeatedVerdicts)> {
        self.questions.iter()
    }
}

impl State {
    /// Returns the questions of a decision, one per judge that it rests on. A pending decision has none.
    pub fn repeated_questions(&self, decision: &StateDecision) -> Vec<RepeatedQuestion> {
        let mut judges: Vec<u32> = decision
            .slots
            .iter()
            .filter_map(|slot| slot.judge)
            .collect();
        judges.sort_unstable();
        judges.dedup();
        let specs = judges
            .into_iter()
            .filter_map(|judge| self.header.judges.get(judge as usize));
        specs
            .map(|judge| RepeatedQuestion {
                transcript: self.transcript(decision).digest.clone(),
                eval: self.eval(decision).digest.clone(),
                message: decision.message,
                judge: JudgeSpec::call_digest(judge),
            })
            .collect()
    }
}
