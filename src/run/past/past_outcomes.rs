//! The recorded outcomes of decisions, for a filter.
//!
//! Responsible for looking them up in the newest verdicts. Does not decide.

use super::rescore::collect_decision_settings;
use crate::event::RunHeader;
use crate::model::{CellName, CellVote, Outcome, VoteParams};
use crate::record::{NewestVerdicts, RunStore};
use crate::run::plan::PastOutcomes;
use crate::workspace::Workspace;

struct RecordedOutcomes(NewestVerdicts);

/// Returns the newest verdicts over the runs of a workspace, under its current decision settings.
pub(in crate::run) fn load_past_outcomes(
    store: &RunStore,
    workspace: &Workspace,
) -> Box<dyn PastOutcomes> {
    // The recording folder may hold runs of other workspaces, such as robustness runs.
    let ours = |header: &RunHeader| header.workspace == workspace.root;
    let (mut newest, _unreadable) = NewestVerdicts::read(&store.runs(), ours);
    // Recorded outcomes may be from other bounds than the current ones.
    newest.rescore(&collect_decision_settings(workspace));
    Box::new(RecordedOutcomes(newest))
}

impl PastOutcomes for RecordedOutcomes {
    fn outcome(
        &self,
        decision: &CellName,
        judges: &[String],
        terms: VoteParams<'_>,
    ) -> Option<Outcome> {
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
                cells.extend(self.0.get(&name.to_string()).map(|cell| CellVote {
                    judge: Some(*judge),
                    repeat,
                    ballot: Some(cell.ballot()),
                }));
            }
        }
        // The cell of a check is its decision.
        if terms.judges.is_empty() {
            let cell = self.0.get(&decision.to_string())?;
            return Some(cell.outcome);
        }
        terms.decide(&cells).map(|decision| decision.outcome)
    }
}
