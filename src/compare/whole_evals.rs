//! Evals that several parts replace, one for each criterion.
//!
//! Responsible for the verdicts of the wholes, which labels are about. Does not compute figures.

use indexmap::IndexMap;

use crate::model::{EvalWhole, LabelQuery};
use crate::record::{State, StateDecision};

/// An eval that several parts replace.
pub(super) struct WholeEval<'s> {
    /// The position of the rubric in the header.
    pub(super) rubric: u32,
    /// The id of the eval, as the file writes it.
    pub(super) id: &'s str,
    /// The decisions that all parts of a transcript make together.
    pub(super) decisions: Vec<WholeDecision<'s>>,
}

/// The decision that the parts of one transcript make together.
pub(super) struct WholeDecision<'s> {
    whole: &'s EvalWhole,
    /// The decision of the first part.
    pub(super) first: &'s StateDecision,
    /// A pass if all parts pass. `None` if one of them has no verdict.
    pub(super) verdict: Option<bool>,
    is_shot: bool,
}

impl WholeDecision<'_> {
    /// Returns the query for its label.
    pub(super) fn label_query<'q>(&'q self, state: &'q State) -> Option<LabelQuery<'q>> {
        state.label_query(self.first).map(|query| LabelQuery {
            eval: &self.whole.id,
            question: Some(&self.whole.question),
            later_name: None,
            is_shot: self.is_shot,
            ..query
        })
    }
}

/// Returns the wholes of a state, in the order of their first parts. `includes` selects the decisions. Decisions on single
/// messages have no labels.
pub(super) fn join_parts(
    state: &State,
    includes: impl Fn(&StateDecision) -> bool,
) -> Vec<WholeEval<'_>> {
    let mut wholes: IndexMap<(u32, &str), (&EvalWhole, Vec<usize>)> = IndexMap::new();
    for (at, spec) in state.header.evals.iter().enumerate() {
        if let Some(whole) = &spec.part_of {
            let key = (spec.rubric, whole.id.as_str());
            let (_, parts) = wholes.entry(key).or_insert((whole, Vec::new()));
            parts.push(at);
        }
    }
    let joined = wholes.into_iter().map(|((rubric, id), (whole, parts))| {
        // The first decision of each transcript, the verdict of all, and the number of parts with a verdict.
        let mut joined: IndexMap<u32, (&StateDecision, bool, usize)> = IndexMap::new();
        for decision in parts.iter().flat_map(|at| &state.evals[*at].decisions) {
            if decision.message.is_none() && includes(decision) {
                let (_, passed, decided) = joined
                    .entry(decision.transcript)
                    .or_insert((decision, true, 0));
                *passed &= decision.passed() == Some(true);
                *decided += usize::from(decision.passed().is_some());
            }
        }
        let decisions = joined.into_values().map(|(first, passed, decided)| {
            let transcript = &*state.transcript(first).id;
            let mut specs = parts.iter().map(|at| &state.header.evals[*at]);
            WholeDecision {
                whole,
                first,
                verdict: (decided == parts.len()).then_some(passed),
                is_shot: specs.any(|spec| spec.is_shot(transcript)),
            }
        });
        WholeEval {
            rubric,
            id,
            decisions: decisions.collect(),
        }
    });
    joined.collect()
}
