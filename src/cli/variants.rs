//! `dicta variants FILE`: runs variants of one judged eval on the dev labels, and compares them with the first.
//! `--take NAME` writes a variant into the rubric instead. Exit code 0: measured; 3: no label has a verdict.
//!
//! Responsible for the order of steps: everything is checked and priced before the first call. Does not compute figures.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::sync::Arc;

use indexmap::IndexMap;

use super::consent::{confirm_paid_calls, describe_calls};
use super::error::CommandError;
use super::format::Format;
use super::label_targets::list_label_targets;
use super::measured_run::{MeasuredRun, run_to_end};
use super::state_args::VariantsArgs;
use super::trust::confirm_run;
use super::variant_file::{Variant, VariantFile};
use super::variant_report::VariantReport;
use super::workspace::load_workspace;
use super::{CommandCx, build_runtime};
use crate::compare::statistics::RepeatedCell;
use crate::compare::{VariantVerdicts, compare_variants, state_of_run};
use crate::event::RunPurpose;
use crate::handlers::EvalTypeRegistry;
use crate::model::{CellName, LabelQuery, SplitPart, pluralize};
use crate::rubric::Rubric;
use crate::run::{self, CachePolicy, DecisionFilter, PaidCalls, RunOptions};
use crate::workspace::Workspace;
use crate::workspace::rubric_write::{RubricFileChange, write_rubric_files};

/// The exit code if nothing could be measured.
const UNMEASURED: u8 = 3;

/// A variant that is ready to run.
struct PreparedVariant {
    name: String,
    workspace: Arc<Workspace>,
    options: RunOptions,
}

/// A label of the part dev.
struct DevLabel {
    transcript: String,
    passed: bool,
}

/// Runs the variants, or writes one.
pub(super) fn variants(args: &VariantsArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let opened = load_workspace(args.place.workspace.as_deref(), cx)?;
    opened.announce_briefly(cx);
    let workspace = &opened.workspace;
    let registry = EvalTypeRegistry::builtin();
    let file = VariantFile::read(&args.file, workspace, &registry)?;
    if let Some(name) = &args.take {
        return take_variant(&file, file.find(name)?, workspace, &registry, cx);
    }
    let labels = list_dev_labels(&file, workspace, cx)?;
    let mut prepared = Vec::new();
    for variant in &file.variants {
        prepared.push(prepare(
            &file, variant, &labels, workspace, &registry, args,
        )?);
    }
    let runtime = build_runtime()?;
    // Step: price every variant before the first call. It also finds leaks and missing labels.
    let mut previews = Vec::new();
    for variant in &prepared {
        let preview = run::preview_run(
            Arc::clone(&variant.workspace),
            &registry,
            &cx.env,
            &cx.clock,
            variant.options.clone(),
        );
        let preview = runtime
            .block_on(preview)
            .map_err(|error| CommandError::usage(format!("variant {}: {error}", variant.name)))?;
        previews.push(preview);
    }
    let all = previews.iter().flat_map(|preview| &preview.judges);
    let calls = PaidCalls::of_judges(all.map(|(name, judge)| (name.as_str(), judge)));
    if args.calls.dry_run {
        args.format.require(&[Format::Human], "a dry run")?;
        let mut out = String::new();
        for (variant, preview) in prepared.iter().zip(&previews) {
            let own = PaidCalls::of_run(preview);
            let _infallible = writeln!(out, "{}: {}", variant.name, describe_calls(&own, "cell"));
        }
        let _infallible = writeln!(
            out,
            "together, on {}: {}\nnothing was run",
            pluralize(labels.len() as u64, "dev label"),
            describe_calls(&calls, "cell")
        );
        cx.streams.print(&out);
        return Ok(0);
    }
    for variant in &prepared {
        confirm_run(&variant.workspace, &registry, &variant.options, cx)?;
    }
    let limit_usd = workspace.limits.confirm_usd;
    confirm_paid_calls(&calls, "cell", limit_usd, &args.calls.consent, cx)?;
    // Step: run them one after the other, so that a limit covers all of them.
    let mut verdicts = Vec::new();
    let mut left_usd = args.calls.consent.max_cost;
    for variant in prepared {
        cx.streams.print_note(&format!(
            "variant {}: judging {}",
            variant.name,
            pluralize(labels.len() as u64, "transcript")
        ));
        let options = RunOptions {
            max_cost_usd: left_usd,
            ..variant.options
        };
        let run = run_to_end(Arc::clone(&variant.workspace), options, &registry, cx);
        let finished = runtime.block_on(run)?;
        left_usd = finished.subtract_cost(left_usd);
        verdicts.push(read_verdicts(&variant.name, &finished, &labels));
    }
    // A judge may block in a call that can't be cancelled, so don't wait for it.
    drop(runtime);
    let passed: Vec<bool> = labels.iter().map(|label| label.passed).collect();
    let report = VariantReport {
        eval: format!("{}/{}", file.rubric.id, file.eval),
        table: compare_variants(&passed, &verdicts),
        label_passes: passed.iter().filter(|passed| **passed).count() as u64,
        label_fails: passed.iter().filter(|passed| !**passed).count() as u64,
    };
    cx.streams.print(&report.format(args.format));
    let is_measured = report
        .table
        .variants
        .iter()
        .any(|one| one.agreement.labels > 0);
    Ok(if is_measured { 0 } else { UNMEASURED })
}

