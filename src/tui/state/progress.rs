//! The progress screen: every edit as a row with its agreement, the flips between two states, and the scores of an
//! eval with a threshold that keys move.
//!
//! Responsible for what is selected and shown. Does not count (`runtime::progress` does) and does not draw.

mod edit_words;
mod headline;
mod label_sets;
mod layout;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::compare::statistics::RepeatedCell;
use crate::compare::{FlipNoise, PairedFigures, PreviewObstacle, StateChange, ThresholdPreview};
use crate::model::LabelAgreement;
use crate::record::{HistoryEntry, RecordedCell};
use crate::tui::history_view::{
    ComparedStates, EntryCounts, EntryFacts, HistoryView, ProgressSince, RubricEdit, Shared,
    SharedLabels, StatePair,
};
use crate::tui::state::saves::EvalName;
use crate::tui::widget::flow::ScrollState;
use crate::tui::widget::list::ListState;

pub(crate) use edit_words::{describe_counts, describe_edits};
pub(crate) use headline::{HEADLINE_BADGE, headline_ends};
pub(crate) use layout::{ProgressArea, ProgressLayout, TextRows};

/// A part of the progress screen that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum ProgressPane {
    /// The entries and their runs.
    #[default]
    Entries,
    /// The flips between two states.
    Flips,
    /// The difference of the rubrics of these states.
    Diff,
    /// The agreement over edits.
    Agreement,
    /// The scores of an eval with the threshold.
    Scores,
}

impl ProgressPane {
    /// All parts, in the order of `tab`.
    pub(crate) const ALL: [Self; 5] = [
        Self::Entries,
        Self::Flips,
        Self::Diff,
        Self::Agreement,
        Self::Scores,
    ];

    /// Returns the name, in its frame and in the tabs.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Entries => "history",
            Self::Flips => "flips",
            Self::Diff => "diff",
            Self::Agreement => "agreement",
            Self::Scores => "scores",
        }
    }
}

/// A row of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgressItem {
    /// An entry, by its number.
    Entry(usize),
    /// A run of an entry, by its position.
    Run {
        /// The number of the entry.
        entry: usize,
        /// The position in its runs.
        run: usize,
    },
}

impl ProgressItem {
    /// Returns the number of the entry.
    pub(crate) const fn entry(self) -> usize {
        match self {
            Self::Entry(number) => number,
            Self::Run { entry, .. } => entry,
        }
    }
}

/// The state of the read of the history.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum HistoryLoading {
    /// Not ordered yet.
    #[default]
    Never,
    /// Being read; an earlier version may be shown.
    Reading,
    /// Read.
    Read,
    /// It can't be read, for this reason.
    Failed(String),
}

/// The shown difference of two states.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PairComparison {
    /// Being compared.
    Comparing,
    /// Compared.
    Compared(Arc<ComparedStates>),
    /// It can't be compared, for this reason.
    Failed(String),
}

/// The progress screen: see the module.
#[derive(Debug, Default)]
pub(crate) struct ProgressScreen {
    pub(crate) open: bool,
    /// The number of the last order to read. Results with another number are ignored.
    pub(crate) number: u64,
    pub(crate) loading: HistoryLoading,
    pub(crate) view: Shared<HistoryView>,
    /// The labels that the counts rest on.
    pub(crate) labels: SharedLabels,
    /// The number of the last order to count.
    pub(crate) count_number: u64,
    /// The counts of the entries, at their positions; `None` until they arrive.
    pub(crate) facts: Vec<Option<Arc<EntryFacts>>>,
    /// The scores of the newest entry's evals.
    pub(crate) scores: Vec<Result<Arc<ThresholdPreview>, PreviewObstacle>>,
    /// The progress since earlier entries on the same labels.
    pub(crate) since: Vec<ProgressSince>,
    /// The labels of the last ordered comparison.
    pub(crate) compared_labels: SharedLabels,
    /// The only shown eval; `None` for all.
    pub(crate) eval: Option<EvalName>,
    /// The rows, newest first.
    pub(crate) items: Vec<ProgressItem>,
    pub(crate) list: ListState<ProgressItem>,
    /// The numbers of the entries whose runs are listed.
    pub(crate) expanded: BTreeSet<usize>,
    /// The number of the entry that others are compared with.
    pub(crate) marked: Option<usize>,
    pub(crate) focus: ProgressPane,
    /// The last focused part except the entries; a small screen shows it below them.
    pub(crate) tab: Option<ProgressPane>,
    /// The compared states.
    pub(crate) pair: Option<StatePair>,
    pub(crate) comparison: Option<PairComparison>,
    /// The positions of the shown flips in the comparison.
    pub(crate) shown_flips: Vec<usize>,
    /// The position of the selected flip in them.
    pub(crate) flip: usize,
    /// The reasons of verdicts; `None` while they are read.
    pub(crate) reasons: HashMap<RecordedCell, Option<String>>,
    pub(crate) diff_scroll: ScrollState,
    /// The moved threshold.
    pub(crate) threshold: Option<f64>,
    /// The changes of rubric files that can be undone, newest last.
    pub(crate) undo_stack: Vec<RubricEdit>,
}

