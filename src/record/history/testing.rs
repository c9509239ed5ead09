//! A plain reference model of a workspace whose evals and transcripts change between runs, for tests of the history.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use proptest::prelude::*;

use super::History;
use super::fold::HistoryFold;
use super::run_facts::RunFacts;
use super::run_results::{FactResult, RunResults};
use crate::event::{
    CellKey, EvalSpec, JudgeSpec, PlannedDecision, RevisionPlan, RubricSpec, RunHeader,
};
use crate::model::{
    CellIx, Cost, Digest, JudgeConfig, Outcome, ProviderKind, RunId, ScoreBounds, TranscriptRef,
    VerdictSummary, WallTime,
};
use crate::record::{RecordedRun, RunStatus};

/// An eval of the model's workspace.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModelEval {
    pub(super) id: String,
    pub(super) question: u8,
    /// Tenths.
    pub(super) min: Option<u8>,
    pub(super) judged: bool,
}

/// The evals, and the id and content of each transcript.
type ModelContent = (Vec<ModelEval>, Vec<(String, u8)>);

/// The model's workspace.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) evals: Vec<ModelEval>,
    /// The id and content of each transcript.
    transcripts: Vec<(String, u8)>,
    runs: u32,
    /// The cells that a run answered: question, content, and for checks the bound.
    answered: HashSet<AnswerKey>,
    /// The newest error of a question without an answer.
    failed: HashSet<(u8, u8)>,
    next_id: u32,
    /// The evals and transcripts of each run, by its number from 0.
    past: Vec<ModelContent>,
    /// The run that the next one continues, by its number from 0.
    continued: Option<usize>,
    /// `true` if the newest run that continues no other one knows its whole plan.
    knows_plan: bool,
    /// The evals and transcripts of that run.
    newest: ModelContent,
}

/// A change of the workspace, or a run.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    EditQuestion(usize, u8),
    Rename(usize),
    SetBound(usize, Option<u8>),
    AddEval(u8, bool),
    RemoveEval(usize),
    EditTranscript(usize, u8),
    AddTranscript(u8),
    /// A run of everything.
    Run,
    /// A run of some decisions: a bit per decision.
    RunPart(u64),
    /// A run that stops after so many cells. `true`: the open cells are recorded as cancelled.
    RunStopped(usize, bool),
    /// A run whose judge fails from this cell on.
    RunFailing(usize),
    /// A run that continues an earlier one, with the evals and transcripts of then. The number counts from the first run.
    Resume(usize),
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4_usize, 0..4_u8).prop_map(|(at, to)| Step::EditQuestion(at, to)),
        (0..4_usize).prop_map(Step::Rename),
        (0..4_usize, prop::option::of(0..10_u8)).prop_map(|(at, to)| Step::SetBound(at, to)),
        (0..4_u8, any::<bool>()).prop_map(|(question, judged)| Step::AddEval(question, judged)),
        (0..4_usize).prop_map(Step::RemoveEval),
        (0..4_usize, 0..4_u8).prop_map(|(at, to)| Step::EditTranscript(at, to)),
        (0..4_u8).prop_map(Step::AddTranscript),
        Just(Step::Run),
        any::<u64>().prop_map(Step::RunPart),
        (0..9_usize, any::<bool>()).prop_map(|(cells, marked)| Step::RunStopped(cells, marked)),
        (0..9_usize).prop_map(Step::RunFailing),
        (0..6_usize).prop_map(Step::Resume),
    ]
}

/// Returns the id of a run by its number from 0.
fn run_id(number: usize) -> RunId {
    RunId(format!("20260101T000000Z-{:04}", number + 1))
}

fn digest(kind: &str, number: u8) -> Digest {
    Digest::hash_bytes(format!("{kind} {number}").as_bytes())
}

/// The reply of the model's judge and checks: a score in tenths that depends on the question and the text alone.
fn score(question: u8, content: u8) -> f64 {
    f64::from((question * 7 + content * 3) % 10) / 10.0
}

fn bounds(eval: &ModelEval) -> ScoreBounds {
    ScoreBounds {
        min: eval.min.map(|tenths| f64::from(tenths) / 10.0),
        max: None,
    }
}