/// Returns the labels of dev on the eval. A shot of the unchanged eval measures nothing, and is of train anyway.
fn list_dev_labels(
    file: &VariantFile,
    workspace: &Arc<Workspace>,
    cx: &CommandCx,
) -> Result<Vec<DevLabel>, CommandError> {
    let Some(sealed) = &workspace.sealed else {
        return Err(CommandError::usage(
            "dicta variants measures on the dev part of the labels, and dicta.yaml has no split: write `split: {train: 0.2, \
             dev: 0.4, test: 0.4}` under `labels:`",
        ));
    };
    let index = workspace.index_labels();
    let mut labels: IndexMap<String, bool> = IndexMap::new();
    for target in list_label_targets(workspace, cx)?.values() {
        let name = &target.name;
        let is_own = name.rubric == file.rubric.id && is_part_of(&name.eval, &file.eval);
        if !is_own
            || name.message.is_some()
            || sealed.seal().part(&name.transcript) != SplitPart::Dev
            || labels.contains_key(&name.transcript)
        {
            continue;
        }
        let own = target.query();
        let query = LabelQuery {
            eval: &file.eval,
            // The parts of an eval have questions of their own, and labels are about the whole.
            question: own.question.filter(|_| name.eval == file.eval),
            ..own
        };
        if let Some(passed) = index.find(&query).and_then(|label| label.passed) {
            labels.insert(name.transcript.clone(), passed);
        }
    }
    if labels.is_empty() {
        return Err(CommandError::usage(format!(
            "no transcript of dev has a label of {}/{} that counts; `dicta label --queue random --eval {}` draws what to label",
            file.rubric.id, file.eval, file.eval
        )));
    }
    let labels = labels.into_iter();
    Ok(labels
        .map(|(transcript, passed)| DevLabel { transcript, passed })
        .collect())
}

/// Returns true for the eval itself, and for one of its criteria: `tone.2` is a part of `tone`.
fn is_part_of(id: &str, eval: &str) -> bool {
    id == eval
        || id
            .strip_prefix(eval)
            .and_then(|rest| rest.strip_prefix('.'))
            .is_some_and(|number| number.parse::<u32>().is_ok())
}

fn prepare(
    file: &VariantFile,
    variant: &Variant,
    labels: &[DevLabel],
    workspace: &Workspace,
    registry: &EvalTypeRegistry,
    args: &VariantsArgs,
) -> Result<PreparedVariant, CommandError> {
    let (_, changed) = file.apply(variant, workspace, registry)?;
    let rubric: Option<&Arc<Rubric>> = changed
        .rubrics
        .iter()
        .find(|rubric| rubric.path == file.rubric.path);
    let evals = rubric.into_iter().flat_map(|rubric| &rubric.evals);
    let ids: Vec<&str> = evals
        .map(|eval| eval.id.as_str())
        .filter(|id| is_part_of(id, &file.eval))
        .collect();
    let names = labels.iter().flat_map(|label| {
        ids.iter().map(|id| {
            let name = CellName {
                transcript: label.transcript.clone(),
                rubric: file.rubric.id.clone(),
                eval: (*id).to_owned(),
                message: None,
                judge: None,
                repeat: None,
            };
            name.to_string()
        })
    });
    let options = RunOptions {
        filter: Some(DecisionFilter::from_names(names)),
        concurrency: args.calls.jobs.map(NonZeroUsize::get),
        cache: CachePolicy::Use,
        purpose: RunPurpose::Variants,
        max_cost_usd: args.calls.consent.max_cost,
        label: format!(
            "variant {} of {}/{}",
            variant.name, file.rubric.id, file.eval
        ),
        ..RunOptions::default()
    };
    Ok(PreparedVariant {
        name: variant.name.clone(),
        workspace: Arc::new(changed),
        options,
    })
}

