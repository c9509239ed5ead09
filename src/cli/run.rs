//! `dicta run`: responsible for starting a run and printing its events, results and exit code. Does not judge or
//! record; `run` does.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::args::{MissPolicyArg, ResultFormat, RunArgs};
use super::error::{CommandError, EXIT_USAGE};
use super::flush_timer::{FlushTimer, PrintStep};
use super::output_file::OutputFiles;
use super::trust::confirm_run;
use super::workspace::{CommandWorkspace, check_labels, load_workspace};
use super::{CommandCx, build_runtime};
use crate::diag::{Diagnostic, has_errors};
use crate::event::{EventKind, RunEvent};
use crate::handlers::EvalTypeRegistry;
use crate::judge::EvidenceMissPolicy;
use crate::model::{Labels, Millis, pluralize};
use crate::process::ExitSignalsHandled;
use crate::report::{
    EvalVerdicts, Narrator, ReportFormat, ReportRow, ReportWriter, RowBuilder, RunSummary,
    TextStyle,
};
use crate::run::{
    self, CachePolicy, DecisionFilter, JudgePreview, RunError, RunHandle, RunOptions, RunPreview,
    SampleSpec,
};
use crate::storage::{AtomicFile, InputFiles};
use crate::workspace::lint::{EvalTally, lint_same_verdict};
use crate::workspace::{self, Workspace};

const NOTHING_SELECTED: &str =
    "no cells selected: no eval applies to these transcripts, or the filter excludes all cells";

/// Runs the evals and returns the exit code of the results.
pub(super) fn run(args: &RunArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let opened = load_workspace(args.path.as_deref(), cx)?;
    // Results are compared with labels, so an invalid label is an error here.
    check_labels(&opened.workspace)?;
    opened.announce(cx);
    let options = build_options(args)?;
    let registry = EvalTypeRegistry::builtin();
    // Step: report that one judge replaces panels, because this changes how evals decide.
    if let Some(judge) = &options.judge {
        let panels = run::collect_panel_rules(&opened.workspace).len() as u64;
        if panels > 0 {
            let evals = pluralize(panels, "eval");
            cx.streams.print_stderr(&format!(
                "--judge: in this run, {judge} replaces the jury or cascade of {evals}"
            ));
        }
    }
    // Step: a dry run prints the plan and ends here.
    if args.dry_run {
        let workspace = Arc::clone(&opened.workspace);
        let runtime = build_runtime()?;
        let preview = runtime
            .block_on(run::preview_run(
                workspace, &registry, &cx.env, &cx.clock, options,
            ))
            .map_err(|error| CommandError::usage(error.to_string()))?;
        cx.streams.print(&format_plan(&preview));
        if preview.cells == 0 {
            return Err(CommandError::usage(NOTHING_SELECTED));
        }
        return Ok(0);
    }
    // Step: ask before the outputs are opened, because a refused run must not replace a file.
    confirm_run(&opened.workspace, &registry, &options, cx)?;
    // Step: open the outputs before the run, so that a wrong `-o` costs nothing.
    let mut printer = RunPrinter::new(args, &opened.workspace, cx)?;
    if is_whole(args) {
        // The ids are needed only to find labels without a transcript.
        printer.seen_transcripts = Some(HashSet::new());
    }
    let runtime = build_runtime()?;
    // With another format, a program reads the results, so leave out the warnings for people.
    let shows_warnings = args.format == ResultFormat::Human && !args.quiet;
    let end = runtime.block_on(drive_run(
        &opened,
        &registry,
        options,
        printer,
        shows_warnings,
        args.strict,
        cx,
    ));
    // A judge may block in a call that can't be cancelled. All printed results are recorded, so don't wait for it.
    runtime.shutdown_timeout(Millis(200).to_duration());
    end
}

fn build_options(args: &RunArgs) -> Result<RunOptions, CommandError> {
    let filter = match &args.filter {
        None => None,
        Some(text) => Some(
            DecisionFilter::parse(text).map_err(|error| CommandError::usage(error.to_string()))?,
        ),
    };
    // `Permits` would raise 0 to 1, so report the mistake instead.
    if args.jobs == Some(0) {
        return Err(CommandError::usage("-j must be at least 1"));
    }
    Ok(RunOptions {
        filter,
        judge: args.judge.clone(),
        concurrency: args.jobs,
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
        resume: args.resume.clone(),
        max_cost_usd: args.max_cost,
        ..RunOptions::default()
    })
}

