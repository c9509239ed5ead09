//! `dicta check --examples`: responsible for judging the examples of judged evals.
//!
//! Prints the judges, calls and costs first. Calls a judge that costs money only with `--yes`. Does not record a run.

use tokio_util::sync::CancellationToken;

use super::args::ExampleArgs;
use super::error::CommandError;
use super::trust::confirm_after;
use super::{CommandCx, build_runtime};
use crate::handlers::EvalTypeRegistry;
use crate::model::{ExitReason, JudgeConfig, Millis, pluralize};
use crate::rubric::{Eval, Rubric};
use crate::run::{ExampleCheck, JudgePreview, RunError, RunOptions};
use crate::workspace::Workspace;
use crate::workspace::lint::{self, ExampleStatus, ExampleSummary};

/// The exit code if an example ended in an error; a run with errors but no failures exits with the same code.
pub(super) const EXIT_UNDECIDED: u8 = ExitReason::NoVerdict.code();

/// Judges the examples and adds the results to `tried`, the results of the code checks. Returns the number of
/// examples that ended in an error.
pub(super) fn run_judged_examples(
    args: &ExampleArgs,
    workspace: &Workspace,
    registry: &EvalTypeRegistry,
    tried: &mut ExampleSummary,
    cx: &CommandCx,
) -> Result<u64, CommandError> {
    let runtime = build_runtime()?;
    // A call that costs money needs `--yes`.
    let may = |judge: &JudgeConfig| args.yes || judge.is_free();
    let exam = |sending: bool, all: bool| {
        let options = RunOptions {
            judge: args.judge.clone(),
            ..RunOptions::default()
        };
        let chosen =
            |_: &Rubric, _: &Eval, judge: Option<&JudgeConfig>| all || judge.is_some_and(may);
        let exam = ExampleCheck::prepare(
            workspace, registry, &cx.env, &cx.clock, options, sending, &chosen,
        );
        runtime.block_on(exam)
    };
    let fail = |error: RunError| CommandError::usage(error.to_string());
    // The preview includes the judges that need `--yes`, and it sends nothing.
    for (judge, preview) in exam(false, true).map_err(fail)?.preview() {
        cx.streams
            .print_stderr(&format_judge_preview(&judge, &preview, may(&judge)));
    }
    let exam = match exam(true, false) {
        Err(error) => {
            confirm_after(&error, cx)?;
            exam(true, false).map_err(fail)?
        }
        Ok(exam) => exam,
    };
    if exam.is_empty() {
        return Ok(0);
    }
    let clock = std::sync::Arc::clone(&cx.clock);
    let trials = runtime.block_on(exam.run(clock, CancellationToken::new()));
    // A judge may block in a call that can't be cancelled, so don't wait for it.
    runtime.shutdown_timeout(Millis(200).to_duration());
    let mut undecided = 0;
    for trial in trials
        .iter()
        .filter(|t| t.status() == ExampleStatus::Undecided)
    {
        undecided += 1;
        cx.streams.print_stderr(&format!(
            "{}:{}:{}: the example of `{}` ended in an error, which doesn't count as a miss: {}",
            trial.path.display(),
            trial.line,
            trial.column,
            trial.eval,
            trial.sentence(),
        ));
    }
    // The code checks counted these examples as left to judges.
    tried.left_to_judges = tried.left_to_judges.saturating_sub(trials.len() as u64);
    tried.as_expected += lint::count_by_status(&trials, ExampleStatus::AsExpected);
    tried.missed += lint::count_by_status(&trials, ExampleStatus::Missed);
    tried
        .problems
        .extend(lint::report_misses(&workspace.rubrics, &trials));
    tried.results.extend(trials);
    Ok(undecided)
}

/// Formats the preview of a judge: `calling gemini for 3 examples: 3 calls or more, about $0.01`.
fn format_judge_preview(judge: &JudgeConfig, preview: &JudgePreview, asks: bool) -> String {
    let (name, examples) = (&judge.name, pluralize(preview.cells, "example"));
    let mut takes = Vec::new();
    if preview.calls_least > 0 {
        let calls = pluralize(preview.calls_least, "call");
        takes.push(if preview.calls_most > preview.calls_least {
            format!("{calls} or more, {} at most", preview.calls_most)
        } else {
            calls
        });
    }
    takes.push(match preview.cost_usd {
        _ if judge.is_free() => "free".to_owned(),
        Some(usd) if usd < 0.01 => "less than $0.01 (estimated)".to_owned(),
        Some(usd) => format!("about ${usd:.2} (estimated)"),
        None => "cost unknown".to_owned(),
    });
    let takes = takes.join(", ");
    if asks {
        return format!("calling {name} for {examples}: {takes}");
    }
    let wait = if preview.cells == 1 { "waits" } else { "wait" };
    format!("{examples} {wait}: {name} may cost money ({takes}); add --yes to call it")
}
