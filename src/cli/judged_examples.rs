//! `dicta check --examples`: responsible for judging the examples of judged evals.
//!
//! Prints the judges, calls and costs first. Calls a judge that costs money only with the user's consent; without it,
//! its examples wait and free judges are called. Does not record a run.

use tokio_util::sync::CancellationToken;

use super::args::ExampleArgs;
use super::consent::{Consent, find_consent};
use super::error::CommandError;
use super::trust::confirm_after;
use super::{CommandCx, build_runtime};
use crate::handlers::EvalTypeRegistry;
use crate::model::{ExitReason, JudgeConfig, pluralize};
use crate::rubric::{Eval, Rubric};
use crate::run::{ExampleCheck, JudgePreview, PaidCalls, RunError, RunOptions};
use crate::workspace::Workspace;
use crate::workspace::lint::{self, ExampleStatus, ExampleSummary};

/// The exit code if an example ended in an error; a run with errors but no failures exits with the same code.
pub(super) const EXIT_UNDECIDED: u8 = ExitReason::NoVerdict.code();

/// The examples that have no result.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UnjudgedExamples {
    /// The number of examples that ended in an error.
    pub(super) undecided: u64,
    /// True if examples wait for the user's consent.
    pub(super) needs_consent: bool,
}

/// Judges the examples and adds the results to `tried`, the results of the code checks.
pub(super) fn run_judged_examples(
    args: &ExampleArgs,
    workspace: &Workspace,
    registry: &EvalTypeRegistry,
    tried: &mut ExampleSummary,
    cx: &CommandCx,
) -> Result<UnjudgedExamples, CommandError> {
    let runtime = build_runtime()?;
    let exam = |sending: bool, chosen: &dyn Fn(Option<&JudgeConfig>) -> bool| {
        let options = RunOptions {
            judge: args.judge.clone(),
            max_cost_usd: args.consent.max_cost,
            ..RunOptions::default()
        };
        let chosen = |_: &Rubric, _: &Eval, judge: Option<&JudgeConfig>| chosen(judge);
        let exam = ExampleCheck::prepare(
            workspace, registry, &cx.env, &cx.clock, options, sending, &chosen,
        );
        runtime.block_on(exam)
    };
    let fail = |error: RunError| CommandError::from_error(&error);
    // Step: preview all judges, which sends nothing, and find out whether the user allows their calls.
    let previews = exam(false, &|_| true).map_err(fail)?.preview();
    let calls = PaidCalls::of_judges(previews.iter().map(|(judge, one)| (&*judge.name, one)));
    let limit_usd = workspace.limits.confirm_usd;
    let consent = find_consent(&calls, "example", limit_usd, &args.consent, cx);
    let may = |judge: &JudgeConfig| consent == Consent::Given || judge.is_free();
    for (judge, preview) in &previews {
        cx.streams
            .print_stderr(&format_judge_preview(judge, preview, may(judge)));
    }
    let needs_consent = consent != Consent::Given;
    let exam = |sending: bool| exam(sending, &|judge| judge.is_some_and(may));
    let exam = match exam(true) {
        Err(error) => {
            confirm_after(&error, cx)?;
            exam(true).map_err(fail)?
        }
        Ok(exam) => exam,
    };
    if exam.is_empty() {
        return Ok(UnjudgedExamples {
            undecided: 0,
            needs_consent,
        });
    }
    let clock = std::sync::Arc::clone(&cx.clock);
    let trials = runtime.block_on(exam.run(clock, CancellationToken::new()));
    // A judge may block in a call that can't be cancelled, so don't wait for it.
    drop(runtime);
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
    Ok(UnjudgedExamples {
        undecided,
        needs_consent,
    })
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
    takes.push(match preview.cost_with_all_calls {
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
    format!(
        "{examples} {wait}: {name} may cost money ({takes}); add --yes or --max-cost USD to call it"
    )
}