fn stated(question: u8, content: u8) -> VerdictSummary {
    let score = score(question, content);
    VerdictSummary {
        passed: Some(score >= 0.5),
        score: Some(score),
        applicable: None,
    }
}

impl Model {
    pub(super) fn new() -> Self {
        let eval = |id: &str, question, judged| ModelEval {
            id: id.to_owned(),
            question,
            min: None,
            judged,
        };
        Self {
            evals: vec![eval("asked", 0, true), eval("checked", 1, false)],
            transcripts: vec![("t0".to_owned(), 0), ("t1".to_owned(), 1)],
            runs: 0,
            answered: HashSet::new(),
            failed: HashSet::new(),
            next_id: 0,
            past: Vec::new(),
            continued: None,
            knows_plan: true,
            newest: (Vec::new(), Vec::new()),
        }
    }

    fn header(&mut self, partial: bool) -> RunHeader {
        self.runs += 1;
        self.past
            .push((self.evals.clone(), self.transcripts.clone()));
        let evals = self.evals.iter().map(|eval| {
            let mut spec =
                EvalSpec::new(0, &eval.id, "llm_judge", digest("question", eval.question));
            spec.judged = eval.judged;
            spec.judge = eval.judged.then_some(0);
            if let Some(min) = bounds(eval).min {
                spec.decision_settings = IndexMap::from([("min_score".to_owned(), min.into())]);
            }
            // A check and a judge never have the same digest, because it contains the eval type.
            if !eval.judged {
                spec.digest = digest("check", eval.question);
            }
            spec
        });
        let mut header = RunHeader {
            judges: vec![JudgeSpec::new(
                JudgeConfig::new("j", ProviderKind::Rules),
                Digest::hash_bytes(b"j"),
            )],
            rubrics: vec![RubricSpec {
                id: "r".to_owned(),
                path: "r.yaml".into(),
                threshold: None,
            }],
            evals: evals.collect(),
            partial,
            ..RunHeader::new(
                run_id(self.runs as usize - 1),
                WallTime("2026-01-01T00:00:00Z".to_owned()),
                "/w".into(),
            )
        };
        header.revision = Some(header.compute_revision());
        header
    }

    /// Returns all decisions: transcript and eval, in plan order.
    fn decisions(&self) -> Vec<(usize, usize)> {
        let evals = 0..self.evals.len();
        (0..self.transcripts.len())
            .flat_map(|t| evals.clone().map(move |e| (t, e)))
            .collect()
    }

    /// Runs the selected decisions. `answers` says how each one ends, by position: `None` for no result at all.
    fn run(
        &mut self,
        selected: &[(usize, usize)],
        partial: bool,
        knows_plan: bool,
        interrupted: bool,
        answers: impl Fn(usize) -> Option<Outcome>,
    ) -> RunFacts {
        let header = self.header(partial);
        let transcripts = self.transcripts.iter().map(|(id, content)| TranscriptRef {
            id: id.clone(),
            path: "t.jsonl".into(),
            offset: 0,
            len: 1,
            part: 0,
            digest: digest("content", *content),
        });
        let plan_entry = |(t, e): (usize, usize)| {
            let decision = PlannedDecision {
                eval: u32::try_from(e).expect("small"),
                message: None,
            };
            (u32::try_from(t).expect("small"), decision)
        };
        let mut results = Vec::new();
        for (at, (t, e)) in selected.iter().enumerate() {
            let Some(outcome) = answers(at) else { continue };
            let eval = self.evals[*e].clone();
            let content = self.transcripts[*t].1;
            // Checks are code, so they neither fail nor wait.
            let outcome = if eval.judged { outcome } else { Outcome::Pass };
            let reply = stated(eval.question, content);
            let outcome = if outcome.is_error() {
                outcome
            } else {
                bounds(&eval).decide(reply).expect("decides")
            };
            let key = answer_key(&eval, content);
            if outcome.is_verdict() {
                self.answered.insert(key);
                self.failed.remove(&(key.0, key.1));
            } else if outcome == Outcome::JudgeError && !self.answered.contains(&key) {
                self.failed.insert((key.0, key.1));
            } else if !self.answered.contains(&key) {
                // A cancelled attempt replaces an older error.
                self.failed.remove(&(key.0, key.1));
            }
            results.push(FactResult {
                transcript: u32::try_from(*t).expect("small"),
                key: CellKey {
                    eval: u32::try_from(*e).expect("small"),
                    message: None,
                    judge: eval.judged.then_some(0),
                    repeat: None,
                },
                cell: CellIx(u32::try_from(at).expect("small")),
                outcome,
                score: outcome.is_verdict().then(|| score(eval.question, content)),
                stated: (outcome.is_verdict() && eval.judged).then_some(reply),
                probability: None,
                doubt: None,
                is_cached: false,
            });
        }
        let mut revision_plan = RevisionPlan::default();
        for (id, content) in &self.transcripts {
            let decisions = (0..self.evals.len()).map(|e| PlannedDecision {
                eval: u32::try_from(e).expect("small"),
                message: None,
            });
            revision_plan.push(id, &digest("content", *content), decisions.collect());
        }
        RunFacts {
            started: header.started.clone(),
            is_whole: header.plans_whole_revision(),
            header: Arc::new(header),
            transcripts: transcripts.map(Arc::new).collect(),
            planned: selected.iter().copied().map(plan_entry).collect(),
            revision_plan: knows_plan.then(|| Arc::new(revision_plan)),
            cells: selected.len() as u64,
            judged: results.len() as u64,
            results: RunResults::Read(results),
            cost: Cost::ZERO,
            status: if interrupted {
                RunStatus::Interrupted
            } else {
                RunStatus::Finished
            },
            unfinished: 0,
            resumes: self.continued.map(run_id),
            damage: None,
        }
    }

