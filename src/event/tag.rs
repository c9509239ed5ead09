//! The tags of event kinds, as a log writes them: the key of an event's `kind` object.
//!
//! Responsible for the only list of these words. Does not read or write events.

/// The tag of one event kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventTag {
    /// `run_started`.
    RunStarted,
    /// `blob_stored`.
    BlobStored,
    /// `cells_planned`.
    CellsPlanned,
    /// `revision_planned`.
    RevisionPlanned,
    /// `cells_settled`.
    CellsSettled,
    /// `cell_started`.
    CellStarted,
    /// `cell_finished`.
    CellFinished,
    /// `turn`.
    Turn,
    /// `tool`.
    Tool,
    /// `paused`.
    Paused,
    /// `resumed`.
    Resumed,
    /// `budget_reached`.
    BudgetReached,
    /// `note`.
    Note,
    /// `run_finished`.
    RunFinished,
}

impl EventTag {
    /// Every tag of [`super::FORMAT`].
    pub const ALL: [Self; 14] = [
        Self::RunStarted,
        Self::BlobStored,
        Self::CellsPlanned,
        Self::RevisionPlanned,
        Self::CellsSettled,
        Self::CellStarted,
        Self::CellFinished,
        Self::Turn,
        Self::Tool,
        Self::Paused,
        Self::Resumed,
        Self::BudgetReached,
        Self::Note,
        Self::RunFinished,
    ];

    /// Returns the tag as a log writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RunStarted => "run_started",
            Self::BlobStored => "blob_stored",
            Self::CellsPlanned => "cells_planned",
            Self::RevisionPlanned => "revision_planned",
            Self::CellsSettled => "cells_settled",
            Self::CellStarted => "cell_started",
            Self::CellFinished => "cell_finished",
            Self::Turn => "turn",
            Self::Tool => "tool",
            Self::Paused => "paused",
            Self::Resumed => "resumed",
            Self::BudgetReached => "budget_reached",
            Self::Note => "note",
            Self::RunFinished => "run_finished",
        }
    }

    /// Returns the tag that a log writes as `text`; `None` if this version does not know it.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tag| tag.as_str() == text)
    }

    /// Returns a sentence about the events with this tag, for the JSON Schema of events.
    pub fn description(self) -> &'static str {
        match self {
            Self::RunStarted => "The header: the settings and inputs of the run.",
            Self::BlobStored => "A blob is in the store. Precedes every event that names the blob.",
            Self::CellsPlanned => "The run reached a transcript and numbered its cells.",
            Self::RevisionPlanned => {
                "Everything that the revision plans, of a run whose options leave out a part of it."
            }
            Self::CellsSettled => {
                "Deterministic, skipped and cached cells of one transcript, as pairs of number and result."
            }
            Self::CellStarted => "A judge began a cell.",
            Self::CellFinished => "A judge cell ended.",
            Self::Turn => "A fact about a model call.",
            Self::Tool => "A fact about a tool call.",
            Self::Paused => "A judge trace pauses at a gate.",
            Self::Resumed => "A paused judge trace continues.",
            Self::BudgetReached => "A budget was reached.",
            Self::Note => "A message that fits none of the other kinds.",
            Self::RunFinished => "The last event of a run that was not interrupted.",
        }
    }
}
