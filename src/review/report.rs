//! The report of a review: its content, and its Markdown.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::answers::Disagreement;
use super::counts::{ModeCounts, ModeTable};
use super::modes::FailureMode;
use super::note::ReviewNote;
use super::session::{ReviewError, ReviewSession};
use crate::compare::statistics::{Estimate, FigurePresentation, Undefined};
use crate::model::{Transcript, TranscriptPart, make_visible, pluralize};
use crate::report::format_as_code;
use crate::run::visit_transcripts;

/// The longest excerpt of a message, in characters.
const MAX_EXCERPT: usize = 1200;

/// A note in a report.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportNote {
    /// The note.
    pub note: ReviewNote,
    /// The ids of the modes that it shows.
    pub modes: Vec<String>,
    /// True if the transcript changed since.
    pub is_stale: bool,
    /// The file of the transcript.
    pub path: Option<String>,
    /// The anchor of the message in the report, if the message exists.
    pub anchor: Option<String>,
}

/// A message that a note names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportMessage {
    /// The anchor.
    pub anchor: String,
    /// The transcript.
    pub transcript: String,
    /// The position of the message.
    pub message: u32,
    /// The role.
    pub role: String,
    /// The text, cut to a length.
    pub text: String,
}

/// The content of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewReport {
    /// The name of the workspace or file.
    pub name: String,
    /// The table.
    pub table: ModeTable,
    /// The modes, each with its figures.
    pub modes: Vec<(FailureMode, ModeCounts)>,
    /// The notes with a text.
    pub notes: Vec<ReportNote>,
    /// The messages that notes name.
    pub messages: Vec<ReportMessage>,
    /// The disagreements between readers.
    pub disagreements: Vec<Disagreement>,
    /// The plans of the draws.
    pub plans: Vec<String>,
}

impl ReviewReport {
    /// Collects the content. Reads the transcripts again for the messages that notes name.
    pub fn collect(session: &ReviewSession) -> Result<Self, ReviewError> {
        let book = &session.book;
        let table = session.table();
        let modes = book.modes.modes.iter().cloned();
        let mut messages = Vec::new();
        // The anchors by transcript and message.
        let mut anchors: HashMap<(String, Option<u32>), String> = HashMap::new();
        let mut wanted: HashMap<&str, Vec<u32>> = HashMap::new();
        let named = book.notes.iter().filter(|note| note.text().is_some());
        for note in named.clone() {
            if let Some(message) = note.message {
                wanted.entry(&note.transcript).or_default().push(message);
            }
        }
        let place = &session.place;
        visit_transcripts(&place.transcripts, &place.maps, &mut |reference, read| {
            let Some(numbers) = wanted.get(reference.id.as_str()) else {
                return;
            };
            let mut numbers = numbers.clone();
            numbers.sort_unstable();
            numbers.dedup();
            for message in numbers {
                if let Some((role, text)) = read_message(read, message) {
                    let anchor = format!("message-{}", messages.len() + 1);
                    let name = (reference.id.clone(), Some(message));
                    anchors.entry(name).or_insert_with(|| anchor.clone());
                    messages.push(ReportMessage {
                        anchor,
                        transcript: reference.id.clone(),
                        message,
                        role,
                        text,
                    });
                }
            }
        })?;
        let notes = named.map(|note| {
            let name = (note.transcript.clone(), note.message);
            let answers = book.modes.resolve_answers(&note.modes);
            let entry = session.catalog.find(&note.transcript);
            ReportNote {
                note: note.clone(),
                modes: answers
                    .into_iter()
                    .filter_map(|(id, occurs)| occurs.then_some(id))
                    .collect(),
                is_stale: book.is_stale(note),
                path: entry.map(|entry| {
                    let path = &entry.reference.path;
                    let path = path.strip_prefix(&place.root).unwrap_or(path);
                    path.display().to_string()
                }),
                anchor: anchors.get(&name).cloned(),
            }
        });
        let name = place.workspace.as_ref().map_or_else(
            || {
                let files = place.transcripts.iter().filter_map(|path| path.file_name());
                let files: Vec<_> = files.map(|name| name.to_string_lossy()).collect();
                files.join(", ")
            },
            |workspace| workspace.name.clone(),
        );
        Ok(Self {
            name,
            notes: notes.collect(),
            modes: modes.zip(table.modes.clone()).collect(),
            messages,
            disagreements: book.disagreements(),
            plans: session.describe_draws(),
            table,
        })
    }

    /// Returns the sentences above the table.
    pub fn facts(&self) -> Vec<String> {
        describe_table(&self.table, &self.plans)
    }
}

