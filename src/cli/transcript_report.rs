//! `dicta check` on transcripts: responsible for the counts of understood and skipped parts, the warnings, and a
//! preview of the first transcript of a mapped file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::CommandCx;
use super::check_notes::{check_notes, format_notes};
use super::check_report::CheckReport;
use super::error::{CommandError, EXIT_USAGE};
use super::review_place::find_place;
use super::transcript_file::{find_field_map, open_file};
use crate::diag::Diagnostic;
use crate::model::{Transcript, TranscriptMessage, TranscriptPart, make_visible, pluralize};
use crate::transcript::{
    DetectionConfidence, FieldMapping, ReadCounts, ReadTally, TranscriptError, TranscriptFile,
    UnreadContent,
};
use crate::workspace::Workspace;

/// The largest number of warnings that are printed; a file of the wrong kind would print one per record.
const MAX_SHOWN_WARNINGS: usize = 20;
/// The longest text that a preview shows of a message, in characters.
const MAX_TEXT_CHARS: usize = 60;
/// The largest number of messages in a preview.
const MAX_SHOWN_MESSAGES: usize = 6;

/// A list of warnings that keeps only the first ones and counts the others.
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

    pub(super) fn report(&self, report: &mut CheckReport<'_>) {
        report.diagnose(&self.shown);
        report.hide(self.hidden);
    }
}

/// The counts and warnings of reading one file.
#[derive(Debug, Default)]
pub(super) struct TranscriptFileReport {
    format: &'static str,
    confidence: Option<DetectionConfidence>,
    counts: ReadCounts,
    /// The number of records, and how many of them were not understood.
    records: u64,
    not_understood: u64,
    pub(super) faults: CappedWarnings,
    messages: u64,
    calls: u64,
    /// The number of source verdicts by judge and outcome.
    verdicts: BTreeMap<String, BTreeMap<String, u64>>,
    /// The number of labels that a field mapping finds, which count in a run.
    mapped_labels: u64,
    /// The number of labels in files of other tools, which only an import writes.
    foreign_labels: u64,
    /// The counts of a reader of a foreign format.
    tally: Option<ReadTally>,
    /// The preview of the first transcript.
    first_preview: Option<String>,
}

