//! The mapping of Inspect Scout's transcript ids. Scout identifies a transcript of an Inspect log by the sample's
//! uuid; dicta uses sample and epoch.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{LoadedLabels, MAX_LABELS_BYTES};
use crate::transcript::{FieldMappings, TranscriptError};

/// Replaces the uuids in Scout's labels with transcript ids. Reads logs only if such labels exist, and at most
/// [`MAX_LABELS_BYTES`] of a log whose directory it cannot read.
pub(in crate::workspace) fn resolve_scout_uuids(
    found: &mut LoadedLabels,
    files: &[PathBuf],
    maps: &FieldMappings,
) {
    let labels = &found.labels;
    let wanted: HashSet<String> = found
        .scout
        .iter()
        .filter_map(|at| labels.get(*at))
        .map(|label| label.transcript.clone())
        .collect();
    if wanted.is_empty() {
        return;
    }
    let mut named = ScoutUuidIndex {
        wanted,
        id_counts: HashMap::new(),
        ids_by_uuid: HashMap::new(),
    };
    // Inspect's logs need no field mapping, so files with a mapping are not logs.
    for path in files
        .iter()
        .filter(|path| !maps.by_path.contains_key(*path))
    {
        // The code that reads the transcripts reports unreadable files.
        let _told_later = named.index_file(path, maps);
    }
    for at in &found.scout {
        if let Some(label) = found.labels.get_mut(*at)
            && let Some(id) = named.ids_by_uuid.get(&label.transcript)
        {
            Arc::make_mut(label).transcript.clone_from(id);
        }
    }
}

struct ScoutUuidIndex {
    wanted: HashSet<String>,
    /// The number of occurrences of an id. A run renames the second one.
    id_counts: HashMap<String, u32>,
    ids_by_uuid: HashMap<String, String>,
}

impl ScoutUuidIndex {
    fn index_file(&mut self, path: &Path, maps: &FieldMappings) -> Result<(), TranscriptError> {
        let mut file = maps.open(path)?;
        // Only Inspect's logs contain these uuids.
        if !file.format().contains("Inspect") {
            return Ok(());
        }
        // A log's directory of samples is far smaller than the samples.
        if let Some(entries) = file.read_index()? {
            for entry in entries {
                self.add_transcript(entry.id, entry.uuid.as_deref());
            }
            return Ok(());
        }
        if path
            .metadata()
            .is_ok_and(|meta| meta.len() > MAX_LABELS_BYTES)
        {
            return Ok(());
        }
        while let Some(block) = file.next_block()? {
            for (record, bytes) in block.records() {
                let id = file.default_id(record.span.number);
                if let Ok(transcript) = record.parse(bytes, &id) {
                    let metadata = transcript
                        .metadata
                        .as_ref()
                        .map(crate::model::JsonText::parse_value);
                    let uuid = metadata.as_ref().and_then(|all| all["uuid"].as_str());
                    self.add_transcript(transcript.id.to_string(), uuid);
                }
            }
        }
        Ok(())
    }

    fn add_transcript(&mut self, id: String, uuid: Option<&str>) {
        let nth = self.id_counts.entry(id.clone()).or_default();
        *nth += 1;
        let Some(uuid) = uuid.filter(|uuid| self.wanted.contains(*uuid)) else {
            return;
        };
        // A run gives repeated ids these suffixes; the label must have the same id.
        let id = if *nth == 1 { id } else { format!("{id}~{nth}") };
        self.ids_by_uuid.insert(uuid.to_owned(), id);
    }
}
