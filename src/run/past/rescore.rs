//! The current decision settings of a workspace, to rescore recorded results.
//!
//! Responsible for collecting them from the rubrics. Does not rescore (see `record`).

use std::collections::HashMap;

use crate::model::{ScoreBounds, compares_pairs};
use crate::record::{DecisionSettings, EvalDecisionSettings, PanelRules};
use crate::workspace::Workspace;

/// Returns the bounds and the negation of every eval, by rubric and eval.
pub fn collect_decision_settings(workspace: &Workspace) -> DecisionSettings {
    let rubrics = workspace.rubrics.iter();
    rubrics
        .map(|rubric| {
            let evals = rubric.evals.iter().map(|eval| {
                let settings = EvalDecisionSettings {
                    bounds: ScoreBounds::from_decision_settings(&eval.decision_settings),
                    negate: eval.negate,
                };
                (eval.id.clone(), settings)
            });
            (rubric.id.clone(), evals.collect())
        })
        .collect()
}

/// Returns the evals that several judges decide today, by rubric and eval.
pub fn collect_panel_rules(workspace: &Workspace) -> HashMap<(&str, &str), PanelRules> {
    let rubrics = workspace.rubrics.iter();
    let evals = rubrics.flat_map(|rubric| rubric.evals.iter().map(move |eval| (rubric, eval)));
    evals
        .filter_map(|(rubric, eval)| {
            // An eval without a judge, or with a single one, has no vote rule.
            let assigned = workspace.assign_judges(rubric, eval)?;
            let rules = PanelRules {
                rule: assigned.rule?,
                judges: assigned.judges.into_iter().map(str::to_owned).collect(),
                bounds: ScoreBounds::from_decision_settings(&eval.decision_settings),
                repeat: if compares_pairs(&eval.eval_type) {
                    eval.repeat.saturating_mul(2)
                } else {
                    eval.repeat
                },
                needs_all_repeats: compares_pairs(&eval.eval_type),
            };
            Some(((rubric.id.as_str(), eval.id.as_str()), rules))
        })
        .collect()
}
