//! `dicta check` on transcripts: what of a file was understood, in numbers, and what was not, by kind; the first transcript
//! of a mapped file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::CommandCx;
use super::error::{CommandError, EXIT_USAGE};
use super::transcript_file::{find_field_map, open_file};
use crate::diag::Diagnostic;
use crate::model::{Transcript, TranscriptMessage, TranscriptPart, make_visible, pluralize};
use crate::transcript::{FieldMapping, ReadTally, TranscriptError, TranscriptFile};
use crate::workspace::Workspace;

/// So many warnings of one kind of trouble are told: a file of the wrong kind has one for each record.
const MAX_SHOWN_WARNINGS: usize = 20;
/// So much of a message is shown.
const MAX_TEXT_CHARS: usize = 60;
/// So many messages of a transcript are shown.
const MAX_SHOWN_MESSAGES: usize = 6;

/// Warnings, the first of them kept.
#[derive(Debug, Default)]
pub(super) struct CappedWarnings {
    shown: Vec<Diagnostic>,
    hidden: usize,
}

impl CappedWarnings {
    pub(super) fn push(&mut self, warning: Diagnostic) {
        if self.shown.len() < MAX_SHOWN_WARNINGS {
            self.shown.push(warning);
        } else {
            self.hidden += 1;
        }
    }

    pub(super) fn append(&mut self, others: Self) {
        others.shown.into_iter().for_each(|one| self.push(one));
        self.hidden += others.hidden;
    }

    pub(super) fn count(&self) -> usize {
        self.shown.len() + self.hidden
    }

    pub(super) fn print(&self, cx: &CommandCx) {
        cx.streams.print_diagnostics(&self.shown);
        if self.hidden > 0 {
            cx.streams
                .print_stderr(&format!("… and {} more like these", self.hidden));
        }
    }
}

/// What a file gave.
#[derive(Debug, Default)]
pub(super) struct TranscriptFileReport {
    format: &'static str,
    transcripts: u64,
    /// Records that should have been transcripts, and what is wrong with the first of them.
    bad_records: u64,
    pub(super) faults: CappedWarnings,
    messages: u64,
    calls: u64,
    /// By judge, and what it decided.
    verdicts: BTreeMap<String, BTreeMap<String, u64>>,
    labels: u64,
    /// What was counted of a format that is not native.
    tally: Option<ReadTally>,
    /// The first transcript, in lines.
    first_preview: Option<String>,
}