/// Returns sentences about what was read, and how much it covers.
pub fn describe_table(table: &ModeTable, plans: &[String]) -> Vec<String> {
    let mut facts = vec![format!(
        "{} read of {}: {} of {} drawn, {} picked by hand",
        table.read.0 + table.read.1,
        pluralize(table.transcripts, "transcript"),
        table.read.0,
        table.drawn,
        table.read.1
    )];
    let [no_failure, failure, unsure, skipped] = table.outcomes;
    facts.push(format!(
            "Of the drawn ones: {failure} with a failure, {no_failure} without, {unsure} unsure, {skipped} skipped"
        ));
    if !plans.is_empty() {
        facts.push(format!("Draws: {}", plans.join("; ")));
    }
    if table.covered > 0 {
        facts.push(format!(
            "The shares cover {} of {}",
            table.covered,
            pluralize(table.transcripts, "transcript")
        ));
    }
    for (name, read, all) in &table.open_sets {
        facts.push(format!(
            "The {name} set joins the shares when all of it is read: {read} of {all} so far"
        ));
    }
    let saturation = &table.saturation;
    facts.push(format!(
        "{} in the last {}",
        pluralize(saturation.in_last, "new mode"),
        pluralize(saturation.window as u64, "transcript")
    ));
    if saturation.new_modes.len() > 1 {
        let steps: Vec<String> = saturation.new_modes.iter().map(u64::to_string).collect();
        facts.push(format!(
            "New modes per 20 transcripts: {}",
            steps.join(", ")
        ));
    }
    for (count, what) in [
        (table.ungrouped, "note without a mode"),
        (table.open_questions, "open question about modes"),
    ] {
        if count > 0 {
            let plural = what.replacen(' ', "s ", 1);
            let what = match (count, what.starts_with("note")) {
                (1, _) => what.to_owned(),
                (_, true) => plural,
                (_, false) => what.replace("question", "questions"),
            };
            facts.push(format!("{count} {what}"));
        }
    }
    if table.stale > 0 {
        let notes = pluralize(table.stale, "note");
        facts.push(format!(
                "{notes} about transcripts that changed since: they count nowhere until someone reads the transcript again"
            ));
    }
    facts
}

fn read_message(read: &Transcript<'_>, message: u32) -> Option<(String, String)> {
    let message = read.messages.get(message as usize)?;
    let mut text = message.text().into_owned();
    for part in &message.parts {
        let more = match part {
            TranscriptPart::ToolCall(call) => format!("{}({})", call.name, call.arguments),
            TranscriptPart::ToolResult(result) => result.content.to_string(),
            _ => continue,
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&more);
    }
    if let Some((end, _)) = text.char_indices().nth(MAX_EXCERPT) {
        text.truncate(end);
        text.push('…');
    }
    Some((message.role.as_str().to_owned(), text))
}

/// Returns the reason why a share has no value, in the words of a review: its answers are the labels of the statistics.
pub(super) fn explain_undefined(why: Undefined) -> String {
    match why {
        Undefined::NoLabels => "no answer in a drawn transcript".to_owned(),
        other => other.to_string(),
    }
}

/// Formats a share with its interval: `12% (7%–20%)`. Few answers get the interval first.
pub fn format_share(estimate: &Estimate) -> String {
    let percent = |value: f64| format!("{:.0}%", 100.0 * value);
    let interval = format!(
        "{}–{}",
        percent(estimate.interval.lower),
        percent(estimate.interval.upper)
    );
    match estimate.point {
        Err(why) => format!("– ({})", explain_undefined(why)),
        Ok(_)
            if FigurePresentation::for_labels(estimate.labels)
                == FigurePresentation::CountsOnly =>
        {
            interval
        }
        Ok(point)
            if FigurePresentation::for_labels(estimate.labels)
                == FigurePresentation::IntervalFirst =>
        {
            format!("{interval} ({})", percent(point))
        }
        Ok(point) => format!("{} ({interval})", percent(point)),
    }
}

/// Returns the columns of the table for a mode, without its name.
pub(super) fn columns(counts: &ModeCounts) -> [String; 5] {
    let hand = match counts.by_hand {
        (0, _) => String::new(),
        (read, yes) => format!("{yes} of {read}"),
    };
    let ends = counts
        .first_and_last
        .map_or_else(String::new, |(first, last)| format!("{first} · {last}"));
    [
        counts.read.to_string(),
        counts.count.to_string(),
        format_share(&counts.share),
        hand,
        ends,
    ]
}

