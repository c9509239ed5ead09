//! The files of dicta that contain no transcripts, so that the error can name the command that reads them.
//!
//! Responsible for their signatures. A file counts only if it has no known format. Does not read these files.

use std::path::Path;

use serde_json::Value;

use super::detect::{self, FilePreview};
use crate::model::{LABEL_KEYS, quote_shell_path};

/// The keys of an event in the log of a run.
const EVENT_KEYS: &[&str] = &["seq", "at", "kind"];
/// The keys of a choice between the transcripts of a pair.
const CHOICE_KEYS: &[&str] = &["pair", "better", "eval", "rubric", "by", "at", "note"];
/// The keys of a note of a review.
const NOTE_KEYS: &[&str] = &[
    "id",
    "transcript",
    "digest",
    "message",
    "outcome",
    "note",
    "modes",
    "by",
    "at",
    "sample",
];
/// The outcomes of a note of a review.
const NOTE_OUTCOMES: [&str; 5] = ["no_failure", "failure", "unsure", "skipped", "answered"];

/// A kind of file of dicta without transcripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnFile {
    /// People's labels.
    Labels,
    /// People's choices between the transcripts of pairs.
    PairChoices,
    /// The result lines of a run.
    ResultLines,
    /// The results of a run as one JSON document.
    ResultDocument,
    /// The log of a recorded run.
    EventLog,
    /// The notes of a review.
    Notes,
    /// A rubric, a file of tools, or dicta.yaml.
    Yaml,
}

impl OwnFile {
    /// Returns the kind of a file that begins with `head` and has no known format; `None` for any other file.
    pub(super) fn find(path: &Path, head: &[u8]) -> Option<Self> {
        let preview = detect::preview_file(head).ok()?;
        if let Some(found) = Self::find_in_preview(&preview) {
            return Some(found);
        }
        let has_no_record = preview.first_matches(super::sniff::RecordSniff::is_empty);
        let is_yaml = path
            .extension()
            .is_some_and(|ending| ending == "yaml" || ending == "yml");
        (has_no_record && is_yaml).then_some(Self::Yaml)
    }

    fn find_in_preview(preview: &FilePreview<'_>) -> Option<Self> {
        let first = preview.first_outline();
        let keys = first.as_object()?;
        let has = |key: &str| keys.contains_key(key);
        let is_text = |key: &str| first[key].is_string();
        if first["type"] == "result" && is_text("cell") && is_text("outcome") {
            return Some(Self::ResultLines);
        }
        if first["results"][0]["type"] == "result" && first["results"][0]["cell"].is_string() {
            return Some(Self::ResultDocument);
        }
        // Files of other tools share the keys below, so a further key makes a file unknown.
        let has_only = |known: &[&str]| keys.keys().all(|key| known.contains(&key.as_str()));
        let is_event = first["seq"].is_u64() && first["at"].is_u64() && has("kind");
        if is_event && has_only(EVENT_KEYS) {
            return Some(Self::EventLog);
        }
        let is_note = is_text("id") && is_text("transcript");
        let outcome = first["outcome"].as_str().unwrap_or_default();
        if is_note && NOTE_OUTCOMES.contains(&outcome) && has_only(NOTE_KEYS) {
            return Some(Self::Notes);
        }
        let is_label = is_text("transcript") && is_text("eval") && has("passed");
        if is_label && is_verdict(&first["passed"]) && has_only(&LABEL_KEYS[..]) {
            return Some(Self::Labels);
        }
        (is_text("pair") && is_text("better") && has_only(CHOICE_KEYS)).then_some(Self::PairChoices)
    }

