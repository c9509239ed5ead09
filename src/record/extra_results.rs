//! The recorded results that decide nothing: second opinions, branches, judge traces that a person edited, and those that an
//! interrupted run left without a result.
//!
//! Responsible for keeping them by decision, so that a screen shows them next to the verdict after a restart. Does not
//! read logs: [`super::NewestVerdicts`] does.

use std::collections::HashMap;

use super::RecordedResult;
use crate::event::{BranchPoint, GatePoint};
use crate::model::{CellIx, CellName, RunId};

/// A recorded result that decides nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtraResult {
    /// The name of the judge.
    pub judge: Option<String>,
    /// The repeat, from 1; `None` without repeats.
    pub repeat: Option<u32>,
    /// The result.
    pub result: RecordedResult,
    /// `true` if a person edited the judge trace.
    pub by_human: bool,
    /// The trace that it continues, if it is a branch.
    pub branch: Option<RecordedBranch>,
    /// The interruption, if the trace has no result; `result` then states that the cell was cancelled.
    pub interruption: Option<Interruption>,
}

/// The interruption of a judge trace: its run stopped before the trace ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interruption {
    /// The gate at which the trace was paused, if it was.
    pub paused_at: Option<GatePoint>,
}

/// The trace that a recorded branch continues.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedBranch {
    /// The run with the trace.
    pub parent: RunId,
    /// The number of the cell in that run, if the header names it.
    pub parent_cell: Option<CellIx>,
    /// The point from which the branch continues.
    pub point: BranchPoint,
}

impl ExtraResult {
    /// Returns `true` for the unchanged verdict of a judge that the user asked in addition to the eval's own.
    pub fn is_second_opinion(&self) -> bool {
        self.branch.is_none() && !self.by_human && self.interruption.is_none()
    }

    /// Returns `false` for a mark of an interruption that a newer result of the cell makes needless.
    pub(super) fn stays_after_newer_result(&self) -> bool {
        self.interruption.is_none() || self.branch.is_some()
    }

    /// Returns the name of the cell, which belongs to this decision.
    pub(super) fn cell_name(&self, decision: &str) -> Option<CellName> {
        let decision: CellName = decision.parse().ok()?;
        Some(CellName {
            judge: self.judge.clone(),
            repeat: self.repeat,
            ..decision
        })
    }

    fn is_same_cell(&self, other: &Self) -> bool {
        (&self.result.run, self.result.cell) == (&other.result.run, other.result.cell)
    }
}

/// The results that decide nothing, by decision.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ExtraResults {
    /// By the name of the decision, newest first.
    by_decision: HashMap<String, Vec<ExtraResult>>,
}

impl ExtraResults {
    /// Returns the results next to a decision, newest first.
    pub(super) fn get(&self, decision: &str) -> &[ExtraResult] {
        self.by_decision.get(decision).map_or(&[], Vec::as_slice)
    }

    /// Reports whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.by_decision.is_empty()
    }

    /// Adds a result of a run that is older than all runs before it. Of the second opinions of one judge, only the newest
    /// stays.
    pub(super) fn add_older(&mut self, decision: &str, extra: ExtraResult) {
        let known = self.by_decision.entry(decision.to_owned()).or_default();
        let replaces = |newer: &ExtraResult| {
            newer.is_second_opinion()
                && (&newer.judge, newer.repeat) == (&extra.judge, extra.repeat)
        };
        if !extra.is_second_opinion() || !known.iter().any(replaces) {
            known.push(extra);
        }
    }

    /// Adds the results of a decision to those of another name, because its eval was renamed. They are the older ones.
    pub(super) fn copy(&mut self, from: &str, to: &str) {
        let Some(older) = self.by_decision.get(from).cloned() else {
            return;
        };
        let known = self.by_decision.entry(to.to_owned()).or_default();
        for extra in older {
            if !known.iter().any(|one| one.is_same_cell(&extra)) {
                known.push(extra);
            }
        }
    }

    /// Returns every result with the name of its decision, newest first for each decision.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &ExtraResult)> {
        let decisions = self.by_decision.iter();
        decisions.flat_map(|(name, extras)| extras.iter().map(move |extra| (name.as_str(), extra)))
    }

    /// Returns every result with the name of its decision.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut RecordedResult)> {
        self.by_decision.iter_mut().flat_map(|(name, extras)| {
            let results = extras.iter_mut().map(|extra| &mut extra.result);
            results.map(move |result| (name.as_str(), result))
        })
    }
}