impl TranscriptFileReport {
    /// Reads a whole file and counts.
    pub(super) fn read(
        mut file: TranscriptFile,
        each: &mut dyn FnMut(&Transcript<'_>),
    ) -> Result<Self, TranscriptError> {
        let mut all = Self {
            format: file.format(),
            confidence: file.confidence(),
            ..Self::default()
        };
        while let Some(block) = file.next_block()? {
            for (record, bytes) in block.records() {
                match record.parse(bytes, &file.default_id(record.span.number)) {
                    // A pair is not a record of the file, but evals and labels name it.
                    Ok(transcript) if record.is_pair() => each(&transcript),
                    Ok(transcript) => {
                        all.add_transcript(&transcript);
                        // As in an import and a run: a label without a transcript counts nowhere.
                        if all.confidence.is_none() {
                            all.mapped_labels += record.labels.len() as u64;
                        } else {
                            all.foreign_labels += record.labels.len() as u64;
                        }
                        each(&transcript);
                    }
                    Err(fault) => {
                        let message = format!("record {}: {}", fault.number, fault.why);
                        let warning = Diagnostic::warning("bad-record", file.path(), message);
                        all.faults.push(warning);
                        all.counts.add_bad_record();
                    }
                }
            }
        }
        all.tally = file.tally().cloned();
        for warning in file.pair_warnings(file.path()) {
            all.faults.push(warning);
        }
        (all.records, all.not_understood) = all.counts.records(all.tally.as_ref());
        Ok(all)
    }

    fn add_transcript(&mut self, transcript: &Transcript<'_>) {
        self.counts.add_transcript(&UnreadContent::find(transcript));
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

    /// Formats the counts as `98 of 100 records understood`, with the format unless it is the native one.
    fn sentence(&self) -> String {
        let mut text = format!(
            "{} of {} understood",
            self.records - self.not_understood,
            pluralize(self.records, "record")
        );
        if self.tally.is_some() {
            let transcripts = pluralize(self.counts.transcripts, "transcript");
            let _infallible = write!(text, " ({}), {transcripts}", self.format);
        }
        text
    }

    /// Formats the details below the sentence.
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
        if self.mapped_labels > 0 {
            let labels = pluralize(self.mapped_labels, "label");
            let verb = if self.mapped_labels == 1 {
                "counts"
            } else {
                "count"
            };
            let _infallible = writeln!(
                out,
                "  {labels}, which {verb} in the same way as those in `labels:`"
            );
        }
        if self.foreign_labels > 0 {
            let labels = pluralize(self.foreign_labels, "label");
            let (verb, pronoun) = match self.foreign_labels {
                1 => ("does", "it"),
                _ => ("do", "them"),
            };
            let _infallible = writeln!(
                out,
                "  {labels} of people, which {verb} not count here: `dicta import FILE -o FILE --labels labels.jsonl` writes {pronoun}"
            );
        }
        let mut unknown = self.counts.unread.clone();
        add_counts(
            &mut unknown,
            self.tally.iter().flat_map(|tally| tally.unknown.clone()),
        );
        if !unknown.is_empty() {
            let _infallible = writeln!(out, "  not understood: {}", format_counts(&unknown));
        }
        let all = pluralize(self.counts.transcripts, "transcript");
        for (what, n) in self.tally.iter().flat_map(|tally| &tally.missing) {
            let what = make_visible(what, false);
            // One transcript may lack several parts, so this is not a share of the transcripts.
            let times = pluralize(*n, "time");
            let _infallible = writeln!(out, "  {what}: {times} in {all}");
        }
        for (what, n) in [
            (
                "an assistant message without content or call",
                self.counts.empty_replies,
            ),
            // A file may have the answer under a key that dicta does not read.
            ("no message of the assistant", self.counts.without_answer),
            ("no message at all", self.counts.without_messages),
        ] {
            if n > 0 {
                let _infallible = writeln!(out, "  {what} in {n} of {all}");
            }
        }
        out
    }

    /// Describes the confidence of the detection; empty for a file with a field mapping.
    fn describe_confidence(&self) -> String {
        match self.confidence {
            None => String::new(),
            // A format of which no transcript is read is hardly that of the file.
            Some(_) if self.records > 0 && self.counts.transcripts == 0 => {
                "  format uncertain: no transcript was read; `dicta map FILE` guesses a field mapping\n"
                    .to_owned()
            }
            Some(confidence) => format!(
                "  format detected with {} confidence\n",
                confidence.as_str()
            ),
        }
    }
}

/// Formats counts, the largest first: `3 progress, 1 summary`.
fn format_counts(counts: &BTreeMap<String, u64>) -> String {
    const KINDS: usize = 12;
    // One kind is not longer than the words for it.
    let shown = if counts.len() == KINDS + 1 {
        KINDS + 1
    } else {
        KINDS
    };
    let mut all: Vec<(&String, &u64)> = counts.iter().collect();
    // Equal counts sort by name, so that the output is stable.
    all.sort_by_key(|(kind, n)| (std::cmp::Reverse(**n), *kind));
    let mut parts: Vec<String> = all
        .iter()
        .take(shown)
        .map(|(kind, n)| format!("{n} {}", make_visible(kind, false)))
        .collect();
    if all.len() > shown {
        let rest: u64 = all[shown..].iter().map(|(_, n)| **n).sum();
        parts.push(format!(
            "{rest} of {}",
            pluralize(all.len() - shown, "more kind")
        ));
    }
    parts.join(", ")
}

/// Formats a preview: the id, the roles, and the beginning of each message.
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
    let text = message.text();
    if !text.trim().is_empty() {
        return clip_text(&text);
    }
    let first = message.parts.iter().find_map(|part| match part {
        TranscriptPart::ToolCall(call) => Some(format!("calls {}", clip_text(&call.name))),
        TranscriptPart::ToolResult(result) => {
            Some(format!("returns {}", clip_text(&result.content)))
        }
        TranscriptPart::Reasoning(text) => Some(format!("thinks {}", clip_text(text))),
        TranscriptPart::Media { kind, .. } => Some(format!("shows {}", clip_text(kind))),
        TranscriptPart::Other(_) => Some("an unknown part".to_owned()),
        TranscriptPart::Text(_) => None,
    });
    first.unwrap_or_else(|| "nothing".to_owned())
}

