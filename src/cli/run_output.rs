//! The output of `dicta run`: responsible for the results on standard output and in files, and for notes, judge turns and
//! the progress line on standard error. Does not start or end a run.
//!
//! One writer owns both streams. Before it writes to one of them, the text of the other one is complete on the screen.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use super::CommandCx;
use super::args::RunArgs;
use super::error::CommandError;
use super::format::{Format, RESULT_FORMATS, split_named_format};
use super::github_place::collect_eval_places;
use super::output_file::{OutputFiles, add_files_around};
use super::streams::{ScreenWriter, Streams};
use crate::event::{EventKind, RunEvent};
use crate::model::{Millis, Outcome, is_skip_note, pluralize};
use crate::report::{
    DecisionOrder, EvalPlaces, Narrator, ReportDetail, ReportFormat, ReportRow, ReportWriter,
    RowBuilder, RunProgress, RunSummary, TextStyle, describe_run_event,
};
use crate::storage::{AtomicFile, InputFiles};
use crate::workspace::Workspace;

/// The number of unfinished transcripts at which a run reads no further ones. Until then, all cells are known.
const MAX_OPEN_TRANSCRIPTS: usize = 1024;

/// The outputs of a run: results on standard output and in files, the rest on standard error.
pub(super) struct RunPrinter {
    rows: RowBuilder,
    /// The transcripts that have cells, collected if the run covers all transcripts.
    pub(super) seen_transcripts: Option<HashSet<String>>,
    /// The first one is standard output.
    outputs: Vec<ResultOutput>,
    /// Prints the judges' turns, with `--stream`.
    narrator: Option<Narrator<io::BufWriter<ScreenWriter>>>,
    /// The counts of the progress line, if there is one.
    progress: Option<RunProgress>,
    /// The time of the run's beginning on the clock of the process.
    began: Option<Millis>,
    /// True after the first result. Before, the old files of `-o` stay.
    has_results: bool,
    streams: Streams,
    format: Format,
    /// True if a flagged verdict counts as a failure.
    is_strict: bool,
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
    path: PathBuf,
    content: AtomicFile,
    /// True if the format writes each result at once, so that the file is useful before the run ends.
    is_streamed: bool,
}

impl RunPrinter {
    pub(super) fn new(
        args: &RunArgs,
        workspace: &Workspace,
        inputs: &InputFiles,
        cx: &CommandCx,
    ) -> Result<Self, CommandError> {
        let mut files = OutputFiles::new(&cx.env);
        let streams = cx.streams;
        let format = ReportFormat::from(args.format);
        let places = collect_eval_places(workspace, &cx.env);
        // On a shared screen, the narrator has already printed the reasoning of a judge.
        let style = TextStyle {
            has_narrator: args.stream && streams.is_shared,
            ..streams.out
        };
        let mut outputs = vec![ResultOutput {
            file: None,
            writer: Some(format.writer(Box::new(streams.stdout_writer()), style, &places)),
            error: None,
        }];
        let mut needs_decisions = args.fail_fast || format.needs_decisions();
        for option in &args.output {
            let (format, path) = parse_output(option)?;
            needs_decisions |= format.needs_decisions();
            let mut inputs = inputs.clone();
            add_files_around(&mut inputs, &path, Some(workspace), &cx.env);
            outputs.push(ResultOutput::create(
                format, &path, &mut files, &inputs, &places,
            )?);
        }
        let narrator = args.stream.then(|| {
            Narrator::new(
                // Standard error is unbuffered, and streamed tokens would cause one write each.
                io::BufWriter::with_capacity(16 * 1024, streams.stderr_writer()),
                streams.err,
            )
        });
        let order = needs_decisions.then_some(DecisionOrder::AsDecided);
        let labels = workspace.index_labels();
        Ok(Self {
            rows: RowBuilder::with_labels(labels).with_decisions(order),
            outputs,
            narrator,
            seen_transcripts: None,
            progress: streams.can_show_progress().then(RunProgress::default),
            began: None,
            has_results: false,
            streams,
            format: args.format,
            is_strict: args.strict,
        })
    }

    /// Leaves out judge turns and the progress line, for a run that has ended.
    pub(super) fn omit_live_output(&mut self) {
        self.narrator = None;
        self.progress = None;
    }

    /// Returns true if the run has a progress line.
    pub(super) fn has_progress(&self) -> bool {
        self.progress.is_some()
    }

    /// Prints the results and turns of these events. Returns true if a decision failed.
    pub(super) fn print_events(&mut self, events: &[RunEvent], now: Millis) -> bool {
        let mut has_failed = false;
        for event in events {
            self.began
                .get_or_insert(Millis(now.0.saturating_sub(event.at.0)));
            if let (Some(seen), EventKind::CellsPlanned { transcript, .. }) =
                (&mut self.seen_transcripts, &event.kind)
            {
                seen.insert(transcript.id.clone());
            }
            if let Some(progress) = &mut self.progress {
                progress.apply(event);
            }
            self.print_to_stderr(event);
            has_failed |= self.print_results(event);
        }
        if let Some(narrator) = &mut self.narrator {
            let _gone = narrator.flush();
        }
        has_failed
    }

