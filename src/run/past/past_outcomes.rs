//! The board as a filter sees it: how decisions ended.

use super::rescore::collect_decision_settings;
use crate::event::RunHeader;
use crate::model::{CellName, CellVote, Outcome, VoteParams};
use crate::record::{NewestVerdicts, RunStore};
use crate::run::plan::PastOutcomes;
use crate::workspace::Workspace;

struct RecordedOutcomes(NewestVerdicts);

/// The board over the runs of a workspace, as its evals decide today.
pub(in crate::run) fn load_past_outcomes(
    store: &RunStore,
    workspace: &Workspace,
) -> Box<dyn PastOutcomes> {
    let ours = |header: &RunHeader| header.workspace == workspace.root;
    let (mut board, _unreadable) = NewestVerdicts::read(&store.runs(), ours);
    board.rescore(&collect_decision_settings(workspace));
    Box::new(RecordedOutcomes(board))
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
            // A cell that was skipped stands without a repeat, whatever the eval says.
            for repeat in std::iter::once(None).chain(repeats) {
                name.repeat = repeat;
                cells.extend(self.0.get(&name.to_string()).map(|cell| CellVote {
                    judge: Some(*judge),
                    repeat,
                    ballot: Some(cell.ballot()),
                }));
            }
        }
        if terms.judges.is_empty() {
            let cell = self.0.get(&decision.to_string())?;
            return Some(cell.outcome);
        }
        terms.decide(&cells).map(|decision| decision.outcome)
    }
}