impl ProgressScreen {
    /// Applies a history that was read. Keeps the selection.
    pub(crate) fn set_view(&mut self, view: Shared<HistoryView>) {
        let was_newest = match (self.list.selected, self.view.newest()) {
            (Some(ProgressItem::Entry(number)), Some(newest)) => number == newest.number,
            (None, _) => true,
            _ => false,
        };
        self.view = view;
        self.loading = HistoryLoading::Read;
        // Numbers can refer to other runs now, for example after runs were removed.
        self.reasons.clear();
        self.pair = None;
        self.comparison = None;
        self.shown_flips.clear();
        let entries = self.view.entries.len();
        self.facts = vec![None; entries];
        self.scores.clear();
        self.since.clear();
        self.expanded.retain(|number| *number <= entries);
        self.marked = self.marked.filter(|number| *number <= entries);
        if was_newest {
            self.list.selected = self
                .view
                .newest()
                .map(|entry| ProgressItem::Entry(entry.number));
            self.list.last_position = 0;
        }
        if self.eval_position().is_none() {
            self.eval = None;
        }
        self.update_items();
    }

    /// Builds the rows again and keeps the selection.
    pub(crate) fn update_items(&mut self) {
        let view = Shared::clone(&self.view);
        self.items.clear();
        for entry in view.entries.iter().rev() {
            self.items.push(ProgressItem::Entry(entry.number));
            if self.expanded.contains(&entry.number) {
                let runs = (0..entry.runs.len()).rev();
                let item = |run| ProgressItem::Run {
                    entry: entry.number,
                    run,
                };
                self.items.extend(runs.map(item));
            }
        }
        let selected = self.list.selected;
        let position = selected.and_then(|item| self.list.find_position(&self.items, &item));
        // A run whose entry was closed gives the selection to its entry.
        let position = position.or_else(|| {
            let entry = ProgressItem::Entry(selected?.entry());
            self.items.iter().position(|item| *item == entry)
        });
        self.list.keep_selection(&self.items, position);
    }

    /// Returns the selected entry.
    pub(crate) fn selected_entry(&self) -> Option<&HistoryEntry> {
        self.view.entry(self.list.selected?.entry())
    }

    /// Returns the states to compare: the marked entry and the selected one, or the selected one and the one before.
    pub(crate) fn find_pair(&self) -> Option<StatePair> {
        let selected = self.list.selected?.entry();
        let other = self
            .marked
            .filter(|marked| *marked != selected)
            .or_else(|| selected.checked_sub(1).filter(|before| *before > 0))?;
        Some(StatePair {
            before: selected.min(other),
            after: selected.max(other),
        })
    }

    /// Returns the position of the chosen eval in the newest entry's header.
    pub(crate) fn eval_position(&self) -> Option<usize> {
        let eval = self.eval.as_ref()?;
        let state = &self.view.newest()?.state;
        state
            .header
            .evals
            .iter()
            .position(|spec| spec.id == eval.eval && state.rubric_id(spec) == eval.rubric)
    }

