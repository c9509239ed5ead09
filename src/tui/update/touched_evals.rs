//! What a save touched: which evals may be decided otherwise now, and what that takes. Pure; knows two workspaces.

use std::collections::HashSet;
use std::sync::LazyLock;

use indexmap::IndexMap;

use crate::handlers::EvalTypeRegistry;
use crate::model::pluralize;
use crate::rubric::{Eval, EvalTypeCatalog as _, Example, JudgeAssignment, Rubric};
use crate::run::judge_digest;
use crate::tui::state::saves::EvalName;
use crate::workspace::Workspace;

/// The eval types that a judge decides.
static JUDGED_EVAL_TYPES: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let registry = EvalTypeRegistry::builtin();
    let kinds = registry.eval_types().into_iter();
    kinds.filter(|kind| kind.judged).map(|k| k.name).collect()
});

/// How an eval was touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TouchKind {
    /// Decided by code: it is simply decided again.
    Check,
    /// Its recorded scores are decided otherwise; no judge is asked.
    Redecided,
    /// Judged anew by a judge that costs nothing.
    Free,
    /// Judged anew by a judge that costs, or may.
    Costly,
}

/// An eval that was touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TouchedEval {
    pub(super) name: EvalName,
    pub(super) kind: TouchKind,
    /// For judged ones.
    pub(super) judge: Option<String>,
    /// What only decides is another than it was.
    pub(super) decision_changed: bool,
}

/// What differs between two states of a workspace, in the order of the newer one's files. Evals that are gone are not
/// among them: there is nothing to decide.
pub(super) fn find_touched(old: &Workspace, new: &Workspace) -> Vec<TouchedEval> {
    let before: IndexMap<(&str, &str), (&Rubric, &Eval)> = list_evals(old).collect();
    list_evals(new)
        .filter_map(|((rubric, eval), (of, now))| {
            let was = before.get(&(rubric, eval)).copied();
            let how = classify_touch(was, (of, now), old, new)?;
            // What several judges said already may be enough for how they decide now.
            let decides = was.is_some_and(|(was_of, was)| {
                was.decision_settings != now.decision_settings
                    || find_panel(was_of, was) != find_panel(of, now)
            });
            let judged = JUDGED_EVAL_TYPES.contains(now.eval_type.as_str());
            Some(TouchedEval {
                name: EvalName {
                    rubric: rubric.to_owned(),
                    eval: eval.to_owned(),
                },
                kind: how,
                judge: judged
                    .then(|| find_costly_judge(of, now, new).map(str::to_owned))
                    .flatten(),
                decision_changed: decides,
            })
        })
        .collect()
}

/// Where a save goes on with an earlier one that began with `base`: takes away evals that come back as they were then, if
/// what was decided of them still `holds`.
pub(super) fn drop_restored(
    base: &Workspace,
    old: &Workspace,
    new: &Workspace,
    all: &mut Vec<TouchedEval>,
    holds: impl Fn(&EvalName) -> bool,
) {
    let then = find_touched(base, new);
    let comes_back = |name: &EvalName| !has_eval(old, name) && has_eval(base, name);
    all.retain_mut(|one| {
        if !comes_back(&one.name) || !holds(&one.name) {
            return true;
        }
        let same = then.iter().find(|then| then.name == one.name);
        if let Some(then) = same {
            one.kind = then.kind;
        }
        same.is_some()
    });
}

/// Whether there is such an eval.
pub(super) fn has_eval(workspace: &Workspace, name: &EvalName) -> bool {
    let mut all = list_evals(workspace);
    all.any(|((rubric, eval), _)| rubric == name.rubric && eval == name.eval)
}

/// Whether evals of `base` that `old` lacks are there again.
pub(super) fn are_evals_back(base: &Workspace, old: &Workspace, new: &Workspace) -> bool {
    count_removed(base, old) > count_removed(base, new)
}

/// How many evals are gone.
pub(super) fn count_removed(old: &Workspace, new: &Workspace) -> usize {
    let now: HashSet<(&str, &str)> = list_evals(new).map(|(name, _)| name).collect();
    list_evals(old)
        .filter(|(name, _)| !now.contains(name))
        .count()
}

/// What changed where no eval did: a sentence; `None` if it was nothing but comments and layout.
pub(super) fn describe_other_changes(
    old: &Workspace,
    new: &Workspace,
    gone: usize,
) -> Option<String> {
    if gone > 0 {
        let evals = pluralize(gone as u64, "eval");
        let are = if gone == 1 { "is" } else { "are" };
        return Some(format!("{evals} {are} gone, nothing to judge again"));
    }
    let weighs = |workspace: &Workspace| -> Vec<_> {
        let all = list_evals(workspace);
        all.map(|(_, (rubric, eval))| (rubric.threshold, eval.weight, eval.required))
            .collect()
    };
    if weighs(old) != weighs(new) {
        return Some("only how rubrics are scored changed, nothing to judge again".to_owned());
    }
    let mut pairs = list_evals(old).zip(list_evals(new));
    let kept =
        pairs.all(|((_, (_, was)), (_, (_, is)))| has_same_examples(&was.examples, &is.examples));
    if !kept {
        return Some("only examples changed, nothing to judge again".to_owned());
    }
    if old.labels != new.labels {
        return Some("labels are read again, nothing to judge again".to_owned());
    }
    if old.transcripts != new.transcripts {
        return Some("other transcripts: R judges what is new".to_owned());
    }
    if old.field_maps != new.field_maps {
        return Some("transcripts are read in another way: R judges what they are now".to_owned());
    }
    let settings = |w: &Workspace| {
        (
            w.limits.clone(),
            w.runs.clone(),
            w.replayed_evidence_run.clone(),
        )
    };
    (settings(old) != settings(new) || old.judges != new.judges)
        .then(|| "the settings hold from the next run on, nothing to judge again".to_owned())
}

