//! Where a run's records come from: transcript files, walked once, block by block.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::resume::Carried;
use crate::model::Transcript;
use crate::transcript::{self, BadRecord, FieldMappings, TranscriptFile};
use crate::workspace::Workspace;

/// Records a worker takes at once, at most.
const CHUNK: usize = 32;

/// Records in order, for one worker.
pub(super) struct Chunk {
    /// The file, as events name it.
    pub(super) path: Arc<Path>,
    /// Whole records.
    pub(super) bytes: Arc<Vec<u8>>,
    /// In order.
    pub(super) records: Vec<Record>,
}

/// One record of a [`Chunk`].
pub(super) struct Record {
    /// Its place in its file and in the chunk's bytes.
    pub(super) found: transcript::TranscriptRecord,
    /// What it is called if it has no id of its own.
    pub(super) default_id: String,
    /// Its unique id, where an earlier pass found it.
    pub(super) id: Option<String>,
    /// What an earlier run settled about it.
    pub(super) carried: Option<Arc<Carried>>,
    /// An earlier run passed it and planned nothing: only its id counts, since one that comes later may have the same.
    pub(super) passed: bool,
}

impl Record {
    /// The record as a transcript; `bytes` are its own.
    pub(super) fn parse<'b>(&self, bytes: &'b [u8]) -> Result<Transcript<'b>, BadRecord> {
        self.found.parse(bytes, &self.default_id)
    }
}

/// How far an earlier run came.
#[derive(Debug, Clone)]
pub(super) struct Reached {
    /// The file of the last record it planned, as events name it.
    pub(super) path: PathBuf,
    /// Where that record begins, and which of the transcripts there it is.
    pub(super) offset: (u64, u32),
    /// The records it planned, up to that one; they are handed out by another feed.
    pub(super) planned: HashSet<(PathBuf, (u64, u32))>,
}

/// Hands out chunks until there are no more. Errors are sentences; nothing follows one.
pub(super) trait Feed: Send {
    /// The next chunk.
    fn next(&mut self) -> Result<Option<Chunk>, String>;
}

/// Chosen records: number from 0 over all files, and unique id. Sorted.
pub(super) type Picked = Arc<[(u64, String)]>;

/// Files of transcripts, in the order listed.
#[derive(Debug, Clone, Default)]
pub(super) struct Files {
    /// The workspace's folder: files are named relative to it where they lie inside.
    pub(super) root: PathBuf,
    pub(super) paths: Vec<PathBuf>,
    pub(super) maps: FieldMappings,
}

impl Files {
    /// Those of a workspace.
    pub(super) fn of(workspace: &Workspace) -> Self {
        Self {
            root: workspace.root.clone(),
            paths: workspace.transcripts.clone(),
            maps: workspace.field_maps.clone(),
        }
    }
}

/// Walks files in the order listed.
pub(super) struct FileFeed {
    root: PathBuf,
    maps: FieldMappings,
    files: std::vec::IntoIter<PathBuf>,
    open: Option<(Arc<Path>, TranscriptFile)>,
    /// Chunks cut from the last block, last first.
    ready: Vec<Chunk>,
    /// Records handed out or passed over so far, over all files.
    seen: u64,
    /// If given, only these records.
    picked: Option<Picked>,
    /// What an earlier run reached is passed over.
    after: Option<Reached>,
}

impl FileFeed {
    /// A feed of `files`; of chosen records only, where given.
    pub(super) fn new(files: Files, picked: Option<Picked>) -> Self {
        Self {
            root: files.root,
            maps: files.maps,
            files: files.paths.into_iter(),
            open: None,
            ready: Vec::new(),
            seen: 0,
            picked,
            after: None,
        }
    }

    /// The same, but of what an earlier run reached only the records it planned nothing for, and those as passed.
    pub(super) fn after(mut self, reached: Option<Reached>) -> Self {
        self.after = reached;
        self
    }
}

/// A path as events name it.
pub(super) fn shown<'p>(root: &Path, path: &'p Path) -> &'p Path {
    path.strip_prefix(root).unwrap_or(path)
}

impl Feed for FileFeed {
    fn next(&mut self) -> Result<Option<Chunk>, String> {
        loop {
            if let Some(chunk) = self.ready.pop() {
                return Ok(Some(chunk));
            }
            if self
                .picked
                .as_ref()
                .is_some_and(|picked| picked.last().is_none_or(|(last, _)| *last < self.seen))
            {
                return Ok(None);
            }
            let Some((path, file)) = &mut self.open else {
                let Some(next) = self.files.next() else {
                    return Ok(None);
                };
                let file = self.maps.open(&next).map_err(|error| error.to_string())?;
                self.open = Some((shown(&self.root, &next).into(), file));
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
                self.open = None;
                continue;
            };
            let mut records = Vec::with_capacity(block.records.len());
            for found in block.records {
                let place = (found.span.offset, found.span.part);
                let number = self.seen;
                self.seen += 1;
                let mut passed = false;
                if let Some(reached) = &self.after {
                    if *reached.path != **path || place <= reached.offset {
                        let at = (path.to_path_buf(), place);
                        // Chosen records have their ids already.
                        if self.picked.is_some() || reached.planned.contains(&at) {
                            continue;
                        }
                        passed = true;
                    } else {
                        self.after = None;
                    }
                }
                let id = match &self.picked {
                    None => None,
                    Some(picked) => match picked.binary_search_by_key(&number, |(no, _)| *no) {
                        Ok(at) => Some(picked[at].1.clone()),
                        Err(_) => continue,
                    },
                };
                records.push(Record {
                    default_id: file.default_id(found.span.number),
                    found,
                    id,
                    carried: None,
                    passed,
                });
            }
            let bytes = Arc::new(block.bytes);
            while !records.is_empty() {
                let rest = records.split_off(records.len().min(CHUNK));
                self.ready.push(Chunk {
                    path: Arc::clone(path),
                    bytes: Arc::clone(&bytes),
                    records: std::mem::replace(&mut records, rest),
                });
            }
            self.ready.reverse();
        }
    }
}
