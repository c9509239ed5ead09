//! The changes of an edit, by eval: the difference between the headers of two revisions.
//!
//! Responsible for the changes that `dicta history` and the progress screen name. Does not compare verdicts.

use super::plan::match_evals;
use crate::event::{EvalSpec, JudgeSpec, RunHeader};
use crate::model::{Digest, ScoreBounds};

/// The change of one eval or rubric between two revisions.
#[derive(Debug, Clone, PartialEq)]
pub struct EvalEdit {
    /// The id of the rubric, in the newer revision if it exists there.
    pub rubric: String,
    /// The id of the eval in the newer revision; of a removed eval, its last id. Empty for a change of the rubric
    /// itself.
    pub eval: String,
    /// The change.
    pub kind: EvalEditKind,
}

/// The kind of a change.
#[derive(Debug, Clone, PartialEq)]
pub enum EvalEditKind {
    /// The eval is new.
    New,
    /// The eval was removed.
    Removed,
    /// The eval has another id.
    Renamed {
        /// The earlier id, with the rubric if that changed: `rubric/eval`.
        from: String,
    },
    /// The question that labels answer changed: criteria, scoring guide or scale.
    Question,
    /// Other params changed, such as the model, examples for the judge, or the params of a code check.
    Params,
    /// The bounds of the score changed.
    Bounds {
        /// The earlier bounds.
        from: ScoreBounds,
        /// The new bounds.
        to: ScoreBounds,
    },
    /// `applies_to` or `enabled` changed: other transcripts are judged.
    Scope,
    /// The judge, its settings, its tools, or the panel changed.
    Judge,
    /// The number of repeats changed.
    Repeat,
    /// The weight, `required` or another decision setting changed, or, for a rubric, its threshold.
    Weight,
}

/// Returns true if only params changed that are not part of the question of labels. A code check has params alone.
fn is_same_question(old: &EvalSpec, new: &EvalSpec) -> bool {
    let is_code = new.judge.is_none() && new.panel.is_none();
    is_code || (new.question.is_some() && old.question == new.question)
}

/// Returns the changes from an older to a newer revision, in the order of the newer one; removed evals last.
pub fn find_edits(before: &RunHeader, after: &RunHeader) -> Vec<EvalEdit> {
    let mut edits = Vec::new();
    for rubric in &after.rubrics {
        let old = before.rubrics.iter().find(|one| one.id == rubric.id);
        if old.is_some_and(|old| old.threshold != rubric.threshold) {
            edits.push(EvalEdit {
                rubric: rubric.id.clone(),
                eval: String::new(),
                kind: EvalEditKind::Weight,
            });
        }
    }
    let matched = match_evals(before.into(), after.into());
    for (eval, from) in after.evals.iter().zip(&matched) {
        let rubric = rubric_id(after, eval);
        let mut push = |kind| {
            edits.push(EvalEdit {
                rubric: rubric.to_owned(),
                eval: eval.id.clone(),
                kind,
            });
        };
        let Some(old) = from.and_then(|at| before.evals.get(at)) else {
            push(EvalEditKind::New);
            continue;
        };
        let old_rubric = rubric_id(before, old);
        if old_rubric != rubric {
            let from = format!("{old_rubric}/{}", old.id);
            push(EvalEditKind::Renamed { from });
        } else if old.id != eval.id {
            let from = old.id.clone();
            push(EvalEditKind::Renamed { from });
        }
        if old.digest != eval.digest {
            push(if is_same_question(old, eval) {
                EvalEditKind::Params
            } else {
                EvalEditKind::Question
            });
        }
        let bounds = |eval: &EvalSpec| ScoreBounds::from_decision_settings(&eval.decision_settings);
        let (old_bounds, new_bounds) = (bounds(old), bounds(eval));
        if old_bounds != new_bounds {
            push(EvalEditKind::Bounds {
                from: old_bounds,
                to: new_bounds,
            });
        }
        // Headers of earlier formats do not describe the scope.
        if old.scope != eval.scope && before.revision.is_some() {
            push(EvalEditKind::Scope);
        }
        if call_digests(before, old) != call_digests(after, eval)
            || old.panel.as_ref().map(|panel| panel.rule)
                != eval.panel.as_ref().map(|panel| panel.rule)
        {
            push(EvalEditKind::Judge);
        }
        if old.repeat != eval.repeat {
            push(EvalEditKind::Repeat);
        }
        let has_other_settings =
            old_bounds == new_bounds && old.decision_settings != eval.decision_settings;
        #[expect(
            clippy::float_cmp,
            reason = "both are numbers as the author wrote them"
        )]
        let has_other_weight = old.weight != eval.weight;
        if has_other_weight || old.required != eval.required || has_other_settings {
            push(EvalEditKind::Weight);
        }
    }
    let gone = (0..before.evals.len()).filter(|at| !matched.contains(&Some(*at)));
    edits.extend(gone.map(|at| EvalEdit {
        rubric: rubric_id(before, &before.evals[at]).to_owned(),
        eval: before.evals[at].id.clone(),
        kind: EvalEditKind::Removed,
    }));
    edits
}

fn rubric_id<'h>(header: &'h RunHeader, eval: &EvalSpec) -> &'h str {
    let rubric = header.rubrics.get(eval.rubric as usize);
    rubric.map_or("", |rubric| rubric.id.as_str())
}

/// Returns the digests of an eval's judges as they are called, in the order of calls.
fn call_digests(header: &RunHeader, eval: &EvalSpec) -> Vec<Option<Digest>> {
    let judges = match &eval.panel {
        Some(panel) => panel.judges.as_slice(),
        None => eval.judge.as_slice(),
    };
    judges
        .iter()
        .map(|ix| header.judges.get(*ix as usize).map(JudgeSpec::call_digest))
        .collect()
}
