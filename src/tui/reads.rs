//! Reads from disk what a pane shows: a recorded cell, a blob, a request, a transcript.
//!
//! Blocks: the runtime calls these functions on other threads than the screen's. Errors are sentences for the pane.
//! Does not cache; the app keeps the results.

mod edit;
mod hex;
mod record;
mod renames;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::content::HiddenTextRequest;
use super::state::cells::hash_digest;
use super::state::document::TranscriptDocument;
use super::state::finding_marks::{FindingMarksKey, RubricEval};
use super::state::judge_trace::{CellRef, RecordedCell};
use super::state::readable_request::{ReadableRequest, RequestKey};
use crate::event::{
    BlobSource as _, CellKey, EventKind, RecordedRequest, RunEvent, RunHeader, RunState,
    SettledCell, StoredText,
};
use crate::handlers::{CompileCx, CompiledEval, EvalTypeRegistry, Subject, TranscriptSpan};
use crate::model::{Blob, CellIx, TranscriptRef};
use crate::record::{FolderBlobs, LogIndex, RecordedRun};
use crate::theme::{Role, StyledSpan};
use crate::tools::find_hidden_ranges;
use crate::transcript::{FieldMapping, RecordSpan, TranscriptFile, parse_native};
use crate::tui::task_failure::TaskFailure;

pub(crate) use edit::read_edit;
pub(crate) use record::{describe_unread, read_record};
pub(crate) use renames::follow_renames;

/// The number of events between two checks for cancellation.
const EVENTS_PER_CHECK: usize = 512;

/// The index of the large log that was read last, so that the next cell of the same run opens at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastIndex(Arc<Mutex<Option<Arc<LogIndex>>>>);

impl LastIndex {
    /// Returns the index of a run's log; `None` if the log is read as a whole.
    pub(crate) fn open(&self, run: &RecordedRun) -> Option<Arc<LogIndex>> {
        // A panic during another read leaves a valid index.
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = last.as_ref()
            && known.run().dir == run.dir
            && known.is_current()
        {
            return Some(Arc::clone(known));
        }
        let index = Arc::new(run.open_index()?);
        *last = Some(Arc::clone(&index));
        Some(index)
    }
}

/// Reads one cell of a recording. Returns None if the request was cancelled first.
pub(crate) fn read_recorded_cell(
    run: &RecordedRun,
    which: &CellRef,
    last_index: &LastIndex,
    outdated: &dyn Fn() -> bool,
) -> Option<Result<RecordedCell, TaskFailure>> {
    let read = match last_index.open(run) {
        Some(index) => read_indexed_cell(&index, which).map(Some),
        None => search_recorded_cell(run, which, outdated),
    };
    read.transpose()
}

/// Reads one cell through the index of a large log.
fn read_indexed_cell(index: &LogIndex, which: &CellRef) -> Result<RecordedCell, TaskFailure> {
    let mut fold = RecordedCellFold::default();
    let header = index.outline().first().map(|event| &event.kind);
    let header = match header {
        Some(EventKind::RunStarted(header)) => Some(&**header),
        _ => None,
    };
    let number = index.outline().iter().find_map(|event| match &event.kind {
        EventKind::CellsPlanned {
            transcript,
            first,
            keys,
        } => {
            let at = find_requested(header, transcript, *first, keys, which)?;
            Some(CellIx(first.0 + at))
        }
        _ => None,
    });
    if let Some(number) = number {
        for event in index.read_cell_log(number).map_err(TaskFailure::new)? {
            fold.apply(event, which);
        }
    }
    fold.complete(index.run(), which, index.integrity().explain())
}

