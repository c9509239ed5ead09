//! The runs that `@` names for a command that needs a run and not a state.
//!
//! Responsible for what such a command needs of a run. Does not play, resume or answer.

use std::collections::HashSet;

use super::store::find_nth_newest;
use super::{RecordError, RecordedRun, RunStore};
use crate::event::{EventKind, EventTag, ParentCause, RunHeader};
use crate::model::RunId;

/// A need of a command that takes a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunNeed {
    /// A result of its own, and not only results of earlier runs.
    Play,
    /// The same, for a replay: also of a second opinion or a branch, which a user wants to watch again.
    Replay,
    /// Cells to continue: pending ones, or ones that ended in an error. No later run continued it.
    Resume,
    /// Recorded tool responses.
    Answer,
}

impl RunNeed {
    /// Returns true if `@` counts a run with this header: not a measurement, and not a run about something else.
    fn includes(self, header: &RunHeader) -> bool {
        let purpose = header.purpose;
        let is_counted = match self {
            Self::Replay => purpose.is_about_cells(),
            Self::Play | Self::Resume | Self::Answer => purpose.is_judging(),
        };
        is_counted && !header.is_robustness_run()
    }

    /// Returns the end of the sentence "runs that …".
    fn describe(self) -> &'static str {
        match self {
            Self::Play | Self::Replay => "judged something",
            Self::Resume => "have something to continue",
            Self::Answer => "have recorded tool responses",
        }
    }
}

/// The events that show what is left of a run.
const RESULT_TAGS: &[EventTag] = &[
    EventTag::CellsPlanned,
    EventTag::CellsSettled,
    EventTag::CellFinished,
    EventTag::RunFinished,
];

impl RunStore {
    /// Finds a run as [`RunStore::resolve`] does, except for `@` and `@2`: they count only the runs that judged the
    /// workspace and have what is needed. For a replay, they also count second opinions and branches. If no run has it,
    /// `@` is the newest run, so that the command can report it.
    pub fn resolve_for(&self, name: &str, need: RunNeed) -> Result<RecordedRun, RecordError> {
        let Some(back) = name.strip_prefix('@') else {
            return self.resolve(name);
        };
        let mut continued: HashSet<RunId> = HashSet::new();
        let candidates = self.runs().into_iter().filter(|run| {
            let Ok(header) = run.read_header() else {
                return false;
            };
            if !need.includes(&header) {
                return false;
            }
            if let Some(parent) = header.parent
                && parent.cause == ParentCause::Resume
            {
                continued.insert(parent.run);
            }
            match need {
                RunNeed::Play | RunNeed::Replay => run.has_own_result(),
                // Runs come newest first, so a run that continues another one comes before it.
                RunNeed::Resume => !continued.contains(&run.id) && run.has_cells_left(),
                RunNeed::Answer => run.recorded_calls().is_ok_and(|calls| !calls.is_empty()),
            }
        });
        let found = find_nth_newest(candidates, name, back);
        match found {
            Err(_) if matches!(back, "" | "1") => self.resolve(name),
            // A number, and not a mistake in the name.
            Err(_) if back.parse::<usize>().is_ok_and(|number| number > 0) => {
                Err(RecordError::UnknownRun(format!(
                    "there is no `{name}`: @ counts only runs that {}; `dicta runs` lists all",
                    need.describe()
                )))
            }
            found => found,
        }
    }
}

impl RecordedRun {
    /// Returns true if the run computed a result and did not only reuse those of earlier runs.
    pub fn has_own_result(&self) -> bool {
        let Ok(events) = self.events_with_tags(RESULT_TAGS) else {
            return false;
        };
        events.map_while(Result::ok).any(|event| match &event.kind {
            EventKind::CellsSettled(settled) => {
                settled.iter().any(|one| one.result.cached.is_none())
            }
            EventKind::CellFinished { result, .. } => result.cached.is_none(),
            _ => false,
        })
    }

    /// Returns true if a resume of the run has cells to judge.
    fn has_cells_left(&self) -> bool {
        let Ok(events) = self.events_with_tags(RESULT_TAGS) else {
            return false;
        };
        let (mut planned, mut settled, mut is_complete) = (0_usize, HashSet::new(), false);
        for event in events.map_while(Result::ok) {
            match event.kind {
                EventKind::CellsPlanned { keys, .. } => planned += keys.len(),
                EventKind::CellsSettled(results) => {
                    let results = results.iter().filter(|one| !one.result.outcome.is_error());
                    settled.extend(results.map(|one| one.cell));
                }
                EventKind::CellFinished { cell, result } if !result.outcome.is_error() => {
                    settled.insert(cell);
                }
                EventKind::RunFinished(totals) => is_complete = !totals.cancelled,
                _ => {}
            }
        }
        !is_complete || settled.len() < planned
    }
}
