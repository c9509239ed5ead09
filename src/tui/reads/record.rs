//! Reads the record of a transcript as the file contains it, indented if it is JSON, and capped.

use std::sync::Arc;

use crate::model::{TranscriptRef, pluralize};
use crate::transcript::{
    FieldMapping, ReadCounts, ReadTally, RecordSpan, TranscriptFile, UnreadContent,
};
use crate::tui::state::transcript_source::TranscriptSourceText;
use crate::tui::task_failure::TaskFailure;

/// The largest part of a record that is shown, in bytes.
const MAX_RECORD_BYTES: usize = 2 * 1024 * 1024;
/// The largest size of the indented text, in bytes.
const MAX_INDENTED_BYTES: usize = 4 * 1024 * 1024;
/// The deepest indented level; deeper levels keep this indentation.
const MAX_INDENT_LEVEL: usize = 20;
/// The largest file that is read again to count its skipped parts, in bytes: reading it takes no noticeable time.
const MAX_RESCANNED_BYTES: u64 = 4 * 1024 * 1024;
/// The largest number of kinds of skipped records that the note names.
const MAX_KINDS_NAMED: usize = 4;

/// Reads the record of a transcript. `transcript.path` must be absolute.
pub(crate) fn read_record(
    transcript: &TranscriptRef,
    map: Option<&Arc<FieldMapping>>,
) -> Result<TranscriptSourceText, TaskFailure> {
    let file = TranscriptFile::open_mapped(&transcript.path, map);
    let mut file = file.map_err(TaskFailure::new)?;
    let span = RecordSpan {
        offset: transcript.offset,
        len: transcript.len,
        part: transcript.part,
        number: 1,
    };
    let bytes = file.read_raw(span).map_err(TaskFailure::new)?;
    let mut notes = Vec::new();
    // The digest is that of the native form, so the record is converted again.
    let again = file
        .read_native(span)
        .map(|bytes| crate::model::Digest::hash_bytes(&bytes));
    if !matches!(again, Ok(digest) if digest == transcript.digest) {
        notes.push("the file has changed since, so this may be another record".to_owned());
    }
    if let Some(note) = scan_for_skipped(&mut file) {
        notes.push(note);
    }
    let (text, cut) = format_record(&bytes);
    if cut {
        let limit_mib = MAX_RECORD_BYTES / (1024 * 1024);
        notes.push(format!(
            "shortened to {limit_mib} MiB of {} bytes",
            bytes.len()
        ));
    }
    Ok(TranscriptSourceText {
        location: format!(
            "{} · {} · {} bytes at byte {}",
            file.format(),
            transcript.path.display(),
            bytes.len(),
            transcript.offset
        ),
        notes,
        text,
    })
}

/// Returns a sentence on the skipped parts of a small file, or None.
fn scan_for_skipped(file: &mut TranscriptFile) -> Option<String> {
    let size = std::fs::metadata(file.path()).ok()?.len();
    if size > MAX_RESCANNED_BYTES {
        return None;
    }
    let mut counts = ReadCounts::default();
    while let Some(block) = file.next_block().ok()? {
        for (record, bytes) in block.records() {
            match record.parse(bytes, "") {
                Ok(transcript) => counts.add_transcript(&UnreadContent::find(&transcript)),
                Err(_) => counts.add_bad_record(),
            }
        }
    }
    describe_unread(&counts, file.tally())
}

/// Returns a sentence on the records that dicta did not understand, counted as `dicta check` counts them, or None.
pub(crate) fn describe_unread(counts: &ReadCounts, tally: Option<&ReadTally>) -> Option<String> {
    let (_, missed) = counts.records(tally);
    if missed == 0 {
        return None;
    }
    let unknown = tally.into_iter().flat_map(|tally| &tally.unknown);
    let kinds = unknown.chain(&counts.unread);
    let mut kinds: Vec<String> = kinds
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    if counts.bad_records > 0 {
        kinds.insert(0, pluralize(counts.bad_records, "bad record"));
    }
    if kinds.len() > MAX_KINDS_NAMED {
        kinds.truncate(MAX_KINDS_NAMED);
        kinds.push("others".to_owned());
    }
    Some(counts.describe_missed(tally, "the file's ", &kinds))
}

