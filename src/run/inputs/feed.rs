//! The feed of a run: the records of the transcript files, read once, block by block.
//!
//! Responsible for the order and the ids that earlier passes chose. Does not plan or judge.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::carried::CarriedTranscript;
use crate::diag::Diagnostic;
use crate::model::{Transcript, TranscriptRef};
use crate::transcript::{
    self, BadRecord, FieldMappings, ReadTally, TranscriptError, TranscriptFile,
};
use crate::workspace::Workspace;

/// The maximum number of records in a chunk.
const MAX_CHUNK_RECORDS: usize = 32;

/// Records in order, for one worker.
pub(in crate::run) struct RecordChunk {
    /// The file, as events name it.
    pub(in crate::run) path: Arc<Path>,
    /// The bytes of whole records.
    pub(in crate::run) bytes: Arc<Vec<u8>>,
    /// The records, in order.
    pub(in crate::run) records: Vec<SourceRecord>,
}

/// One record of a [`RecordChunk`].
pub(in crate::run) struct SourceRecord {
    /// The place in its file and in the chunk's bytes.
    pub(in crate::run) location: transcript::TranscriptRecord,
    /// The id, if the record has no id of its own.
    pub(in crate::run) default_id: String,
    /// The unique id, if an earlier pass computed it.
    pub(in crate::run) id: Option<String>,
    /// The results that an earlier run left for it.
    pub(in crate::run) carried: Option<Arc<CarriedTranscript>>,
    /// `true` if an earlier run passed it and planned nothing. Its id still counts, because a later record may have
    /// the same id.
    pub(in crate::run) is_id_only: bool,
}

impl SourceRecord {
    /// Parses the record; `bytes` are its own.
    pub(in crate::run) fn parse<'b>(&self, bytes: &'b [u8]) -> Result<Transcript<'b>, BadRecord> {
        self.location.parse(bytes, &self.default_id)
    }
}

/// The place of a transcript in its file. Places are ordered as the file's transcripts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::run) struct RecordPlace {
    /// The byte offset of the record.
    pub(in crate::run) offset: u64,
    /// The part of the record that holds the transcript.
    pub(in crate::run) part: u32,
}

impl RecordPlace {
    /// Returns the place that a plan recorded.
    pub(in crate::run) fn from_reference(reference: &TranscriptRef) -> Self {
        Self {
            offset: reference.offset,
            part: reference.part,
        }
    }
}

/// The last record that an earlier run reached.
#[derive(Debug, Clone)]
pub(in crate::run) struct ResumePoint {
    /// The file of that record, as events name it.
    pub(in crate::run) path: PathBuf,
    /// The place of the record in its file.
    pub(in crate::run) place: RecordPlace,
    /// The planned records up to that one. Another feed returns them.
    pub(in crate::run) planned: HashSet<PlannedRecord>,
}

/// A record of a transcript file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::run) struct PlannedRecord {
    /// The file, as events name it.
    pub(in crate::run) path: PathBuf,
    /// The place of the record in the file.
    pub(in crate::run) place: RecordPlace,
}

/// A source of chunks. Nothing follows an error.
pub(in crate::run) trait TranscriptFeed: Send {
    /// Returns the next chunk; `None` at the end.
    fn next_chunk(&mut self) -> Result<Option<RecordChunk>, TranscriptError>;

    /// Returns the reports on the files that ended since the last call.
    fn take_file_reports(&mut self) -> Vec<FileReport> {
        Vec::new()
    }
}

/// The end of a file in a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::run) struct FileReport {
    /// The file, as events name it.
    pub(in crate::run) path: PathBuf,
    /// The counts of its reader; `None` for a native file.
    pub(in crate::run) tally: Option<ReadTally>,
    /// The reason why the file could not be read to its end.
    pub(in crate::run) error: Option<String>,
    /// Warnings about transcripts that no eval compares, though they name a pair.
    pub(in crate::run) pair_warnings: Vec<Diagnostic>,
}

/// A record of a random sample.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::run) struct ChosenRecord {
    /// The number from 0 over all files.
    pub(in crate::run) number: u64,
    /// The unique id of the transcript.
    pub(in crate::run) id: String,
}

/// The chosen records, sorted by number.
pub(in crate::run) type ChosenRecords = Arc<[ChosenRecord]>;

/// The transcript files, in the listed order.
#[derive(Debug, Clone, Default)]
pub(in crate::run) struct TranscriptFiles {
    /// The workspace's folder. Files inside it are named relative to it.
    pub(in crate::run) root: PathBuf,
    pub(in crate::run) paths: Vec<PathBuf>,
    pub(in crate::run) maps: FieldMappings,
    /// True if a file that cannot be read ends the feed. Otherwise the feed reports the file and continues.
    pub(in crate::run) is_strict: bool,
}

impl TranscriptFiles {
    /// Returns the files of a workspace.
    pub(in crate::run) fn from_workspace(workspace: &Workspace) -> Self {
        Self {
            root: workspace.root.clone(),
            paths: workspace.transcripts.clone(),
            maps: workspace.field_maps.clone(),
            is_strict: false,
        }
    }
}

