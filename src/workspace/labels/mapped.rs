//! Labels in transcript files, from a field that a field mapping in dicta.yaml names.
//!
//! dicta reads them with the transcripts, one record at a time. Each label belongs to the transcript of its record.
//! The check of the eval happens once per field mapping, in dicta.yaml.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{LABEL_CODE, LabelPlace, LoadedLabels, MAX_LABELS_BYTES};
use crate::diag::Diagnostic;
use crate::model::{Label, pluralize, quote_shell_path};
use crate::transcript::{FieldMappings, TranscriptError, TranscriptFile};
use crate::workspace::paths;

/// Reads the labels of all files whose field mapping has any. The code that reads the transcripts reports unreadable
/// files.
pub(in crate::workspace) fn read_mapped_labels(
    root: &Path,
    files: &[PathBuf],
    maps: &FieldMappings,
) -> LoadedLabels {
    let mut found = LoadedLabels::default();
    let mut ids: HashSet<String> = HashSet::new();
    for path in files {
        // Most files have no labels. They are not opened here.
        if !maps.by_path.get(path).is_some_and(|map| map.has_labels()) {
            continue;
        }
        let shown_path = paths::display_path(root, path);
        if path
            .metadata()
            // Labels stay in memory, so these files have the limit of label files.
            .is_ok_and(|meta| meta.len() > MAX_LABELS_BYTES)
        {
            let file = quote_shell_path(&shown_path);
            let message = format!(
                "its labels are not read: it is larger than {} MiB; `dicta import {file} -o FILE --labels labels.jsonl` writes them where they are",
                MAX_LABELS_BYTES >> 20
            );
            let warning = Diagnostic::warning(LABEL_CODE, &*shown_path, message);
            found.problems.push(warning);
            continue;
        }
        // After an error in the middle of a file, its labels are removed again.
        let before = found.labels.len();
        let mut taken = 0;
        let mut offsets = Vec::new();
        let read = for_each_label(
            path,
            maps,
            &mut |label, offset| {
                // A run renames a transcript whose id is taken, so its label would match another one.
                if let Some(label) = label {
                    offsets.push(offset);
                    found.labels.push(Arc::new(label));
                } else {
                    taken += 1;
                }
            },
            &mut ids,
        );
        let Ok(read) = read else {
            found.labels.truncate(before);
            continue;
        };
        let file: Arc<Path> = Arc::from(&*shown_path);
        // A record has only its byte offset, and a problem needs a line number.
        let spans = read.find_lines(&offsets).into_iter();
        let places = spans.map(|span| LabelPlace {
            file: Arc::clone(&file),
            span,
        });
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
            let warning = Diagnostic::warning(LABEL_CODE, &*shown_path, message);
            found.problems.push(warning);
        }
    }
    found
}

/// Calls a function with every label of a file and the start of its record; with no label for a transcript whose id
/// is taken. Returns the file.
fn for_each_label(
    path: &Path,
    maps: &FieldMappings,
    visit: &mut dyn FnMut(Option<Label>, u64),
    ids: &mut HashSet<String>,
) -> Result<TranscriptFile, TranscriptError> {
    let mut file = maps.open(path)?;
    while let Some(block) = file.next_block()? {
        for (record, bytes) in block.records() {
            let Ok(transcript) = record.parse(bytes, &file.default_id(record.span.number)) else {
                continue;
            };
            let id = transcript.id.to_string();
            // `ids` spans all files, because ids must be unique in the whole run.
            let first = ids.insert(id.clone());
            for label in &record.labels {
                let label = first.then(|| Label {
                    transcript: id.clone(),
                    ..label.clone()
                });
                visit(label, record.span.offset);
            }
        }
    }
    Ok(file)
}
