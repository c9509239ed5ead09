//! `dicta import`: responsible for the conversion of transcript files to one file in the native format.
//!
//! Reads one transcript at a time, so memory does not grow with the files. The output is replaced at the end, so no
//! reader sees an incomplete file. A native record keeps its bytes except for
//! its id and line breaks.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::CommandCx;
use super::args::ImportArgs;
use super::error::{CommandError, EXIT_USAGE};
use super::format::{Format, format_document};
use super::output_file::{OutputFiles, list_files_of_workspaces};
use super::side_files::list_side_files;
use super::streams::Streams;
use super::transcript_file::{find_output_roots, open_file};
use super::transcript_report::CappedWarnings;
use crate::diag::Diagnostic;
use crate::model::{ExitReason, Label, SourceText, escape_invisible_json, make_visible, pluralize};
use crate::review::ReviewPlace;
use crate::run::TranscriptIds;
use crate::storage::{AtomicFile, InputFiles};
use crate::transcript::{FieldMapping, ReadCounts, TranscriptBlock, TranscriptFile, UnreadContent};

/// Converts every transcript of the input files.
pub(super) fn import(args: &ImportArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let map = match &args.map {
        None => None,
        Some(text) => Some(Arc::new(
            FieldMapping::parse_inline(text).map_err(CommandError::from_diagnostics)?,
        )),
    };
    let to = args
        .output
        .as_deref()
        .filter(|path| *path != Path::new("-"));
    if args.format != Format::Human && to.is_none() {
        return Err(CommandError::usage(format!(
            "--format {} prints the summary on standard output, so the transcripts need `-o FILE`",
            args.format.name()
        )));
    }
    let mut sums = ImportSummary::default();
    // Check all inputs before writing, so that a typing error in the last name doesn't cost a long conversion.
    let mut readable = Vec::new();
    for path in &args.files {
        match open_file(path, map.as_ref()) {
            Ok(_) => readable.push(path),
            // A broken file among others is reported and skipped. A name that does not exist is a typing error.
            Err(error) if args.files.len() > 1 && path.is_file() && !args.strict => {
                sums.skip_file(path, &error.message);
            }
            Err(error) => return Err(error),
        }
    }
    // Open both outputs before reading, so that a wrong folder is reported at once.
    let inputs = ImportInputs::collect(args, to, cx);
    inputs.refuse_transcripts(args, to)?;
    let mut files = OutputFiles::new(&cx.env);
    let mut out = ImportTarget::open("-o", to, &inputs.of_output, &mut files, cx.streams)?;
    let labels_path = args.labels.as_deref();
    let mut labels = ImportTarget::open(
        "--labels",
        labels_path,
        &inputs.of_labels,
        &mut files,
        cx.streams,
    )?;
    // Ids must be unique over all input files, because they end up in one file.
    let mut ids = TranscriptIds::default();
    for path in readable {
        let file = open_file(path, map.as_ref())?;
        let labels = args.labels.is_some().then_some(&mut labels);
        import_file(file, path, &mut ids, &mut sums, &mut out, labels)?;
        // For example `head`: the user has seen enough.
        if out.is_reader_gone {
            return Ok(0);
        }
    }
    sums.warnings.print(cx);
    // Leave an existing output unchanged: the temporary file is dropped.
    if sums.transcripts == 0 {
        return Err(CommandError::usage(match to {
            Some(to) => format!("found no transcripts; {} was not written", to.display()),
            None => "found no transcripts".to_owned(),
        }));
    }
    // The transcripts are renamed into place first, because labels without transcripts are an error.
    out.finish()?;
    if args.labels.is_some() {
        labels.finish()?;
    }
    match args.format {
        Format::Human => cx.streams.print_stderr(&sums.sentence(args, to)),
        format => cx
            .streams
            .print(&format_document(format, &sums.to_json(args, to))),
    }
    if args.strict && sums.warnings.count() + sums.partly_read() > 0 {
        return Ok(EXIT_USAGE);
    }
    // As after a run: files were left out, and nothing else is wrong.
    Ok(if sums.skipped_files > 0 {
        ExitReason::NoVerdict.code()
    } else {
        0
    })
}

/// The counts of the summary line.
#[derive(Debug, Default)]
struct ImportSummary {
    transcripts: u64,
    bad: u64,
    renamed: u64,
    /// The number of records that dicta did not understand. It contains the bad records.
    not_understood: u64,
    labels: u64,
    /// The number of files that dicta can't read.
    skipped_files: u64,
    warnings: CappedWarnings,
}

impl ImportSummary {
    fn skip_file(&mut self, path: &Path, why: &str) {
        self.skipped_files += 1;
        let message = format!("the file is skipped: {why}");
        self.warnings
            .push(Diagnostic::warning("skipped", path, message));
    }

    fn partly_read(&self) -> usize {
        usize::try_from(self.not_understood.saturating_sub(self.bad)).unwrap_or(usize::MAX)
    }

