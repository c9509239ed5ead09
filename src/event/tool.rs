//! The facts about a tool call, from the model's arguments to the tool response.
//!
//! Responsible for their JSON. Does not run or check calls.

use serde::{Deserialize, Serialize};

use super::{RunHeader, StoredText};
use crate::model::{ArgumentChange, Blob, CallIx, Digest, Hop, Millis, RawJson, RunId, TurnIx};

/// The rule that rejects a call without a recorded tool response.
pub const FROZEN_RULE: &str = "frozen";

/// A fact about a tool call, in this order: received → repaired? → ( validated → started → hop* → finished ) | rejected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolFact {
    /// The call as the model wrote it.
    Received {
        /// The provider's call id, or an id that dicta made.
        id: String,
        /// The name of the tool.
        name: String,
        /// The raw arguments.
        raw: String,
    },
    /// The canonical arguments, if they differ from the raw ones.
    Repaired {
        /// A JSON object.
        canonical: RawJson,
        /// The changes; empty if only the spelling differs.
        changes: Vec<ArgumentChange>,
    },
    /// The arguments satisfy the tool's rules.
    Validated {
        /// The validated arguments, which the tool receives.
        values: RawJson,
        /// The changes of `coerce: true` to the canonical arguments.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        coerced: Vec<ArgumentChange>,
    },
    /// dicta refused the call before it started. The last fact of a call.
    Rejected {
        /// The name of the rule.
        rule: String,
        /// The text that the model receives.
        text: String,
    },
    /// The tool started.
    Started,
    /// One request of a fetch.
    Hop(Hop),
    /// The tool responded; `is_error` marks a failure or a refusal of the address guard. The last fact of a call.
    Finished {
        /// The tool response.
        answer: RecordedToolResponse,
        /// The source of the response.
        source: ToolResponseSource,
        /// The duration of the call.
        elapsed: Millis,
        /// The temporary failure of the first try, as the model would have received it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retried: Option<String>,
    },
}

/// A [`crate::model::ToolResponse`] as an event stores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedToolResponse {
    /// The text for the model.
    pub text: StoredText,
    /// `true` if the response is an error.
    pub is_error: bool,
    /// The size of the received body, in bytes.
    pub bytes: u64,
    /// `true` if dicta cut the text.
    pub truncated: bool,
    /// The raw body (capped).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Blob>,
    /// The content type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The number of characters in places that a browser does not show.
    #[serde(default, skip_serializing_if = "crate::model::none_hidden")]
    pub hidden: u64,
    /// The version of the local data that the tool read, if it has one. The verdict cache compares it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_version: Option<Digest>,
}

/// The source of a tool response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolResponseSource {
    /// The tool ran.
    Live,
    /// A recorded tool response replaced the call.
    Frozen {
        /// The run that recorded it.
        run: RunId,
    },
    /// The same judge trace made an identical call, which has a response or still runs.
    SameTrace {
        /// The turn of that call.
        turn: TurnIx,
        /// The number of that call.
        call: CallIx,
    },
    /// A person wrote the response.
    ByHand,
    /// The tool read the judged transcript. Such a response never replaces a live call.
    Transcript,
}

impl ToolFact {
    /// Reports whether a run with recorded tool responses had none for the call. Such a call was rejected or made
    /// live. The tool must have recorded responses ([`RunHeader::has_evidence_for`]).
    pub fn is_evidence_miss(&self, header: &RunHeader) -> bool {
        let missed = match self {
            Self::Rejected { rule, .. } => rule == FROZEN_RULE,
            // With `miss: live`, dicta makes the call instead of rejecting it.
            Self::Finished { source, .. } => *source == ToolResponseSource::Live,
            _ => false,
        };
        missed && header.frozen.is_some()
    }
}