/// Reads the verdicts of a finished run, in the order of the labels. An eval with several criteria passes if all pass.
fn read_verdicts(name: &str, finished: &MeasuredRun, labels: &[DevLabel]) -> VariantVerdicts {
    let state = state_of_run(&finished.state, 0);
    let mut by_transcript: HashMap<String, Option<bool>> = HashMap::new();
    let mut decisions = 0_u64;
    for decision in state.evals.iter().flat_map(|eval| &eval.decisions) {
        let transcript = state.transcript(decision).id.to_string();
        let passed = decision.passed();
        decisions += 1;
        by_transcript
            .entry(transcript)
            .and_modify(|all| *all = all.zip(passed).map(|(all, one)| all && one))
            .or_insert(passed);
    }
    let mut repeats: HashMap<(u32, u32, Option<u32>), RepeatedCell> = HashMap::new();
    let (mut cells, mut priced, mut cost_usd) = (0_u64, 0_u64, 0.0);
    let mut durations = Vec::new();
    for cell in &finished.state.cells {
        let (Some(planned), Some(result)) = (&cell.planned, &cell.result) else {
            continue;
        };
        cells += 1;
        if let Some(passed) = result.outcome.passed() {
            let key = (planned.transcript, planned.key.eval, planned.key.judge);
            let counts = repeats.entry(key).or_insert(RepeatedCell {
                passes: 0,
                repeats: 0,
            });
            counts.passes += u64::from(passed);
            counts.repeats += 1;
        }
        // A cached result has the cost and the time of a look-up.
        if result.cached.is_none() {
            durations.push(result.duration_ms);
            if let Some(usd) = result.cost_usd {
                priced += 1;
                cost_usd += usd;
            }
        }
    }
    // The cost of one transcript: its criteria and repeats together.
    let transcripts = by_transcript.len().max(1) as f64;
    let per_transcript = cells as f64 / transcripts;
    VariantVerdicts {
        name: name.to_owned(),
        verdicts: labels
            .iter()
            .map(|label| by_transcript.get(&label.transcript).copied().flatten())
            .collect(),
        repeats: repeats.into_values().collect(),
        cost_usd: (priced > 0 && decisions > 0).then(|| cost_usd / priced as f64 * per_transcript),
        durations,
    }
}

/// Writes the change of a variant into the rubric file.
fn take_variant(
    file: &VariantFile,
    variant: &Variant,
    workspace: &Workspace,
    registry: &EvalTypeRegistry,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let (text, _) = file.apply(variant, workspace, registry)?;
    let path = &file.rubric.path;
    if *text == *file.rubric.source {
        cx.streams.print(&format!(
            "variant {} changes nothing, so {} stays as it is\n",
            variant.name,
            path.display()
        ));
        return Ok(0);
    }
    let change = RubricFileChange {
        path: path.clone(),
        before: Some(Arc::clone(&file.rubric.source)),
        after: Some(text),
    };
    write_rubric_files(workspace, &[change])
        .map_err(|error| CommandError::usage(error.to_string()))?;
    let keys: Vec<&str> = variant
        .values
        .iter()
        .map(|value| value.key.as_str())
        .collect();
    cx.streams.print(&format!(
        "wrote {} of {}/{} into {}\nnext: `dicta run`, then `dicta agree --unseal` measures once on the test labels and records \
         the look\n",
        keys.join(", "),
        file.rubric.id,
        file.eval,
        path.display()
    ));
    Ok(0)
}