fn search_recorded_cell(
    run: &RecordedRun,
    which: &CellRef,
    outdated: &dyn Fn() -> bool,
) -> Result<Option<RecordedCell>, TaskFailure> {
    let mut fold = RecordedCellFold::default();
    let mut events = run.events().map_err(TaskFailure::new)?;
    for (at, event) in (&mut events).enumerate() {
        // The check takes an atomic load, but not for each event of a long log.
        if at % EVENTS_PER_CHECK == EVENTS_PER_CHECK - 1 && outdated() {
            return Ok(None);
        }
        fold.apply(event.map_err(TaskFailure::new)?, which);
        // A cell has no events after its result, so the rest of a long log need not be read.
        if fold.has_result() {
            break;
        }
    }
    fold.complete(run, which, events.integrity().explain())
        .map(Some)
}

/// The fold of one cell, as cell 0 of a state of its own, so that memory does not grow with the run's other cells.
#[derive(Debug, Default)]
struct RecordedCellFold {
    state: RunState,
    found: Option<(CellIx, TranscriptRef)>,
}

impl RecordedCellFold {
    /// Applies an event of the log, if it is about the cell.
    fn apply(&mut self, event: RunEvent, which: &CellRef) {
        let kind = match (&event.kind, &self.found) {
            (EventKind::RunStarted(_), _) => event.kind,
            (
                EventKind::CellsPlanned {
                    transcript,
                    first,
                    keys,
                },
                None,
            ) => {
                let header = self.state.header.as_deref();
                // The cell belongs to a later transcript.
                let Some(at) = find_requested(header, transcript, *first, keys, which) else {
                    return;
                };
                let (number, key) = (CellIx(first.0 + at), &keys[at as usize]);
                self.found = Some((number, transcript.clone()));
                EventKind::CellsPlanned {
                    transcript: transcript.clone(),
                    first: CellIx(0),
                    keys: vec![*key],
                }
            }
            (EventKind::CellsSettled(results), Some((number, _))) => {
                match results.iter().find(|settled| settled.cell == *number) {
                    // The batch settles many cells; only this one is kept.
                    Some(settled) => EventKind::CellsSettled(vec![SettledCell {
                        cell: CellIx(0),
                        result: Arc::clone(&settled.result),
                    }]),
                    None => return,
                }
            }
            (kind, Some((number, _))) if kind.cell() == Some(*number) => {
                let mut kind = event.kind;
                kind.set_cell(CellIx(0));
                kind
            }
            // Events of other cells, and run events that no trace shows.
            _ => return,
        };
        self.state.apply(&RunEvent { kind, ..event });
    }

    fn has_result(&self) -> bool {
        let cell = self.state.cells.first();
        cell.is_some_and(|cell| cell.result.is_some())
    }

    fn complete(
        mut self,
        run: &RecordedRun,
        which: &CellRef,
        integrity: Option<String>,
    ) -> Result<RecordedCell, TaskFailure> {
        let letters = run.id.letters();
        let (cell, transcript) = self.found.ok_or_else(|| match which {
            CellRef::Ix(number) => {
                TaskFailure::new(format!("run {letters} has no cell number {}", number.0))
            }
            CellRef::Named(named) => {
                TaskFailure::new(format!("run {letters} has no cell {}", named.name))
            }
        })?;
        let header = *self
            .state
            .header
            .ok_or_else(|| TaskFailure::new(format!("the log of run {letters} has no header")))?;
        // The state contains only this cell, so all of its notes belong to it.
        let notes = self.state.notes.into_iter().map(|note| note.text);
        Ok(RecordedCell {
            run: run.id.clone(),
            cell,
            header,
            state: self.state.cells.pop().unwrap_or_default(),
            transcript,
            notes: notes.chain(integrity).collect(),
            dir: run.dir.clone(),
        })
    }
}