    /// Returns the counts of an entry, limited to the chosen eval; `None` if they are not known yet, or if the entry
    /// has no such eval.
    pub(crate) fn counts(&self, number: usize) -> Option<&EntryCounts> {
        let facts = self.facts.get(number.checked_sub(1)?)?.as_ref()?;
        if self.eval.is_none() {
            return Some(&facts.all);
        }
        let eval = facts.evals.get(self.eval_position()?)?.as_ref()?;
        Some(&eval.counts)
    }

    /// Returns the name that the chosen eval had in an entry; that of the newest entry until the counts are known.
    pub(crate) fn eval_at(&self, number: usize) -> Option<EvalName> {
        let chosen = self.eval.as_ref()?;
        let find = || {
            let facts = self.facts.get(number.checked_sub(1)?)?.as_ref()?;
            let known = facts.evals.get(self.eval_position()?)?.as_ref()?;
            let state = &self.view.entry(number)?.state;
            let spec = state.header.evals.get(known.position)?;
            Some(EvalName {
                rubric: state.rubric_id(spec).to_owned(),
                eval: spec.id.clone(),
            })
        };
        Some(find().unwrap_or_else(|| chosen.clone()))
    }

    /// Returns true if the counts of an entry are known.
    pub(crate) fn is_counted(&self, number: usize) -> bool {
        let facts = number.checked_sub(1).and_then(|at| self.facts.get(at));
        facts.is_some_and(Option::is_some)
    }

