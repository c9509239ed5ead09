//! The agreement of judged evals with evals that code decides and that ask the same question (`reference:` of a rubric).
//!
//! Responsible for the pairs of decisions. The verdicts of code are labels of their own origin: no figure of people's
//! labels contains them.

use std::collections::HashMap;

use super::statistics::{Confidence, ConfusionTable, Estimate, Figure, wilson_interval};
use crate::record::{State, StateDecision};

/// The figures of a judged eval against its reference.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceFigures {
    /// The id of the rubric.
    pub rubric: String,
    /// The id of the judged eval.
    pub eval: String,
    /// The id of the eval that code decides.
    pub reference: String,
    /// The counts; the reference is the label.
    pub counts: ConfusionTable,
    /// The share of passes of the reference that the judge passes.
    pub tpr: Estimate,
    /// The share of fails of the reference that the judge fails.
    pub tnr: Estimate,
    /// The share of equal verdicts.
    pub agreement: Estimate,
    /// The number of the judge's verdicts without a verdict of the reference.
    pub uncompared: u64,
}

/// Returns the figures of every eval of a state with a reference, which `find_reference` finds by rubric and eval.
/// `includes` selects the decisions.
pub fn compute_reference_figures(
    state: &State,
    confidence: Confidence,
    find_reference: impl Fn(&str, &str) -> Option<String>,
    includes: impl Fn(&StateDecision) -> bool,
) -> Vec<ReferenceFigures> {
    let evals = || state.header.evals.iter().zip(&state.evals);
    let by_name: HashMap<(u32, &str), _> = evals()
        .map(|(spec, eval)| ((spec.rubric, spec.id.as_str()), eval))
        .collect();
    let mut all = Vec::new();
    for (spec, eval) in evals() {
        let rubric = state.rubric_id(spec);
        let Some(reference) = find_reference(rubric, &spec.id) else {
            continue;
        };
        let named = by_name.get(&(spec.rubric, reference.as_str()));
        // A state of an older revision may lack the reference.
        let decided = named.map_or(&[][..], |eval| &eval.decisions);
        let verdicts: HashMap<(u32, Option<u32>), bool> = decided
            .iter()
            .filter_map(|one| Some(((one.transcript, one.message), one.judged_verdict()?)))
            .collect();
        let judged = eval.decisions.iter().filter(|one| includes(one));
        let pairs = judged.filter_map(|one| {
            let expected = verdicts.get(&(one.transcript, one.message));
            Some((one.judged_verdict()?, expected.copied()))
        });
        let ids = (rubric.to_owned(), spec.id.clone(), reference);
        all.push(ReferenceFigures::count(ids, pairs, confidence));
    }
    all
}

impl ReferenceFigures {
    /// Counts the verdicts of a judge, each with that of the reference, if it has one. `names` are the rubric, the judged
    /// eval and the reference.
    pub fn count(
        names: (String, String, String),
        verdicts: impl Iterator<Item = (bool, Option<bool>)>,
        confidence: Confidence,
    ) -> Self {
        // The counts by verdict of the reference and of the judge.
        let mut pairs = [[0_u64; 2]; 2];
        let mut uncompared = 0;
        for (passed, expected) in verdicts {
            match expected {
                Some(expected) => pairs[usize::from(expected)][usize::from(passed)] += 1,
                None => uncompared += 1,
            }
        }
        let [[true_fail, false_pass], [false_fail, true_pass]] = pairs;
        let counts = ConfusionTable::from_counts(true_pass, false_pass, true_fail, false_fail);
        let (passes, fails) = (true_pass + false_fail, true_fail + false_pass);
        // All decisions are compared, so the interval is about further ones.
        let estimate = |point: Figure, labels: u64| {
            let share = point.unwrap_or_default();
            let interval = wilson_interval(share, labels as f64, confidence);
            Estimate {
                point,
                interval,
                further: interval,
                labels,
                effective_labels: labels as f64,
            }
        };
        let (rubric, eval, reference) = names;
        Self {
            rubric,
            eval,
            reference,
            tpr: estimate(counts.tpr(), passes),
            tnr: estimate(counts.tnr(), fails),
            agreement: estimate(counts.agreement(), passes + fails),
            counts,
            uncompared,
        }
    }
}