async fn drive_run(
    opened: &CommandWorkspace,
    registry: &EvalTypeRegistry,
    options: RunOptions,
    mut printer: RunPrinter,
    shows_warnings: bool,
    strict: bool,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    // Listen before the run starts, so that no signal ends the process during the recording.
    let mut signals = ExitSignals::new()?;
    let workspace = Arc::clone(&opened.workspace);
    let starting = run::start_run(workspace, registry, &cx.env, Arc::clone(&cx.clock), options);
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
        error => CommandError::usage(error.to_string()),
    })?;
    // Step: print events until the run ends.
    let mut signalled = None;
    let mut flush_timer = FlushTimer::default();
    loop {
        tokio::select! {
            biased;
            // The first signal lets running cells end, because their calls are already paid. The second ends the process.
            code = signals.next_exit_code() => {
                if signalled.is_some() {
                    cx.streams.print_stderr("stopped; the run is recorded up to this point");
                    return Ok(code);
                }
                cx.streams.print_stderr("cancelling: running cells end, the others stay pending (press ctrl-c again to stop at once)");
                signalled = Some(code);
                cancel.cancel();
            }
            step = flush_timer.next_step(events.recv(), &*cx.clock) => match step {
                PrintStep::Print(batch) => printer.print_events(&batch),
                PrintStep::Flush => printer.flush(),
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
        Ok(Err(error)) => return Err(CommandError::usage(error.to_string())),
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
    // A run without cells is probably a typing error in the filter, so it is not a success.
    if summary.cells == 0 {
        return Err(CommandError::usage(NOTHING_SELECTED));
    }
    let code = if strict {
        summary.strict_exit_code()
    } else {
        summary.exit_code()
    };
    match seen {
        Some(seen) if !summary.interrupted => {
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

/// Returns true if a run covers all transcripts. Only then is a label without a transcript certainly an error.
fn is_whole(args: &RunArgs) -> bool {
    args.filter.is_none() && args.limit.is_none() && args.sample.is_none() && args.resume.is_none()
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
    lint_same_verdict(&opened.workspace.rubrics, &tallies)
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
    for (name, judge) in &preview.judges {
        out.push_str(&format_judge_plan(name, judge));
    }
    out.push_str("nothing was run\n");
    out
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
    if judge.calls_most + judge.possible_calls_most == 0 {
        out.push_str(", no model calls\n");
        return out;
    }
    // Calls that only a split vote needs count for the maximum.
    let most = judge.calls_most + judge.possible_calls_most;
    let calls = match (judge.calls_least, most) {
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    };
    let _infallible = write!(
        out,
        "\n  {calls} model calls, about {} + {} tokens ({}; {} + {} to {} + {}), {}",
        judge.input_tokens,
        judge.output_tokens,
        judge.basis(),
        judge.tokens_least.input,
        judge.tokens_least.output,
        judge.tokens_most.input,
        judge.tokens_most.output,
        judge.cost_text()
    );
    if let Some(time) = judge.duration {
        let _infallible = write!(out, ", about {time}");
    }
    out.push('\n');
    out
}

/// The outputs of a run: results on standard output and in files, judge turns on standard error.
struct RunPrinter {
    rows: RowBuilder,
    /// The transcripts that have cells, collected if the run covers all transcripts.
    seen_transcripts: Option<HashSet<String>>,
    outputs: Vec<ResultOutput>,
    narrator: Option<Narrator<io::BufWriter<io::Stderr>>>,
    /// True after the first result. Before, the old files of `-o` stay.
    has_results: bool,
}

struct ResultOutput {
    /// The file, or None for standard output.
    file: Option<OutputFile>,
    /// None after a write failed, because the reader closed the pipe or the disk is full. The run goes on, because
    /// its recording is separate.
    writer: Option<Box<dyn ReportWriter>>,
    error: Option<io::Error>,
}

/// A file that receives results.
struct OutputFile {
    path: std::path::PathBuf,
    content: AtomicFile,
    /// True if the format writes each result at once, so that the file is useful before the run ends.
    is_streamed: bool,
}

impl RunPrinter {
    fn new(args: &RunArgs, workspace: &Workspace, cx: &CommandCx) -> Result<Self, CommandError> {
        let inputs = workspace.input_files(&cx.env);
        let inputs: InputFiles = inputs
            .transcripts
            .into_iter()
            .chain(inputs.others)
            .collect();
        let mut files = OutputFiles::default();
        let format = ReportFormat::from(args.format);
        // If both streams are terminals, the narrator and the results share the screen.
        let style = TextStyle {
            has_narrator: !args.quiet && cx.streams.out.terminal && cx.streams.err.terminal,
            ..cx.streams.out
        };
        let stdout = format.writer(Box::new(io::stdout()), style);
        let mut outputs = vec![ResultOutput {
            file: None,
            writer: Some(stdout),
            error: None,
        }];
        for path in &args.output {
            let format = ReportFormat::from_path(path).ok_or_else(|| {
                let path = path.display();
                CommandError::usage(format!(
                    "-o {path}: unknown file extension; use .jsonl, .xml, .md or .txt"
                ))
            })?;
            // Start the file now: a missing folder must not be found after the run.
            let content = files.open("-o", path, &inputs)?;
            let file = content
                .try_clone_file()
                .map_err(|error| CommandError::usage(format!("-o {}: {error}", path.display())))?;
            let writer = Some(format.writer(Box::new(file), TextStyle::default()));
            outputs.push(ResultOutput {
                file: Some(OutputFile {
                    path: path.clone(),
                    content,
                    is_streamed: matches!(format, ReportFormat::Jsonl | ReportFormat::Human),
                }),
                writer,
                error: None,
            });
        }
        let narrator = (!args.quiet).then(|| {
            Narrator::new(
                // Standard error is unbuffered, and streamed tokens would cause one write each.
                io::BufWriter::with_capacity(16 * 1024, io::stderr()),
                cx.streams.err,
            )
        });
        Ok(Self {
            rows: RowBuilder::with_labels(Labels::new(workspace.labels.iter().cloned())),
            outputs,
            narrator,
            seen_transcripts: None,
            has_results: false,
        })
    }

    fn print_events(&mut self, events: &[RunEvent]) {
        let Self {
            rows,
            seen_transcripts: seen,
            outputs,
            narrator,
            has_results,
        } = self;
        for event in events {
            if let (Some(seen), EventKind::CellsPlanned { transcript, .. }) =
                (&mut *seen, &event.kind)
            {
                seen.insert(transcript.id.clone());
            }
            if let Some(active) = narrator
                && active.narrate_event(event).is_err()
            {
                // Standard error is closed. The run goes on without the narration.
                *narrator = None;
            }
            // The closure cannot fail, because each output keeps its own error.
            let Ok(()) = rows.apply(event, &mut |row| {
                *has_results |= matches!(row, ReportRow::Result(_));
                write_row(outputs, row);
                Ok::<(), Infallible>(())
            });
        }
        if let Some(narrator) = narrator {
            let _gone = narrator.flush();
        }
    }

    /// Prints the judge output that the narrator still buffers. No event may follow.
    fn finish_narration(&mut self) {
        if let Some(narrator) = &mut self.narrator {
            let _gone = narrator.finish();
        }
    }

    fn flush(&mut self) {
        for output in &mut self.outputs {
            output.write(|writer| writer.flush());
            if self.has_results {
                output.publish(false);
            }
        }
    }

    /// Finishes all outputs. Returns the summary, and an error if an output is incomplete.
    fn finish(mut self) -> (RunSummary, Result<(), CommandError>) {
        let (outputs, has_results) = (&mut self.outputs, &mut self.has_results);
        let Ok(summary) = self.rows.finish(&mut |row| {
            *has_results |= matches!(row, ReportRow::Result(_));
            write_row(outputs, row);
            Ok::<(), Infallible>(())
        });
        for output in outputs.iter_mut() {
            output.write(|writer| writer.finish());
            // An incomplete file after a failed write must not replace a complete one.
            if *has_results && output.error.is_none() {
                output.publish(true);
            }
        }
        let trouble = self.outputs.iter().find_map(|output| {
            let to = match &output.file {
                Some(file) => format!("-o {}", file.path.display()),
                None => "standard output".to_owned(),
            };
            CommandError::output_failed(&to, output.error.as_ref()?)
        });
        (summary, trouble.map_or(Ok(()), Err))
    }
}

/// Writes a row to all outputs. A failed output is skipped from then on, because output errors must not fail a run.
fn write_row(outputs: &mut [ResultOutput], row: &ReportRow<'_>) {
    for output in outputs {
        output.write(|writer| writer.write_row(row));
    }
}

impl ResultOutput {
    /// Replaces the file of `-o` by the results so far: a streamed one from the first result on, any other at the end.
    fn publish(&mut self, is_end: bool) {
        let Some(file) = &mut self.file else {
            return;
        };
        let published = match (is_end, file.is_streamed) {
            (true, _) => file.content.finish(),
            (false, true) => file.content.publish(),
            (false, false) => Ok(()),
        };
        if let Err(error) = published {
            self.error.get_or_insert(error);
            self.writer = None;
        }
    }

    fn write(&mut self, operation: impl FnOnce(&mut dyn ReportWriter) -> io::Result<()>) {
        let Some(writer) = &mut self.writer else {
            return;
        };
        if let Err(error) = operation(&mut **writer) {
            // Keep the first error, and drop the writer, so that no later write is tried.
            self.error = Some(error);
            self.writer = None;
        }
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
            // Shells report 128 plus the number of the signal: 1, 2 and 15.
            _ = self.hangup.recv() => 129,
            _ = self.interrupt.recv() => 130,
            _ = self.terminate.recv() => 143,
        }
    }
}
