//! `dicta run`: responsible for starting a run and its exit code. Does not judge or record; `run` does. Does not print
//! results; `run_output` does.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::num::{NonZeroU64, NonZeroUsize};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::args::{MissPolicyArg, RunArgs};
use super::consent::confirm_paid_calls;
use super::error::{CommandError, EXIT_USAGE};
use super::format::{Format, LIST_FORMATS, format_document};
use super::pauses::PauseQueue;
use super::print_timer::{PrintStep, PrintTimer};
use super::question::can_ask;
use super::resumed_run::find_resumed_run;
use super::run_files::RunFiles;
use super::run_output::RunPrinter;
use super::show::SHOWN_EVENTS;
use super::streams::Streams;
use super::trust::confirm_run;
use super::workspace::{CommandWorkspace, check_labels};
use super::{CommandCx, build_runtime};
use crate::diag::{Diagnostic, has_errors};
use crate::handlers::EvalTypeRegistry;
use crate::judge::{EvidenceMissPolicy, PausedTrace};
use crate::model::{ExitReason, pluralize};
use crate::process::ExitSignalsHandled;
use crate::record::RecordedRun;
use crate::report::{EvalVerdicts, RunSummary};
use crate::run::{
    self, CachePolicy, CompiledRun, JudgePreview, PaidCalls, RunError, RunHandle, RunOptions,
    RunPreview, SampleSpec, TokenEstimate,
};
use crate::workspace;
use crate::workspace::lint::{EvalTally, lint_same_verdict};

/// Runs the evals and returns the exit code of the results.
pub(super) fn run(args: &RunArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    // A resumed run has its own judges, so it needs no default judge; `rules` exists in every workspace.
    let resumed_judge = args.resume.as_ref().map(|_| "rules");
    let judge = args.judge.as_deref().or(resumed_judge);
    let files = RunFiles::load(&args.paths, judge, cx)?;
    let opened = &files.opened;
    // Results are compared with labels, so an invalid label is an error here.
    check_labels(&opened.workspace)?;
    opened.announce(cx);
    // A resumed run has the files of the old run.
    if args.resume.is_some() && files.is_limited {
        return Err(CommandError::usage(
            "--resume judges the files of the resumed run; leave out the rubric and transcript files",
        ));
    }
    if !args.breakpoints.is_empty() && !can_ask(cx) {
        return Err(CommandError::usage(
            "--break asks at each pause, and there is no terminal; nothing was run",
        ));
    }
    let resumed = args.resume.as_deref();
    let resumed = resumed.map(|name| find_resumed_run(name, &opened.workspace, cx));
    let resumed = resumed.transpose()?;
    let options = build_options(args, resumed.clone(), &files)?;
    let registry = EvalTypeRegistry::builtin();
    // Step: report that one judge replaces panels, because this changes how evals decide.
    if let Some(judge) = &options.judge {
        let panels = run::collect_panel_rules(&opened.workspace).len() as u64;
        if panels > 0 {
            let evals = pluralize(panels, "eval");
            cx.streams.print_note(&format!(
                "--judge: in this run, {judge} replaces the jury or cascade of {evals}"
            ));
        }
    }
    // Step: report an option that changes nothing. A resumed run can have recorded tool responses of its own.
    let replays_tools = args.replay_tools.is_some()
        || args.resume.is_some()
        || opened.workspace.replayed_evidence_run.is_some();
    if args.on_missing != MissPolicyArg::default() && !replays_tools {
        cx.streams.print_note(&format!(
            "--on-missing {} has no effect, because the run uses no recorded tool responses; --replay-tools names \
             their run",
            options.evidence_miss.as_str()
        ));
    }
    // Step: a dry run prints the plan and ends here.
    if args.dry_run {
        args.format.require(LIST_FORMATS, "a dry run")?;
        let workspace = Arc::clone(&opened.workspace);
        let runtime = build_runtime()?;
        let preview = runtime
            .block_on(run::preview_run(
                workspace, &registry, &cx.env, &cx.clock, options,
            ))
            .map_err(|error| CommandError::from_error(&error))?;
        let text = match args.format {
            Format::Human => format_plan(&preview),
            format => format_document(format, &plan_to_json(&preview)),
        };
        cx.streams.print_format(args.format, &text);
        if preview.cells == 0 {
            return Err(explain_empty_run(args.filter.as_deref()));
        }
        return Ok(0);
    }
    // Step: a finished run leaves nothing to resume.
    let selects_part = options.judge.is_some() || args.repeat.is_some() || !is_whole_plan(args);
    if let Some(name) = resumed.as_ref().filter(|_| !selects_part) {
        let finished = run::find_finished_run(&opened.workspace, &cx.env, name);
        let finished = finished.map_err(|error| CommandError::from_error(&error))?;
        if let Some(finished) = finished {
            return print_finished_run(&finished, args, &files, cx);
        }
    }
    // Step: a selection of nothing is probably a mistake, so no run is recorded.
    let mut compiled = None;
    if args.resume.is_none() {
        let fail = |error: RunError| CommandError::from_error(&error);
        let workspace = Arc::clone(&opened.workspace);
        let run =
            CompiledRun::compile(workspace, &registry, &cx.env, options.clone()).map_err(fail)?;
        if !run::selects_any_cell(&run).map_err(fail)? {
            return Err(explain_empty_run(args.filter.as_deref()));
        }
        compiled = Some(run);
    }
    // Step: ask before the outputs are opened, because a refused run must not replace a file.
    confirm_run(&opened.workspace, &registry, &options, cx)?;
    let runtime = build_runtime()?;
    // The estimate plans the run once more, so it is left out if its answer is known.
    if !args.consent.is_given() {
        let workspace = Arc::clone(&opened.workspace);
        let calls =
            run::estimate_paid_calls(workspace, &registry, &cx.env, &cx.clock, options.clone());
        let calls = runtime
            .block_on(calls)
            .map_err(|error| CommandError::from_error(&error))?;
        let limit_usd = opened.workspace.limits.confirm_usd;
        confirm_paid_calls(&calls, "cell", limit_usd, &args.consent, cx)?;
    }
    // Step: open the outputs before the run, so that a wrong `-o` costs nothing.
    let mut printer = RunPrinter::new(args, &opened.workspace, &files.inputs, cx)?;
    if is_whole(args) && !files.is_limited && !opened.workspace.labels.is_empty() {
        // The ids are needed only to find labels without a transcript.
        printer.seen_transcripts = Some(HashSet::new());
    }
    // With another format, a program reads the results, so leave out the warnings for people.
    let shows_warnings = args.format == Format::Human && !cx.streams.is_quiet();
    let end = runtime.block_on(drive_run(
        opened,
        RunToStart {
            registry: &registry,
            options,
            compiled,
        },
        printer,
        shows_warnings,
        args,
        cx,
    ));
    Streams::clear_progress();
    // A judge may block in a call that can't be cancelled. All printed results are recorded, so don't wait for it.
    drop(runtime);
    end
}