    fn to_json(&self, args: &ImportArgs, to: Option<&Path>) -> Value {
        json!({
            "type": "import",
            "files": args.files,
            "transcripts": self.transcripts,
            "bad_records": self.bad,
            "not_understood": self.not_understood,
            "skipped_files": self.skipped_files,
            "renamed": self.renamed,
            "output": to,
            "labels": self.labels,
            "labels_output": args.labels,
        })
    }

    fn sentence(&self, args: &ImportArgs, to: Option<&Path>) -> String {
        let mut text = format!(
            "{} from {}",
            pluralize(self.transcripts, "transcript"),
            pluralize(args.files.len(), "file")
        );
        let skipped_files = if self.skipped_files == 1 {
            "file skipped (it can't be read)"
        } else {
            "files skipped (they can't be read)"
        };
        for (n, what) in [
            (self.bad, "skipped: bad records"),
            (
                self.not_understood.saturating_sub(self.bad),
                "not understood (`dicta check FILE` lists them)",
            ),
            (self.renamed, "renamed: duplicate ids"),
            (self.skipped_files, skipped_files),
        ] {
            if n > 0 {
                text = format!("{text}, {n} {what}");
            }
        }
        if let Some(to) = to {
            text = format!(
                "{text}; written to {}",
                make_visible(&to.display().to_string(), false)
            );
        }
        match &args.labels {
            Some(to) => {
                let to = make_visible(&to.display().to_string(), false).into_owned();
                format!("{text}; {} to {to}", pluralize(self.labels, "label"))
            }
            None if self.labels > 0 => {
                let labels = pluralize(self.labels, "label");
                format!("{text}; {labels} not written: --labels FILE writes them")
            }
            None => text,
        }
    }
}

fn import_file(
    mut file: TranscriptFile,
    path: &Path,
    ids: &mut TranscriptIds,
    sums: &mut ImportSummary,
    out: &mut ImportTarget,
    mut labels: Option<&mut ImportTarget>,
) -> Result<(), CommandError> {
    let trouble =
        |error: crate::transcript::TranscriptError| CommandError::usage(error.to_string());
    let mut counts = ReadCounts::default();
    while let Some(block) = file.next_block().map_err(trouble)? {
        let TranscriptBlock { bytes, records } = block;
        for record in records {
            let native = &bytes[record.byte_range.clone()];
            let read = record.parse(native, &file.default_id(record.span.number));
            let id = match read {
                Ok(transcript) => {
                    counts.add_transcript(&UnreadContent::find(&transcript));
                    transcript.id.into_owned()
                }
                Err(bad) => {
                    counts.add_bad_record();
                    sums.bad += 1;
                    let message = format!("record {}: {}", bad.number, bad.why);
                    sums.warnings
                        .push(Diagnostic::warning("bad-record", path, message));
                    continue;
                }
            };
            let (id, changed) = ids.make_unique(id.0.into_owned());
            if changed {
                sums.renamed += 1;
                let message = format!(
                    "record {}: an earlier transcript has its id; renamed to `{id}`",
                    record.span.number
                );
                let warning = Diagnostic::warning("duplicate-id", path, message);
                sums.warnings
                    .push(warning.help("give every transcript its own `id`"));
            }
            out.write_line(&to_native_line(native, &id))?;
            if out.is_reader_gone {
                return Ok(());
            }
            sums.transcripts += 1;
            for label in record.labels {
                sums.labels += 1;
                let label = Label {
                    transcript: id.clone(),
                    ..label
                };
                if let (Some(labels), Ok(line)) =
                    (labels.as_deref_mut(), serde_json::to_vec(&label))
                {
                    labels.write_line(&line)?;
                }
            }
        }
    }
    // The same counts as those of `dicta check`.
    sums.not_understood += counts.records(file.tally()).1;
    Ok(())
}

/// Returns a native record on one line with its id. In JSON, line breaks occur only between tokens, so removing them
/// is safe.
fn to_native_line(native: &[u8], id: &str) -> Vec<u8> {
    let flat: Vec<u8> = native
        .iter()
        .map(|byte| {
            if matches!(byte, b'\n' | b'\r') {
                b' '
            } else {
                *byte
            }
        })
        .collect();
    // Keep the values as raw text, so that numbers and escapes stay byte for byte the same.
    let Ok(keys) = serde_json::from_slice::<indexmap::IndexMap<SourceText<'_>, &RawValue>>(&flat)
    else {
        return flat;
    };
    // Keep a record with the right id byte for byte.
    let id_value = keys.get(&SourceText::from("id"));
    if id_value.is_some_and(|id_value| {
        serde_json::from_str::<SourceText<'_>>(id_value.get())
            .is_ok_and(|id_value| *id_value == *id)
    }) {
        return flat;
    }
    // A record without the right id gets it as its first key.
    // Write the object by hand, because serde_json would reformat numbers.
    let mut line = b"{\"id\":".to_vec();
    line.extend(serde_json::to_vec(id).unwrap_or_default());
    for (key, value) in keys
        .iter()
        .filter(|(key, _)| **key != SourceText::from("id"))
    {
        line.push(b',');
        line.extend(serde_json::to_vec(key).unwrap_or_default());
        line.push(b':');
        line.extend(value.get().as_bytes());
    }
    line.push(b'}');
    line
}

