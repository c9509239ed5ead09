//! The findings in each transcript file, which later searches for warnings use again.
//!
//! Responsible for reading a file again only after a change, and for a limit on the memory. Does not make warnings.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::diag::Diagnostic;
use crate::transcript::{FileVersion, TranscriptFile};
use crate::workspace::Workspace;
use crate::workspace::lint::{ObservedTranscripts, SelectorPair, TranscriptLinter};

/// The maximum memory of the kept findings, in bytes. 100,000 transcripts need about 10 MB.
const MAX_KEPT_BYTES: usize = 64 * 1024 * 1024;
/// The approximate memory of a text or a small value in a list, in bytes.
const ENTRY_BYTES: usize = 48;

/// The findings in one transcript file.
#[derive(Debug, Default)]
pub(super) struct FileFindings {
    /// The ids of the transcripts, in the order of the file.
    pub(super) ids: Vec<Box<str>>,
    /// The first bad records, as many as a search reports.
    pub(super) bad_records: Vec<BadRecordFinding>,
    pub(super) pair_warnings: Vec<Diagnostic>,
    pub(super) observed: ObservedTranscripts,
    /// True after an error in the middle of the file. The next reading may succeed.
    is_cut: bool,
}

/// A bad record of a file.
#[derive(Debug)]
pub(super) struct BadRecordFinding {
    /// The number of transcripts before it.
    pub(super) transcripts_before: usize,
    pub(super) message: String,
}

impl FileFindings {
    fn count_bytes(&self) -> usize {
        let ids = self.ids.iter().map(|id| id.len() + ENTRY_BYTES);
        let bad_records = self.bad_records.iter();
        let bad_records = bad_records.map(|bad| bad.message.len() + ENTRY_BYTES);
        let pairs = self.pair_warnings.iter();
        let pairs = pairs.map(|warning| warning.message.len() + 5 * ENTRY_BYTES);
        ids.chain(bad_records).chain(pairs).sum::<usize>() + self.observed.count_bytes()
    }
}

/// The reading of a file.
pub(super) enum FileReading {
    Findings(Arc<FileFindings>),
    /// The file has no readable transcripts, for this reason.
    Broken(String),
    /// The search was cancelled.
    Cancelled,
}

#[derive(Debug)]
struct KeptFile {
    version: FileVersion,
    findings: Arc<FileFindings>,
    bytes: usize,
}

/// The findings of earlier searches in one workspace.
#[derive(Debug)]
pub(super) struct TranscriptFindings {
    root: PathBuf,
    /// The selectors of the rubrics, which decide the observed facts.
    selectors: Vec<SelectorPair>,
    files: HashMap<PathBuf, KeptFile>,
    /// The approximate memory of `files`.
    bytes: usize,
    max_bytes: usize,
    /// The number of files that were read.
    #[cfg(test)]
    pub(super) files_read: usize,
}

impl Default for TranscriptFindings {
    fn default() -> Self {
        Self {
            root: PathBuf::new(),
            selectors: Vec::new(),
            files: HashMap::new(),
            bytes: 0,
            max_bytes: MAX_KEPT_BYTES,
            #[cfg(test)]
            files_read: 0,
        }
    }
}

impl TranscriptFindings {
    /// Returns no findings, with another limit on the memory.
    #[cfg(test)]
    pub(super) fn with_limit(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            ..Self::default()
        }
    }

    /// Forgets what a search of the workspace cannot use.
    pub(super) fn begin_search(&mut self, workspace: &Workspace, linter: &TranscriptLinter) {
        if self.root != workspace.root || self.selectors != linter.selectors() {
            self.root.clone_from(&workspace.root);
            self.selectors = linter.selectors().to_vec();
            self.files.clear();
            self.bytes = 0;
            return;
        }
        let listed: HashSet<&PathBuf> = workspace.transcripts.iter().collect();
        self.files.retain(|path, _| listed.contains(path));
        self.bytes = self.files.values().map(|kept| kept.bytes).sum();
    }

    /// Returns the findings in a file. Reads the file only if it changed since the last reading. At most
    /// `max_bad_records` bad records are kept.
    pub(super) fn find(
        &mut self,
        workspace: &Workspace,
        path: &Path,
        linter: &mut TranscriptLinter,
        max_bad_records: usize,
        stop: &CancellationToken,
    ) -> FileReading {
        if stop.is_cancelled() {
            return FileReading::Cancelled;
        }
        let version = workspace.field_maps.find_version(path);
        if let (Some(kept), Some(version)) = (self.files.get(path), &version)
            && kept.version == *version
        {
            return FileReading::Findings(Arc::clone(&kept.findings));
        }
        if let Some(old) = self.files.remove(path) {
            self.bytes -= old.bytes;
        }
        #[cfg(test)]
        {
            self.files_read += 1;
        }
        let mut file = match workspace.field_maps.open(path) {
            Ok(file) => file,
            // Not kept: the error may be about something else than the file, such as its permissions.
            Err(error) => return FileReading::Broken(error.to_string()),
        };
        let shown = path.strip_prefix(&workspace.root).unwrap_or(path);
        let Some(findings) = read_file(&mut file, shown, linter, max_bad_records, stop) else {
            return FileReading::Cancelled;
        };
        let findings = Arc::new(findings);
        let bytes = findings.count_bytes() + path.as_os_str().len() + 8 * ENTRY_BYTES;
        if !findings.is_cut
            && !file.reads_other_files()
            && self.bytes + bytes <= self.max_bytes
            && let Some(version) = version
            // A file that changed during the reading is read again.
            && workspace.field_maps.find_version(path).as_ref() == Some(&version)
        {
            self.bytes += bytes;
            let kept = KeptFile {
                version,
                findings: Arc::clone(&findings),
                bytes,
            };
            self.files.insert(path.to_owned(), kept);
        }
        FileReading::Findings(findings)
    }
}

/// Reads a file. Returns `None` if the search was cancelled.
fn read_file(
    file: &mut TranscriptFile,
    shown: &Path,
    linter: &mut TranscriptLinter,
    max_bad_records: usize,
    stop: &CancellationToken,
) -> Option<FileFindings> {
    let mut findings = FileFindings::default();
    // An earlier file may have been cancelled in the middle.
    linter.take_observed();
    loop {
        let block = match file.next_block() {
            Ok(Some(block)) => block,
            Ok(None) => break,
            Err(_) => {
                findings.is_cut = true;
                break;
            }
        };
        if stop.is_cancelled() {
            return None;
        }
        for (record, bytes) in block.records() {
            match record.parse(bytes, &file.default_id(record.span.number)) {
                Ok(transcript) => {
                    linter.observe(&transcript);
                    findings.ids.push(Box::from(&*transcript.id));
                }
                Err(fault) if findings.bad_records.len() < max_bad_records => {
                    findings.bad_records.push(BadRecordFinding {
                        transcripts_before: findings.ids.len(),
                        message: format!("record {}: {}", fault.number, fault.why),
                    });
                }
                Err(_) => {}
            }
        }
    }
    findings.pair_warnings = file.pair_warnings(shown);
    findings.observed = linter.take_observed();
    Some(findings)
}