/// Finds a cell among those planned for a transcript. A row of this session knows the cell's number. A row of a past run
/// knows its name; if the eval or judge had another name then, the question identifies the cell.
fn find_requested(
    header: Option<&RunHeader>,
    transcript: &TranscriptRef,
    first: CellIx,
    keys: &[CellKey],
    which: &CellRef,
) -> Option<u32> {
    let named = match which {
        CellRef::Ix(requested) => {
            let at = requested.0.checked_sub(first.0)?;
            return ((at as usize) < keys.len()).then_some(at);
        }
        CellRef::Named(named) => named,
    };
    let header = header?;
    let has_name = |key: &CellKey| {
        let name = header.cell_name(transcript, key);
        name.is_some_and(|name| name == named.name.by_ref())
    };
    let asks_the_same = |key: &CellKey| {
        let eval = header.evals.get(key.eval as usize);
        let judge = key.judge.map(|judge| header.judges.get(judge as usize));
        let same_judge = match judge {
            None => named.judge.is_none(),
            Some(judge) => judge.is_some_and(|judge| {
                named.judge.as_ref() == Some(&judge.digest)
                    || named.name.judge.as_ref() == Some(&judge.config.name)
            }),
        };
        transcript.id == named.name.transcript
            && eval.is_some_and(|eval| {
                Some(&eval.digest) == named.eval.as_ref()
                    || Some(hash_digest(&eval.digest)) == named.eval_hash
            })
            && (key.message, key.repeat) == (named.name.message, named.name.repeat)
            && same_judge
    };
    let at = keys
        .iter()
        .position(has_name)
        .or_else(|| keys.iter().position(asks_the_same))?;
    u32::try_from(at).ok()
}

/// Reads the text of a blob. Replaces invalid UTF-8 in text of another encoding, and prints binary data as a hex
/// dump.
pub(crate) fn read_text(dir: &Path, blob: &Blob) -> Result<Arc<str>, TaskFailure> {
    let bytes = read_blob_bytes(dir, blob)?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text.into(),
        // A browser would show an image here; the pane shows its bytes.
        Err(error) if hex::is_binary(error.as_bytes()) => hex::hex_dump(error.as_bytes()).into(),
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into(),
    })
}

fn read_blob_bytes(dir: &Path, blob: &Blob) -> Result<Vec<u8>, TaskFailure> {
    FolderBlobs::new(dir)
        .get(&blob.hash)
        .map_err(|error| TaskFailure::new(format!("{} bytes cannot be read: {error}", blob.bytes)))
}

/// Returns the spans of a page's text that a browser would not show. Returns no spans if the stored body gives another
/// text than the model got, and `None` if `go_on` returned false meanwhile.
pub(crate) fn find_hidden_text(
    dir: &Path,
    page: &HiddenTextRequest,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Vec<StyledSpan>> {
    // Without the stored body, nothing can be marked as hidden.
    let Ok(bytes) = read_blob_bytes(dir, &page.raw) else {
        return Some(Vec::new());
    };
    let found = find_hidden_ranges(
        &bytes,
        page.content_type.as_deref(),
        page.url.as_deref(),
        &page.text,
        go_on,
    )?;
    Some(
        found
            .into_iter()
            .map(|range| StyledSpan::new(range, Role::Hostile))
            .collect(),
    )
}

/// Formats a request, with the items that the previous turn already contained marked.
pub(crate) fn read_request(
    dir: Option<&Path>,
    key: RequestKey,
    request: &RecordedRequest,
    before: &RecordedRequest,
) -> Result<ReadableRequest, TaskFailure> {
    let body = read_stored_request(dir, request)?;
    // Without the previous request nothing is collapsed, but this one is still readable.
    let before = read_stored_request(dir, before)
        .ok()
        .filter(|text| !text.is_empty());
    Ok(ReadableRequest::from_body(key, &body, before.as_deref()))
}

fn read_stored_request(
    dir: Option<&Path>,
    request: &RecordedRequest,
) -> Result<String, TaskFailure> {
    // A stored request consists of texts and blobs, because dicta stores repeated parts only once.
    let mut text = String::new();
    for piece in request {
        match (piece, dir) {
            (StoredText::Text(piece), _) => text.push_str(piece),
            (StoredText::Blob(blob), Some(dir)) => text.push_str(&read_text(dir, blob)?),
            (StoredText::Blob(_), None) => {
                return Err("the run has no folder, so its blobs can't be read".into());
            }
        }
    }
    Ok(text)
}

/// Reads a transcript as it was when it was judged: from its file, or from the run's copy if the file has changed.
/// `transcript.path` must be absolute.
pub(crate) fn read_document(
    transcript: &TranscriptRef,
    run_dir: Option<&Path>,
    map: Option<&Arc<FieldMapping>>,
) -> Result<TranscriptDocument, TaskFailure> {
    let bytes = read_transcript_bytes(transcript, DocumentOrigin { run_dir, map })?;
    // The bytes are always in the native format, with one record.
    let read = parse_native(&bytes, 1, &transcript.id).map_err(|bad| TaskFailure::new(bad.why))?;
    Ok(TranscriptDocument {
        // The parsed id may be a default id; the run names the transcript by this one.
        id: transcript.id.clone(),
        ..TranscriptDocument::from_transcript(&read)
    })
}

/// The places where a transcript's text may be, and how to read them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DocumentOrigin<'w> {
    /// The folder of a run that may contain a copy.
    pub(crate) run_dir: Option<&'w Path>,
    /// The file's field mapping.
    pub(crate) map: Option<&'w Arc<FieldMapping>>,
}

