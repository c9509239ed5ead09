//! Runs that feed the screen: live ones, and the one that is replayed.

use std::path::PathBuf;

use indexmap::IndexMap;

use super::cells::{Names, SlotAt};
use crate::event::{ParentCause, RunState};
use crate::model::{Millis, RunId};

/// Names a run before it has an id; counts up over the program's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ticket(pub(crate) u64);

/// A run on the screen.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) id: Option<RunId>,
    /// Its folder, for blobs.
    pub(crate) dir: Option<PathBuf>,
    /// The fold of its events.
    pub(crate) state: RunState,
    /// What its numbers mean.
    pub(crate) names: Names,
    /// By cell number.
    pub(crate) places: Vec<Option<SlotAt>>,
    pub(crate) cause: Option<ParentCause>,
    /// The save it belongs to, by the save's number.
    pub(crate) save: Option<u64>,
    /// When it was ordered.
    pub(crate) since: Millis,
    pub(crate) stage: Stage,
    /// Cells with a result.
    pub(crate) done: u64,
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Stage {
    /// Ordered, nothing heard yet.
    #[default]
    Ordered,
    /// Events come.
    Running,
    /// Asked to end.
    Cancelling,
    /// Ended; why not well, if not.
    Ended(Option<String>),
}

/// The runs of a desk.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    pub(crate) map: IndexMap<Ticket, Run>,
}

impl Runs {
    /// Runs that have not ended.
    pub(crate) fn live(&self) -> impl Iterator<Item = (Ticket, &Run)> {
        self.map
            .iter()
            .filter(|(_, run)| !matches!(run.stage, Stage::Ended(_)))
            .map(|(ticket, run)| (*ticket, run))
    }

    /// The run of an id, if it is held in memory.
    pub(crate) fn of(&self, id: &RunId) -> Option<&Run> {
        self.map.values().find(|run| run.id.as_ref() == Some(id))
    }
}
