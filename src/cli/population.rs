//! The decisions that a filter selects, whatever their outcome: the population of figures and draws.

use std::collections::HashSet;
use std::sync::Arc;

use super::CommandCx;
use super::error::CommandError;
use super::planned_cells::for_each_planned_cell;
use crate::run::DecisionFilter;
use crate::workspace::Workspace;

/// Returns the decisions that `--population` selects. An error names that option, and an empty population is one.
pub(super) fn select_figures_population(
    filter: &str,
    workspace: &Arc<Workspace>,
    cx: &CommandCx,
) -> Result<HashSet<String>, CommandError> {
    let selected = select_population(filter, workspace, cx).map_err(|mut error| {
        error.message = error.message.replace("--where", "--population");
        error
    })?;
    if selected.is_empty() {
        return Err(CommandError::usage(format!(
            "--population: `{filter}` selects no decision, so there are no figures"
        )));
    }
    Ok(selected)
}

/// Returns the names of the decisions that a filter selects.
pub(super) fn select_population(
    filter: &str,
    workspace: &Arc<Workspace>,
    cx: &CommandCx,
) -> Result<HashSet<String>, CommandError> {
    let parsed =
        DecisionFilter::parse(filter).map_err(|error| CommandError::usage(error.to_string()))?;
    // The agreement with a label depends on both.
    if parsed.needs_past_outcomes() {
        return Err(CommandError::usage(format!(
            "`{filter}` depends on outcomes, and a population must not: its figures would describe the judge's choice"
        )));
    }
    if parsed.needs_labels() {
        return Err(CommandError::usage(format!(
            "`{filter}` depends on labels, and a population must not: its figures would describe the choice of labels"
        )));
    }
    list_selected(parsed, workspace, cx)
}

/// Returns the names of the decisions that a filter selects now, which may depend on outcomes.
pub(super) fn select_decisions_of_filter(
    filter: &str,
    workspace: &Arc<Workspace>,
    cx: &CommandCx,
) -> Result<HashSet<String>, CommandError> {
    let parsed =
        DecisionFilter::parse(filter).map_err(|error| CommandError::usage(error.to_string()))?;
    list_selected(parsed, workspace, cx)
}

fn list_selected(
    filter: DecisionFilter,
    workspace: &Arc<Workspace>,
    cx: &CommandCx,
) -> Result<HashSet<String>, CommandError> {
    let mut names = HashSet::new();
    for_each_planned_cell(workspace, Some(filter), cx, |cell| {
        names.insert(cell.decision.to_string());
    })?;
    Ok(names)
}