/// The headings of the table.
pub(super) const HEADINGS: [&str; 7] = [
    "mode",
    "n read",
    "count",
    "share (95% interval)",
    "picked by hand",
    "first · last read",
    "together with",
];

/// Returns the names of the modes that occur together with a mode.
pub(super) fn describe_together(report: &ReviewReport, counts: &ModeCounts) -> String {
    let names = counts.together_with.iter().map(|(id, count)| {
        let mode = report.modes.iter().find(|(mode, _)| mode.id == *id);
        let name = mode.map_or(id.as_str(), |(mode, _)| mode.name.as_str());
        format!("{name} {count}")
    });
    names.collect::<Vec<_>>().join(", ")
}

/// Escapes a text for a line or a table cell of Markdown.
fn escape(text: &str) -> String {
    let visible = make_visible(text, false);
    let mut out = String::new();
    for c in visible.chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&' | '!'
        ) {
            out.push('\\');
        }
        out.push(if c == '\n' { ' ' } else { c });
    }
    out
}

/// Renders the report as Markdown.
pub fn render_markdown(report: &ReviewReport) -> String {
    let mut out = format!("# Review of {}\n\n", escape(&report.name));
    for fact in report.facts() {
        let _infallible = writeln!(out, "- {}", escape(&fact));
    }
    out.push_str("\n## Modes\n\n");
    if report.modes.is_empty() {
        out.push_str("No mode yet: `m` in `dicta review` groups notes.\n");
    } else {
        let _infallible = writeln!(out, "| {} |", HEADINGS.join(" | "));
        let _infallible = writeln!(out, "|{}", " --- |".repeat(HEADINGS.len()));
        for (mode, counts) in &report.modes {
            let together = escape(&describe_together(report, counts));
            let _infallible = writeln!(
                out,
                "| {} | {} | {together} |",
                escape(&mode.name),
                columns(counts).map(|cell| escape(&cell)).join(" | ")
            );
        }
        if report
            .modes
            .iter()
            .any(|(_, counts)| counts.has_many_missing)
        {
            out.push_str("\nMore than a tenth of the drawn transcripts have no answer for some modes: answer yes or no first.\n");
        }
        out.push_str("\n## Definitions\n\n");
        for (mode, counts) in &report.modes {
            let _infallible = writeln!(
                out,
                "- **{}** ({}): {}",
                escape(&mode.name),
                escape(&mode.id),
                escape(if mode.definition.is_empty() {
                    "no definition yet"
                } else {
                    &mode.definition
                })
            );
            for former in &mode.formerly {
                let _infallible = writeln!(
                    out,
                    "  - contains the former mode {} ({})",
                    escape(&former.name),
                    escape(&former.id)
                );
            }
            for example in &counts.examples {
                if let Some(one) = report.notes.iter().find(|one| one.note.id == *example) {
                    let _infallible = writeln!(out, "  - {}", markdown_note(one));
                }
            }
        }
    }
    if !report.disagreements.is_empty() {
        out.push_str("\n## Disagreements\n\n");
        for one in &report.disagreements {
            let _infallible = writeln!(
                out,
                "- {} in {}: yes {}; no {}",
                escape(&one.mode),
                escape(&one.transcript),
                escape(&one.yes.join(", ")),
                escape(&one.no.join(", "))
            );
        }
    }
    out.push_str("\n## Notes\n\n");
    for one in &report.notes {
        let stale = if one.is_stale {
            " (the transcript changed since)"
        } else {
            ""
        };
        let _infallible = writeln!(out, "- {}{stale}", markdown_note(one));
    }
    if !report.messages.is_empty() {
        out.push_str("\n## Messages\n");
        for message in &report.messages {
            let _infallible = writeln!(
                out,
                "\n<a id=\"{}\"></a>**{}, message {}** ({})\n\n{}",
                message.anchor,
                escape(&message.transcript),
                message.message,
                escape(&message.role),
                format_as_code(&message.text)
            );
        }
    }
    out
}

fn markdown_note(one: &ReportNote) -> String {
    let note = &one.note;
    let text = escape(note.text().unwrap_or_default());
    let place = match (&one.anchor, note.message) {
        (Some(anchor), Some(message)) => format!(
            "[{}, message {message}](#{anchor})",
            escape(&note.transcript)
        ),
        _ => escape(&note.transcript),
    };
    let by = note
        .by
        .as_deref()
        .map_or_else(String::new, |by| format!(", {}", escape(by)));
    format!("{text} — {place}{by}")
}