    /// Prints the turns of judges, or without `--stream` only what concerns the whole run.
    fn print_to_stderr(&mut self, event: &RunEvent) {
        if let EventKind::RunStarted(header) = &event.kind
            && !self.has_progress()
        {
            self.print_note(&format!("run {} started", header.run.letters()));
        }
        if let Some(active) = &mut self.narrator {
            if active.narrate_event(event).is_err() {
                // Standard error is closed. The run goes on without the narration.
                self.narrator = None;
            }
            return;
        }
        // A skipped file changes the exit code, so `-q` reports it as it reports other errors.
        let is_error = matches!(&event.kind, EventKind::Note { text, .. } if is_skip_note(text));
        for line in describe_run_event(&event.kind) {
            if is_error {
                self.print_message(&line);
            } else {
                self.print_note(&line);
            }
        }
    }

    /// Writes the rows that an event completes. Returns true if a decision failed.
    fn print_results(&mut self, event: &RunEvent) -> bool {
        let Self {
            rows,
            outputs,
            narrator,
            has_results,
            streams,
            format,
            is_strict,
            ..
        } = self;
        let (mut has_failed, mut has_printed) = (false, false);
        // The closure cannot fail, because each output keeps its own error.
        let Ok(()) = rows.apply(event, &mut |row| {
            *has_results |= matches!(row, ReportRow::Result(_));
            if let ReportRow::Decided(row) = row {
                has_failed |= row.outcome() == Some(Outcome::Fail);
                has_failed |= *is_strict && row.is_flagged();
            }
            if is_printed(row, *format, streams.out.detail)
                && let Some(narrator) = narrator.as_mut().filter(|_| streams.is_shared)
                && !std::mem::replace(&mut has_printed, true)
            {
                narrator.interrupt_block();
                let _gone = narrator.flush();
            }
            write_row(outputs, row);
            Ok::<(), Infallible>(())
        });
        if has_printed && let Some(stdout) = outputs.first_mut() {
            stdout.write(|writer| writer.flush());
        }
        has_failed
    }

    /// Draws the progress line. Buffered results appear first, so that the line can't split them.
    pub(super) fn draw_progress(&mut self, now: Millis) {
        self.flush_stdout();
        let (Some(progress), Some(began)) = (&self.progress, self.began) else {
            return;
        };
        let is_open = self.rows.count_open_transcripts() >= MAX_OPEN_TRANSCRIPTS;
        let now = now.since(began);
        let text = progress.format(now, self.rows.cost_so_far(), is_open);
        self.streams.draw_progress(&text);
    }

    /// Prints a note on standard error, unless `-q` is given.
    pub(super) fn print_note(&mut self, text: &str) {
        if !self.streams.is_quiet() {
            self.print_message(text);
        }
    }

    /// Prints a message on standard error. Buffered results appear first, so that the message can't split them.
    pub(super) fn print_message(&mut self, text: &str) {
        self.flush_stdout();
        self.streams.print_stderr(text);
    }

    fn flush_stdout(&mut self) {
        if self.streams.is_shared
            && let Some(stdout) = self.outputs.first_mut()
        {
            stdout.write(|writer| writer.flush());
        }
    }

    /// Prints the judge output that the narrator still buffers. No event may follow.
    pub(super) fn finish_narration(&mut self) {
        if let Some(narrator) = &mut self.narrator {
            let _gone = narrator.finish();
        }
    }

    pub(super) fn flush(&mut self) {
        for output in &mut self.outputs {
            output.write(|writer| writer.flush());
            if self.has_results {
                output.publish(false);
            }
        }
    }