    /// Returns why no state is known, if dicta has not read the history.
    pub(crate) fn explain_unread(&self) -> Option<&'static str> {
        // An earlier version of the history stays while dicta reads it again.
        if !self.view.entries.is_empty() {
            return None;
        }
        match &self.loading {
            HistoryLoading::Never | HistoryLoading::Reading => Some("reading the runs"),
            HistoryLoading::Failed(_) => Some("the history cannot be read"),
            HistoryLoading::Read => None,
        }
    }

    /// Returns why no agreement over the edits is drawn.
    pub(crate) fn explain_missing_points(&self) -> &'static str {
        if let Some(why) = self.explain_unread() {
            return why;
        }
        if (1..=self.view.entries.len()).all(|number| self.is_counted(number)) {
            "no labelled verdict yet, so dicta draws no agreement"
        } else {
            "counting the agreement with your labels"
        }
    }

    /// Returns why no two states are compared, if none are.
    pub(crate) fn explain_missing_pair(&self) -> Option<&'static str> {
        if self.pair.is_some() {
            return None;
        }
        let missing = if self.items.is_empty() {
            "no states to compare yet"
        } else {
            "nothing before the first state: = marks a state to compare with"
        };
        Some(self.explain_unread().unwrap_or(missing))
    }

    /// Returns the compared states if they are compared.
    pub(crate) fn compared(&self) -> Option<&Arc<ComparedStates>> {
        match &self.comparison {
            Some(PairComparison::Compared(compared)) => Some(compared),
            _ => None,
        }
    }

    /// Selects and sorts the flips to show: of the chosen eval, those that no longer agree first, then those that now
    /// agree. Runs after each change of the comparison, the eval, the counts or the labels.
    pub(crate) fn update_flips(&mut self) {
        let position = self.find_flip_eval();
        let mut shown: Vec<usize> = Vec::new();
        if let (Some(compared), Ok(position)) = (self.compared(), position) {
            let flips = &compared.comparison.flips;
            let is_shown = |at: &usize| {
                position.is_none_or(|position| flips[*at].after.eval as usize == position)
            };
            shown.extend((0..flips.len()).filter(is_shown));
            shown.sort_by_cached_key(|at| match flips[*at].agrees_with_label(&self.labels) {
                Some(false) => 0,
                Some(true) => 1,
                None => 2,
            });
        }
        self.shown_flips = shown;
        self.flip = self.flip.min(self.shown_flips.len().saturating_sub(1));
    }

    /// Returns the position of the chosen eval in the newer compared state; `Ok(None)` for all evals. The error means that
    /// the state has no such eval.
    fn find_flip_eval(&self) -> Result<Option<usize>, ()> {
        if self.eval.is_none() {
            return Ok(None);
        }
        let newer = self.pair.and_then(|pair| pair.after.checked_sub(1));
        let facts = newer.and_then(|at| self.facts.get(at)?.as_ref());
        let eval = facts.zip(self.eval_position());
        let found = eval.and_then(|(facts, at)| facts.evals.get(at)?.as_ref());
        found.map(|found| Some(found.position)).ok_or(())
    }

    /// Returns a shown flip.
    pub(crate) fn shown_flip(&self, at: usize) -> Option<&StateChange> {
        let at = *self.shown_flips.get(at)?;
        self.compared()?.comparison.flips.get(at)
    }

    /// Returns the scores of the chosen eval, or a sentence on why there are none.
    pub(crate) fn preview(&self) -> Result<&Arc<ThresholdPreview>, String> {
        if let Some(why) = self.explain_unread() {
            return Err(why.to_owned());
        }
        if self.view.entries.is_empty() {
            return Err("no state yet: R in the cells judges".to_owned());
        }
        let Some(position) = self.eval_position() else {
            return Err("choose one eval with . and ,".to_owned());
        };
        match self.scores.get(position) {
            Some(Ok(preview)) => Ok(preview),
            Some(Err(why)) => Err(why.to_string()),
            None => Err("counting the scores".to_owned()),
        }
    }

    /// Returns the entry that the sentence at the top compares the newest one with: the baseline, or the oldest entry
    /// with labelled verdicts.
    pub(crate) fn reference_entry(&self) -> Option<usize> {
        let newest = self.view.newest()?.number;
        if let Some(baseline) = self.view.baseline.filter(|baseline| *baseline < newest) {
            return Some(baseline);
        }
        (1..newest).find(|number| {
            self.counts(*number)
                .is_some_and(|counts| counts.agreement.total() > 0)
        })
    }

    /// Returns the newest entry and an earlier one on the same labels, limited to the chosen eval.
    fn progress_since(&self, number: usize) -> Option<&PairedFigures> {
        let since = self.since.iter().find(|one| one.number == number)?;
        if self.eval.is_none() {
            return Some(&since.all);
        }
        since.evals.get(self.eval_position()?)?.as_ref()
    }

    /// Returns the flips of the compared states next to those that noise gives: of the chosen eval, or of the only one
    /// with flips.
    pub(crate) fn flip_noise(&self) -> Option<&FlipNoise> {
        let all = &self.compared()?.flip_noise;
        match self.find_flip_eval().ok()? {
            Some(position) => all.iter().find(|one| one.position == position),
            None if all.len() == 1 => all.first(),
            None => None,
        }
    }

    /// Returns the repeats that make a shown flip worthless.
    pub(crate) fn noisy_flip(&self, at: usize) -> Option<RepeatedCell> {
        let at = *self.shown_flips.get(at)?;
        self.compared()?.noisy_flips.get(at).copied().flatten()
    }

    /// Returns the number of labelled verdicts and the agreeing share of each counted entry, oldest first.
    pub(crate) fn agreement_points(&self) -> impl Iterator<Item = (usize, LabelAgreement)> {
        (1..=self.view.entries.len()).filter_map(|number| {
            let agreement = self.counts(number)?.agreement;
            (agreement.total() > 0).then_some((number, agreement))
        })
    }
}

/// Formats an agreement as counts: `10/15`.
pub(crate) fn format_agreement(agreement: &LabelAgreement) -> String {
    let total = agreement.total();
    format!("{}/{total}", total - agreement.disagreements())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_that_is_not_read_claims_no_missing_state_or_label() {
        let mut screen = ProgressScreen::default();
        let unread = [
            (HistoryLoading::Never, "reading the runs"),
            (HistoryLoading::Reading, "reading the runs"),
            (
                HistoryLoading::Failed("no access".into()),
                "the history cannot be read",
            ),
        ];
        for (loading, why) in unread {
            screen.loading = loading;
            assert_eq!(screen.explain_missing_points(), why);
            assert_eq!(screen.explain_missing_pair(), Some(why));
            assert_eq!(screen.preview().err().as_deref(), Some(why));
        }
        screen.loading = HistoryLoading::Read;
        assert!(
            screen
                .explain_missing_points()
                .starts_with("no labelled verdict yet")
        );
        assert_eq!(
            screen.explain_missing_pair(),
            Some("no states to compare yet")
        );
        let why = screen.preview().err().unwrap_or_default();
        assert!(why.starts_with("no state yet"), "{why}");
    }
}
