//! The eval that the progress screen counts, and its threshold, which keys move.
//!
//! Responsible for the moved threshold and the order to write it. Does not count; the preview does.

use crate::compare::ThresholdPreview;
use crate::report::format_threshold;
use crate::tui::effect::Effect;
use crate::tui::history_view::RubricEditOrder;
use crate::tui::state::App;
use crate::tui::state::progress::ProgressPane;
use crate::tui::state::saves::EvalName;

/// The step of the arrow keys.
const FINE_STEP: f64 = 0.01;
/// The step of `h` and `l`.
const COARSE_STEP: f64 = 0.05;
/// The first threshold of an eval without a bound.
const FIRST_THRESHOLD: f64 = 0.5;

/// The step by which a key moves the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThresholdStep {
    /// `h` and `l`.
    Coarse,
    /// The arrow keys.
    Fine,
}

impl ThresholdStep {
    fn size(self) -> f64 {
        match self {
            Self::Coarse => COARSE_STEP,
            Self::Fine => FINE_STEP,
        }
    }
}

/// `.` and `,`: goes through the evals of the newest state, with all evals between the last and the first. From the
/// scores, it goes through the evals with scores.
pub(super) fn choose_eval(app: &mut App, forward: bool) -> Vec<Effect> {
    let screen = &mut app.progress;
    let Some(newest) = screen.view.newest() else {
        return Vec::new();
    };
    let state = &newest.state;
    let count = state.header.evals.len();
    // 0 means all evals.
    let at = screen.eval_position().map_or(0, |at| at + 1);
    let step = if forward { 1 } else { count };
    let only_scored =
        screen.focus == ProgressPane::Scores && screen.scores.iter().any(Result::is_ok);
    let has_scores = |eval: usize| screen.scores.get(eval).is_some_and(Result::is_ok);
    let is_wanted = |next: &usize| !only_scored || next.checked_sub(1).is_some_and(has_scores);
    let mut others = (1..=count + 1).map(|steps| (at + steps * step) % (count + 1));
    let next = others.find(is_wanted).unwrap_or(at);
    screen.eval = next.checked_sub(1).map(|at| {
        let spec = &state.header.evals[at];
        EvalName {
            rubric: state.rubric_id(spec).to_owned(),
            eval: spec.id.clone(),
        }
    });
    screen.threshold = None;
    screen.update_flips();
    Vec::new()
}

/// `h`, `l`: moves the threshold to the next multiple of the step.
pub(super) fn move_threshold(app: &mut App, step: ThresholdStep, up: bool) -> Vec<Effect> {
    let screen = &mut app.progress;
    let Ok(preview) = screen.preview() else {
        return Vec::new();
    };
    let moved = match screen.threshold.or(preview.current) {
        Some(from) => next_multiple(from, step.size(), up).clamp(0.0, 1.0),
        None => FIRST_THRESHOLD,
    };
    screen.threshold = Some(moved).filter(|moved| !is_current(preview, *moved));
    Vec::new()
}

/// Returns true if a threshold is the one in the rubric.
fn is_current(preview: &ThresholdPreview, threshold: f64) -> bool {
    preview
        .current
        .is_some_and(|current| (current - threshold).abs() < FINE_STEP / 100.0)
}

fn next_multiple(from: f64, step: f64, up: bool) -> f64 {
    // A number that is a multiple except for rounding counts as one.
    let tolerance = 1e-6;
    let steps = if up {
        (from / step + tolerance).floor() + 1.0
    } else {
        (from / step - tolerance).ceil() - 1.0
    };
    // Two decimals, so that the rubric gets 0.15 and not 0.15000000000000002.
    (steps * step * 100.0).round() / 100.0
}

/// Returns the order to write the moved threshold into the rubric; `None` if it is not moved. A rubric that is not open
/// has no file to write.
pub(super) fn plan_write(app: &App) -> Option<Result<RubricEditOrder, String>> {
    let screen = &app.progress;
    let (value, name) = (screen.threshold?, screen.eval.clone()?);
    let bound = screen.preview().ok()?.bound.as_str();
    let path = app.workspace().and_then(|workspace| {
        let (rubric, _) = workspace.find_eval(&name.rubric, &name.eval)?;
        Some(rubric.path.clone())
    });
    let Some(path) = path else {
        return Some(Err(format!(
            "the open rubrics have no eval {}: {bound} {} is not written",
            name.eval,
            format_threshold(value)
        )));
    };
    Some(Ok(RubricEditOrder::SetBound {
        path,
        eval: name.eval,
        bound,
        value,
    }))
}
