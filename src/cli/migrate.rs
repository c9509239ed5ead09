//! `dicta migrate --from JUDGE --to JUDGE`: judges the same decisions with both judges and prints the report of
//! `dicta compare --migration`. Exit code 0: compared.
//!
//! Responsible for the two runs. [`super::migration`] makes the report.

use std::num::NonZeroUsize;
use std::sync::Arc;

use serde_json::json;

use super::compare;
use super::consent::{announce_paid_calls, describe_calls, print_dry_run};
use super::error::CommandError;
use super::measured_run::{run_to_end, to_command_error};
use super::planned_cells::for_each_planned_cell;
use super::state_args::{CompareArgs, MigrateArgs};
use super::trust::confirm_run;
use super::workspace::load_workspace;
use super::{CommandCx, build_runtime};
use crate::diag::find_nearest;
use crate::event::RunPurpose;
use crate::handlers::EvalTypeRegistry;
use crate::model::pluralize;
use crate::run::{self, CachePolicy, DecisionFilter, PaidCalls, RunOptions};
use crate::workspace::Workspace;

/// Runs both judges and compares them.
pub(super) fn migrate(args: &MigrateArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let opened = load_workspace(args.place.workspace.as_deref(), cx)?;
    opened.announce_briefly(cx);
    let workspace = &opened.workspace;
    for name in [&args.from, &args.to] {
        check_judge(name, workspace)?;
    }
    if args.from == args.to {
        return Err(CommandError::usage(
            "--from and --to name the same judge; give the new judge a name of its own under `judges:` in dicta.yaml",
        ));
    }
    let names = list_decisions_of(&args.from, workspace, cx)?;
    let registry = EvalTypeRegistry::builtin();
    let runtime = build_runtime()?;
    let options = |judge: &str| RunOptions {
        filter: Some(DecisionFilter::from_names(names.iter().cloned())),
        judge: Some(judge.to_owned()),
        concurrency: args.calls.jobs.map(NonZeroUsize::get),
        cache: CachePolicy::Use,
        purpose: RunPurpose::Variants,
        max_cost_usd: args.calls.consent.max_cost,
        label: format!("migration from {} to {}: {judge}", args.from, args.to),
        ..RunOptions::default()
    };
    // Step: price both judges before the first call.
    let mut previews = Vec::new();
    for judge in [&args.from, &args.to] {
        let preview = run::preview_run(
            Arc::clone(workspace),
            &registry,
            &cx.env,
            &cx.clock,
            options(judge),
        );
        previews.push(runtime.block_on(preview).map_err(to_command_error)?);
    }
    let all = previews.iter().flat_map(|preview| &preview.judges);
    let calls = PaidCalls::of_judges(all.map(|(name, judge)| (name.as_str(), judge)));
    let what = pluralize(names.len() as u64, "decision");
    if args.calls.dry_run {
        let plan = || json!({"decisions": names.len(), "from": args.from, "to": args.to});
        let human = || {
            let cost = describe_calls(&calls, "cell");
            format!(
                "judges {what} with {} and with {}: {cost}",
                args.from, args.to
            )
        };
        print_dry_run("migrate", args.format, &calls, plan, human, cx)?;
        return Ok(0);
    }
    for judge in [&args.from, &args.to] {
        confirm_run(workspace, &registry, &options(judge), cx)?;
    }
    let limit_usd = workspace.limits.confirm_usd;
    announce_paid_calls(&calls, "cell", limit_usd, &args.calls.consent, cx)?;
    let mut runs = Vec::new();
    let mut left_usd = args.calls.consent.max_cost;
    for judge in [&args.from, &args.to] {
        cx.streams
            .print_note(&format!("migration: judging {what} with {judge}"));
        let options = RunOptions {
            max_cost_usd: left_usd,
            ..options(judge)
        };
        let finished =
            runtime.block_on(run_to_end(Arc::clone(workspace), options, &registry, cx))?;
        left_usd = finished.subtract_cost(left_usd);
        runs.push(finished.run.letters().to_owned());
    }
    // A judge may block in a call that can't be cancelled, so don't wait for it.
    drop(runtime);
    let mut runs = runs.into_iter();
    let compared = CompareArgs {
        before: runs.next(),
        after: runs.next(),
        fail_on: None,
        migration: true,
        margin: args.margin,
        format: args.format,
        place: args.place.clone(),
    };
    compare::compare(&compared, cx)
}

fn check_judge(name: &str, workspace: &Workspace) -> Result<(), CommandError> {
    if workspace.find_judge(name).is_some() {
        return Ok(());
    }
    let names = workspace.judges.keys().map(String::as_str);
    let hint = find_nearest(name, names.clone()).map_or_else(
        || {
            let names: Vec<&str> = names.collect();
            format!("the judges here are {}", names.join(", "))
        },
        |near| format!("did you mean `{near}`?"),
    );
    Err(CommandError::usage(format!(
        "no judge is called `{name}`; {hint}"
    )))
}

/// Returns the names of the decisions that a judge decides today.
fn list_decisions_of(
    judge: &str,
    workspace: &Arc<Workspace>,
    cx: &CommandCx,
) -> Result<Vec<String>, CommandError> {
    let mut names: Vec<String> = Vec::new();
    for_each_planned_cell(workspace, None, cx, |cell| {
        let own = cell
            .key
            .judge
            .and_then(|at| cell.header.judges.get(at as usize))
            .is_some_and(|spec| spec.config.name == judge);
        let name = cell.decision.to_string();
        // Repeats follow each other.
        if own && names.last() != Some(&name) {
            names.push(name);
        }
    })?;
    if names.is_empty() {
        return Err(CommandError::usage(format!(
            "judge `{judge}` decides no eval of this workspace, so there is nothing to migrate"
        )));
    }
    Ok(names)
}