/// Whether examples say the same; where they stand is no part of them.
pub(super) fn has_same_examples(was: &[Example], is: &[Example]) -> bool {
    let said = |one: &Example| (one.input.clone(), one.expect, one.why.clone());
    was.iter().map(said).eq(is.iter().map(said))
}

/// Whether a judge decides an eval.
pub(super) fn is_judged(eval: &Eval) -> bool {
    JUDGED_EVAL_TYPES.contains(eval.eval_type.as_str())
}

/// Whether the judge of an eval may be asked by itself, and which that is.
pub(super) fn classify_judged<'w>(
    rubric: &'w Rubric,
    eval: &'w Eval,
    workspace: &'w Workspace,
) -> (TouchKind, Option<&'w str>) {
    let judges = list_judges(rubric, eval, workspace);
    let costly = judges.iter().find(|name| !is_judge_free(name, workspace));
    let free = costly.is_none() && !judges.is_empty();
    let judge = costly.or(judges.first()).copied();
    (
        if free {
            TouchKind::Free
        } else {
            TouchKind::Costly
        },
        judge,
    )
}

fn is_judge_free(name: &str, workspace: &Workspace) -> bool {
    let config = workspace.judges.get(name);
    config.is_some_and(crate::model::JudgeConfig::is_free)
}

/// The judge that is named where one is: of several the first that costs.
fn find_costly_judge<'w>(
    rubric: &'w Rubric,
    eval: &'w Eval,
    workspace: &'w Workspace,
) -> Option<&'w str> {
    classify_judged(rubric, eval, workspace).1
}

/// Several judges of an eval, and how they decide.
fn find_panel<'w>(rubric: &'w Rubric, eval: &'w Eval) -> Option<JudgeAssignment<'w>> {
    let by = eval.assign_judges(rubric, None)?;
    by.rule.is_some().then_some(by)
}

fn list_evals(workspace: &Workspace) -> impl Iterator<Item = ((&str, &str), (&Rubric, &Eval))> {
    workspace.rubrics.iter().flat_map(|rubric| {
        let evals = rubric.evals.iter();
        evals.map(move |eval| ((&*rubric.id, &*eval.id), (&**rubric, eval)))
    })
}

fn list_judges<'w>(rubric: &'w Rubric, eval: &'w Eval, workspace: &'w Workspace) -> Vec<&'w str> {
    let by = eval.assign_judges(rubric, workspace.judge.as_deref());
    by.map(|by| by.judges).unwrap_or_default()
}

fn classify_touch(
    was: Option<(&Rubric, &Eval)>,
    (rubric, eval): (&Rubric, &Eval),
    old: &Workspace,
    new: &Workspace,
) -> Option<TouchKind> {
    let judged = JUDGED_EVAL_TYPES.contains(eval.eval_type.as_str());
    // Which cells there are, and what is asked.
    let same = was.is_some_and(|(was_rubric, was)| {
        was.digest == eval.digest
            && was.enabled == eval.enabled
            && was.applies_to == eval.applies_to
            && was_rubric.applies_to == rubric.applies_to
            && (!judged
                || (was.repeat == eval.repeat
                    && old.replayed_evidence_run == new.replayed_evidence_run
                    && has_same_judge((was_rubric, was, old), (rubric, eval, new))))
    });
    let decides = was.is_some_and(|(_, was)| was.decision_settings != eval.decision_settings);
    match (same, judged) {
        (true, true) if decides => Some(TouchKind::Redecided),
        (true, false) if decides => Some(TouchKind::Check),
        (true, _) => None,
        (false, false) => Some(TouchKind::Check),
        (false, true) => Some(classify_judged(rubric, eval, new).0),
    }
}

fn has_same_judge(
    (was_rubric, was, old): (&Rubric, &Eval, &Workspace),
    (rubric, eval, new): (&Rubric, &Eval, &Workspace),
) -> bool {
    let digests = |rubric, eval, workspace: &Workspace| -> Vec<_> {
        let names = list_judges(rubric, eval, workspace).into_iter();
        let digest = |name: &str| workspace.judges.get(name).map(judge_digest);
        names.map(|name| (name.to_owned(), digest(name))).collect()
    };
    find_panel(was_rubric, was) == find_panel(rubric, eval)
        && digests(was_rubric, was, old) == digests(rubric, eval, new)
}