    /// Finishes all outputs. Returns the summary, and an error if an output is incomplete.
    pub(super) fn finish(mut self) -> (RunSummary, Result<(), CommandError>) {
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
        // People find the summary in the results, and see the end of a run on a terminal.
        if self.format != Format::Human && !self.streams.err.terminal {
            self.streams.print_note(&describe_end(&summary));
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

/// Returns true if standard output shows something for the row.
fn is_printed(row: &ReportRow<'_>, format: Format, detail: ReportDetail) -> bool {
    match row {
        ReportRow::Decided(row) => {
            ReportFormat::from(format).needs_decisions() && row.is_shown(detail)
        }
        ReportRow::Result(_) => !ReportFormat::from(format).needs_decisions(),
        _ => true,
    }
}

/// Describes the end of a run: `run kvqa ended: 57 pass, 22 fail; 85 cells in 419 ms`.
fn describe_end(summary: &RunSummary) -> String {
    let letters = summary.run.rsplit_once('-');
    let letters = letters.map_or(summary.run.as_str(), |(_, letters)| letters);
    let mut text = format!(
        "run {letters} ended: {}; {} in {}",
        summary.describe_outcomes(),
        pluralize(summary.cells, "cell"),
        Millis(summary.duration_ms)
    );
    if summary.pending > 0 {
        let _infallible = write!(text, "; {} pending", summary.pending);
    }
    if summary.status.ended_early() {
        let _infallible = write!(text, "; dicta run --resume {letters} continues it");
    }
    text
}

/// Reads the value of `-o`: a file whose extension selects the format, or `FORMAT=FILE`.
fn parse_output(option: &Path) -> Result<(ReportFormat, PathBuf), CommandError> {
    let shown = option.display();
    let names = || {
        let names = RESULT_FORMATS.iter().map(|format| format.name());
        names.collect::<Vec<_>>().join(", ")
    };
    if let Some((name, path)) = split_named_format(option) {
        let found = Format::from_name(name).filter(|format| RESULT_FORMATS.contains(format));
        let Some(format) = found else {
            return Err(CommandError::usage(format!(
                "-o {shown}: unknown format {name}; use one of {}, or write ./{shown} for a file of this name",
                names()
            )));
        };
        if path.is_empty() {
            return Err(CommandError::usage(format!(
                "-o {shown}: the file is missing, as in -o {name}=results"
            )));
        }
        return Ok((format.into(), PathBuf::from(path)));
    }
    if option
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("html"))
    {
        return Err(CommandError::usage(format!(
            "-o {shown}: `dicta run` writes no page; `dicta export @ -o {shown}` writes one after the run"
        )));
    }
    let format = ReportFormat::from_path(option).ok_or_else(|| {
        CommandError::usage(format!(
            "-o {shown}: unknown file extension; use .json, .jsonl, .xml, .md, .csv or .txt, or -o FORMAT={shown} with one of {}",
            names()
        ))
    })?;
    Ok((format, option.to_owned()))
}

/// Writes a row to all outputs. A failed output is skipped from then on, because output errors must not fail a run.
fn write_row(outputs: &mut [ResultOutput], row: &ReportRow<'_>) {
    for output in outputs {
        output.write(|writer| writer.write_row(row));
    }
}

impl ResultOutput {
    /// Starts a file of `-o`. Called before the run, because a missing folder must not be found after it.
    fn create(
        format: ReportFormat,
        path: &Path,
        files: &mut OutputFiles,
        inputs: &InputFiles,
        places: &EvalPlaces,
    ) -> Result<Self, CommandError> {
        let content = files.open("-o", path, inputs)?;
        let file = content
            .try_clone_file()
            .map_err(|error| CommandError::usage(format!("-o {}: {error}", path.display())))?;
        // A file is read later, so it has every decision.
        let style = TextStyle {
            detail: ReportDetail::Verbose,
            ..TextStyle::default()
        };
        Ok(Self {
            file: Some(OutputFile {
                path: path.to_owned(),
                content,
                is_streamed: matches!(
                    format,
                    ReportFormat::Jsonl
                        | ReportFormat::Human
                        | ReportFormat::Csv
                        | ReportFormat::Github
                ),
            }),
            writer: Some(format.writer(Box::new(file), style, places)),
            error: None,
        })
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(ReportFormat, String), String> {
        match parse_output(Path::new(text)) {
            Ok((format, path)) => Ok((format, path.display().to_string())),
            Err(error) => Err(error.message().to_owned()),
        }
    }

    #[test]
    fn output_format_is_named_or_selected_by_the_extension() {
        for (text, format, path) in [
            ("results.jsonl", ReportFormat::Jsonl, "results.jsonl"),
            ("a/report.md", ReportFormat::Markdown, "a/report.md"),
            ("results.json", ReportFormat::Json, "results.json"),
            ("junit=results", ReportFormat::Junit, "results"),
            ("csv=a=b.txt", ReportFormat::Csv, "a=b.txt"),
            ("github=-", ReportFormat::Github, "-"),
            // A path is not a format.
            ("./html=out.md", ReportFormat::Markdown, "./html=out.md"),
        ] {
            assert_eq!(parse(text), Ok((format, path.to_owned())), "{text}");
        }
    }

    #[test]
    fn unknown_output_format_is_an_error_that_lists_the_known_ones() {
        for (text, part) in [
            (
                "html=out.md",
                "unknown format html; use one of human, json,",
            ),
            ("out.html", "`dicta export @ -o out.html` writes one"),
            ("out.doc", "unknown file extension; use .json,"),
            ("out", "-o FORMAT=out with one of human, json,"),
            ("junit=", "the file is missing"),
            ("-", "-o FORMAT=- with one of human, json,"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
