//! Support for the tests of formats: prints files as dicta reads them, and reads each transcript again by its location.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::super::{TranscriptFile, UnreadContent};
use crate::model::{Transcript, TranscriptPart};

/// Returns the path of a fixture, from `tests/fixtures`.
pub(super) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// A transcript, or the reason why a record isn't one.
pub(super) type ReadTranscript = Result<Transcript<'static>, String>;

/// Returns the format of a file, its transcripts, and the counts of unknown content.
pub(super) fn read(path: &Path) -> (String, Vec<ReadTranscript>, Vec<(String, u64)>) {
    let mut open = TranscriptFile::open(path).unwrap_or_else(|why| panic!("{why}"));
    let mut all = Vec::new();
    let mut unread = BTreeMap::new();
    while let Some(block) = open.next_block().expect("a block") {
        for (record, bytes) in block.records() {
            let id = open.default_id(record.span.number);
            let got = record.parse(bytes, &id).map(Transcript::into_owned);
            assert!(!bytes.contains(&b'\n'), "lines stay lines");
            if record.fault.is_none() {
                assert_eq!(
                    open.read_native(record.span).expect("again"),
                    bytes,
                    "found again"
                );
            }
            let raw = open.read_raw(record.span).expect("what the file has");
            assert!(!raw.is_empty());
            if let Ok(transcript) = &got {
                for (kind, count) in UnreadContent::find(transcript).kinds {
                    *unread.entry(kind).or_default() += count;
                }
            }
            all.push(got.map_err(|bad| bad.why));
        }
    }
    let mut tally = open
        .tally()
        .map(|tally| tally.unknown.clone())
        .unwrap_or_default();
    tally.append(&mut unread);
    (open.format().to_owned(), all, tally.into_iter().collect())
}

/// Describes a file as text, for the comparison with the expected output.
pub(super) fn describe_file(name: &str) -> String {
    let (format, all, unknown) = read(&fixture(name));
    let mut text = format!("{format}\n");
    for got in all {
        let _ = match got {
            Ok(transcript) => write!(text, "{}", describe_transcript(&transcript)),
            Err(why) => writeln!(text, "! {why}"),
        };
    }
    for (kind, count) in unknown {
        let _ = writeln!(text, "? {count} {kind}");
    }
    text
}

fn describe_transcript(transcript: &Transcript<'_>) -> String {
    let mut text = format!("# {}", &*transcript.id);
    let metadata = |json: &Option<crate::model::JsonText<'_>>| {
        json.as_ref()
            .map(|json| format!(" {}", json.get()))
            .unwrap_or_default()
    };
    text.push_str(&metadata(&transcript.metadata));
    if !transcript.tags.is_empty() {
        let _ = write!(text, " tags {:?}", transcript.tags);
    }
    text.push('\n');
    for message in &transcript.messages {
        let _ = write!(text, "{}:", message.role.as_str());
        for part in &message.parts {
            let _ = match part {
                TranscriptPart::Text(content) => write!(text, " {:?}", &**content),
                TranscriptPart::Reasoning(thought) => write!(text, " thinks {:?}", &**thought),
                TranscriptPart::ToolCall(call) => {
                    write!(text, " {}={}({})", &*call.id, &*call.name, &*call.arguments)
                }
                TranscriptPart::ToolResult(result) => write!(
                    text,
                    " {} answers {:?} error {:?} took {:?}",
                    &*result.call_id, &*result.content, result.is_error, result.duration_ms
                ),
                TranscriptPart::Media { kind, raw } => write!(text, " {}:{}", &**kind, raw.get()),
                TranscriptPart::Other(raw) => write!(text, " other {}", raw.get()),
            };
        }
        text.push_str(&metadata(&message.metadata));
        text.push('\n');
    }
    for verdict in &transcript.verdicts {
        let json = serde_json::to_string(verdict).expect("a verdict is JSON");
        let _ = writeln!(text, "= {json}");
    }
    text
}

/// Compares a file with the expected output next to it. `DICTA_BLESS` in the environment writes that output: read the
/// difference before you commit it.
pub(super) fn assert_matches_expected(name: &str) {
    let expected = fixture(&format!("{name}.expected"));
    let described = describe_file(name);
    if std::env::var_os("DICTA_BLESS").is_some() {
        std::fs::write(&expected, &described).expect("written");
    }
    let expected = std::fs::read_to_string(&expected).expect("what is expected");
    assert_eq!(described, expected, "{name}");
}

/// Reads a fixture to its end after damage: cut, with a changed byte, or with a repeated piece.
pub(super) fn assert_survives_damage(name: &str, cut: usize, at: usize, byte: u8) {
    let original = std::fs::read(fixture(name)).expect("a fixture");
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("odd.jsonl");
    let cut = cut % (original.len() + 1);
    let mut bytes = original[..cut].to_vec();
    bytes.extend_from_slice(&original[cut.saturating_sub(at % 64)..]);
    let at = at % bytes.len();
    bytes[at] = byte;
    for bytes in [&bytes[..], &original[..cut]] {
        std::fs::write(&path, bytes).expect("written");
        let Ok(mut open) = TranscriptFile::open(&path) else {
            continue;
        };
        while let Some(block) = open.next_block().expect("a block") {
            for (record, bytes) in block.records() {
                let parsed = record.parse(bytes, "t");
                if open.format() != "native" && record.fault.is_none() {
                    parsed.expect("what a reader hands out is read");
                }
            }
        }
    }
}
