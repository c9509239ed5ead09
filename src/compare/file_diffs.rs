//! The diff of the files that determine verdicts: rubrics, judges and tools.
//!
//! Responsible for leaving out files of labels, which determine no verdict.

use std::path::Path;

use super::{FileDiff, diff_files};
use crate::event::{BlobSource, RunHeader};

/// The extensions of files of labels.
const LABEL_EXTENSIONS: [&str; 5] = ["jsonl", "ndjson", "json", "csv", "tsv"];

/// Returns the files whose text differs, without files of labels. The blobs supply the texts.
pub fn diff_question_files(
    (before, before_blobs): (&RunHeader, &dyn BlobSource),
    (after, after_blobs): (&RunHeader, &dyn BlobSource),
) -> Vec<FileDiff> {
    let mut before = before.clone();
    let mut after = after.clone();
    for (header, blobs) in [(&mut before, before_blobs), (&mut after, after_blobs)] {
        header.snapshots.retain(|file| {
            // Most files are rubrics, whose texts need no read here.
            !has_label_extension(&file.path)
                || !blobs
                    .get(&file.blob.hash)
                    .is_ok_and(|text| holds_labels(&text))
        });
    }
    diff_files((&before, before_blobs), (&after, after_blobs))
}

fn has_label_extension(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| LABEL_EXTENSIONS.contains(&extension))
}

/// Returns true if the first line has the keys of a label or of a choice. A label has a transcript, an eval, and a verdict
/// or its seal; a choice has a pair and the better part of it.
fn holds_labels(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    // A file without a line has no diff to show either.
    lines.next().is_none_or(|line| {
        let words: Vec<&str> = line
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .collect();
        let has = |key: &&str| words.contains(key);
        // The record of a sealed label has no verdict.
        let is_label =
            ["transcript", "eval"].iter().all(has) && ["passed", "sealed"].iter().any(has);
        let is_choice = ["pair", "better"].iter().all(has);
        is_label || is_choice
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{BlobStore as _, MemoryBlobs, SnapshotFile};
    use crate::model::{RunId, WallTime};

    fn header(blobs: &MemoryBlobs, files: &[(&str, &str)]) -> RunHeader {
        let started = WallTime("2026-01-01T00:00:00Z".to_owned());
        let mut header = RunHeader::new(RunId("r".to_owned()), started, "/w".into());
        header.snapshots = files
            .iter()
            .map(|(path, text)| SnapshotFile {
                path: path.into(),
                blob: blobs.put(text.as_bytes()).expect("stored").0,
            })
            .collect();
        header
    }

    #[test]
    fn labels_are_not_part_of_the_diff() {
        let blobs = MemoryBlobs::default();
        let label = |passed: bool| {
            format!("{{\"transcript\":\"a\",\"eval\":\"tone\",\"passed\":{passed}}}\n")
        };
        let before = header(
            &blobs,
            &[
                ("r.yaml", "id: a\n"),
                ("labels.jsonl", &label(true)),
                ("old.csv", "transcript,eval,passed\na,b,pass\n"),
                ("words.json", "[\"good\"]\n"),
            ],
        );
        let after = header(
            &blobs,
            &[
                ("r.yaml", "id: b\n"),
                ("labels.jsonl", &label(false)),
                ("words.json", "[\"bad\"]\n"),
                ("pairs.jsonl", "{\"pair\":[\"a\",\"b\"],\"better\":\"a\"}\n"),
                (
                    "sealed.jsonl",
                    "{\"transcript\":\"a\",\"rubric\":\"r\",\"eval\":\"tone\",\"sealed\":true}\n",
                ),
            ],
        );
        let diffs = diff_question_files((&before, &blobs), (&after, &blobs));
        let paths: Vec<_> = diffs.iter().map(|file| file.path.as_path()).collect();
        assert_eq!(paths, [Path::new("r.yaml"), Path::new("words.json")]);
        assert!(diffs[0].diff.contains("-id: a\n+id: b\n"), "{diffs:?}");
    }
}
