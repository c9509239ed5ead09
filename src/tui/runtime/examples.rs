//! Examples, tried off the screen's thread: first those that code decides, for which runs wait, then those of judges that
//! may be asked.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::{Deps, Runtime, bug, unless};
use crate::model::JudgeConfig;
use crate::rubric::{Eval, Rubric};
use crate::run::{ExampleCheck, RunOptions};
use crate::tui::model::saves::EvalName;
use crate::tui::msg::Msg;
use crate::workspace::Workspace;
use crate::workspace::lint::{self, ExampleResult};

impl Runtime {
    /// A newer one ends an older one.
    pub(super) fn try_examples(
        &mut self,
        number: u64,
        workspace: Arc<Workspace>,
        judged: Vec<EvalName>,
    ) {
        self.exam.cancel();
        self.exam = CancellationToken::new();
        self.tried = CancellationToken::new();
        let (stop, tried) = (self.exam.clone(), self.tried.clone().drop_guard());
        let (deps, out) = (Arc::clone(&self.deps), self.out.clone());
        let working = out.busy.enter();
        tokio::spawn(async move {
            let (registry, of) = (Arc::clone(&deps.registry), Arc::clone(&workspace));
            let checks = tokio::task::spawn_blocking(move || {
                // What misses is told with the eval: no snippets are made for a screen.
                lint::run_code_examples(&of.rubrics, &registry).results
            });
            match checks.await {
                Ok(trials) => out.answer(Msg::ExamplesTried { number, trials }),
                Err(error) => out.answer(Msg::Refused(format!(
                    "the examples were not tried: {}",
                    bug(&error)
                ))),
            }
            // Whatever came of it: what was saved is judged now.
            drop(tried);
            if !judged.is_empty() {
                let judging = tokio::spawn(ask(deps, workspace, judged, stop));
                let (trials, problem) = match judging.await {
                    Ok(Ok(trials)) => (trials, None),
                    Ok(Err(why)) => (Vec::new(), Some(why)),
                    Err(error) => (Vec::new(), Some(bug(&error))),
                };
                out.answer(Msg::ExamplesJudged {
                    number,
                    trials,
                    problem,
                });
            }
            drop(working);
        });
    }
}

/// As long as nothing was to be tried, nothing waits.
pub(super) fn nothing_to_try() -> CancellationToken {
    let tried = CancellationToken::new();
    tried.cancel();
    tried
}

/// Asks the judges of these evals. That a judge costs nothing is looked at once more: it is asked by nobody's leave.
async fn ask(
    deps: Arc<Deps>,
    workspace: Arc<Workspace>,
    judged: Vec<EvalName>,
    stop: CancellationToken,
) -> Result<Vec<ExampleResult>, String> {
    let (clock, stopped) = (Arc::clone(&deps.clock), stop.clone());
    let prepared = tokio::task::spawn_blocking(move || {
        let may = |rubric: &Rubric, eval: &Eval, judge: Option<&JudgeConfig>| {
            let this = |name: &EvalName| name.rubric == rubric.id && name.eval == eval.id;
            judge.is_some_and(JudgeConfig::is_free) && judged.iter().any(this)
        };
        // Opens tools, which may wait; the thread is this task's own.
        let exam = ExampleCheck::prepare(
            &workspace,
            &deps.registry,
            &deps.env,
            &deps.clock,
            RunOptions::default(),
            true,
            &may,
        );
        let exam = Handle::current().block_on(unless(&stopped, exam));
        exam.map_or(Ok(None), |exam| exam.map(Some))
            .map_err(|error| error.to_string())
    });
    match prepared.await.map_err(|error| bug(&error))?? {
        Some(exam) => Ok(exam.run(clock, stop).await),
        None => Ok(Vec::new()),
    }
}