/// Returns the beginning of a text on one line, with hidden characters made visible.
fn clip_text(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = one_line.chars().take(MAX_TEXT_CHARS).collect();
    // The comparison is in bytes, which works because one text is a prefix of the other.
    if shown.len() < one_line.len() {
        shown.push('…');
    }
    make_visible(&shown, false).into_owned()
}

/// The report on all transcript files of a workspace.
#[derive(Debug, Default)]
pub(super) struct WorkspaceFilesReport {
    pub(super) transcripts: u64,
    not_understood: u64,
    /// The totals by foreign format.
    by_format: BTreeMap<&'static str, FormatTotals>,
    /// One file for each field mapping.
    mapped: Vec<MappedFilePreview>,
}

/// The totals of all files with one format.
#[derive(Debug, Default)]
struct FormatTotals {
    files: u64,
    /// The summed counts of the files.
    sum: TranscriptFileReport,
}

/// The preview of a file that is read with a field mapping.
#[derive(Debug)]
struct MappedFilePreview {
    map: Arc<FieldMapping>,
    /// The file, relative to the workspace.
    path: PathBuf,
    /// Its first transcript, or None if it contains none.
    first_transcript: Option<String>,
}

impl WorkspaceFilesReport {
    /// Adds the report of a file.
    pub(super) fn add(&mut self, path: &Path, workspace: &Workspace, one: TranscriptFileReport) {
        self.transcripts += one.counts.transcripts;
        self.not_understood += one.not_understood;
        if let Some(map) = workspace.field_maps.by_path.get(path)
            && !self.mapped.iter().any(|known| known.map == *map)
        {
            let shown = path
                .strip_prefix(&workspace.root)
                .unwrap_or(path)
                .to_owned();
            // The first file of a mapping is enough to show whether the mapping is right.
            self.mapped.push(MappedFilePreview {
                map: Arc::clone(map),
                path: shown,
                first_transcript: one.first_preview.clone(),
            });
        }
        // A native file has no tally, and its counts are in the summary line, unless something was not read.
        let counts = &one.counts;
        let is_complete = counts.unread.is_empty()
            && counts.empty_replies == 0
            && counts.without_answer == 0
            && counts.without_messages == 0;
        if one.tally.is_none() && is_complete {
            return;
        }
        let totals = self.by_format.entry(one.format).or_default();
        totals.files += 1;
        totals.sum.merge(one);
    }

    /// Returns the number of records that no reader understood.
    pub(super) fn not_understood(&self) -> usize {
        usize::try_from(self.not_understood).unwrap_or(usize::MAX)
    }

    /// Formats the report. Returns an empty text if all files have the native format.
    pub(super) fn lines(&self) -> String {
        let mut out = String::new();
        for totals in self.by_format.values() {
            let (files, sum) = (pluralize(totals.files, "file"), &totals.sum);
            let _infallible = writeln!(out, "{files}: {}", sum.sentence());
            out.push_str(&sum.details());
        }
        for file in &self.mapped {
            let path = make_visible(&file.path.display().to_string(), false).into_owned();
            match &file.first_transcript {
                Some(first) => {
                    let _infallible = write!(out, "  the first transcript of {path}:\n{first}");
                }
                None => {
                    let _infallible = writeln!(out, "  {path} contains no transcripts");
                }
            }
        }
        out
    }
}

