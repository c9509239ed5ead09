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
    New {
        /// The id of the removed eval that it probably is, renamed and edited at once; see [`pair_replaced_evals`].
        perhaps: Option<String>,
    },
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

/// The place of an eval in its list, for [`pair_replaced_evals`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvalPlace<'e> {
    /// The id of the rubric.
    pub rubric: &'e str,
    /// The type of the eval.
    pub eval_type: &'e str,
}

/// Returns, for each eval of the newer list, the removed eval of the older one that it probably is: renamed and edited at
/// once. It has the same rubric, the same type, and the same place between the evals that continue. `matched` has the
/// older position of each eval that continues. This is a guess for people: verdicts, flips and labels do not follow it.
pub fn pair_replaced_evals(
    before: &[EvalPlace<'_>],
    after: &[EvalPlace<'_>],
    matched: &[Option<usize>],
) -> Vec<Option<usize>> {
    let mut found = vec![None; after.len()];
    let mut taken = vec![false; before.len()];
    for (at, place) in after.iter().enumerate() {
        if matched[at].is_some() {
            continue;
        }
        let same_rubric = |other: &usize| after[*other].rubric == place.rubric;
        // The evals around it bound the places where the removed one was.
        let mut earlier = (0..at).rev().filter(same_rubric);
        let first = earlier
            .find_map(|other| matched[other])
            .map_or(0, |old| old + 1);
        let mut later = (at + 1..after.len()).filter(same_rubric);
        let end = later
            .find_map(|other| matched[other])
            .unwrap_or(before.len());
        let mut places = first..end.max(first);
        let removed = places
            .find(|old| !taken[*old] && before[*old] == *place && !matched.contains(&Some(*old)));
        if let Some(old) = removed {
            taken[old] = true;
            found[at] = Some(old);
        }
    }
    found
}

fn eval_places(header: &RunHeader) -> Vec<EvalPlace<'_>> {
    let evals = header.evals.iter();
    let place = |eval| EvalPlace {
        rubric: rubric_id(header, eval),
        eval_type: &eval.eval_type,
    };
    evals.map(place).collect()
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
    let replaced = pair_replaced_evals(&eval_places(before), &eval_places(after), &matched);
    for ((eval, from), replaced) in after.evals.iter().zip(&matched).zip(replaced) {
        let rubric = rubric_id(after, eval);
        let mut push = |kind| {
            edits.push(EvalEdit {
                rubric: rubric.to_owned(),
                eval: eval.id.clone(),
                kind,
            });
        };
        let Some(old) = from.and_then(|at| before.evals.get(at)) else {
            let perhaps = replaced.map(|old| before.evals[old].id.clone());
            push(EvalEditKind::New { perhaps });
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
