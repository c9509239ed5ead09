//! The branches of a recorded judge trace, as a tree.
//!
//! Responsible for finding them among the runs of a store. Does not read judge traces.

use std::collections::HashSet;
use std::sync::Arc;

use super::{RecordedRun, RunStore};
use crate::event::{BranchPoint, EventKind, EventTag, ParentCause};
use crate::model::{CellIx, CellResult, RunId};

/// The largest number of branches of branches that dicta follows to the first run.
const MAX_DEPTH: usize = 64;

/// A member of a family: the recorded trace, or a branch.
#[derive(Debug, Clone, PartialEq)]
pub struct FamilyMember {
    /// The run.
    pub run: RunId,
    /// The cell in that run.
    pub cell: CellIx,
    /// The number of ancestors: 0 for the recorded trace.
    pub depth: usize,
    /// The point from which a branch continues; `None` for the recorded trace.
    pub point: Option<BranchPoint>,
    /// The result, if the cell ended.
    pub result: Option<Arc<CellResult>>,
}

/// A branch among the runs of a store.
struct Branch {
    run: RecordedRun,
    parent: RunId,
    parent_cell: CellIx,
    point: BranchPoint,
}

impl RunStore {
    /// Returns the family of a cell: the recorded trace first, each branch below its parent. Without branches, returns
    /// nothing.
    pub fn family(&self, run: &RecordedRun, cell: CellIx) -> Vec<FamilyMember> {
        // Oldest first, so that branches are in the order in which the user made them.
        let mut branches: Vec<Branch> = self.runs().into_iter().filter_map(read_branch).collect();
        branches.reverse();
        let (mut root, mut root_cell) = (run.clone(), cell);
        for _ in 0..MAX_DEPTH {
            let parent = branches.iter().find(|branch| branch.run.id == root.id);
            let Some(parent) = parent else { break };
            let cell = parent.parent_cell;
            let Ok(found) = self.resolve(&parent.parent.0) else {
                break;
            };
            (root, root_cell) = (found, cell);
        }
        let mut members = Vec::new();
        collect_members(&branches, &root, root_cell, None, 0, &mut members);
        if members.len() > 1 {
            members
        } else {
            Vec::new()
        }
    }
}

impl RunStore {
    /// Returns the other runs of the families of `runs`, newest first: the runs that these continue, and all branches of both.
    pub fn related_runs(&self, runs: &[RunId]) -> Vec<RecordedRun> {
        let branches: Vec<Branch> = self.runs().into_iter().filter_map(read_branch).collect();
        let mut known: HashSet<RunId> = runs.iter().cloned().collect();
        let mut roots = Vec::new();
        for run in runs {
            let mut root = run;
            // A changed recording could name itself as its parent.
            for _ in 0..MAX_DEPTH {
                let branch = branches.iter().find(|branch| branch.run.id == *root);
                let Some(branch) = branch else { break };
                root = &branch.parent;
            }
            if known.insert(root.clone()) {
                roots.push(root.clone());
            }
        }
        // Each round finds the branches of the runs of the round before.
        for _ in 0..MAX_DEPTH {
            let before = known.len();
            for branch in &branches {
                if known.contains(&branch.parent) {
                    known.insert(branch.run.id.clone());
                }
            }
            if known.len() == before {
                break;
            }
        }
        let is_related = |run: &RunId| known.contains(run) && !runs.contains(run);
        let found = branches
            .into_iter()
            .filter(|branch| is_related(&branch.run.id));
        let mut related: Vec<RecordedRun> = found.map(|branch| branch.run).collect();
        related.extend(roots.iter().filter_map(|root| self.resolve(&root.0).ok()));
        related
    }
}

fn read_branch(run: RecordedRun) -> Option<Branch> {
    let header = run.read_header().ok()?;
    let point = header.branch_point()?;
    let parent = header
        .parent
        .filter(|parent| parent.cause == ParentCause::Fork)?;
    Some(Branch {
        run,
        parent: parent.run,
        parent_cell: parent.cell?,
        point,
    })
}

fn collect_members(
    branches: &[Branch],
    run: &RecordedRun,
    cell: CellIx,
    point: Option<&BranchPoint>,
    depth: usize,
    members: &mut Vec<FamilyMember>,
) {
    // A changed recording could name itself as its parent.
    if depth > MAX_DEPTH || members.iter().any(|member| member.run == run.id) {
        return;
    }
    members.push(FamilyMember {
        run: run.id.clone(),
        cell,
        depth,
        point: point.cloned(),
        result: run.read_result(cell),
    });
    for branch in branches {
        if branch.parent == run.id && branch.parent_cell == cell {
            // The only cell of a branch.
            let cell = CellIx(0);
            collect_members(
                branches,
                &branch.run,
                cell,
                Some(&branch.point),
                depth + 1,
                members,
            );
        }
    }
}

impl RecordedRun {
    /// Returns the result of one cell, if it ended.
    pub fn read_result(&self, cell: CellIx) -> Option<Arc<CellResult>> {
        const RESULTS: &[EventTag] = &[EventTag::CellsSettled, EventTag::CellFinished];
        let events = self.events_with_tags(RESULTS).ok()?;
        events
            .map_while(Result::ok)
            .find_map(|event| match event.kind {
                EventKind::CellsSettled(settled) => {
                    let found = settled.into_iter().find(|one| one.cell == cell);
                    found.map(|one| one.result)
                }
                EventKind::CellFinished {
                    cell: ended,
                    result,
                } if ended == cell => Some(result),
                _ => None,
            })
    }
}
