//! The checks of notes against modes and transcripts.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::path::Path;
use std::sync::Arc;

use super::modes::ModeList;
use super::note::{NOTE_CODE, NoteLine, NoteOutcome, line_span};
use crate::diag::{Diagnostic, find_nearest};

/// The transcript of a note as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotedTranscript {
    /// No transcript has the id.
    Missing,
    /// The transcript has another text than the reader saw.
    Changed,
    /// As far as the note says, the reader saw this text.
    Current {
        /// The number of messages.
        messages: u32,
    },
}

/// Returns the problems of notes, each with its line.
///
/// Without `modes`, their ids are not checked: in a file that does not load, every id would be unknown. `find` returns
/// the transcript of a note. `moved` has the new ids of transcripts with another id now. A removed note is not
/// compared with transcripts.
pub fn check_review<S: BuildHasher>(
    path: &Path,
    source: &Arc<str>,
    notes: &[NoteLine],
    modes: Option<&ModeList>,
    moved: &HashMap<String, String, S>,
    find: &dyn Fn(&NoteLine) -> NotedTranscript,
) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    let mut first_lines: HashMap<&str, &NoteLine> = HashMap::new();
    // Only the newest record of an id counts, so an older one may name what is gone.
    let mut newest: HashMap<&str, &NoteLine> = HashMap::new();
    for line in notes {
        let entry = newest.entry(&line.note.id).or_insert(line);
        if line.note.instant() >= entry.note.instant() {
            *entry = line;
        }
    }
    for line in notes {
        let note = &line.note;
        let fail = |message: String, help: String| {
            Diagnostic::error(NOTE_CODE, path, message)
                .with_span(line_span(source, line.line), source)
                .help(help)
        };
        let first = *first_lines.entry(&note.id).or_insert(line);
        // Records of one note agree in transcript and reader. Others are two notes that were given one id.
        let now = |line: &NoteLine| {
            let id = &line.note.transcript;
            moved.get(id).unwrap_or(id).clone()
        };
        if now(first) != now(line) || first.note.by != note.by {
            problems.push(fail(
                format!(
                    "two notes have the id `{}`: the first one is in line {}, about {} by {}",
                    note.id,
                    first.line,
                    first.note.transcript,
                    first.note.reader()
                ),
                "give one of them another id".to_owned(),
            ));
            continue;
        }
        let is_current = newest
            .get(note.id.as_str())
            .is_some_and(|newest| newest.line == line.line);
        if !is_current || note.outcome == NoteOutcome::Removed {
            continue;
        }
        let answers = modes.map(|modes| (modes, note.modes.keys()));
        let unknown = answers.into_iter().flat_map(|(modes, ids)| {
            let ids = ids.filter(|id| modes.resolve(id).is_none());
            ids.map(move |id| (modes, id))
        });
        for (modes, id) in unknown {
            let ids = modes.modes.iter().map(|mode| mode.id.as_str());
            let help = find_nearest(id, ids).map_or_else(
                || "add the mode to modes.yaml, or remove it from the note".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            problems.push(fail(format!("modes.yaml has no mode `{id}`"), help));
        }
        match (find(line), note.message) {
            (NotedTranscript::Missing, _) => problems.push(fail(
                format!("no transcript has the id `{}`", note.transcript),
                "restore the transcript, correct the id, or delete the line".to_owned(),
            )),
            (NotedTranscript::Current { messages }, Some(message)) if message >= messages => {
                problems.push(fail(
                    describe_message_beyond(&note.transcript, message, messages),
                    "correct `message`, or remove it".to_owned(),
                ));
            }
            // A changed transcript may have lost the message; its note is stale and counts nowhere.
            (NotedTranscript::Changed | NotedTranscript::Current { .. }, _) => {}
        }
    }
    problems
}

fn describe_message_beyond(transcript: &str, message: u32, messages: u32) -> String {
    let has = match messages {
        0 => "no messages".to_owned(),
        1 => "one message, which is message 0".to_owned(),
        more => format!("{more} messages, from 0 to {}", more - 1),
    };
    format!("the transcript {transcript} has no message {message}: it has {has}")
}
