//! Reading from recordings and transcripts; `tui::reads` takes its place.

use std::path::Path;
use std::sync::Arc;

use crate::event::{BlobSource as _, Kind, RunState};
use crate::model::{Blob, CellIx, TranscriptRef};
use crate::record::{FolderBlobs, Run};
use crate::tui::model::document::Doc;
use crate::tui::model::trace::Recorded;

/// A cell of a recording.
pub(super) fn recorded(run: &Run, cell: CellIx) -> Result<Recorded, String> {
    let mut state = RunState::default();
    let mut header = None;
    run.scan(|event| {
        if let Kind::RunStarted(started) = &event.kind {
            header = Some((**started).clone());
        }
        state.apply(event);
    })
    .map_err(|error| error.to_string())?;
    let header = header.ok_or("the recording has no header")?;
    let at = usize::try_from(cell.0).unwrap_or(usize::MAX);
    let found = state.cells.get(at).cloned();
    Ok(Recorded {
        run: run.id.clone(),
        cell,
        header,
        state: found.ok_or_else(|| format!("run {} has no cell {}", run.id, cell.0))?,
        dir: run.dir.clone(),
    })
}

/// A blob as text.
pub(super) fn text(dir: &Path, blob: &Blob) -> Result<Arc<str>, String> {
    FolderBlobs::of_run(dir)
        .get(&blob.hash)
        .map(|bytes| String::from_utf8_lossy(&bytes).into())
        .map_err(|error| error.to_string())
}

/// A transcript.
pub(super) fn document(of: &TranscriptRef, _run_dir: Option<&Path>) -> Result<Doc, String> {
    Ok(Doc {
        id: of.id.clone(),
        ..Doc::default()
    })
}
