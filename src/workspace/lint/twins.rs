//! `same-digest`: two evals of a rubric that check the same thing of the same transcripts.
//!
//! Evals with one digest are meant where another judge decides, another bound, or other transcripts are looked at.

use super::{Lints, Of, Said, enabled};
use crate::rubric::Eval;

pub(super) fn look(lints: &mut Lints<'_>) {
    let rubric = lints.rubric;
    for (at, eval) in enabled(rubric) {
        let mut before = enabled(rubric).take_while(|(other, _)| *other < at);
        let Some((_, twin)) = before.find(|(_, other)| are_twins(other, eval)) else {
            continue;
        };
        let message = format!(
            "this checks the same as `{}` on line {}: type, params and trigger are equal",
            twin.id, twin.span.line
        );
        lints.eval(
            Of { at, eval },
            "",
            Said {
                lint: "same-digest",
                message,
                help: "take one of them away; `weight` makes one count for more".to_owned(),
            },
        );
    }
}

fn are_twins(one: &Eval, other: &Eval) -> bool {
    one.digest == other.digest
        && one.decision_settings == other.decision_settings
        && one.judge == other.judge
        && one.panel == other.panel
        && one.applies_to == other.applies_to
}