/// The file that a feed reads.
struct OpenTranscriptFile {
    /// The path, as events name it.
    path: Arc<Path>,
    file: TranscriptFile,
}

/// A feed that reads files in the listed order.
pub(in crate::run) struct FileFeed {
    root: PathBuf,
    maps: FieldMappings,
    files: std::vec::IntoIter<PathBuf>,
    open_file: Option<OpenTranscriptFile>,
    /// The chunks of the last block, last chunk first.
    ready_chunks: Vec<RecordChunk>,
    /// The number of records so far, over all files, skipped ones included.
    records_seen: u64,
    /// The chosen records; `None` for all.
    chosen: Option<ChosenRecords>,
    /// The last record of an earlier run. The feed skips the records up to it.
    after: Option<ResumePoint>,
    is_strict: bool,
    reports: Vec<FileReport>,
}

impl FileFeed {
    /// Creates a feed of `files`, limited to the chosen records if given.
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
            is_strict: files.is_strict,
            reports: Vec::new(),
        }
    }

    /// Skips the records that an earlier run planned. Returns those for which it planned nothing with `is_id_only`.
    pub(in crate::run) fn after(mut self, reached: Option<ResumePoint>) -> Self {
        self.after = reached;
        self
    }
}

/// Returns a path as events name it.
pub(in crate::run) fn display_path<'p>(root: &Path, path: &'p Path) -> &'p Path {
    path.strip_prefix(root).unwrap_or(path)
}

impl TranscriptFeed for FileFeed {
    fn next_chunk(&mut self) -> Result<Option<RecordChunk>, TranscriptError> {
        self.read_chunk()
    }

    fn take_file_reports(&mut self) -> Vec<FileReport> {
        std::mem::take(&mut self.reports)
    }
}

impl FileFeed {
    fn report_broken(&mut self, path: &Path, error: &TranscriptError) {
        self.reports.push(FileReport {
            path: path.to_owned(),
            tally: None,
            error: Some(error.to_string()),
            pair_warnings: Vec::new(),
        });
    }

    /// Returns the next chunk; `None` at the end. Nothing follows an error.
    pub(in crate::run) fn read_chunk(&mut self) -> Result<Option<RecordChunk>, TranscriptError> {
        loop {
            if let Some(chunk) = self.ready_chunks.pop() {
                return Ok(Some(chunk));
            }
            // The last chosen record was read, so the rest of the files is not needed.
            if self.chosen.as_ref().is_some_and(|picked| {
                picked
                    .last()
                    .is_none_or(|last| last.number < self.records_seen)
            }) {
                return Ok(None);
            }
            // Step: open the next file.
            let Some(OpenTranscriptFile { path, file }) = &mut self.open_file else {
                let Some(next) = self.files.next() else {
                    return Ok(None);
                };
                let path: Arc<Path> = display_path(&self.root, &next).into();
                match self.maps.open(&next) {
                    Ok(file) => self.open_file = Some(OpenTranscriptFile { path, file }),
                    Err(error) if self.is_strict => return Err(error),
                    Err(error) => self.report_broken(&path, &error),
                }
                continue;
            };
            // Step: read the next block. At the end of the resume point's file, all later records are new.
            let block = match file.next_block() {
                Ok(block) => block,
                Err(error) if self.is_strict => return Err(error),
                Err(error) => {
                    let path = Arc::clone(path);
                    self.open_file = None;
                    self.report_broken(&path, &error);
                    continue;
                }
            };
            let Some(block) = block else {
                self.reports.push(FileReport {
                    path: path.to_path_buf(),
                    tally: file.tally().cloned(),
                    error: None,
                    pair_warnings: file.pair_warnings(path),
                });
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
                // The offset alone is not unique: one record of a file may hold several transcripts.
                let place = RecordPlace {
                    offset: found.span.offset,
                    part: found.span.part,
                };
                let number = self.records_seen;
                self.records_seen += 1;
                let mut passed = false;
                if let Some(reached) = &self.after {
                    // Files before the resume point's file were read completely by the old run.
                    if *reached.path != **path || place <= reached.place {
                        let at = PlannedRecord {
                            path: path.to_path_buf(),
                            place,
                        };
                        // Chosen records already have their unique ids.
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
                    // `chosen` is sorted by number.
                    Some(picked) => {
                        match picked.binary_search_by_key(&number, |chosen| chosen.number) {
                            Ok(at) => Some(picked[at].id.clone()),
                            Err(_) => continue,
                        }
                    }
                };
                records.push(SourceRecord {
                    default_id: file.default_id(found.span.number),
                    location: found,
                    id,
                    carried: None,
                    is_id_only: passed,
                });
            }
            // Step: split the block. The chunks share its bytes.
            let bytes = Arc::new(block.bytes);
            while !records.is_empty() {
                let rest = records.split_off(records.len().min(MAX_CHUNK_RECORDS));
                self.ready_chunks.push(RecordChunk {
                    path: Arc::clone(path),
                    bytes: Arc::clone(&bytes),
                    records: std::mem::replace(&mut records, rest),
                });
            }
            // `pop` takes from the end, so the first chunk must be last.
            self.ready_chunks.reverse();
        }
    }
}