impl TranscriptFileReport {
    /// Adds the counts of another file of the same format.
    fn merge(&mut self, other: Self) {
        self.format = other.format;
        self.counts.merge(other.counts);
        self.records += other.records;
        self.not_understood += other.not_understood;
        self.messages += other.messages;
        self.calls += other.calls;
        self.mapped_labels += other.mapped_labels;
        self.foreign_labels += other.foreign_labels;
        for (judge, evals) in other.verdicts {
            let totals = self.verdicts.entry(judge).or_default();
            add_counts(totals, evals);
        }
        let Some(more) = other.tally else { return };
        let tally = self.tally.get_or_insert_default();
        tally.records += more.records;
        add_counts(&mut tally.unknown, more.unknown);
        add_counts(&mut tally.missing, more.missing);
    }
}

fn add_counts(own: &mut BTreeMap<String, u64>, more: impl IntoIterator<Item = (String, u64)>) {
    for (kind, n) in more {
        *own.entry(kind).or_default() += n;
    }
}

/// Checks a transcript file. Returns the exit code.
pub(super) fn check_transcripts(
    path: &Path,
    strict: bool,
    report: &mut CheckReport<'_>,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let mapped = find_field_map(path).map_err(CommandError::from_diagnostics)?;
    let file = open_file(path, mapped.as_ref())?;
    let all = TranscriptFileReport::read(file, &mut |_| ())
        .map_err(|error| CommandError::usage(error.to_string()))?;
    all.faults.report(report);
    for (name, number) in [
        ("transcripts", all.counts.transcripts),
        ("messages", all.messages),
        ("tool_calls", all.calls),
        ("records", all.records),
        ("records_not_understood", all.not_understood),
    ] {
        report.count(name, usize::try_from(number).unwrap_or(usize::MAX));
    }
    // The notes on this file, which need no workspace.
    let place = find_place(&[path.to_owned()], cx)?;
    let review = check_notes(&place, report)?;
    let mut out = format!(
        "{}: {}, {}, {}\n{}{}",
        path.display(),
        all.sentence(),
        pluralize(all.messages, "message"),
        pluralize(all.calls, "tool call"),
        all.describe_confidence(),
        all.details()
    );
    if let (Some(_), Some(first)) = (&mapped, &all.first_preview) {
        let _infallible = write!(out, "  the first transcript:\n{first}");
    }
    out.push_str(&format_notes(&review));
    report.print(&out);
    let is_warned = all.faults.count() > 0 || all.not_understood > 0 || !review.stale.is_empty();
    Ok(
        if !review.problems.is_empty() || all.counts.transcripts == 0 || (strict && is_warned) {
            EXIT_USAGE
        } else {
            0
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn details_of(name: &str, map: Option<&str>, text: &str) -> String {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("written");
        let map = map.map(|map| Arc::new(FieldMapping::parse_inline(map).expect("a map")));
        let file = TranscriptFile::open_mapped(&path, map.as_ref()).expect("it opens");
        let report = TranscriptFileReport::read(file, &mut |_| ()).expect("read");
        report.details()
    }

    #[test]
    fn labels_of_other_tools_do_not_count_as_those_of_a_map() {
        let map = "id: id, output: a, label: {eval: e, passed: ok}";
        // The second record has a label and no transcript.
        let records = r#"{"id":"one","a":"x","ok":"good"}
{"id":"two","ok":"bad"}
"#;
        let details = details_of("t.jsonl", Some(map), records);
        assert!(
            details.contains("  1 label, which counts in the same way as those in `labels:`\n"),
            "{details}"
        );
        let sample = include_str!("../../tests/fixtures/foreign/opik.jsonl");
        let details = details_of("opik.jsonl", None, sample);
        assert!(
            details.contains(
                "  1 label of people, which does not count here: `dicta import FILE -o FILE --labels labels.jsonl` writes it\n"
            ),
            "{details}"
        );
        assert!(!details.contains("in the same way"), "{details}");
    }

    #[test]
    fn one_kind_more_than_the_limit_has_its_name() {
        let count = |kinds: u64| {
            let counts = (0..kinds).map(|n| (format!("k{n:02}"), 1));
            format_counts(&counts.collect())
        };
        assert!(count(13).ends_with(", 1 k12"), "{}", count(13));
        assert!(
            count(14).ends_with("1 k11, 2 of 2 more kinds"),
            "{}",
            count(14)
        );
    }
}
