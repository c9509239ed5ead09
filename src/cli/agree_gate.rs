//! `--fail-on` of `dicta agree` and `dicta compare`: bounds of agreement figures. Does not compute the figures.

use super::CommandCx;
use crate::compare::EvalFigures;
use crate::compare::statistics::{BoundCheck, Estimate, check_lower_bound};
use crate::model::{ExitReason, pluralize, quote_shell_word};
use crate::record::State;
use crate::report::agreement_text::has_labels;

/// The conditions on figures under which a command fails.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct AgreementGate {
    tpr: Option<f64>,
    tnr: Option<f64>,
    agreement: Option<f64>,
    min_labels: Option<u64>,
}

/// The answer of a gate for one eval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GateResult {
    /// A sentence for each bound that fails.
    pub(super) failed: Vec<String>,
    /// A sentence for each bound without enough labels.
    pub(super) too_few: Vec<String>,
}

impl AgreementGate {
    /// Parses `tpr-lower-below=0.85,labels-below=40`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut gate = Self::default();
        for condition in text.split(',') {
            let Some((name, value)) = condition.split_once('=') else {
                return Err(format!(
                    "`{condition}` has no value; write it as `tpr-lower-below=0.85`"
                ));
            };
            let bound = match name {
                "tpr-lower-below" => &mut gate.tpr,
                "tnr-lower-below" => &mut gate.tnr,
                "agreement-lower-below" => &mut gate.agreement,
                "labels-below" => {
                    let labels = value.parse().map_err(|_| {
                        format!("labels-below must be a whole number (got `{value}`)")
                    })?;
                    gate.min_labels = Some(labels);
                    continue;
                }
                _ => {
                    return Err(format!(
                        "`{name}` is not a condition; conditions are tpr-lower-below, tnr-lower-below, \
                         agreement-lower-below and labels-below"
                    ));
                }
            };
            let share: f64 = value.parse().unwrap_or(f64::NAN);
            if !(0.0..=1.0).contains(&share) {
                return Err(format!("{name} must be between 0 and 1 (got `{value}`)"));
            }
            *bound = Some(share);
        }
        Ok(gate)
    }

    /// Checks the figures of an eval.
    pub(super) fn check(&self, figures: &EvalFigures) -> GateResult {
        let mut result = GateResult::default();
        let labels = figures.population.labels();
        if let Some(wanted) = self.min_labels.filter(|wanted| labels < *wanted) {
            result.too_few.push(format!(
                "{}, at least {wanted} required",
                pluralize(labels, "measured label")
            ));
        }
        let Some(measured) = &figures.measured else {
            let eval = format!("{}/{}", figures.rubric, figures.eval);
            result.too_few.push(format!(
                "no measured labels: `dicta label --queue random --eval {}` draws what to label",
                quote_shell_word(&eval)
            ));
            return result;
        };
        let bounds = [
            ("TPR", &measured.tpr, self.tpr),
            ("TNR", &measured.tnr, self.tnr),
            ("agreement", &measured.agreement, self.agreement),
        ];
        for (name, estimate, bound) in bounds {
            if let Some(bound) = bound {
                check_bound(name, estimate, bound, &mut result);
            }
        }
        result
    }
}

/// Checks the figures of all judged evals of a state, and of others with labels. Prints why a condition does not hold,
/// and returns the exit code. `figures` are those of the evals of the state, in its order.
pub(super) fn apply_gate(
    gate: &AgreementGate,
    state: &State,
    figures: &[EvalFigures],
    cx: &CommandCx,
) -> u8 {
    let (mut has_failed, mut is_undecided) = (false, false);
    let evals = state.header.evals.iter().zip(figures);
    // A judged eval without any label is not good; nothing is known about it.
    let checked = evals.filter(|(spec, eval)| {
        let is_judged = spec.judged || spec.judge.is_some() || spec.panel.is_some();
        has_labels(eval) || (is_judged && eval.decisions > 0)
    });
    for (_, eval) in checked {
        let result = gate.check(eval);
        has_failed |= !result.failed.is_empty();
        is_undecided |= !result.too_few.is_empty();
        for why in result.failed.iter().chain(&result.too_few) {
            cx.streams
                .print_stderr(&format!("{}/{}: {why}", eval.rubric, eval.eval));
        }
    }
    let has_any = figures.iter().any(has_labels);
    if !has_any {
        cx.streams.print_stderr(
            "no eval has a label; `dicta label --queue random --eval EVAL` draws what to label",
        );
    }
    if has_failed {
        ExitReason::Failed.code()
    } else if is_undecided || !has_any {
        ExitReason::Undecided.code()
    } else {
        0
    }
}

fn check_bound(name: &str, estimate: &Estimate, bound: f64, result: &mut GateResult) {
    match check_lower_bound(estimate, bound, 0) {
        BoundCheck::Holds => {}
        BoundCheck::Fails => result.failed.push(format!(
            "{name}: the lower limit {:.2} for further transcripts like these is below {bound}",
            estimate.further.lower
        )),
        BoundCheck::TooFewLabels(missing) => {
            let are = if estimate.labels == 1 { "is" } else { "are" };
            result.too_few.push(format!(
                "{name}: {} of its class {are} too few, {missing} more needed",
                pluralize(estimate.labels, "label")
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_have_names_and_values() {
        let gate = AgreementGate::parse("tpr-lower-below=0.85,tnr-lower-below=0.8,labels-below=40");
        assert_eq!(
            gate,
            Ok(AgreementGate {
                tpr: Some(0.85),
                tnr: Some(0.8),
                agreement: None,
                min_labels: Some(40),
            })
        );
        for (wrong, part) in [
            ("tpr-lower-below", "has no value"),
            ("tpr=0.5", "is not a condition"),
            ("tnr-lower-below=3", "between 0 and 1 (got `3`)"),
            ("tnr-lower-below=x", "between 0 and 1"),
            ("labels-below=-1", "whole number"),
            ("", "has no value"),
        ] {
            let error = AgreementGate::parse(wrong).expect_err(wrong);
            assert!(error.contains(part), "{wrong}: {error}");
        }
    }
}
