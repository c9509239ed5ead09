//! The cells that a workspace plans, for commands that need names and run nothing.
//!
//! Responsible for reading the plan. Does not record a run or ask a judge.

use std::sync::Arc;

use super::CommandCx;
use super::error::CommandError;
use super::measured_run::to_command_error;
use crate::event::{CellKey, EventKind, RunHeader};
use crate::handlers::EvalTypeRegistry;
use crate::model::{CellName, TranscriptRef};
use crate::run::{self, DecisionFilter};
use crate::workspace::Workspace;

/// A planned cell.
pub(super) struct PlannedCell<'p> {
    /// The header of the plan.
    pub(super) header: &'p RunHeader,
    /// The transcript.
    pub(super) transcript: &'p TranscriptRef,
    /// The eval, message, judge and repeat.
    pub(super) key: &'p CellKey,
    /// The name of the decision that the cell belongs to.
    pub(super) decision: CellName,
}

/// Hands over each planned cell, in plan order. A filter selects decisions.
pub(super) fn for_each_planned_cell(
    workspace: &Arc<Workspace>,
    filter: Option<DecisionFilter>,
    cx: &CommandCx,
    mut take: impl FnMut(PlannedCell<'_>),
) -> Result<(), CommandError> {
    let registry = EvalTypeRegistry::builtin();
    let mut header: Option<Box<RunHeader>> = None;
    let mut take_batch = |batch: run::OutlineBatch| {
        for fact in batch.facts {
            match fact {
                EventKind::RunStarted(started) => header = Some(started),
                EventKind::CellsPlanned {
                    transcript, keys, ..
                } => {
                    let Some(header) = &header else { continue };
                    for key in &keys {
                        if let Some(name) = header.cell_name(&transcript, key) {
                            take(PlannedCell {
                                header,
                                transcript: &transcript,
                                key,
                                decision: name.to_owned().decision_name(),
                            });
                        }
                    }
                }
                _ => {}
            }
        }
        true
    };
    run::outline_names(
        Arc::clone(workspace),
        &registry,
        &cx.env,
        &cx.clock,
        filter,
        &mut take_batch,
    )
    .map_err(to_command_error)
}
