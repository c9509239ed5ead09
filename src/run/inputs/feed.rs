//! Where a run's records come from: transcript files, walked once, block by block.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::carried::CarriedTranscript;
use crate::model::Transcript;
use crate::transcript::{self, BadRecord, FieldMappings, TranscriptFile};
use crate::workspace::Workspace;

/// Records a worker takes at once, at most.
const MAX_CHUNK_RECORDS: usize = 32;

/// Records in order, for one worker.
pub(in crate::run) struct RecordChunk {
    /// The file, as events name it.
    pub(in crate::run) path: Arc<Path>,
    /// Whole records.
    pub(in crate::run) bytes: Arc<Vec<u8>>,
    /// In order.
    pub(in crate::run) records: Vec<SourceRecord>,
}

/// One record of a [`Chunk`].
pub(in crate::run) struct SourceRecord {
    /// Its place in its file and in the chunk's bytes.
    pub(in crate::run) location: transcript::TranscriptRecord,
    /// What it is called if it has no id of its own.
    pub(in crate::run) default_id: String,
    /// Its unique id, where an earlier pass found it.
    pub(in crate::run) id: Option<String>,
    /// What an earlier run settled about it.
    pub(in crate::run) carried: Option<Arc<CarriedTranscript>>,
    /// An earlier run passed it and planned nothing: only its id counts, since one that comes later may have the same.
    pub(in crate::run) is_id_only: bool,
}

impl SourceRecord {
    /// The record as a transcript; `bytes` are its own.
    pub(in crate::run) fn parse<'b>(&self, bytes: &'b [u8]) -> Result<Transcript<'b>, BadRecord> {
        self.location.parse(bytes, &self.default_id)
    }
}

/// How far an earlier run came.
#[derive(Debug, Clone)]
pub(in crate::run) struct ResumePoint {
    /// The file of the last record it planned, as events name it.
    pub(in crate::run) path: PathBuf,
    /// Where that record begins, and which of the transcripts there it is.
    pub(in crate::run) offset: (u64, u32),
    /// The records it planned, up to that one; they are handed out by another feed.
    pub(in crate::run) planned: HashSet<(PathBuf, (u64, u32))>,
}

/// Hands out chunks until there are no more. Errors are sentences; nothing follows one.
pub(in crate::run) trait TranscriptFeed: Send {
    /// The next chunk.
    fn next_chunk(&mut self) -> Result<Option<RecordChunk>, String>;
}

/// Chosen records: number from 0 over all files, and unique id. Sorted.
pub(in crate::run) type ChosenRecords = Arc<[(u64, String)]>;

/// Files of transcripts, in the order listed.
#[derive(Debug, Clone, Default)]
pub(in crate::run) struct TranscriptFiles {
    /// The workspace's folder: files are named relative to it where they lie inside.
    pub(in crate::run) root: PathBuf,
    pub(in crate::run) paths: Vec<PathBuf>,
    pub(in crate::run) maps: FieldMappings,
}

impl TranscriptFiles {
    /// Those of a workspace.
    pub(in crate::run) fn from_workspace(workspace: &Workspace) -> Self {
        Self {
            root: workspace.root.clone(),
            paths: workspace.transcripts.clone(),
            maps: workspace.field_maps.clone(),
        }
    }
}

/// Walks files in the order listed.
pub(in crate::run) struct FileFeed {
    root: PathBuf,
    maps: FieldMappings,
    files: std::vec::IntoIter<PathBuf>,
    open_file: Option<(Arc<Path>, TranscriptFile)>,
    /// Chunks cut from the last block, last first.
    ready_chunks: Vec<RecordChunk>,
    /// Records handed out or passed over so far, over all files.
    records_seen: u64,
    /// If given, only these records.
    chosen: Option<ChosenRecords>,
    /// What an earlier run reached is passed over.
    after: Option<ResumePoint>,
}

impl FileFeed {
    /// A feed of `files`; of chosen records only, where given.
    pub(in crate::run) fn new(files: TranscriptFiles, chosen: Option<ChosenRecords>) -> Self {
        Self {
            root: files.root,
            maps: files.maps,
            files: files.paths.into_iter(),
            open_file: None,
            ready_chunks: Vec::new(),
            records_seen: 0,
            chosen,
            after: None,
        }
    }

    /// The same, but of what an earlier run reached only the records it planned nothing for, and those as passed.
    pub(in crate::run) fn after(mut self, reached: Option<ResumePoint>) -> Self {
        self.after = reached;
        self
    }
}

/// A path as events name it.
pub(in crate::run) fn display_path<'p>(root: &Path, path: &'p Path) -> &'p Path {
    path.strip_prefix(root).unwrap_or(path)
}

impl TranscriptFeed for FileFeed {
    fn next_chunk(&mut self) -> Result<Option<RecordChunk>, String> {
        loop {
            if let Some(chunk) = self.ready_chunks.pop() {
                return Ok(Some(chunk));
            }
            if self.chosen.as_ref().is_some_and(|picked| {
                picked
                    .last()
                    .is_none_or(|(last, _)| *last < self.records_seen)
            }) {
                return Ok(None);
            }
            let Some((path, file)) = &mut self.open_file else {
                let Some(next) = self.files.next() else {
                    return Ok(None);
                };
                let file = self.maps.open(&next).map_err(|error| error.to_string())?;
                self.open_file = Some((display_path(&self.root, &next).into(), file));
                continue;
            };
            let Some(block) = file.next_block().map_err(|error| error.to_string())? else {
                if self
                    .after
                    .as_ref()
                    .is_some_and(|reached| *reached.path == **path)
                {
                    self.after = None;
                }
                self.open_file = None;
                continue;
            };
            let mut records = Vec::with_capacity(block.records.len());
            for found in block.records {
                let place = (found.span.offset, found.span.part);
                let number = self.records_seen;
                self.records_seen += 1;
                let mut passed = false;
                if let Some(reached) = &self.after {
                    if *reached.path != **path || place <= reached.offset {
                        let at = (path.to_path_buf(), place);
                        // Chosen records have their ids already.
                        if self.chosen.is_some() || reached.planned.contains(&at) {
                            continue;
                        }
                        passed = true;
                    } else {
                        self.after = None;
                    }
                }
                let id = match &self.chosen {
                    None => None,
                    Some(picked) => match picked.binary_search_by_key(&number, |(no, _)| *no) {
                        Ok(at) => Some(picked[at].1.clone()),
                        Err(_) => continue,
                    },
                };
                records.push(SourceRecord {
                    default_id: file.default_id(found.span.number),
                    location: found,
                    id,
                    carried: None,
                    is_id_only: passed,
                });
            }
            let bytes = Arc::new(block.bytes);
            while !records.is_empty() {
                let rest = records.split_off(records.len().min(MAX_CHUNK_RECORDS));
                self.ready_chunks.push(RecordChunk {
                    path: Arc::clone(path),
                    bytes: Arc::clone(&bytes),
                    records: std::mem::replace(&mut records, rest),
                });
            }
            self.ready_chunks.reverse();
        }
    }
}
