//! Labels in transcript files, from a field that a field mapping in dicta.yaml names.
//!
//! dicta reads them with the transcripts, one record at a time. Each label belongs to the transcript of its record.
//! The check of the eval happens once per field mapping, in dicta.yaml.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{LABEL_CODE, LabelPlace, LoadedLabels, MAX_LABELS_BYTES};
use crate::diag::Diagnostic;
use crate::model::{Label, quote_shell_path};
use crate::transcript::{FieldMappings, TranscriptError, TranscriptFile, TranscriptIds};
use crate::workspace::paths;

/// Reads the labels of all files whose field mapping has any. The code that reads the transcripts reports unreadable
/// files.
pub(in crate::workspace) fn read_mapped_labels(
    root: &Path,
    files: &[PathBuf],
    maps: &FieldMappings,
) -> LoadedLabels {
    let mut found = LoadedLabels::default();
    let mut labelled: HashSet<&Path> = HashSet::new();
    for path in files {
        if !maps.by_path.get(path).is_some_and(|map| map.has_labels()) {
            continue;
        }
        if path
            .metadata()
            // Labels stay in memory, so these files have the limit of label files.
            .is_ok_and(|meta| meta.len() > MAX_LABELS_BYTES)
        {
            let shown_path = paths::display_path(root, path);
            let file = quote_shell_path(&shown_path);
            let message = format!(
                "its labels are not read: it is larger than {} MiB; `dicta import {file} -o FILE --labels labels.jsonl` writes them where they are",
                MAX_LABELS_BYTES >> 20
            );
            let warning = Diagnostic::warning(LABEL_CODE, &*shown_path, message);
            found.problems.push(warning);
            continue;
        }
        labelled.insert(path);
    }
    // Most workspaces have no such file. They open no file here.
    let last = files
        .iter()
        .rposition(|path| labelled.contains(path.as_path()));
    let Some(last) = last else { return found };
    // A run makes ids unique over all files, so the ids of earlier files are needed, too.
    let mut ids = TranscriptIds::default();
    for path in &files[..=last] {
        let is_labelled = labelled.contains(path.as_path());
        // After an error in the middle of a file, its labels are removed again.
        let before = found.labels.len();
        let mut offsets = Vec::new();
        let read = for_each_label(path, maps, &mut ids, &mut |label, offset| {
            if is_labelled {
                offsets.push(offset);
                found.labels.push(Arc::new(label));
            }
        });
        let Ok(read) = read else {
            found.labels.truncate(before);
            continue;
        };
        let file: Arc<Path> = Arc::from(&*paths::display_path(root, path));
        // A record has only its byte offset, and a problem needs a line number.
        let spans = read.find_lines(&offsets).into_iter();
        let places = spans.map(|span| LabelPlace {
            file: Arc::clone(&file),
            span,
        });
        found.places.extend(places);
    }
    found
}

/// Calls a function with every label of a file and the start of its record. The label has the id that a run gives to
/// the transcript of its record. Returns the file.
fn for_each_label(
    path: &Path,
    maps: &FieldMappings,
    ids: &mut TranscriptIds,
    visit: &mut dyn FnMut(Label, u64),
) -> Result<TranscriptFile, TranscriptError> {
    let mut file = maps.open(path)?;
    while let Some(block) = file.next_block()? {
        for (record, bytes) in block.records() {
            let Ok(transcript) = record.parse(bytes, &file.default_id(record.span.number)) else {
                continue;
            };
            let (id, _) = ids.make_unique(transcript.id.to_string());
            for label in &record.labels {
                let label = Label {
                    transcript: id.clone(),
                    ..label.clone()
                };
                visit(label, record.span.offset);
            }
        }
    }
    Ok(file)
}
