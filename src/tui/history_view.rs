//! The history as the progress screen has it: data of the runtime's results, without reads.
//!
//! Holds data only: `runtime::progress` reads the recordings and counts, `update::progress` orders that.

use std::collections::HashMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use crate::compare::statistics::{Interval, RepeatedCell};
use crate::compare::{
    FileDiff, FlipCounts, FlipNoise, PairedFigures, PreviewObstacle, StateComparison,
    ThresholdPreview,
};
use crate::event::RunEvent;
use crate::model::{CellIx, CellName, LabelAgreement, Labels, RunId};
use crate::record::{EvalPath, HistoryEntry, NoiseRecords, RecordedRun};
use crate::workspace::rubric_write::RubricFileChange;

/// Shared data. Two values are equal if they are the same allocation, because the content is large.
#[derive(Debug, Default)]
pub(crate) struct Shared<T>(pub(crate) Arc<T>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Self(Arc::new(value))
    }
}

/// The entries of a history, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct HistoryView {
    pub(crate) entries: Vec<HistoryEntry>,
    /// The runs to which recorded cells refer.
    pub(crate) runs: Vec<RecordedRun>,
    /// The number of the baseline entry.
    pub(crate) baseline: Option<usize>,
    /// Sentences about unreadable runs.
    pub(crate) problems: Vec<String>,
    /// The repeats of the noise runs.
    pub(crate) noise: Arc<NoiseRecords>,
}

impl HistoryView {
    /// Returns the run with the number of [`crate::record::RecordedCell::run`].
    pub(crate) fn find_run(&self, number: u32) -> Option<&RecordedRun> {
        self.runs.get(number as usize)
    }

    /// Returns the entry with a number, from 1.
    pub(crate) fn entry(&self, number: usize) -> Option<&HistoryEntry> {
        self.entries.get(number.checked_sub(1)?)
    }

    pub(crate) fn newest(&self) -> Option<&HistoryEntry> {
        self.entries.last()
    }
}

/// The labels as they are now.
pub(crate) type SharedLabels = Shared<Labels>;

/// The counts of a state, over all evals or over one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct EntryCounts {
    pub(crate) pass: u64,
    pub(crate) fail: u64,
    /// Decided without a verdict: errors, not applicable, skipped.
    pub(crate) other: u64,
    pub(crate) pending: u64,
    pub(crate) agreement: LabelAgreement,
    /// The interval of the agreement; `None` without a drawn label.
    pub(crate) interval: Option<Interval>,
    /// This entry and the one before on the same labels; `None` for the first entry and without labels.
    pub(crate) paired: Option<PairedFigures>,
    /// The flips against the entry before.
    pub(crate) flips: FlipCounts,
    /// The passes and fails of decisions that the entry before does not plan.
    pub(crate) new_pass: u64,
    pub(crate) new_fail: u64,
    /// The decisions that only the entry before plans.
    pub(crate) removed: u64,
    /// The cells that judges of the entry's runs judged.
    pub(crate) judged: u64,
}

/// The counts of an entry.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct EntryFacts {
    pub(crate) all: EntryCounts,
    /// By the evals of the newest entry; `None` if the entry has no such eval.
    pub(crate) evals: Vec<Option<EvalFacts>>,
}

/// The counts of one eval of an entry.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct EvalFacts {
    /// The position of the eval in the entry's header.
    pub(crate) position: usize,
    pub(crate) counts: EntryCounts,
}

/// The newest entry and an earlier one on the same labels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProgressSince {
    /// The number of the earlier entry.
    pub(crate) number: usize,
    /// Over all evals.
    pub(crate) all: PairedFigures,
    /// By the evals of the newest entry.
    pub(crate) evals: Vec<Option<PairedFigures>>,
}

/// The counts of some entries, by their positions, and with the newest entry the scores of its evals. The last message
/// has the progress since earlier entries.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct HistoryFacts {
    pub(crate) entries: Vec<(usize, Arc<EntryFacts>)>,
    pub(crate) scores: Vec<Result<Arc<ThresholdPreview>, PreviewObstacle>>,
    pub(crate) since: Vec<ProgressSince>,
}

/// Two states of a history, by number. `before` is the older one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StatePair {
    pub(crate) before: usize,
    pub(crate) after: usize,
}

/// The difference of two states.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ComparedStates {
    pub(crate) comparison: StateComparison,
    /// For each flip, the repeats that make it worthless.
    pub(crate) noisy_flips: Vec<Option<RepeatedCell>>,
    /// The flips without a label next to those that noise gives, by eval.
    pub(crate) flip_noise: Vec<FlipNoise>,
    /// The files whose texts differ, rubrics first.
    pub(crate) files: Vec<FileDiff>,
}

/// A cell of a state, in the run that judged it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateCell {
    pub(crate) run: RunId,
    pub(crate) cell: CellIx,
}

/// The events of a state, and the recordings of its cells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReadState {
    /// The number of the entry.
    pub(crate) number: usize,
    pub(crate) events: Shared<Vec<RunEvent>>,
    /// The folder of the entry's last run.
    pub(crate) dir: PathBuf,
    /// The cells of each decision, in the order of judges and repeats.
    pub(crate) cells: Shared<HashMap<CellName, Vec<StateCell>>>,
    /// The evals that have another name in the newest state, with that name.
    pub(crate) later_names: HashMap<EvalPath, EvalPath>,
    /// The decision to select.
    pub(crate) select: Option<CellName>,
}

/// The texts of an earlier revision that differ from the current ones.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RestorePlan {
    /// The number of the entry.
    pub(crate) number: usize,
    /// The rubric files to write.
    pub(crate) changes: Vec<RubricFileChange>,
    /// Sentences about files of the revision that stay as they are.
    pub(crate) kept: Vec<String>,
}

/// A change of rubric files that the user ordered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RubricEdit {
    /// The words of the notice: `min_score 0.6 of support/tone`, `the rubrics of revision 5`.
    pub(crate) what: String,
    pub(crate) changes: Vec<RubricFileChange>,
}

/// An order to change rubric files.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RubricEditOrder {
    /// Sets a bound of an eval in its file.
    SetBound {
        /// The rubric's file, relative to the workspace.
        path: PathBuf,
        /// The eval's id.
        eval: String,
        /// `min_score` or `max_score`.
        bound: &'static str,
        value: f64,
    },
    /// Adds an example to an eval in its file.
    AddExample {
        /// The rubric's file, relative to the workspace.
        path: PathBuf,
        /// The eval's id.
        eval: String,
        /// The text of the message.
        text: String,
        /// True if the label is pass.
        expects_pass: bool,
    },
    /// Writes the texts.
    Write(RubricEdit),
    /// Writes the earlier texts again.
    Undo(RubricEdit),
}
