//! A pair: two transcripts that an eval compares, in one transcript.
//!
//! Responsible for what the metadata of such a transcript states. `transcript` joins the two.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Transcript;

/// A transcript of a joined pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairMember {
    /// The id of the transcript.
    pub id: String,
    /// The name of the choice, such as `chosen`: `metadata.choice`, or the id.
    pub choice: String,
    /// The messages of the joined transcript that only this transcript has.
    pub messages: Range<usize>,
}

/// The transcripts of a joined pair, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedPair {
    /// The first transcript.
    pub first: PairMember,
    /// The second transcript.
    pub second: PairMember,
}

impl ComparedPair {
    /// The key of the metadata that names both transcripts.
    pub const METADATA_KEY: &str = "compared";

    /// Returns the transcripts of a pair; `None` if the transcript is not a joined pair.
    pub fn find(transcript: &Transcript<'_>) -> Option<Self> {
        let metadata = transcript.metadata.as_ref()?;
        // The search avoids a parse of the metadata of most transcripts.
        if !metadata.get().contains(Self::METADATA_KEY) {
            return None;
        }
        let mut value = metadata.parse_value();
        let [first, second]: [PairMember; 2] =
            serde_json::from_value(value.get_mut(Self::METADATA_KEY)?.take()).ok()?;
        let (common, end) = (first.messages.start, transcript.messages.len());
        // A file can contain this key, too, so the ranges are checked.
        let is_valid = common < first.messages.end
            && first.messages.end == second.messages.start
            && second.messages.start < second.messages.end
            && second.messages.end == end;
        is_valid.then_some(Self { first, second })
    }

    /// Returns the number of messages that both transcripts begin with.
    pub const fn common_messages(&self) -> usize {
        self.first.messages.start
    }
}
