//! Judges the examples of judged evals with the judges of a run.
//!
//! Responsible for the calls. Does not record, count or cache the results, and does not choose the evals: the caller
//! does, because a call may cost money. The `replay` judge is not asked, because recordings contain no examples.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use futures_util::{FutureExt as _, StreamExt as _};
use indexmap::IndexMap;
use tokio_util::sync::CancellationToken;

use super::{CachePolicy, RunError, RunOptions, RunUsageError};
use crate::clock::Clock;
use crate::event::{Emitter, MemoryBlobs};
use crate::handlers::{EvalTypeRegistry, example_transcript};
use crate::model::{CellIx, CellResult, JudgeConfig, Outcome, ProviderKind, find_reason};
use crate::process::PROGRAM_PLACES;
use crate::rubric::{Eval, EvalTypeCatalog as _, Rubric};
use crate::run::execute::context::{CellCounter, RunCx};
use crate::run::execute::merge_window::MergeWindow;
use crate::run::execute::schedule::judge_cell;
use crate::run::execute::tally::RunTally;
use crate::run::inputs::snapshot::find_judges;
use crate::run::plan::judged_decision::{JudgeRepeat, JudgedDecision};
use crate::run::prepare::{PreparedRun, prepare_preview, prepare_run};
use crate::run::preview::{CellRequest, JudgePreview};
use crate::workspace::lint::ExampleResult;
use crate::workspace::{Env, Workspace};

/// Returns `true` if the examples of an eval must be judged by this judge, which is `None` if there is none.
pub type ExampleCheckFilter<'f> = &'f dyn Fn(&Rubric, &Eval, Option<&JudgeConfig>) -> bool;

/// The examples of judged evals, ready to be judged.
pub struct ExampleCheck {
    prepared: PreparedRun,
    questions: Vec<ExampleQuestion>,
}

/// One example: its eval, its judge and its number.
#[derive(Debug, Clone, Copy)]
struct ExampleQuestion {
    eval: u32,
    judge: u32,
    example_position: usize,
}

impl ExampleCheck {
    /// Prepares the examples of the judged evals that `examined` selects. `options` sets another judge and recorded
    /// tool responses. With `sending: false`, keys may be missing, and the result serves only for
    /// [`ExampleCheck::preview`].
    pub async fn prepare(
        workspace: &Workspace,
        registry: &EvalTypeRegistry,
        env: &Env,
        clock: &Arc<dyn Clock>,
        options: RunOptions,
        sending: bool,
        examined: ExampleCheckFilter<'_>,
    ) -> Result<Self, RunError> {
        let mut problems = Vec::new();
        // Step: select the evals. The closure collects the problems of all evals before the check fails.
        let mut wanted = |rubric: &Rubric, eval: &Eval| {
            let judged = registry
                .eval_type(&eval.eval_type)
                .is_some_and(|kind| kind.judged);
            if !(judged && eval.enabled && !eval.examples.is_empty()) {
                return false;
            }
            match find_judges(eval, rubric, workspace, &options) {
                Ok(assigned) => assigned.configs.iter().all(|judge| {
                    !matches!(judge.provider, ProviderKind::Replay | ProviderKind::Source)
                        && examined(rubric, eval, Some(judge))
                }),
                // An eval without a judge is a problem only if the caller wants its examples.
                Err(why) => {
                    if examined(rubric, eval, None) {
                        problems.push(why);
                    }
                    false
                }
            }
        };
        // Keep only these evals, so that no other eval needs a judge, a key or a program.
        let rubrics = workspace.rubrics.iter().filter_map(|rubric| {
            let evals = rubric.evals.iter();
            let evals: Vec<Eval> = evals.filter(|eval| wanted(rubric, eval)).cloned().collect();
            (!evals.is_empty()).then(|| {
                Arc::new(Rubric {
                    evals,
                    ..Rubric::clone(rubric)
                })
            })
        });
        let rubrics = rubrics.collect();
        if !problems.is_empty() {
            return Err(RunUsageError::Problems(problems).into());
        }
        // Examples replace the transcripts, so no transcript file has to be readable.
        let examples_workspace = Workspace {
            rubrics,
            transcripts: Vec::new(),
            ..workspace.clone()
        };
        // A cached verdict belongs to a transcript. A filter or a resumed run selects transcripts, too.
        let options = RunOptions {
            cache: CachePolicy::Off,
            filter: None,
            resume: None,
            ..options
        };
        let examples_workspace = Arc::new(examples_workspace);
        let prepared = if sending {
            prepare_run(examples_workspace, registry, env, clock, options, true).await?
        } else {
            prepare_preview(examples_workspace, registry, env, clock, options).await?
        };
        let plan = &prepared.judge_pool.plan;
        let mut questions = Vec::new();
        for (at, eval_plan) in (0_u32..).zip(&plan.evals) {
            let (_, _, eval) = plan.eval(at);
            // Each panel member judges every example: an example tests the eval with each of its judges.
            for judge in eval_plan.judge_positions() {
                let one = |nth| ExampleQuestion {
                    eval: at,
                    judge: *judge,
                    example_position: nth,
                };
                questions.extend((0..eval.examples.len()).map(one));
            }
        }
        Ok(Self {
            prepared,
            questions,
        })
    }

    /// Returns the number of examples.
    pub fn len(&self) -> usize {
        self.questions.len()
    }

    /// Reports whether there are no examples.
    pub fn is_empty(&self) -> bool {
        self.questions.is_empty()
    }