impl TranscriptFileReport {
    /// Reads a file through.
    pub(super) fn read(
        mut file: TranscriptFile,
        each: &mut dyn FnMut(&Transcript<'_>),
    ) -> Result<Self, TranscriptError> {
        let mut all = Self {
            format: file.format(),
            ..Self::default()
        };
        while let Some(block) = file.next_block()? {
            for (record, bytes) in block.records() {
                match record.parse(bytes, &file.default_id(record.span.number)) {
                    Ok(transcript) => {
                        all.add_transcript(&transcript);
                        each(&transcript);
                    }
                    Err(fault) => {
                        let message = format!("record {}: {}", fault.number, fault.why);
                        let warning = Diagnostic::warning("bad-record", file.path(), message);
                        all.faults.push(warning);
                        all.bad_records += 1;
                    }
                }
                all.labels += record.labels.len() as u64;
            }
        }
        all.tally = file.tally().cloned();
        Ok(all)
    }

    fn add_transcript(&mut self, transcript: &Transcript<'_>) {
        self.transcripts += 1;
        self.messages += transcript.messages.len() as u64;
        let parts = transcript.messages.iter().flat_map(|m| &m.parts);
        let is_call = |part: &&TranscriptPart<'_>| matches!(part, TranscriptPart::ToolCall(_));
        self.calls += parts.filter(is_call).count() as u64;
        for verdict in &transcript.verdicts {
            let evals = self.verdicts.entry(verdict.judge.clone()).or_default();
            *evals.entry(verdict.eval.clone()).or_default() += 1;
        }
        if self.first_preview.is_none() {
            self.first_preview = Some(preview_transcript(transcript));
        }
    }

    /// Records, and how many of them were not understood.
    fn records(&self) -> (u64, u64) {
        match &self.tally {
            None => (self.transcripts + self.bad_records, self.bad_records),
            Some(tally) => {
                let not = (tally.unknown_count() + self.bad_records).min(tally.records);
                (tally.records, not)
            }
        }
    }

    /// `98 of 100 records understood`, with the format where it is not ours.
    fn sentence(&self) -> String {
        let (records, not) = self.records();
        let mut text = format!(
            "{} of {} understood",
            records - not,
            pluralize(records, "record")
        );
        if self.tally.is_some() {
            let transcripts = pluralize(self.transcripts, "transcript");
            let _infallible = write!(text, " ({}), {transcripts}", self.format);
        }
        text
    }

    /// What stands below the sentence.
    fn details(&self) -> String {
        let mut out = String::new();
        for (judge, evals) in &self.verdicts {
            let n: u64 = evals.values().sum();
            let _infallible = writeln!(
                out,
                "  {} by {}: {}",
                pluralize(n, "verdict"),
                make_visible(judge, false),
                format_counts(evals)
            );
        }
        if self.labels > 0 {
            let _infallible = writeln!(
                out,
                "  {}, which count as those of `labels:` do",
                pluralize(self.labels, "label")
            );
        }
        let Some(tally) = &self.tally else { return out };
        if !tally.unknown.is_empty() {
            let _infallible = writeln!(out, "  not understood: {}", format_counts(&tally.unknown));
        }
        for (what, n) in &tally.missing {
            let what = make_visible(what, false);
            let all = pluralize(self.transcripts, "transcript");
            let _infallible = writeln!(out, "  {what} in {n} of {all}");
        }
        out
    }

    fn not_understood(&self) -> u64 {
        self.tally.as_ref().map_or(0, ReadTally::unknown_count)
    }
}

/// `3 progress, 1 summary`, the most first.
fn format_counts(counts: &BTreeMap<String, u64>) -> String {
    const KINDS: usize = 12;
    let mut all: Vec<(&String, &u64)> = counts.iter().collect();
    all.sort_by_key(|(kind, n)| (std::cmp::Reverse(**n), *kind));
    let mut shown: Vec<String> = all
        .iter()
        .take(KINDS)
        .map(|(kind, n)| format!("{n} {}", make_visible(kind, false)))
        .collect();
    if all.len() > KINDS {
        let rest: u64 = all[KINDS..].iter().map(|(_, n)| **n).sum();
        shown.push(format!("{rest} of {} more kinds", all.len() - KINDS));
    }
    shown.join(", ")
}

/// A transcript's id, who speaks, the first words.
fn preview_transcript(transcript: &Transcript<'_>) -> String {
    let mut out = format!("    id {}\n", clip_text(&transcript.id));
    for message in transcript.messages.iter().take(MAX_SHOWN_MESSAGES) {
        let role = make_visible(message.role.as_str(), false);
        let _infallible = writeln!(out, "    {role}: {}", preview_message(message));
    }
    if transcript.messages.len() > MAX_SHOWN_MESSAGES {
        let more = transcript.messages.len() - MAX_SHOWN_MESSAGES;
        let _infallible = writeln!(out, "    … and {}", pluralize(more, "message"));
    }
    if transcript.messages.is_empty() {
        out.push_str("    no messages\n");
    }
    if let Some(metadata) = &transcript.metadata {
        let _infallible = writeln!(out, "    metadata {}", clip_text(metadata.get()));
    }
    if !transcript.tags.is_empty() {
        let tags: Vec<&str> = transcript.tags.iter().map(|tag| &**tag).collect();
        let _infallible = writeln!(out, "    tags {}", clip_text(&tags.join(", ")));
    }
    out
}

fn preview_message(message: &TranscriptMessage<'_>) -> String {
    let said = message.text();
    if !said.trim().is_empty() {
        return clip_text(&said);
    }
    let first = message.parts.iter().find_map(|part| match part {
        TranscriptPart::ToolCall(call) => Some(format!("calls {}", clip_text(&call.name))),
        TranscriptPart::ToolResult(result) => {
            Some(format!("answers {}", clip_text(&result.content)))
        }
        TranscriptPart::Reasoning(text) => Some(format!("thinks {}", clip_text(text))),
        TranscriptPart::Media { kind, .. } => Some(format!("shows {}", clip_text(kind))),
        TranscriptPart::Other(_) => Some("a part of an unknown kind".to_owned()),
        TranscriptPart::Text(_) => None,
    });
    first.unwrap_or_else(|| "nothing".to_owned())
}

/// The first words on one line, nothing hidden.
fn clip_text(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = one_line.chars().take(MAX_TEXT_CHARS).collect();
    if shown.len() < one_line.len() {
        shown.push('…');
    }
    make_visible(&shown, false).into_owned()
}

/// The files of a workspace.
#[derive(Debug, Default)]
pub(super) struct WorkspaceFilesReport {
    pub(super) transcripts: u64,
    not_understood: u64,
    /// Of formats that are not ours: by its name, how many files, and what they gave together.
    by_format: BTreeMap<&'static str, (u64, TranscriptFileReport)>,
    /// The first transcript by each map, with its file.
    mapped: Vec<(Arc<FieldMapping>, PathBuf, Option<String>)>,
}

impl WorkspaceFilesReport {
    /// Adds what a file gave.
    pub(super) fn add(&mut self, path: &Path, workspace: &Workspace, one: TranscriptFileReport) {
        self.transcripts += one.transcripts;
        self.not_understood += one.not_understood();
        if let Some(map) = workspace.field_maps.0.get(path)
            && !self.mapped.iter().any(|(known, ..)| known == map)
        {
            let shown = path
                .strip_prefix(&workspace.root)
                .unwrap_or(path)
                .to_owned();
            self.mapped
                .push((Arc::clone(map), shown, one.first_preview.clone()));
        }
        if one.tally.is_none() {
            return;
        }
        let (files, all) = self.by_format.entry(one.format).or_default();
        *files += 1;
        all.merge(one);
    }