    /// Applies a step. Returns the facts of its run, if it is one, and whether the run knows the whole plan.
    pub(super) fn apply(&mut self, step: &Step) -> Option<(RunFacts, bool)> {
        if let Step::Resume(number) = *step {
            let (evals, transcripts) = self.past.get(number)?.clone();
            let now = (
                std::mem::replace(&mut self.evals, evals),
                std::mem::replace(&mut self.transcripts, transcripts),
            );
            self.continued = Some(number);
            let all = self.decisions();
            let facts = self.run(&all, false, false, false, |_| Some(Outcome::Pass));
            self.continued = None;
            (self.evals, self.transcripts) = now;
            return Some((facts, self.knows_plan));
        }
        let applied = self.apply_now(step);
        if let Some((_, knows_plan)) = &applied {
            self.knows_plan = *knows_plan;
            self.newest = (self.evals.clone(), self.transcripts.clone());
        }
        applied
    }

    fn apply_now(&mut self, step: &Step) -> Option<(RunFacts, bool)> {
        let all = self.decisions();
        match *step {
            // It changes nothing now.
            Step::Resume(_) => None,
            Step::EditQuestion(at, to) => {
                if let Some(eval) = self.evals.get_mut(at) {
                    eval.question = to;
                }
                None
            }
            Step::Rename(at) => {
                self.next_id += 1;
                let id = format!("renamed{}", self.next_id);
                if let Some(eval) = self.evals.get_mut(at) {
                    eval.id = id;
                }
                None
            }
            Step::SetBound(at, to) => {
                if let Some(eval) = self.evals.get_mut(at) {
                    eval.min = to;
                }
                None
            }
            Step::AddEval(question, judged) => {
                self.next_id += 1;
                if self.evals.len() < 4 {
                    self.evals.push(ModelEval {
                        id: format!("new{}", self.next_id),
                        question,
                        min: None,
                        judged,
                    });
                }
                None
            }
            Step::RemoveEval(at) => {
                if at < self.evals.len() {
                    self.evals.remove(at);
                }
                None
            }
            Step::EditTranscript(at, to) => {
                if let Some(transcript) = self.transcripts.get_mut(at) {
                    transcript.1 = to;
                }
                None
            }
            Step::AddTranscript(content) => {
                self.next_id += 1;
                if self.transcripts.len() < 4 {
                    self.transcripts
                        .push((format!("t-new{}", self.next_id), content));
                }
                None
            }
            Step::Run => {
                let facts = self.run(&all, false, false, false, |_| Some(Outcome::Pass));
                Some((facts, true))
            }
            Step::RunPart(bits) => {
                let chosen: Vec<_> = all
                    .into_iter()
                    .enumerate()
                    .filter(|(at, _)| bits >> at & 1 == 1)
                    .map(|(_, one)| one)
                    .collect();
                Some((
                    self.run(&chosen, true, true, false, |_| Some(Outcome::Pass)),
                    true,
                ))
            }
            Step::RunStopped(cells, marked) => {
                let facts = self.run(&all, false, false, true, |at| {
                    if at < cells {
                        Some(Outcome::Pass)
                    } else {
                        marked.then_some(Outcome::Cancelled)
                    }
                });
                Some((facts, false))
            }
            Step::RunFailing(from) => {
                let facts = self.run(&all, false, false, false, |at| {
                    Some(if at < from {
                        Outcome::Pass
                    } else {
                        Outcome::JudgeError
                    })
                });
                Some((facts, true))
            }
        }
    }

