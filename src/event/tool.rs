//! What is told of a tool call, from the model's text to the answer.

use serde::{Deserialize, Serialize};

use super::{RunHeader, StoredText};
use crate::model::{ArgumentChange, Blob, CallIx, Hop, Millis, RawJson, RunId, TurnIx};

/// The rule that refuses a call which frozen evidence has no answer for.
pub const FROZEN_RULE: &str = "frozen";

/// A fact about a tool call, in this order: received → repaired? → ( validated → started → hop* → finished ) | rejected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolFact {
    /// The call as the model made it.
    Received {
        /// The provider's call id, or ours.
        id: String,
        /// The tool named.
        name: String,
        /// The arguments, unparsed.
        raw: String,
    },
    /// The arguments in canonical form, where they differ from the raw text.
    Repaired {
        /// A JSON object.
        canonical: RawJson,
        /// What was changed; empty where only the spelling differs.
        changes: Vec<ArgumentChange>,
    },
    /// The arguments satisfy the tool's rules.
    Validated {
        /// What the tool is called with.
        values: RawJson,
        /// What `coerce: true` changed on the way from the canonical arguments to them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        coerced: Vec<ArgumentChange>,
    },
    /// Refused before it started. Terminal.
    Rejected {
        /// Which rule.
        rule: String,
        /// What the model is told.
        text: String,
    },
    /// The tool runs.
    Started,
    /// One request of a fetch.
    Hop(Hop),
    /// The tool answered; a failure and a refusal by the guard have `is_error`. Terminal.
    Finished {
        /// What the model is told.
        answer: RecordedToolResponse,
        /// Where the answer came from.
        source: ToolResponseSource,
        /// How long it took.
        elapsed: Millis,
        /// The transient failure after which it was tried once more, as the model would have been told it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retried: Option<String>,
    },
}

/// A tool's [`crate::model::Answer`] as an event holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedToolResponse {
    /// The text for the model.
    pub text: StoredText,
    /// Whether it is an error.
    pub is_error: bool,
    /// Size of the body received, in bytes.
    pub bytes: u64,
    /// Whether the text was cut.
    pub truncated: bool,
    /// The raw body (capped).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Blob>,
    /// The content type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Characters of it that stand where a browser does not show them.
    #[serde(default, skip_serializing_if = "crate::model::none_hidden")]
    pub hidden: u64,
}

/// Where a tool's answer came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolResponseSource {
    /// The tool ran.
    Live,
    /// A run's evidence answered.
    Frozen {
        /// That run.
        run: RunId,
    },
    /// An identical call of this trace was answered before, or is in flight.
    SameTrace {
        /// The turn of that call.
        turn: TurnIx,
        /// That call.
        call: CallIx,
    },
    /// A person wrote the answer.
    ByHand,
    /// It was read from the judged transcript: part of the material, and no evidence.
    Transcript,
}

impl ToolFact {
    /// Whether it says, in a run whose evidence is frozen, that there was no answer for the call: it was refused for that,
    /// or made live. Of tools alone that have evidence ([`RunHeader::has_evidence_for`]).
    pub fn is_evidence_miss(&self, header: &RunHeader) -> bool {
        let missed = match self {
            Self::Rejected { rule, .. } => rule == FROZEN_RULE,
            Self::Finished { source, .. } => *source == ToolResponseSource::Live,
            _ => false,
        };
        missed && header.frozen.is_some()
    }
}
