//! Labels that stand in the files of transcripts themselves, where a `map` of dicta.yaml says which field they are in.
//!
//! They are read as the transcripts are, a record at a time. A label is of the transcript beside it, so it names one that is
//! here; what the map says it is about is looked at in dicta.yaml, once for all.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{LABEL_CODE, LoadedLabels, MAX_LABELS_BYTES};
use crate::diag::{Diagnostic, SourceSpan};
use crate::model::{Label, pluralize};
use crate::transcript::{FieldMappings, TranscriptError};
use crate::workspace::paths;

/// The labels of all files whose map has any. A file that cannot be read is whoever reads its transcripts' trouble.
pub(in crate::workspace) fn read_mapped_labels(
    root: &Path,
    files: &[PathBuf],
    maps: &FieldMappings,
) -> LoadedLabels {
    let mut found = LoadedLabels::default();
    let mut ids: HashSet<String> = HashSet::new();
    for path in files {
        if !maps.0.get(path).is_some_and(|map| map.has_labels()) {
            continue;
        }
        let shown = paths::display_path(root, path);
        if path
            .metadata()
            .is_ok_and(|meta| meta.len() > MAX_LABELS_BYTES)
        {
            let file = shown.display();
            let message = format!(
                "its labels are not read: it is larger than {} MiB; `dicta import {file} -o FILE --labels labels.jsonl` writes them where they are",
                MAX_LABELS_BYTES >> 20
            );
            let warning = Diagnostic::warning(LABEL_CODE, &*shown, message);
            found.problems.push(warning);
            continue;
        }
        let before = found.labels.len();
        let mut taken = 0;
        let mut offsets = Vec::new();
        let read = for_each_label(
            path,
            maps,
            &mut |label, offset| {
                // A run calls the second one otherwise.
                if let Some(label) = label {
                    offsets.push(offset);
                    found.labels.push(label);
                } else {
                    taken += 1;
                }
            },
            &mut ids,
        );
        if read.is_err() {
            found.labels.truncate(before);
            continue;
        }
        let of: Arc<Path> = Arc::from(&*shown);
        let spans = spans_at_offsets(path, &offsets);
        let places = spans.into_iter().map(|span| (Arc::clone(&of), span));
        found.places.extend(places);
        if taken > 0 {
            let labels = pluralize(taken, "label");
            let (of, count) = if taken == 1 {
                ("a transcript", "counts")
            } else {
                ("transcripts", "count")
            };
            let message = format!(
                "{labels} of {of} with an id that an earlier one has {count} for nothing: give each its own `id`"
            );
            let warning = Diagnostic::warning(LABEL_CODE, &*shown, message);
            found.problems.push(warning);
        }
    }
    found
}

/// Every label of a file with where its record begins; none for one of a transcript whose id is taken.
fn for_each_label(
    path: &Path,
    maps: &FieldMappings,
    tell: &mut dyn FnMut(Option<Label>, u64),
    ids: &mut HashSet<String>,
) -> Result<(), TranscriptError> {
    let mut file = maps.open(path)?;
    while let Some(block) = file.next_block()? {
        for (record, bytes) in block.records() {
            let Ok(transcript) = record.parse(bytes, &file.default_id(record.span.number)) else {
                continue;
            };
            let id = transcript.id.to_string();
            let first = ids.insert(id.clone());
            for label in &record.labels {
                let label = first.then(|| Label {
                    transcript: id.clone(),
                    ..label.clone()
                });
                tell(label, record.span.offset);
            }
        }
    }
    Ok(())
}

/// Places by where they begin, in the file's order.
fn spans_at_offsets(path: &Path, offsets: &[u64]) -> Vec<SourceSpan> {
    let text = if offsets.is_empty() {
        Vec::new()
    } else {
        std::fs::read(path).unwrap_or_default()
    };
    let (mut counted, mut line) = (0, 1);
    let place = |offset: &u64| {
        let at = usize::try_from(*offset)
            .unwrap_or(usize::MAX)
            .min(text.len());
        let between = text.get(counted..at).unwrap_or_default();
        let lines = memchr::memchr_iter(b'\n', between).count();
        line += u32::try_from(lines).unwrap_or(u32::MAX);
        counted = at;
        SourceSpan {
            bytes: at..at,
            line,
            column: 1,
        }
    };
    offsets.iter().map(place).collect()
}
