//! The recorded outcomes of decisions, for a filter.
//!
//! Responsible for looking them up in the newest verdicts. Does not decide.

use super::rescore::collect_decision_settings;
use crate::event::RunHeader;
use crate::model::{CauseSet, CellName, CellVote, Outcome, VoteParams};
use crate::record::{NewestVerdicts, RecordedResult, RunStore};
use crate::run::plan::PastOutcomes;
use crate::workspace::Workspace;

struct RecordedOutcomes(NewestVerdicts);

/// Returns the newest verdicts over the runs of a workspace, under its current decision settings.
pub(in crate::run) fn load_past_outcomes(
    store: &RunStore,
    workspace: &Workspace,
) -> Box<dyn PastOutcomes> {
    // The recording folder may hold runs of other workspaces, such as robustness runs.
    let ours =
        |header: &RunHeader| header.workspace == workspace.root && header.purpose.gives_verdicts();
    let (mut newest, _unreadable) = NewestVerdicts::read(&store.runs(), ours);
    // Recorded outcomes may be from other bounds than the current ones.
    newest.rescore(&collect_decision_settings(workspace));
    Box::new(RecordedOutcomes(newest))
}

impl RecordedOutcomes {
    /// Returns the recorded cells of a judged decision, with their judge and repeat.
    fn find_cells<'s>(
        &'s self,
        decision: &CellName,
        judges: &[String],
        terms: VoteParams<'_>,
    ) -> Vec<(u32, Option<u32>, &'s RecordedResult)> {
        let mut cells = Vec::new();
        for judge in terms.judges {
            let mut name = CellName {
                judge: judges.get(*judge as usize).cloned(),
                ..decision.clone()
            };
            let repeats = (1..=terms.repeat).filter(|_| terms.repeat > 1).map(Some);
            // A skipped cell has no repeat in its name, even if the eval has repeats.
            for repeat in std::iter::once(None).chain(repeats) {
                name.repeat = repeat;
                cells.extend(
                    self.0
                        .get(&name.to_string())
                        .map(|cell| (*judge, repeat, cell)),
                );
            }
        }
        cells
    }
}

impl PastOutcomes for RecordedOutcomes {
    fn outcome(
        &self,
        decision: &CellName,
        judges: &[String],
        terms: VoteParams<'_>,
    ) -> Option<Outcome> {
        // The cell of a check is its decision.
        if terms.judges.is_empty() {
            let cell = self.0.get(&decision.to_string())?;
            return Some(cell.outcome);
        }
        let cells = self.find_cells(decision, judges, terms).into_iter();
        let cells: Vec<CellVote> = cells
            .map(|(judge, repeat, cell)| CellVote {
                judge: Some(judge),
                repeat,
                ballot: Some(cell.ballot()),
            })
            .collect();
        terms.decide(&cells).map(|decision| decision.outcome)
    }

    fn causes(&self, decision: &CellName, judges: &[String], terms: VoteParams<'_>) -> CauseSet {
        let cells = self.find_cells(decision, judges, terms).into_iter();
        cells.fold(CauseSet::EMPTY, |all, (_, _, cell)| all.union(cell.causes))
    }
}
