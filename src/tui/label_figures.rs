//! The computation of an eval's figures: of the live session from a copy of its decisions, or of an opened state.
//!
//! Pure, so that another thread can do it: `runtime::figures` calls it, and `update::figures` orders it.

use std::path::PathBuf;
use std::sync::Arc;

use super::history_view::{Shared, SharedLabels};
use super::state::cells::FigureDecision;
use super::state::labelling::ScreenFigures;
use crate::compare::statistics::{Confidence, RepeatedCell, self_flip_rate};
use crate::compare::{
    EvalFigures, LabelledDecision, ReferenceFigures, compute_eval_figures, compute_label_figures,
    list_by_reference, measure_noise,
};
use crate::model::RecordedDraw;
use crate::record::{EvalPath, NoiseRecords, State};

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

/// An eval of an opened state, and everything that its figures depend on.
#[derive(Debug, Clone)]
pub(crate) struct StateFiguresInput {
    /// The number of the state.
    pub(crate) number: usize,
    /// The position of the eval in the session of the state.
    pub(crate) position: u32,
    pub(crate) eval: EvalPath,
    pub(crate) state: Arc<State>,
    pub(crate) labels: SharedLabels,
    pub(crate) noise: Arc<NoiseRecords>,
    /// The labels file, next to which the draws are.
    pub(crate) labels_file: PathBuf,
}

/// Computes the figures of an eval of a state, as `dicta agree STATE` does. A part without labels gets the figures of its
/// whole. Returns `None` if the state has no such eval.
pub(crate) fn compute_state_figures(
    input: &StateFiguresInput,
    draws: &[RecordedDraw],
) -> Option<ScreenFigures> {
    let StateFiguresInput { eval, state, .. } = input;
    let all = compute_label_figures(state, &input.labels, draws, Confidence::P95, |_| true);
    let find = |id: &str| {
        let is_it = |one: &&EvalFigures| one.rubric == eval.rubric && one.eval == id;
        all.iter().find(is_it)
    };
    let mut figures = find(&eval.eval)?;
    if !figures.has_labels() {
        let specs = state.header.evals.iter();
        let mut own =
            specs.filter(|spec| spec.id == eval.eval && state.rubric_id(spec) == eval.rubric);
        let whole = own.next().and_then(|spec| spec.part_of.as_ref());
        figures = whole.and_then(|whole| find(&whole.id)).unwrap_or(figures);
    }
    let noise = measure_noise(state, &input.noise, Confidence::P95);
    let mut noise = noise.into_iter();
    let noise = noise.find(|one| one.rubric == eval.rubric && one.eval == eval.eval);
    Some(ScreenFigures {
        figures: figures.clone(),
        reference: None,
        noise: match noise {
            Some(noise) => noise.rate.or(noise.own_rate),
            None => self_flip_rate(&[], Confidence::P95),
        },
        // A state has only valid verdicts.
        stale: 0,
    })
}