/// The files that the outputs must not replace.
struct ImportInputs {
    of_output: InputFiles,
    of_labels: InputFiles,
    /// The transcript files of the workspaces, which `-o` may replace with `--replace`.
    transcripts: InputFiles,
}

impl ImportInputs {
    /// Collects the inputs of this command and of the workspaces around the outputs.
    ///
    /// An import may replace an earlier one, so `-o` may name a transcript file of a workspace with `--replace`.
    /// Labels are the work of people, so `--labels` may name only a file that does not exist or that no workspace reads.
    fn collect(args: &ImportArgs, to: Option<&Path>, cx: &CommandCx) -> Self {
        let mut of_output: InputFiles = args.files.iter().cloned().collect();
        of_output.extend(list_side_files(&args.files));
        if let Ok(place) = ReviewPlace::of_files(&args.files) {
            of_output.extend(place.files.list());
        }
        let mut of_labels = of_output.clone();
        let mut transcripts = InputFiles::default();
        let outputs = [to, args.labels.as_deref()].into_iter().flatten();
        let roots: Vec<PathBuf> = outputs.flat_map(find_output_roots).collect();
        let found = list_files_of_workspaces(roots, &cx.env);
        transcripts.extend(found.transcripts.iter().cloned());
        of_labels.extend(found.transcripts);
        of_labels.extend(found.others.iter().filter(|path| path.exists()).cloned());
        of_output.extend(found.others);
        Self {
            of_output,
            of_labels,
            transcripts,
        }
    }

    /// Returns an error if `-o` names a transcript file of a workspace, and `--replace` is absent.
    fn refuse_transcripts(&self, args: &ImportArgs, to: Option<&Path>) -> Result<(), CommandError> {
        let Some(to) = to.filter(|to| !args.replace && self.of_output.find(to).is_none()) else {
            return Ok(());
        };
        let Some(known) = self.transcripts.find(to) else {
            return Ok(());
        };
        Err(CommandError::usage(format!(
            "-o {}: a workspace reads the transcripts of {}; choose another output file, or replace it with --replace",
            to.display(),
            known.display()
        )))
    }
}

/// The destination of the lines: a file that is replaced at the end, or standard output.
enum TargetWriter {
    File(BufWriter<AtomicFile>),
    Out(BufWriter<io::Stdout>),
}

struct ImportTarget {
    writer: TargetWriter,
    name: String,
    /// True if a terminal shows the lines, so that hidden characters must be escaped.
    is_terminal: bool,
    /// True after the reader closed standard output; then further lines are skipped.
    is_reader_gone: bool,
}

impl ImportTarget {
    fn open(
        option: &str,
        path: Option<&Path>,
        inputs: &InputFiles,
        files: &mut OutputFiles,
        streams: Streams,
    ) -> Result<Self, CommandError> {
        let to = match path {
            None => TargetWriter::Out(BufWriter::with_capacity(1 << 16, io::stdout())),
            Some(path) => {
                let file = files.open(option, path, inputs)?;
                TargetWriter::File(BufWriter::with_capacity(1 << 20, file))
            }
        };
        Ok(Self {
            writer: to,
            name: path.map_or("standard output".to_owned(), |path| {
                path.display().to_string()
            }),
            is_terminal: path.is_none() && streams.out.terminal,
            is_reader_gone: false,
        })
    }

    fn write_line(&mut self, line: &[u8]) -> Result<(), CommandError> {
        let escaped;
        let line = if self.is_terminal {
            escaped = escape_invisible_json(&String::from_utf8_lossy(line)).into_owned();
            escaped.as_bytes()
        } else {
            line
        };
        let to: &mut dyn Write = match &mut self.writer {
            TargetWriter::File(to) => to,
            TargetWriter::Out(to) => to,
        };
        let written = to.write_all(line).and_then(|()| to.write_all(b"\n"));
        self.check_written(written)
    }

    fn finish(mut self) -> Result<(), CommandError> {
        let name = self.name.clone();
        match self.writer {
            TargetWriter::Out(ref mut to) => {
                let flushed = to.flush();
                self.check_written(flushed)
            }
            TargetWriter::File(to) => to
                .into_inner()
                .map_err(io::IntoInnerError::into_error)
                .and_then(|mut file| file.finish())
                .map_err(|error| CommandError::write_failed(&name, &error)),
        }
    }

    fn check_written(&mut self, result: io::Result<()>) -> Result<(), CommandError> {
        match result {
            // A reader such as `head` closes the pipe on purpose.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_reader_gone = true;
                Ok(())
            }
            Err(error) => match &self.writer {
                TargetWriter::File(_) => Err(CommandError::write_failed(&self.name, &error)),
                // Standard output has the lines before the error.
                TargetWriter::Out(_) => {
                    CommandError::text_output_failed(&error).map_or(Ok(()), Err)
                }
            },
            Ok(()) => Ok(()),
        }
    }
}