    /// Returns the outcome of every decision of the newest state, as judging from nothing with the same replies gives it.
    pub(super) fn expected(&self) -> BTreeMap<String, Option<Outcome>> {
        let outcome = |eval: &ModelEval, content: u8| {
            let key = answer_key(eval, content);
            if self.answered.contains(&key) {
                Some(
                    bounds(eval)
                        .decide(stated(eval.question, content))
                        .expect("decides"),
                )
            } else if self.failed.contains(&(key.0, key.1)) && eval.judged {
                Some(Outcome::JudgeError)
            } else {
                None
            }
        };
        let (evals, transcripts) = &self.newest;
        let all = transcripts.iter().flat_map(|(id, content)| {
            let evals = evals.iter();
            evals.map(move |eval| (format!("{id}/r/{}", eval.id), outcome(eval, *content)))
        });
        all.collect()
    }
}

/// The question, the content, and for checks the bound.
type AnswerKey = (u8, u8, CheckBound);

/// The bound on which the answer of an eval depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum CheckBound {
    /// A judge's answer does not depend on the bound.
    Independent,
    /// The bound of a check.
    At(Option<u8>),
}

fn answer_key(eval: &ModelEval, content: u8) -> AnswerKey {
    // The two kinds of evals never share a question.
    let question = eval.question + if eval.judged { 0 } else { 100 };
    let bound = if eval.judged {
        CheckBound::Independent
    } else {
        CheckBound::At(eval.min)
    };
    (question, content, bound)
}

fn run_named(id: &RunId) -> RecordedRun {
    RecordedRun {
        id: id.clone(),
        dir: Path::new("/runs").join(&id.0),
        key: None,
    }
}

/// Folds the facts of runs, as reading them does.
pub(super) fn fold(facts: impl IntoIterator<Item = RunFacts>) -> History {
    let mut fold = HistoryFold::default();
    let runs = facts
        .into_iter()
        .map(|facts| (run_named(&facts.header.run), facts));
    fold.apply_all(runs.collect());
    fold.finish()
}

/// Folds the first runs together and the others one by one. Returns the history after each step.
pub(super) fn fold_in_steps(facts: &[RunFacts], together: usize) -> Vec<History> {
    let mut fold = HistoryFold::default();
    let mut apply = |facts: &[RunFacts]| {
        let runs = facts.iter().cloned();
        let runs = runs.map(|facts| (run_named(&facts.header.run), facts));
        fold.apply_all(runs.collect());
        fold.history()
    };
    let (first, others) = facts.split_at(together);
    let mut histories = vec![apply(first)];
    histories.extend(others.chunks(1).map(apply));
    histories
}

/// Applies the steps. Returns the facts of the runs among them.
pub(super) fn play(model: &mut Model, steps: &[Step]) -> Vec<RunFacts> {
    steps
        .iter()
        .filter_map(|step| Some(model.apply(step)?.0))
        .collect()
}

/// Returns the history of a new model's workspace after each run among the steps, as a workbench reads it again and again.
pub(crate) fn histories_after(steps: &[Step]) -> Vec<History> {
    let facts = play(&mut Model::new(), steps);
    fold_in_steps(&facts, facts.len().min(1))
}

/// Returns the history of a new model's workspace after the steps.
pub(crate) fn history_after(steps: &[Step]) -> History {
    fold(play(&mut Model::new(), steps))
}
