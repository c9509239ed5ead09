//! The walk over all transcripts of some files, with their unique ids, outside of a run.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use super::feed::{FileFeed, TranscriptFiles};
use super::ids::TranscriptIds;
use crate::model::{Digest, Transcript, TranscriptRef};
use crate::transcript::{FieldMappings, TranscriptError};

/// The records that a walk could not use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TranscriptWalk {
    /// The number of records that are not transcripts.
    pub bad_records: u64,
    /// The files that could not be read to their end, with the reason.
    pub broken_files: Vec<(PathBuf, String)>,
}

/// Visits every transcript of some files in order. Ids are those that a run over the same files gives. The references
/// have absolute paths.
pub fn visit_transcripts(
    paths: &[PathBuf],
    maps: &FieldMappings,
    visit: &mut dyn FnMut(TranscriptRef, &Transcript<'_>),
) -> Result<TranscriptWalk, TranscriptError> {
    visit_transcripts_until(paths, maps, &mut |reference, transcript| {
        visit(reference, transcript);
        ControlFlow::Continue(())
    })
}

/// Visits the transcripts of some files in order until `visit` breaks. See [`visit_transcripts`].
pub fn visit_transcripts_until(
    paths: &[PathBuf],
    maps: &FieldMappings,
    visit: &mut dyn FnMut(TranscriptRef, &Transcript<'_>) -> ControlFlow<()>,
) -> Result<TranscriptWalk, TranscriptError> {
    let files = TranscriptFiles {
        // With an empty root, paths stay as they are.
        root: PathBuf::new(),
        paths: paths.to_vec(),
        maps: maps.clone(),
        is_strict: false,
    };
    let mut feed = FileFeed::new(files, None);
    let (mut ids, mut walk) = (TranscriptIds::default(), TranscriptWalk::default());
    'files: while let Some(chunk) = feed.read_chunk()? {
        for record in &chunk.records {
            let bytes = &chunk.bytes[record.location.byte_range.clone()];
            // A reader's panic on one record must not hide the other transcripts.
            let parsed = catch_unwind(AssertUnwindSafe(|| record.parse(bytes)));
            let Ok(Ok(transcript)) = parsed else {
                walk.bad_records += 1;
                continue;
            };
            let (id, _) = ids.make_unique(transcript.id.to_string());
            let span = record.location.span;
            let reference = TranscriptRef {
                id,
                path: chunk.path.to_path_buf(),
                offset: span.offset,
                len: span.len,
                part: span.part,
                digest: Digest::hash_bytes(bytes),
            };
            if visit(reference, &transcript).is_break() {
                break 'files;
            }
        }
    }
    let reports = super::feed::TranscriptFeed::take_file_reports(&mut feed);
    let broken = reports
        .into_iter()
        .filter_map(|report| Some((report.path, report.error?)));
    walk.broken_files.extend(broken);
    Ok(walk)
}