/// Prints the results of a finished run again, and returns its exit code. Records nothing.
fn print_finished_run(
    run: &RecordedRun,
    args: &RunArgs,
    files: &RunFiles,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let mut printer = RunPrinter::new(args, &files.opened.workspace, &files.inputs, cx)?;
    printer.omit_live_output();
    let mut events = run.events_with_tags(SHOWN_EVENTS)?;
    for event in &mut events {
        printer.print_events(&[event?], cx.clock.now());
    }
    let (summary, written) = printer.finish();
    cx.streams.print_stderr(&format!(
        "run {} is finished: nothing is left to do (`--refresh` judges everything again)",
        run.id.letters()
    ));
    written?;
    Ok(choose_exit_code(&summary, args))
}

/// Returns the exit code of the results.
fn choose_exit_code(summary: &RunSummary, args: &RunArgs) -> u8 {
    if args.strict {
        summary.strict_exit_code()
    } else {
        summary.exit_code()
    }
}

/// Returns the error of a run that selects no cell.
fn explain_empty_run(filter: Option<&str>) -> CommandError {
    let Some(filter) = filter else {
        return CommandError::usage(
            "no cells selected: no eval applies to these transcripts; look at `applies_to` of the evals, and at \
             `dicta check`, which lists files and records that dicta cannot read",
        );
    };
    // In `transcript:order 17`, `17` is a further text that the cell's name must contain.
    let quotes = if filter.contains(' ') && !filter.contains('"') {
        "; a value with spaces needs quotes, as in 'transcript:\"order 17\"'"
    } else {
        ""
    };
    CommandError::usage(format!(
        "no cells selected: no cell matches the filter `{filter}`, or no eval applies to these transcripts{quotes}; \
         `dicta run --dry-run` counts the cells without a filter"
    ))
}

