//! The tour: six steps in the footer of the demo that tick themselves off.

/// A step of the tour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TourStep {
    Run,
    LookAtFailure,
    ChangeALine,
    WatchTheFlip,
    Replay,
    UseYourOwn,
}

/// How far the tour is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tour {
    /// By [`TourStep`].
    pub(crate) done: [bool; 6],
    pub(crate) hidden: bool,
}
