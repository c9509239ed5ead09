//! The computation of an eval's figures from a copy of its decisions.
//!
//! Pure, so that another thread can do it: `runtime::figures` calls it, and `update::figures` orders it.

use super::history_view::Shared;
use super::state::cells::FigureDecision;
use super::state::labelling::ScreenFigures;
use crate::compare::statistics::{Confidence, RepeatedCell, self_flip_rate};
use crate::compare::{LabelledDecision, ReferenceFigures, compute_eval_figures, list_by_reference};
use crate::model::RecordedDraw;

/// The decisions of an eval, and the draws of the workspace.
#[derive(Debug, Clone)]
pub(crate) struct FiguresInput {
    pub(crate) rubric: String,
    pub(crate) eval: String,
    /// The eval that code decides and that this one names as its reference.
    pub(crate) reference: Option<String>,
    pub(crate) decisions: Vec<FigureDecision>,
    pub(crate) draws: Shared<Vec<RecordedDraw>>,
    /// The number of stale verdicts.
    pub(crate) stale: u64,
}

/// Computes the figures, as `dicta agree` does.
pub(crate) fn compute_screen_figures(input: &FiguresInput) -> ScreenFigures {
    let draws = &input.draws;
    let figures = compute_eval_figures(&input.rubric, &input.eval, draws, Confidence::P95, |add| {
        for decision in &input.decisions {
            add(&LabelledDecision {
                transcript: &decision.transcript,
                verdict: decision.verdict,
                score: decision.score,
                label: decision.label,
                people: &list_by_reference(&decision.people),
                judges: &list_by_reference(&decision.judges),
            });
        }
    });
    let repeats = input.decisions.iter().filter_map(|one| one.repeats);
    let repeats: Vec<RepeatedCell> = repeats.collect();
    let own_repeats = input.decisions.iter().filter_map(|one| one.own_repeats);
    let own_repeats: Vec<RepeatedCell> = own_repeats.collect();
    let reference = input.reference.clone().map(|reference| {
        let names = (input.rubric.clone(), input.eval.clone(), reference);
        let verdicts = input.decisions.iter();
        let verdicts = verdicts.filter_map(|one| Some((one.verdict?, one.reference)));
        ReferenceFigures::count(names, verdicts, Confidence::P95)
    });
    ScreenFigures {
        figures,
        reference,
        noise: self_flip_rate(&repeats, Confidence::P95)
            .or_else(|_| self_flip_rate(&own_repeats, Confidence::P95)),
        stale: input.stale,
    }
}
