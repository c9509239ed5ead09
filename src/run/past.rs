//! The board as a filter sees it: how decisions ended.

use super::anew::deciding;
use super::plan::Past;
use crate::event::RunHeader;
use crate::model::{CellName, CellResult, Outcome, decide};
use crate::record::{Board, RunStore};
use crate::workspace::Workspace;

struct OnBoard(Board);

/// The board over the runs of a workspace, as its evals decide today.
pub(super) fn of(store: &RunStore, workspace: &Workspace) -> Box<dyn Past> {
    let ours = |header: &RunHeader| header.workspace == workspace.root;
    let (mut board, _unreadable) = Board::of(&store.runs(), ours);
    board.decide_anew(&deciding(workspace));
    Box::new(OnBoard(board))
}

impl Past for OnBoard {
    fn ended(&self, decision: &CellName, judge: Option<&str>, repeat: u32) -> Option<Outcome> {
        let name = CellName {
            judge: judge.map(str::to_owned),
            ..decision.clone()
        };
        let repeats = (1..=repeat).filter(|_| repeat > 1).map(Some);
        // A cell that was skipped stands without a repeat, whatever the eval says.
        let cells: Vec<CellResult> = std::iter::once(None)
            .chain(repeats)
            .filter_map(|repeat| {
                let name = CellName {
                    repeat,
                    ..name.clone()
                };
                let cell = self.0.get(&name.to_string())?;
                Some(CellResult::new(cell.outcome, ""))
            })
            .collect();
        decide(&cells).map(|decision| decision.outcome)
    }
}