/// Returns a record as text, and true if the text is shortened.
fn format_record(bytes: &[u8]) -> (String, bool) {
    let formatted = &bytes[..bytes.len().min(MAX_RECORD_BYTES)];
    let mut cut = formatted.len() < bytes.len();
    // Only JSON is indented. A CSV row or Markdown keeps its own layout.
    let json = matches!(formatted.trim_ascii_start().first(), Some(b'{' | b'['));
    if !json {
        return (String::from_utf8_lossy(formatted).into_owned(), cut);
    }
    let (indented, all) = indent_json(formatted);
    cut |= !all;
    (String::from_utf8_lossy(&indented).into_owned(), cut)
}

/// Indents JSON with one entry per line. Changes only white space between tokens, so invalid and truncated JSON
/// works, too.
fn indent_json(json: &[u8]) -> (Vec<u8>, bool) {
    let mut out = Vec::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut at = 0;
    let line = |out: &mut Vec<u8>, depth: usize| {
        // Two spaces per level.
        out.push(b'\n');
        out.resize(out.len() + 2 * depth.min(MAX_INDENT_LEVEL), b' ');
    };
    while at < json.len() {
        // Indentation can make a deeply nested text much longer than the record.
        if out.len() > MAX_INDENTED_BYTES {
            return (out, false);
        }
        let byte = json[at];
        at += 1;
        match byte {
            b'"' => {
                // Text inside a string may contain brackets, so it is copied as a unit.
                let end = find_string_end(json, at);
                out.extend_from_slice(&json[at - 1..end]);
                at = end;
            }
            b'{' | b'[' => {
                out.push(byte);
                depth += 1;
                let next = json[at..].trim_ascii_start();
                // An empty object or array stays on one line.
                if let Some(close @ (b'}' | b']')) = next.first() {
                    out.push(*close);
                    depth -= 1;
                    at = json.len() - next.len() + 1;
                } else {
                    line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                // Invalid JSON may close more than it opens.
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            // A line break outside any value separates the lines of a JSON Lines session.
            b'\n' if depth == 0 => out.push(b'\n'),
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => out.push(byte),
        }
    }
    (out, true)
}

/// Returns the end of the string that began before `at`.
fn find_string_end(json: &[u8], mut at: usize) -> usize {
    while let Some(hit) = memchr::memchr2(b'"', b'\\', &json[at.min(json.len())..]) {
        at += hit + 1;
        if json[at - 1] == b'"' {
            return at;
        }
        // The character after a backslash can't end the string.
        at += 1;
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented_without_changing_tokens() {
        let format_text = |text: &str| format_record(text.as_bytes()).0;
        assert_eq!(
            format_text(r#"{"a":[1,{"b":"x, {\"}"}],"c":{},"n":1.50e3}"#),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x, {\\\"}\"\n    }\n  ],\n  \"c\": {},\n  \"n\": 1.50e3\n}"
        );
        assert_eq!(
            format_text("{\"a\":1}\n{\"b\":2}"),
            "{\n  \"a\": 1\n}\n{\n  \"b\": 2\n}"
        );
        assert_eq!(
            format_text("a,\"b\nc\",1"),
            "a,\"b\nc\",1",
            "a row stays a row"
        );
        for torn in ["{\"a\": \"x", "{\"a\\", "[[[", "}}", "{\"a\":\"\\"] {
            assert!(!format_text(torn).is_empty());
        }
    }

    #[test]
    fn long_record_is_truncated_and_flagged() {
        let (text, cut) = format_record(&vec![b'x'; MAX_RECORD_BYTES + 1]);
        assert_eq!((text.len(), cut), (MAX_RECORD_BYTES, true));
        let (text, cut) = format_record("[".repeat(MAX_RECORD_BYTES).as_bytes());
        assert!(cut && text.len() < MAX_INDENTED_BYTES + 100);
    }
}
