//! Checks the examples of evals in the background: first those that code decides, then those of judges. Runs wait for
//! the first part.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::{Runtime, RuntimeDeps, describe_join_error, run_unless_cancelled};
use crate::model::JudgeConfig;
use crate::rubric::{Eval, Rubric};
use crate::run::{ExampleCheck, RunOptions};
use crate::tui::msg::Msg;
use crate::tui::state::saves::EvalName;
use crate::workspace::Workspace;
use crate::workspace::lint::{self, ExampleResult};

impl Runtime {
    /// Starts to check examples and cancels an earlier check.
    pub(super) fn try_examples(
        &mut self,
        number: u64,
        workspace: Arc<Workspace>,
        judged: Vec<EvalName>,
    ) {
        // The results of an earlier check belong to an older rubric.
        self.examples_cancel.cancel();
        self.examples_cancel = CancellationToken::new();
        self.examples_tried = CancellationToken::new();
        // The guard cancels the token on every path, also after a panic, so that runs never wait forever.
        let (stop, tried) = (
            self.examples_cancel.clone(),
            self.examples_tried.clone().drop_guard(),
        );
        let (deps, out) = (Arc::clone(&self.deps), self.outbox.clone());
        let working = out.tasks.start_task();
        tokio::spawn(async move {
            let (registry, checked_workspace) =
                (Arc::clone(&deps.registry), Arc::clone(&workspace));
            let checks = tokio::task::spawn_blocking(move || {
                // The screen shows misses next to the eval, so no source snippets are rendered.
                lint::run_code_examples(&checked_workspace.rubrics, &registry).results
            });
            match checks.await {
                Ok(trials) => out.send_answer(Msg::ExamplesTried { number, trials }),
                Err(error) => out.send_answer(Msg::Refused(format!(
                    "the examples were not tried: {}",
                    describe_join_error(&error)
                ))),
            }
            // Runs wait for this. It happens in every case, or a failed check would block them forever.
            drop(tried);
            // Judges come after code, because they take longer and runs do not wait for them.
            if !judged.is_empty() {
                // A separate task, so that its panic becomes a result.
                let judging = tokio::spawn(judge_examples(deps, workspace, judged, stop));
                let (trials, problem) = match judging.await {
                    Ok(Ok(trials)) => (trials, None),
                    Ok(Err(why)) => (Vec::new(), Some(why)),
                    Err(error) => (Vec::new(), Some(describe_join_error(&error))),
                };
                out.send_answer(Msg::ExamplesJudged {
                    number,
                    trials,
                    problem,
                });
            }
            drop(working);
        });
    }
}

/// Returns a token that is already cancelled: with no examples to check, no run has to wait.
pub(super) fn cancelled_token() -> CancellationToken {
    let tried = CancellationToken::new();
    tried.cancel();
    tried
}

/// Calls the judges of these evals. Checks again that they are free, because no one confirmed a cost.
async fn judge_examples(
    deps: Arc<RuntimeDeps>,
    workspace: Arc<Workspace>,
    judged: Vec<EvalName>,
    stop: CancellationToken,
) -> Result<Vec<ExampleResult>, String> {
    let (clock, stopped) = (Arc::clone(&deps.clock), stop.clone());
    let prepared = tokio::task::spawn_blocking(move || {
        // A save may have changed the judge since the order, so its cost is checked here.
        let is_wanted = |rubric: &Rubric, eval: &Eval, judge: Option<&JudgeConfig>| {
            let is_same = |name: &EvalName| name.rubric == rubric.id && name.eval == eval.id;
            judge.is_some_and(JudgeConfig::is_free) && judged.iter().any(is_same)
        };
        // Opening tools may block, and this thread belongs to the task.
        let example_check = ExampleCheck::prepare(
            &workspace,
            &deps.registry,
            &deps.env,
            &deps.clock,
            RunOptions::default(),
            true,
            &is_wanted,
        );
        let example_check =
            Handle::current().block_on(run_unless_cancelled(&stopped, example_check));
        example_check
            .map_or(Ok(None), |example_check| example_check.map(Some))
            .map_err(|error| error.to_string())
    });
    match prepared
        .await
        .map_err(|error| describe_join_error(&error))??
    {
        Some(example_check) => Ok(example_check.run(clock, stop).await),
        // The check was cancelled, so it has no results.
        None => Ok(Vec::new()),
    }
}