    /// Returns the content of the file, as a sentence fragment.
    pub(super) fn content(self) -> &'static str {
        match self {
            Self::Labels => "labels",
            Self::PairChoices => "choices between the transcripts of pairs",
            Self::ResultLines | Self::ResultDocument => "the results of a run of dicta",
            Self::EventLog => "the log of a run of dicta",
            Self::Notes => "the notes of a review",
            Self::Yaml => "YAML",
        }
    }

    /// Returns the commands that read the file, as a sentence fragment.
    pub(super) fn advice(self, path: &Path) -> String {
        let file = quote_shell_path(path);
        match self {
            Self::Labels | Self::PairChoices => {
                "`labels:` in dicta.yaml names it; then `dicta check` checks it and `dicta agree` compares it with the verdicts"
                    .to_owned()
            }
            Self::ResultLines => format!(
                "`dicta show {file}` prints them, and `dicta compare {file} @` compares them with the newest state"
            ),
            Self::ResultDocument => {
                "`dicta show @` prints the newest results; for results in a file that dicta reads, use `dicta run -o results.jsonl`"
                    .to_owned()
            }
            Self::EventLog => {
                let folder = match path.parent() {
                    Some(folder) if !folder.as_os_str().is_empty() => quote_shell_path(folder),
                    _ => ".".to_owned(),
                };
                format!(
                    "`dicta show {folder}` prints the results, and `dicta replay {folder}` plays the run again"
                )
            }
            Self::Notes => "`dicta review` shows them, and `dicta review report` counts them".to_owned(),
            Self::Yaml => format!(
                "`dicta check {file}` checks a rubric or a file of tools, and `dicta check` checks the workspace of a dicta.yaml"
            ),
        }
    }
}

/// Returns true for the verdict of a label, which is null if the person could not decide.
fn is_verdict(value: &Value) -> bool {
    value.is_boolean() || value.is_null()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_files_are_named_with_the_command_that_reads_them() {
        let cases = [
            (
                "labels.jsonl",
                r#"{"transcript":"a","rubric":"r","eval":"e","passed":null}"#,
                "holds labels, not transcripts: `labels:` in dicta.yaml",
            ),
            (
                "choices.jsonl",
                r#"{"pair":"a","better":"tie","by":"ann"}"#,
                "holds choices between the transcripts of pairs, not transcripts",
            ),
            (
                "my results.jsonl",
                r#"{"type":"result","cell":"a/r/e","transcript":"a","outcome":"pass"}"#,
                "`dicta show 'my results.jsonl'`",
            ),
            (
                "results.json",
                "{\n\"results\": [\n{\"type\":\"result\",\"cell\":\"a/r/e\"}]}",
                "`dicta run -o results.jsonl`",
            ),
            (
                "runs/abcd/events.jsonl",
                r#"{"seq":0,"at":0,"kind":{"run_started":{}}}"#,
                "`dicta replay runs/abcd`",
            ),
            (
                "notes.jsonl",
                r#"{"id":"1","transcript":"a","outcome":"failure","modes":{}}"#,
                "`dicta review report`",
            ),
            (
                "r.yaml",
                "id: r\nevals: []\n",
                "holds YAML, not transcripts: `dicta check r.yaml`",
            ),
        ];
        for (name, text, expected) in cases {
            let path = Path::new(name);
            let own = OwnFile::find(path, text.as_bytes()).expect(name);
            let error = crate::transcript::TranscriptError::OwnFile {
                path: path.to_owned(),
                content: own.content(),
                advice: own.advice(path),
            };
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn files_of_other_tools_are_not_own_files() {
        for text in [
            r#"{"transcript":"Hello.","eval":"e","passed":true,"answer":"Hi."}"#,
            r#"{"transcript":"Hello.","eval":"e"}"#,
            r#"{"seq":1,"at":"2026-01-01T00:00:00Z","kind":"prompt"}"#,
            r#"{"seq":1,"at":5,"kind":"prompt","text":"Hi."}"#,
            r#"{"id":"1","transcript":"Hello.","outcome":"sold"}"#,
            r#"{"type":"result","is_error":false,"result":"done"}"#,
            r#"{"pair":"a","better":"b","chosen":"x","rejected":"y"}"#,
            r#"{"results":[{"prompt":"x"}]}"#,
            "[]",
            "text: not a record",
        ] {
            assert_eq!(
                OwnFile::find(Path::new("x.json"), text.as_bytes()),
                None,
                "{text}"
            );
        }
    }
}
