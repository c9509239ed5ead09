//! The queues that the user can choose, and the purpose of their labels.

use crate::compare::{LabelQueue, StratumProperty};
use crate::model::RecordedDraw;

/// The sizes of a draw that the user can choose.
pub(crate) const QUEUE_SIZES: [usize; 7] = [10, 20, 40, 60, 100, 200, 500];
/// The position of the first choice in [`QUEUE_SIZES`].
pub(crate) const DEFAULT_QUEUE_SIZE: usize = 1;

/// The purpose of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LabelPurpose {
    /// They were drawn by chance and measure the population.
    Measure,
    /// They help to find errors and are in no figure of the population.
    Debug,
    /// A confirmed label keeps the purpose that it had: one of a drawn decision measures again.
    AsBefore,
}

impl LabelPurpose {
    /// Returns the purpose of a queue.
    pub(crate) const fn of(queue: LabelQueue) -> Self {
        match queue {
            LabelQueue::Random | LabelQueue::Stratified => Self::Measure,
            LabelQueue::Disagreements | LabelQueue::Unsure | LabelQueue::Noise => Self::Debug,
            LabelQueue::ToConfirm => Self::AsBefore,
        }
    }

    /// Returns the word on the screen.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Measure => "measure",
            Self::Debug => "debug",
            Self::AsBefore => "as before",
        }
    }

    /// Returns the purpose in plain words, for a user who labels for the first time.
    pub(crate) const fn describe(self) -> &'static str {
        match self {
            Self::Measure => "to measure",
            Self::Debug => "to find errors",
            Self::AsBefore => "as before",
        }
    }
}

/// A queue that the user can choose.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueueOption {
    pub(crate) choice: QueueChoice,
    /// The name, such as `stratified by verdict`.
    pub(crate) title: String,
    /// Its content, such as `52 decisions`.
    pub(crate) note: String,
}

/// The queue behind an option.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum QueueChoice {
    /// An earlier draw of which some decisions have no label.
    Resume(RecordedDraw),
    /// A new draw.
    Draw(Option<StratumProperty>),
    /// Decisions that a rule chooses.
    Choose(LabelQueue),
    /// No queue.
    ByHand,
}

impl QueueChoice {
    /// Returns the purpose of the labels.
    pub(crate) fn purpose(&self) -> LabelPurpose {
        match self {
            Self::Resume(_) | Self::Draw(_) => LabelPurpose::Measure,
            Self::Choose(queue) => LabelPurpose::of(*queue),
            Self::ByHand => LabelPurpose::Debug,
        }
    }
}