fn build_options(
    args: &RunArgs,
    resume: Option<String>,
    files: &RunFiles,
) -> Result<RunOptions, CommandError> {
    let filter = files.build_filter(args.filter.as_deref())?;
    Ok(RunOptions {
        filter,
        is_strict: args.strict,
        judge: args.judge.clone(),
        concurrency: args.jobs.map(NonZeroUsize::get),
        limit: args.limit.map(NonZeroU64::get),
        sample: args.sample.map(|size| SampleSpec {
            size: size.get(),
            seed: args.seed,
        }),
        repeat: args.repeat,
        evidence_run: args.replay_tools.clone(),
        evidence_miss: match args.on_missing {
            MissPolicyArg::Live => EvidenceMissPolicy::Live,
            MissPolicyArg::Error => EvidenceMissPolicy::Error,
            MissPolicyArg::End => EvidenceMissPolicy::End,
        },
        // clap refuses combinations of these flags, so the order does not matter.
        cache: match (args.no_cache, args.refresh, args.recorded) {
            (true, ..) => CachePolicy::Off,
            (_, true, _) => CachePolicy::Refresh,
            (.., true) => CachePolicy::LeaveUncachedPending,
            _ => CachePolicy::Use,
        },
        resume,
        max_cost_usd: args.consent.max_cost,
        has_chosen_transcripts: files.has_chosen_transcripts,
        ..RunOptions::default()
    })
}

/// The run that a command starts.
struct RunToStart<'r> {
    registry: &'r EvalTypeRegistry,
    options: RunOptions,
    /// The run with its compiled evals, unless it resumes another one.
    compiled: Option<CompiledRun>,
}

