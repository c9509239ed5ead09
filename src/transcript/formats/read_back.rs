//! Support for the tests of formats: reads a file's transcripts as native JSON, and each again by its location.

use std::path::Path;

use serde_json::Value;

use crate::transcript::{ReadTally, RecordSpan, TranscriptFile};

/// A transcript as native JSON, or the reason why there is none.
pub(super) type ReadTranscript = Result<Value, String>;

/// Returns the transcripts and the tally of a file with these bytes.
pub(super) fn read(bytes: &[u8]) -> (Vec<ReadTranscript>, ReadTally) {
    let (all, tally) = read_with_spans(bytes);
    (
        all.into_iter().map(|(_, transcript)| transcript).collect(),
        tally,
    )
}

/// Returns the same with the location of each transcript.
pub(super) fn read_with_spans(bytes: &[u8]) -> (Vec<(RecordSpan, ReadTranscript)>, ReadTally) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("saved.json");
    std::fs::write(&path, bytes).expect("written");
    let mut file = TranscriptFile::open(&path).expect("a known format");
    let mut all = Vec::new();
    while let Some(block) = file.next_block().expect("a block") {
        for (record, bytes) in block.records() {
            assert!(!bytes.contains(&b'\n'), "a transcript is one line");
            let transcript = match record.parse(bytes, "default") {
                Ok(_) => {
                    let again = file.read_native(record.span).expect("read again");
                    assert_eq!(
                        String::from_utf8_lossy(&again),
                        String::from_utf8_lossy(bytes)
                    );
                    // It was parsed above; only a tree of it may be too deep.
                    Ok(serde_json::from_slice(bytes).unwrap_or_else(|why| {
                        assert!(why.to_string().contains("recursion limit"), "{why}");
                        Value::Null
                    }))
                }
                Err(bad) => Err(bad.why),
            };
            assert!(
                !file
                    .read_raw(record.span)
                    .expect("the file's own")
                    .is_empty()
            );
            all.push((record.span, transcript));
        }
    }
    let tally = file.tally().expect("a tally").clone();
    (all, tally)
}

/// Returns the bytes of a fixture.
pub(super) fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name);
    std::fs::read(path).expect("a fixture")
}

/// Returns the lines of each transcript, as [`message_lines`] does. Each record must be a transcript.
pub(super) fn lines_of_each(all: &[ReadTranscript]) -> Vec<Vec<String>> {
    let transcripts = all.iter().map(|one| one.as_ref().expect("a transcript"));
    transcripts.map(message_lines).collect()
}

/// Returns `role text` or `role call(arguments)` for each message.
pub(super) fn message_lines(transcript: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for message in transcript["messages"].as_array().expect("messages") {
        let role = message["role"].as_str().unwrap_or_default();
        let mut contents: Vec<String> = Vec::new();
        match &message["content"] {
            Value::String(text) => contents.push(text.clone()),
            Value::Array(parts) => {
                for part in parts {
                    let kind = match part["type"].as_str() {
                        Some("media") => &part["kind"],
                        Some("verbatim") => &part["raw"]["type"],
                        _ => &part["type"],
                    };
                    let kind = kind.as_str().unwrap_or("?");
                    let text = part["text"].as_str().map(str::to_owned);
                    contents.push(text.unwrap_or_else(|| format!("<{kind}>")));
                }
            }
            _ => {}
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let function = &call["function"];
            contents.push(format!(
                "{}({})",
                function["name"].as_str().unwrap_or_default(),
                function["arguments"].as_str().unwrap_or_default()
            ));
        }
        lines.push(format!("{role} {}", contents.join(" | ")));
    }
    lines
}
