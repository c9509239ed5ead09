//! The ids of the transcripts of a workspace, as a run names them.

use std::collections::HashSet;

use super::feed::{FileFeed, TranscriptFiles};
use crate::transcript::TranscriptError;
use crate::workspace::Workspace;

pub(crate) use crate::transcript::TranscriptIds;

/// Returns the ids of all transcripts of a workspace, as a run names them.
pub(crate) fn collect_transcript_ids(
    workspace: &Workspace,
) -> Result<HashSet<String>, TranscriptError> {
    let (mut ids, mut all) = (TranscriptIds::default(), HashSet::new());
    let mut feed = FileFeed::new(TranscriptFiles::from_workspace(workspace), None);
    while let Some(chunk) = feed.read_chunk()? {
        for record in &chunk.records {
            if let Ok(transcript) = record.parse(&chunk.bytes[record.location.byte_range.clone()]) {
                // Bad records get no id in a run either.
                all.insert(ids.make_unique(transcript.id.to_string()).0);
            }
        }
    }
    Ok(all)
}
