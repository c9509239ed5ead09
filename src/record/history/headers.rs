//! The headers of runs in the history: which runs belong to it, which share a revision, and the header of a state.

use std::path::Path;

use super::EntryRun;
use crate::event::RunHeader;
use crate::model::Digest;

/// Returns `true` for a run that judged the workspace.
pub(super) fn is_part_of_history(header: &RunHeader, root: &Path) -> bool {
    // Headers of earlier formats state no purpose. There, another judge for single cells is a second opinion.
    let is_old_opinion = header.revision.is_none()
        && header.plan.contains_key("judge")
        && header.plan.contains_key("where");
    header.workspace == root
        && header.purpose.is_judging()
        && !header.is_robustness_run()
        && !is_old_opinion
}

/// Returns the header of an entry's state: the one of its last run. What belongs to that run alone is left out: its
/// label, options and evidence.
pub(super) fn state_header(header: &RunHeader, last: Option<&EntryRun>) -> RunHeader {
    RunHeader {
        run: last.map_or_else(|| header.run.clone(), |run| run.id.clone()),
        started: last.map_or_else(|| header.started.clone(), |run| run.started.clone()),
        label: String::new(),
        parent: None,
        plan: header.shared_plan(),
        frozen: None,
        partial: false,
        ..header.clone()
    }
}

/// Returns `true` if two headers describe one revision. Headers of earlier formats lack the scope of evals and the tools
/// of judges, so these are then not compared.
pub(super) fn is_same_revision(revision: &Digest, before: &RunHeader, after: &RunHeader) -> bool {
    if *revision == after.revision_digest() {
        return true;
    }
    if before.revision.is_some() && after.revision.is_some() {
        return false;
    }
    let without = |header: &RunHeader| {
        let mut header = header.clone();
        header.evals.iter_mut().for_each(|eval| eval.scope = None);
        header
            .judges
            .iter_mut()
            .for_each(|judge| judge.tool_files = None);
        header.compute_revision()
    };
    without(before) == without(after)
}
