//! The newest verdicts of each eval as counts, for lints.

use super::rescore::{collect_decision_settings, collect_panel_rules};
use crate::record::{EvalKey, NewestVerdicts, PassFailCount, RunStore};
use crate::workspace::Workspace;
use crate::workspace::lint::EvalTally;

/// Counts the newest verdicts of each eval, decided with the current settings. Ignores unreadable runs: `dicta runs`
/// reports those.
pub fn tally_newest_verdicts(workspace: &Workspace) -> Vec<EvalTally> {
    let store = RunStore {
        dir: workspace.runs.clone(),
        extra_dirs: workspace.extra_run_folders.clone(),
        // The counts include the verdicts of other installations, so no key is needed.
        key: None,
    };
    let (newest, _unreadable) = NewestVerdicts::read(&store.runs(), |header| {
        header.workspace == workspace.root && header.purpose.gives_verdicts()
    });
    tally_verdicts(workspace, newest)
}

/// Counts these newest verdicts of each eval, decided with the current settings.
pub fn tally_verdicts(workspace: &Workspace, mut newest: NewestVerdicts) -> Vec<EvalTally> {
    newest.rescore(&collect_decision_settings(workspace));
    let evals = workspace.rubrics.iter().flat_map(|rubric| {
        let evals = rubric.evals.iter();
        evals.map(|eval| ((&*rubric.id, &*eval.id), &eval.digest))
    });
    let verdicts = newest.count_verdicts(&evals.collect(), &collect_panel_rules(workspace));
    let tally = |(key, count): (EvalKey, PassFailCount)| EvalTally {
        rubric: key.rubric,
        eval: key.eval,
        pass: count.pass,
        fail: count.fail,
    };
    verdicts.into_iter().map(tally).collect()
}