    /// Records that no reader understood.
    pub(super) fn not_understood(&self) -> usize {
        usize::try_from(self.not_understood).unwrap_or(usize::MAX)
    }

    /// The same in lines; nothing where all is native.
    pub(super) fn lines(&self) -> String {
        let mut out = String::new();
        for (files, all) in self.by_format.values() {
            let _infallible = writeln!(out, "{}: {}", pluralize(*files, "file"), all.sentence());
            out.push_str(&all.details());
        }
        for (_, path, first) in &self.mapped {
            let path = make_visible(&path.display().to_string(), false).into_owned();
            match first {
                Some(first) => {
                    let _infallible = write!(out, "  the first transcript of {path}:\n{first}");
                }
                None => {
                    let _infallible = writeln!(out, "  {path} gives no transcript");
                }
            }
        }
        out
    }
}

impl TranscriptFileReport {
    /// Adds another file of the same format.
    fn merge(&mut self, other: Self) {
        self.format = other.format;
        self.transcripts += other.transcripts;
        self.bad_records += other.bad_records;
        self.messages += other.messages;
        self.calls += other.calls;
        self.labels += other.labels;
        for (judge, evals) in other.verdicts {
            let own = self.verdicts.entry(judge).or_default();
            add_counts(own, evals);
        }
        let tally = self.tally.get_or_insert_default();
        let more = other.tally.unwrap_or_default();
        tally.records += more.records;
        add_counts(&mut tally.unknown, more.unknown);
        add_counts(&mut tally.missing, more.missing);
    }
}

fn add_counts(own: &mut BTreeMap<String, u64>, more: BTreeMap<String, u64>) {
    for (kind, n) in more {
        *own.entry(kind).or_default() += n;
    }
}

/// Checks a file of transcripts.
pub(super) fn check_transcripts(
    path: &Path,
    strict: bool,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let mapped = find_field_map(path).map_err(CommandError::from_diagnostics)?;
    let file = open_file(path, mapped.as_ref())?;
    let all = TranscriptFileReport::read(file, &mut |_| ())
        .map_err(|error| CommandError::usage(error.to_string()))?;
    all.faults.print(cx);
    let mut out = format!(
        "{}: {}, {}, {}\n{}",
        path.display(),
        all.sentence(),
        pluralize(all.messages, "message"),
        pluralize(all.calls, "tool call"),
        all.details()
    );
    if let (Some(_), Some(first)) = (&mapped, &all.first_preview) {
        let _infallible = write!(out, "  the first transcript:\n{first}");
    }
    cx.streams.print(&out);
    let not = usize::try_from(all.not_understood()).unwrap_or(usize::MAX);
    Ok(
        if all.transcripts == 0 || (strict && all.faults.count() + not > 0) {
            EXIT_USAGE
        } else {
            0
        },
    )
}
