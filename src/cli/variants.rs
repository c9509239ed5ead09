//! `dicta variants FILE`: runs variants of one judged eval on the dev labels, and compares them with the first.
//! `--take NAME` writes a variant into the rubric instead. `--split EVAL` compares an eval with its clauses.
//! Exit code 0: measured; 3: no label has a verdict.
//!
//! Responsible for the order of steps. Does not compute figures.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::json;

use super::clause_split;
use super::consent::{announce_paid_calls, print_dry_run};
use super::error::CommandError;
use super::state_args::VariantsArgs;
use super::variant_report::VariantReport;
use super::variant_runs::{PricedVariants, confirm_variant, list_ids, run_variant};
use super::workspace::load_workspace;
use super::{CommandCx, build_runtime};
use crate::compare::{
    compare_variants_after, explain_by_clauses, join_clauses, read_variant_verdicts,
};
use crate::diag::Diagnostic;
use crate::handlers::EvalTypeRegistry;
use crate::model::{SplitPart, make_visible};
use crate::rubric::{Eval, Rubric};
use crate::run::{
    check_shots, count_earlier_variants, list_part_labels, prepare_variant, variant_key,
};
use crate::workspace::Workspace;
use crate::workspace::rubric_write::{RubricFileChange, write_rubric_files};
use crate::workspace::variant_file::{Variant, VariantFile};

/// The exit code if nothing could be measured.
pub(super) const UNMEASURED: u8 = 3;

/// Runs the variants, or writes one.
pub(super) fn variants(args: &VariantsArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let opened = load_workspace(args.place.workspace.as_deref(), cx)?;
    opened.announce_briefly(cx);
    let workspace = &opened.workspace;
    let registry = EvalTypeRegistry::builtin();
    if let (Some(eval), Some(name)) = (&args.split, &args.take) {
        let file = clause_split::list_form(eval, workspace, &registry)?;
        return take_variant(&file, file.find(name)?, workspace, &registry, cx);
    }
    let file = match (&args.split, &args.file) {
        (Some(eval), _) => clause_split::split_eval(eval, workspace, &registry)?,
        (None, Some(file)) => VariantFile::read(file, workspace, &registry)?,
        (None, None) => {
            return Err(CommandError::usage(
                "dicta variants needs a file of variants, or --split EVAL",
            ));
        }
    };
    if let Some(name) = &args.take {
        return take_variant(&file, file.find(name)?, workspace, &registry, cx);
    }
    let labels = list_part_labels(
        &file,
        SplitPart::Dev,
        workspace,
        &registry,
        &cx.env,
        &cx.clock,
    )?;
    let mut prepared = Vec::new();
    for variant in &file.variants {
        let mut one = prepare_variant(&file, variant, &labels, workspace, &registry)?;
        one.options.max_cost_usd = args.calls.consent.max_cost;
        prepared.push(one);
    }
    let runtime = build_runtime()?;
    let priced = PricedVariants::new(&prepared, &runtime, cx)?;
    if args.calls.dry_run {
        let plan = || json!({"labels": labels.len(), "variants": priced.to_json()});
        let human = || priced.describe(labels.len());
        print_dry_run("variants", args.format, &priced.calls(), plan, human, cx)?;
        return Ok(0);
    }
    for variant in &prepared {
        confirm_variant(variant, cx)?;
    }
    let limit_usd = workspace.limits.confirm_usd;
    let consent = &args.calls.consent;
    announce_paid_calls(&priced.calls(), "cell", limit_usd, consent, cx)?;
    // Step: run them one after the other, so that a limit covers all of them.
    let ids = list_ids(&labels);
    let mut left_usd = args.calls.consent.max_cost;
    let mut verdicts = Vec::new();
    let mut keys = BTreeSet::new();
    for mut variant in prepared {
        if args.split.is_some() {
            // A clause does not compete with the whole, so it does not count among the variants that were tried.
            variant.options.label = format!("{} of {}", variant.name, file.eval_name());
        }
        let name = variant.name.clone();
        let finished = run_variant(variant, &labels, &mut left_usd, &args.calls, &runtime, cx)?;
        verdicts.push(read_variant_verdicts(&name, &finished.state, &ids));
        let header = finished.state.header.as_deref();
        keys.extend(header.map(|header| variant_key(header, &file)));
    }
    // A judge may block in a call that can't be cancelled, so don't wait for it.
    drop(runtime);
    let passed: Vec<bool> = labels.iter().map(|label| label.passed).collect();
    let clauses = args.split.is_some().then(|| {
        let texts = clause_split::clause_texts(&file);
        let explained = explain_by_clauses(&passed, &verdicts);
        // No clause competes with the whole, so only all of them together are a variant.
        verdicts = join_clauses(std::mem::take(&mut verdicts));
        (texts, explained)
    });
    let earlier = if args.split.is_some() {
        0
    } else {
        count_earlier_variants(workspace, &cx.env, &file, &keys)
    };
    let report = VariantReport {
        eval: file.eval_name(),
        table: compare_variants_after(&passed, &verdicts, earlier),
        label_passes: passed.iter().filter(|passed| **passed).count() as u64,
        label_fails: passed.iter().filter(|passed| !**passed).count() as u64,
        clauses,
    };
    cx.streams
        .print_format(args.format, &report.format(args.format));
    Ok(if report.is_measured() { 0 } else { UNMEASURED })
}