    /// Returns the preview of each judge; `cells` counts examples.
    pub fn preview(&self) -> Vec<(JudgeConfig, JudgePreview)> {
        let mut judges: IndexMap<u32, JudgePreview> = IndexMap::new();
        let judge_pool = &self.prepared.judge_pool;
        for question in &self.questions {
            let Some(config) = self.judge_config(question.judge) else {
                continue;
            };
            let (_, _, eval) = judge_pool.plan.eval(question.eval);
            let transcript = example_transcript(&eval.examples[question.example_position]);
            let request = judge_pool
                .plan
                .build_request(&transcript, question.eval, None, None);
            let request = match (request, judge_pool.slot(question.judge)) {
                (Ok(request), Some(slot)) => CellRequest::new(slot, &request),
                // An example that needs no judge call, or a judge that sends nothing, has no size.
                _ => CellRequest::default(),
            };
            judges
                .entry(question.judge)
                .or_default()
                .add_cell(config, request, None);
        }
        let previews = judges.into_iter().filter_map(|(at, mut judge)| {
            let config = self.judge_config(at)?;
            // Without recorded usage there is no duration, so the concurrency does not matter.
            judge.finish(config, 1);
            Some((config.clone(), judge))
        });
        previews.collect()
    }

    fn judge_config(&self, at: u32) -> Option<&JudgeConfig> {
        let specs = &self.prepared.header.judges;
        specs.get(at as usize).map(|spec| &spec.config)
    }

    /// Judges the examples, as many at once as a run would. A cancelled example ends as `cancelled`.
    pub async fn run(self, clock: Arc<dyn Clock>, cancel: CancellationToken) -> Vec<ExampleResult> {
        let Self {
            prepared,
            questions,
        } = self;
        // The facts have no receiver: dicta drops them, and drops large texts with the store.
        let (to, _) = tokio::sync::mpsc::channel(1);
        let workspace = prepared.workspace;
        let specs = prepared.header.judges;
        let limits = &workspace.limits;
        let at_once = prepared.options.concurrency.unwrap_or(limits.concurrency);
        let core = Arc::new(RunCx {
            judge_pool: Arc::new(prepared.judge_pool),
            emitter: Emitter::new(
                to,
                Arc::new(MemoryBlobs::default()),
                Arc::new(prepared.redactor),
            ),
            clock,
            cancel,
            budget: prepared.budget,
            permits: prepared.permits,
            program_places: &PROGRAM_PLACES,
            withdrawn: Arc::default(),
            tally: RunTally::default(),
            window: MergeWindow::default(),
            cell_counter: CellCounter::default(),
            transcript_limit: None,
            blob_failure: Mutex::default(),
        });
        let asking = (0_u32..).zip(questions).map(|(cell, question)| {
            let core = Arc::clone(&core);
            async move { (question, judge_example(&core, question, CellIx(cell)).await) }
        });
        let answers: Vec<_> = futures_util::stream::iter(asking)
            // `buffered` keeps the order of the examples, so the report follows the rubric.
            .buffered(at_once.max(1))
            .collect()
            .await;
        let trials = answers.into_iter().filter_map(|(question, result)| {
            let (_, rubric, eval) = core.judge_pool.plan.eval(question.eval);
            let judge = specs.get(question.judge as usize)?;
            let expect = eval.examples.get(question.example_position)?.expect;
            let (got, why) = classify_result(&judge.config, expect, &result);
            ExampleResult::from_outcome(rubric, eval, question.example_position, got, &why)
        });
        trials.collect()
    }
}

async fn judge_example(core: &RunCx, question: ExampleQuestion, cell: CellIx) -> CellResult {
    if core.cancel.is_cancelled() {
        return CellResult::cancelled();
    }
    // Check the budget before each call: no scheduler does it for examples.
    if let Some(slot) = core.judge_pool.slot(question.judge)
        && slot.is_limited()
        && let Err(reached) = core.budget.check(slot.is_free)
    {
        return CellResult::from_error(Outcome::Budget, reached.why);
    }
    let (_, _, eval) = core.judge_pool.plan.eval(question.eval);
    let transcript = example_transcript(&eval.examples[question.example_position]);
    // Each example is judged once, whatever the eval's `repeat:` is.
    let decision = JudgedDecision {
        eval: question.eval,
        message: None,
        judge: Some(question.judge),
        repeat: 1,
    };
    let judge_repeat = JudgeRepeat {
        judge: Some(question.judge),
        repeat: None,
    };
    let asked = AssertUnwindSafe(judge_cell(core, &transcript, decision, judge_repeat, cell))
        .catch_unwind();
    asked.await.unwrap_or_else(|_| {
        CellResult::from_error(Outcome::JudgeError, "the judge failed inside dicta")
    })
}

/// Returns the outcome of an example. It is not the example's fault if `rules` cannot read the criteria.
fn classify_result(judge: &JudgeConfig, expect: Outcome, result: &CellResult) -> (Outcome, String) {
    // `rules` reports criteria that it cannot read as `not_applicable`.
    let unread = judge.provider == ProviderKind::Rules
        && result.outcome == Outcome::NotApplicable
        && expect != Outcome::NotApplicable;
    let verdict = result.verdict.as_deref();
    let reasoning = verdict.map(|verdict| verdict.reasoning.as_str());
    let why = match (&result.error, reasoning) {
        // The error comes first: with an error, the reasoning belongs to no verdict.
        (Some(error), _) => error.as_str(),
        (None, _) if !result.explanation.is_empty() => result.explanation.as_str(),
        (None, reasoning) => reasoning.unwrap_or_default(),
    };
    if unread {
        // `rules` marks each clause that it cannot check, as in `2. ? It is kind: …`.
        let clauses: Vec<&str> = why.lines().filter(|line| line.contains(". ? ")).collect();
        let why = match &clauses[..] {
            [] => find_reason(why),
            clauses => clauses.join("; "),
        };
        return (
            Outcome::JudgeError,
            format!("rules could not read this: {why}"),
        );
    }
    (result.outcome, why.to_owned())
}