fn read_transcript_bytes(
    transcript: &TranscriptRef,
    origin: DocumentOrigin<'_>,
) -> Result<Vec<u8>, TaskFailure> {
    match (read_from_file(transcript, origin.map), origin.run_dir) {
        (Ok(bytes), _) => Ok(bytes),
        (Err(why), None) => Err(why),
        (Err(why), Some(dir)) => FolderBlobs::new(dir)
            .get(&transcript.digest)
            .map_err(|error| TaskFailure::new(format!("{why}, and the run has no copy: {error}"))),
    }
}

/// Returns the places of a check's findings by running the check again. Returns no places if the check now gives
/// another explanation than the recorded one.
pub(crate) fn find_marks(
    registry: &EvalTypeRegistry,
    key: &FindingMarksKey,
    eval: &RubricEval,
    message: Option<u32>,
    transcript: &TranscriptRef,
    origin: DocumentOrigin<'_>,
) -> Vec<TranscriptSpan> {
    // Only code checks have places; a judge's citations come with its verdict.
    let Ok(CompiledEval::Check(check)) = registry.compile_eval(eval.eval(), &CompileCx::default())
    else {
        return Vec::new();
    };
    let Ok(bytes) = read_transcript_bytes(transcript, origin) else {
        return Vec::new();
    };
    let Ok(read) = parse_native(&bytes, 1, &transcript.id) else {
        return Vec::new();
    };
    let subject = match message {
        // A message eval sees only the messages up to its own.
        Some(message) => Subject::prefix(&read, message as usize + 1),
        None => Subject::new(&read),
    };
    let finding = check.check(&subject);
    // The check's code or the eval may have changed since; then the places would not match the recorded text.
    let same = (finding.outcome, &finding.explanation) == (key.outcome, &key.explanation);
    if same { finding.spans } else { Vec::new() }
}

fn read_from_file(
    transcript: &TranscriptRef,
    map: Option<&Arc<FieldMapping>>,
) -> Result<Vec<u8>, TaskFailure> {
    let file = TranscriptFile::open_mapped(&transcript.path, map).map_err(TaskFailure::new)?;
    let span = RecordSpan {
        offset: transcript.offset,
        len: transcript.len,
        part: transcript.part,
        // The number is used only in error messages about the record, which no caller shows.
        number: 1,
    };
    let bytes = file.read_native(span).map_err(TaskFailure::new)?;
    // A transcript that was only listed was never judged, so any content of the record is the right one.
    if transcript.digest.is_unread()
        || crate::model::Digest::hash_bytes(&bytes) == transcript.digest
    {
        Ok(bytes)
    } else {
        let path = transcript.path.display();
        Err(TaskFailure::new(format!(
            "{path} no longer holds this transcript as it was judged"
        )))
    }
}