/// Writes the change of a variant into the rubric file.
pub(super) fn take_variant(
    file: &VariantFile,
    variant: &Variant,
    workspace: &Workspace,
    registry: &EvalTypeRegistry,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let (text, changed) = file.apply(variant, workspace, registry)?;
    let path = &file.rubric.path;
    let shown = make_visible(&path.to_string_lossy(), false).into_owned();
    if *text == *file.rubric.source {
        cx.streams.print_wrapped(&format!(
            "variant {} changes nothing, so {shown} stays as it is\n",
            variant.name
        ));
        return Ok(0);
    }
    // A run would refuse such shots, so the rubric must not get them.
    if let Some(problem) = find_new_shot_problem(workspace, &changed) {
        return Err(CommandError::usage(format!(
            "variant {}: {}; {shown} stays as it is",
            make_visible(&variant.name, false),
            problem.message
        )));
    }
    let change = RubricFileChange {
        path: path.clone(),
        before: Some(Arc::clone(&file.rubric.source)),
        after: Some(text),
    };
    write_rubric_files(workspace, &[change]).map_err(|error| CommandError::from_error(&error))?;
    let keys: Vec<&str> = variant
        .values
        .iter()
        .map(|value| value.key.as_str())
        .collect();
    cx.streams.print_wrapped(&format!(
        "wrote {} of {} into {shown}\n{}next: `dicta run`, then `dicta agree --unseal` measures once on the test labels and \
         records the look\n",
        keys.join(", "),
        file.eval_name(),
        describe_label_change(file, &changed),
    ));
    Ok(0)
}

/// Returns a problem of shots that the workspace does not have without the change.
fn find_new_shot_problem(workspace: &Workspace, changed: &Workspace) -> Option<Diagnostic> {
    let problems = check_shots(changed);
    if problems.is_empty() {
        return None;
    }
    let known = check_shots(workspace);
    let is_new = |one: &Diagnostic| known.iter().all(|known| known.message != one.message);
    problems.into_iter().find(is_new)
}

/// Describes what a written variant changes for labels: a line for each change, or an empty text.
fn describe_label_change(file: &VariantFile, changed: &Workspace) -> String {
    let own = |rubric: &Rubric| -> Vec<Eval> {
        let evals = rubric.evals.iter().filter(|eval| file.has_part(&eval.id));
        evals.cloned().collect()
    };
    let before = own(&file.rubric);
    let now = changed
        .rubrics
        .iter()
        .find(|rubric| rubric.path == file.rubric.path);
    let after = now.map_or_else(Vec::new, |rubric| own(rubric));
    // The question of the whole, which labels answer.
    let question = |evals: &[Eval]| {
        let first = evals.first()?;
        let whole = first.part_of.as_ref().map(|whole| &whole.question);
        Some(whole.unwrap_or(&first.question).clone())
    };
    let mut out = String::new();
    if question(&before) != question(&after) {
        out.push_str(
            "the question changed, so labels that record the old one count only after a confirmation: `dicta labels confirm \
             --all`, if they answer the new question, too; labels without a recorded question still count\n",
        );
    }
    let is_split = |evals: &[Eval]| evals.iter().any(|eval| eval.part_of.is_some());
    if is_split(&after) && !is_split(&before) {
        let _infallible = writeln!(
            out,
            "each criterion is an eval of its own now; labels stay on {}, and `dicta agree` compares them with all criteria \
             together",
            file.eval_name()
        );
    }
    out
}
