//! What decides the evals of a workspace today: for boards of what was recorded.

use crate::model::Bounds;
use crate::record::{DecidedBy, Deciding};
use crate::workspace::Workspace;

/// Bounds and negation of every eval, by rubric and eval.
pub fn deciding(workspace: &Workspace) -> DecidedBy {
    let rubrics = workspace.rubrics.iter();
    rubrics
        .map(|rubric| {
            let evals = rubric.evals.iter().map(|eval| {
                let deciding = Deciding {
                    bounds: Bounds::of(&eval.decides),
                    negate: eval.negate,
                };
                (eval.id.clone(), deciding)
            });
            (rubric.id.clone(), evals.collect())
        })
        .collect()
}
