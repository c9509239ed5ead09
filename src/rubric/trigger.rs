//! Triggers: the rules for when an eval runs.

/// The rule for when an eval runs, with PromptKit's names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trigger {
    /// One cell per assistant message.
    EveryTurn,
    /// One cell per transcript.
    #[default]
    OnSessionComplete,
    /// One cell per sampled assistant message.
    SampleTurns,
    /// One cell per sampled transcript.
    SampleSessions,
}

/// The triggers with their names in files.
pub(super) const TRIGGERS: &[(&str, Trigger)] = &[
    ("every_turn", Trigger::EveryTurn),
    ("on_session_complete", Trigger::OnSessionComplete),
    ("sample_turns", Trigger::SampleTurns),
    ("sample_sessions", Trigger::SampleSessions),
];

impl Trigger {
    /// Returns the name that files use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EveryTurn => "every_turn",
            Self::OnSessionComplete => "on_session_complete",
            Self::SampleTurns => "sample_turns",
            Self::SampleSessions => "sample_sessions",
        }
    }

    /// Returns true if the eval has a cell per assistant message.
    pub const fn is_per_turn(self) -> bool {
        matches!(self, Self::EveryTurn | Self::SampleTurns)
    }

    /// Returns true if `sample_percentage` applies.
    pub const fn is_sampled(self) -> bool {
        matches!(self, Self::SampleTurns | Self::SampleSessions)
    }
}