async fn drive_run(
    opened: &CommandWorkspace,
    to_start: RunToStart<'_>,
    mut printer: RunPrinter,
    shows_warnings: bool,
    args: &RunArgs,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    // Listen before the run starts, so that no signal ends the process during the recording.
    let mut signals = ExitSignals::new()?;
    let RunToStart {
        registry,
        mut options,
        mut compiled,
    } = to_start;
    let mut pauses = None;
    if !args.breakpoints.is_empty() {
        let (gate, queue) = PauseQueue::new(args.breakpoints.clone(), &cx.env, cx.streams);
        options.gate = gate;
        // The run was compiled with the gate that never pauses.
        compiled = compiled.map(|run| run.with_gate(Arc::clone(&options.gate)));
        pauses = Some(queue);
    }
    let workspace = Arc::clone(&opened.workspace);
    let clock = Arc::clone(&cx.clock);
    let starting = async {
        match compiled {
            Some(compiled) => run::start_compiled_run(compiled, &cx.env, clock).await,
            None => run::start_run(workspace, registry, &cx.env, clock, options).await,
        }
    };
    // Opening tools can take long. Nothing is recorded yet, so a signal may end the process at once.
    let started = tokio::select! {
        biased;
        code = signals.next_exit_code() => return Ok(code),
        started = starting => started,
    };
    let RunHandle {
        mut events,
        cancel,
        join,
        ..
    } = started.map_err(|error| match error {
        RunError::Record(error) => CommandError::recording_not_started(&error),
        error => CommandError::from_error(&error),
    })?;
    // Step: print events until the run ends.
    let mut signalled = None;
    let mut has_stopped = false;
    let mut timer = PrintTimer::new(printer.has_progress(), cx.clock.now());
    loop {
        tokio::select! {
            biased;
            // The first signal lets running cells end, because their calls are already paid. The second ends the process.
            code = signals.next_exit_code() => {
                if signalled.is_some() {
                    printer.print_message("stopped; the run is recorded up to this point");
                    return Ok(code);
                }
                printer.print_message("cancelling: running cells end, the others stay pending (press ctrl-c again to stop at once)");
                signalled = Some(code);
                cancel.cancel();
            }
            Some(trace) = next_pause(&mut pauses) => {
                if let Some(queue) = &mut pauses {
                    queue.ask(trace);
                }
            }
            step = timer.next_step(events.recv(), &*cx.clock) => match step {
                PrintStep::Print(batch) => {
                    if let Some(queue) = &mut pauses {
                        queue.note_recorded(&batch);
                    }
                    let has_failed = printer.print_events(&batch, cx.clock.now());
                    if args.fail_fast && has_failed && !std::mem::replace(&mut has_stopped, true) {
                        cancel.cancel();
                        printer.print_note("--fail-fast: a decision failed, so dicta stops the run; open cells get no verdict");
                    }
                }
                PrintStep::Flush => printer.flush(),
                // A progress line would overwrite the question.
                PrintStep::Redraw if pauses.as_ref().is_some_and(PauseQueue::is_asking) => {}
                PrintStep::Redraw => printer.draw_progress(cx.clock.now()),
                PrintStep::End => break,
            },
        }
    }
    // Step: finish the outputs. Even a failed run has results that its reader wants.
    printer.finish_narration();
    let ended = join.await;
    let seen = printer.seen_transcripts.take();
    let (summary, written) = printer.finish();
    match ended {
        Ok(Ok(_)) => {}
        Ok(Err(RunError::Record(error))) => return Err(CommandError::recording_failed(&error)),
        Ok(Err(error)) => return Err(CommandError::from_error(&error)),
        // A panic is a defect of dicta and must end with exit code 101.
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
    // Step: choose the exit code. An incomplete output comes first, then the signal.
    written?;
    if shows_warnings {
        cx.streams
            .print_diagnostics(&lint_run_verdicts(opened, &summary));
    }
    if let Some(code) = signalled {
        return Ok(code);
    }
    // A run without cells judged nothing, so it is not a success. A selection of nothing was refused before, but a resumed
    // run can have none, and files can change.
    if summary.cells == 0 {
        return Err(explain_empty_run(args.filter.as_deref()));
    }
    let code = choose_exit_code(&summary, args);
    match seen {
        Some(seen) if summary.status.is_finished() => {
            let strays = check_stray_labels(opened, &seen);
            cx.streams.print_diagnostics(&strays);
            // A failed eval is more important than a label without a transcript, so its exit code 1 stays.
            Ok(if code != 1 && has_errors(&strays) {
                EXIT_USAGE
            } else {
                code
            })
        }
        _ => Ok(code),
    }
}

/// Waits for the next paused trace. Without breakpoints, waits forever.
async fn next_pause(pauses: &mut Option<PauseQueue>) -> Option<PausedTrace> {
    match pauses {
        Some(queue) => queue.next().await,
        None => std::future::pending().await,
    }
}

/// Returns true if a run covers all transcripts. Only then is a label without a transcript certainly an error.
fn is_whole(args: &RunArgs) -> bool {
    is_whole_plan(args) && args.resume.is_none()
}

/// Returns true if no option leaves out transcripts or cells.
fn is_whole_plan(args: &RunArgs) -> bool {
    args.filter.is_none() && args.limit.is_none() && args.sample.is_none()
}

/// Returns a diagnostic for each label whose transcript does not exist. Transcripts without cells don't occur in the
/// events, so the transcripts are read again if a label matches none of the run's.
fn check_stray_labels(opened: &CommandWorkspace, seen: &HashSet<String>) -> Vec<Diagnostic> {
    let labels = &opened.workspace.labels;
    if labels.iter().all(|label| seen.contains(&label.transcript)) {
        return Vec::new();
    }
    match run::collect_transcript_ids(&opened.workspace) {
        Ok(ids) => workspace::find_stray_labels(&opened.workspace, &ids),
        // The run could read the files, so they changed since. That is not an error of the labels.
        Err(_) => Vec::new(),
    }
}

/// Returns a warning for each eval of the run that has the same verdict everywhere.
fn lint_run_verdicts(opened: &CommandWorkspace, summary: &RunSummary) -> Vec<Diagnostic> {
    let tally = |verdicts: &EvalVerdicts| EvalTally {
        rubric: verdicts.rubric.clone(),
        eval: verdicts.eval.clone(),
        pass: verdicts.pass,
        fail: verdicts.fail,
    };
    let tallies: Vec<EvalTally> = summary.evals.iter().map(tally).collect();
    let workspace = &opened.workspace;
    lint_same_verdict(&workspace.rubrics, &workspace.judges, &tallies)
}

/// Formats the plan of a dry run. Estimates are marked as such.
fn format_plan(preview: &RunPreview) -> String {
    let mut out = format!(
        "{} over {}\n",
        pluralize(preview.cells, "cell"),
        pluralize(preview.transcripts, "transcript")
    );
    for (kind, cells) in &preview.eval_types {
        let _infallible = writeln!(out, "  {cells:>6}  {kind}");
    }
    if preview.skipped > 0 {
        let _infallible = writeln!(
            out,
            "  {:>6}  of these skipped (disabled or not sampled)",
            preview.skipped
        );
    }
    if preview.bad_records > 0 {
        let _infallible = writeln!(
            out,
            "{} could not be read as a transcript (`dicta check` lists the reasons)",
            pluralize(preview.bad_records, "record")
        );
    }
    if preview.broken_files > 0 {
        let _infallible = writeln!(
            out,
            "{} could not be read (`dicta check` lists the reasons)",
            pluralize(preview.broken_files, "file")
        );
    }
    for (name, judge) in &preview.judges {
        out.push_str(&format_judge_plan(name, judge));
    }
    // With one judge, its own line states the cost.
    let paid = PaidCalls::of_run(preview);
    if paid.judges.len() > 1 {
        let _infallible = writeln!(out, "in all: {}", paid.describe("cell"));
    }
    out.push_str("nothing was run\n");
    out
}

/// Returns the plan of a dry run as JSON.
fn plan_to_json(preview: &RunPreview) -> Value {
    let judge = |judge: &JudgePreview| {
        json!({
            "cells": judge.cells,
            "cached": judge.cached,
            "possible_cells": judge.possible_cells,
            "calls_least": judge.calls_least,
            "calls_most": judge.calls_most + judge.possible_calls_most,
            "input_tokens": judge.input_tokens,
            "output_tokens": judge.output_tokens,
            "cost_usd": judge.cost_usd,
            "cost_usd_least": judge.cost_range.map(|range| range.least),
            "cost_usd_most": judge.cost_range.map(|range| range.most),
            "duration_ms": judge.duration.map(|time| time.0),
        })
    };
    let eval_types: Map<String, Value> = preview
        .eval_types
        .iter()
        .map(|(name, cells)| (name.clone(), json!(cells)))
        .collect();
    let judges: Map<String, Value> = preview
        .judges
        .iter()
        .map(|(name, preview)| (name.clone(), judge(preview)))
        .collect();
    json!({
        "type": "plan",
        "cells": preview.cells,
        "transcripts": preview.transcripts,
        "skipped": preview.skipped,
        "bad_records": preview.bad_records,
        "broken_files": preview.broken_files,
        "eval_types": eval_types,
        "judges": judges,
    })
}

fn format_judge_plan(name: &str, judge: &JudgePreview) -> String {
    let mut out = format!("judge `{name}`: {}", pluralize(judge.cells, "cell"));
    if judge.cached > 0 {
        let _infallible = write!(out, ", {} from the cache", judge.cached);
    }
    if judge.possible_cells > 0 {
        let _infallible = write!(
            out,
            ", up to {} more if votes are split or an earlier judge is unsure",
            judge.possible_cells
        );
    }
    // Calls that only a split vote or an unsure judge needs count for the maximum.
    let most = judge.all_calls_most();
    if most == 0 {
        out.push_str(", no model calls\n");
        return out;
    }
    let calls = match judge.calls_least {
        least if least == most => pluralize(most, "model call"),
        least => format!("{least} to {most} model calls"),
    };
    // A judge whose cells are all only possible has no likely tokens.
    let (about, likely) = match judge.calls_least {
        0 => ("up to", judge.tokens_with_all_calls),
        _ => (
            "about",
            TokenEstimate {
                input: judge.input_tokens,
                output: judge.output_tokens,
            },
        ),
    };
    let _infallible = write!(
        out,
        "\n  {calls}, {about} {} tokens read and {} written ({}; {} read, {} written), {}",
        likely.input,
        likely.output,
        judge.basis(),
        format_range(judge.tokens_least.input, judge.tokens_most.input),
        format_range(judge.tokens_least.output, judge.tokens_most.output),
        judge.cost_text()
    );
    if let Some(time) = judge.duration {
        let _infallible = write!(out, ", about {time}");
    }
    out.push('\n');
    out
}

/// Formats the least and the most, or the one number that is both.
fn format_range(least: u64, most: u64) -> String {
    if least == most {
        least.to_string()
    } else {
        format!("{least} to {most}")
    }
}

/// The signals that end a run, as exit codes.
pub(super) struct ExitSignals {
    /// SIGXFSZ would end the process when a file reaches its size limit. With a listener, the write fails instead and
    /// dicta reports the error.
    _file_size: Signal,
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
    _handled: ExitSignalsHandled,
}

impl ExitSignals {
    pub(super) fn new() -> Result<Self, CommandError> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| CommandError::usage(format!("can't listen to signals: {error}")))
        };
        Ok(Self {
            // tokio has no name for SIGXFSZ.
            _file_size: listen(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
            hangup: listen(SignalKind::hangup())?,
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            _handled: ExitSignalsHandled::new(),
        })
    }

    pub(super) async fn next_exit_code(&mut self) -> u8 {
        tokio::select! {
            _ = self.hangup.recv() => ExitReason::HungUp.code(),
            _ = self.interrupt.recv() => ExitReason::Interrupted.code(),
            _ = self.terminate.recv() => ExitReason::Terminated.code(),
        }
    }
}
