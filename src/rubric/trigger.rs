//! Triggers: when an eval runs.

/// When an eval runs. PromptKit's names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trigger {
    /// A cell per assistant message.
    EveryTurn,
    /// One cell.
    #[default]
    OnSessionComplete,
    /// A cell per sampled assistant message.
    SampleTurns,
    /// One cell if the transcript is sampled.
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
    /// The name as files spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EveryTurn => "every_turn",
            Self::OnSessionComplete => "on_session_complete",
            Self::SampleTurns => "sample_turns",
            Self::SampleSessions => "sample_sessions",
        }
    }

    /// Whether it has a cell per assistant message.
    pub const fn is_per_turn(self) -> bool {
        matches!(self, Self::EveryTurn | Self::SampleTurns)
    }

    /// Whether `sample_percentage` counts.
    pub const fn is_sampled(self) -> bool {
        matches!(self, Self::SampleTurns | Self::SampleSessions)
    }
}
