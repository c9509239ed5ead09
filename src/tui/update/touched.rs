//! What a save touched: which evals may be decided otherwise now, and what that takes. Pure; knows two workspaces.

use std::collections::HashSet;
use std::sync::LazyLock;

use indexmap::IndexMap;

use crate::handlers::EvalTypeRegistry;
use crate::model::pluralize;
use crate::rubric::{Eval, EvalTypeCatalog as _, Example, JudgeAssignment, Rubric};
use crate::run::judge_digest;
use crate::tui::model::saves::EvalName;
use crate::workspace::Workspace;

/// The eval types that a judge decides.
static JUDGED: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let registry = EvalTypeRegistry::builtin();
    let kinds = registry.eval_types().into_iter();
    kinds.filter(|kind| kind.judged).map(|k| k.name).collect()
});

/// How an eval was touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Decided by code: it is simply decided again.
    Check,
    /// Its recorded scores are decided otherwise; no judge is asked.
    Decides,
    /// Judged anew by a judge that costs nothing.
    Free,
    /// Judged anew by a judge that costs, or may.
    Costly,
}

/// An eval that was touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Touched {
    pub(super) name: EvalName,
    pub(super) how: How,
    /// For judged ones.
    pub(super) judge: Option<String>,
    /// What only decides is another than it was.
    pub(super) decides: bool,
}

/// What differs between two states of a workspace, in the order of the newer one's files. Evals that are gone are not
/// among them: there is nothing to decide.
pub(super) fn touched(old: &Workspace, new: &Workspace) -> Vec<Touched> {
    let before: IndexMap<(&str, &str), (&Rubric, &Eval)> = evals(old).collect();
    evals(new)
        .filter_map(|((rubric, eval), (of, now))| {
            let was = before.get(&(rubric, eval)).copied();
            let how = how(was, (of, now), old, new)?;
            // What several judges said already may be enough for how they decide now.
            let decides = was.is_some_and(|(was_of, was)| {
                was.decision_settings != now.decision_settings
                    || panel(was_of, was) != panel(of, now)
            });
            let judged = JUDGED.contains(now.eval_type.as_str());
            Some(Touched {
                name: EvalName {
                    rubric: rubric.to_owned(),
                    eval: eval.to_owned(),
                },
                how,
                judge: judged
                    .then(|| costly(of, now, new).map(str::to_owned))
                    .flatten(),
                decides,
            })
        })
        .collect()
}

/// Where a save goes on with an earlier one that began with `base`: takes away evals that come back as they were then, if
/// what was decided of them still `holds`.
pub(super) fn since(
    base: &Workspace,
    old: &Workspace,
    new: &Workspace,
    all: &mut Vec<Touched>,
    holds: impl Fn(&EvalName) -> bool,
) {
    let then = touched(base, new);
    let comes_back = |name: &EvalName| !has(old, name) && has(base, name);
    all.retain_mut(|one| {
        if !comes_back(&one.name) || !holds(&one.name) {
            return true;
        }
        let same = then.iter().find(|then| then.name == one.name);
        if let Some(then) = same {
            one.how = then.how;
        }
        same.is_some()
    });
}

/// Whether there is such an eval.
pub(super) fn has(workspace: &Workspace, name: &EvalName) -> bool {
    let mut all = evals(workspace);
    all.any(|((rubric, eval), _)| rubric == name.rubric && eval == name.eval)
}

/// Whether evals of `base` that `old` lacks are there again.
pub(super) fn back(base: &Workspace, old: &Workspace, new: &Workspace) -> bool {
    gone(base, old) > gone(base, new)
}

/// How many evals are gone.
pub(super) fn gone(old: &Workspace, new: &Workspace) -> usize {
    let now: HashSet<(&str, &str)> = evals(new).map(|(name, _)| name).collect();
    evals(old).filter(|(name, _)| !now.contains(name)).count()
}

/// What changed where no eval did: a sentence; `None` if it was nothing but comments and layout.
pub(super) fn otherwise(old: &Workspace, new: &Workspace, gone: usize) -> Option<String> {
    if gone > 0 {
        let evals = pluralize(gone as u64, "eval");
        let are = if gone == 1 { "is" } else { "are" };
        return Some(format!("{evals} {are} gone, nothing to judge again"));
    }
    let weighs = |workspace: &Workspace| -> Vec<_> {
        let all = evals(workspace);
        all.map(|(_, (rubric, eval))| (rubric.threshold, eval.weight, eval.required))
            .collect()
    };
    if weighs(old) != weighs(new) {
        return Some("only how rubrics are scored changed, nothing to judge again".to_owned());
    }
    let mut pairs = evals(old).zip(evals(new));
    let kept =
        pairs.all(|((_, (_, was)), (_, (_, is)))| same_examples(&was.examples, &is.examples));
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
pub(super) fn same_examples(was: &[Example], is: &[Example]) -> bool {
    let said = |one: &Example| (one.input.clone(), one.expect, one.why.clone());
    was.iter().map(said).eq(is.iter().map(said))
}

/// Whether a judge decides an eval.
pub(super) fn is_judged(eval: &Eval) -> bool {
    JUDGED.contains(eval.eval_type.as_str())
}

/// Whether the judge of an eval may be asked by itself, and which that is.
pub(super) fn how_judged<'w>(
    rubric: &'w Rubric,
    eval: &'w Eval,
    workspace: &'w Workspace,
) -> (How, Option<&'w str>) {
    let judges = judges(rubric, eval, workspace);
    let costly = judges.iter().find(|name| !is_free(name, workspace));
    let free = costly.is_none() && !judges.is_empty();
    let judge = costly.or(judges.first()).copied();
    (if free { How::Free } else { How::Costly }, judge)
}

fn is_free(name: &str, workspace: &Workspace) -> bool {
    let config = workspace.judges.get(name);
    config.is_some_and(crate::model::JudgeConfig::is_free)
}

/// The judge that is named where one is: of several the first that costs.
fn costly<'w>(rubric: &'w Rubric, eval: &'w Eval, workspace: &'w Workspace) -> Option<&'w str> {
    how_judged(rubric, eval, workspace).1
}

/// Several judges of an eval, and how they decide.
fn panel<'w>(rubric: &'w Rubric, eval: &'w Eval) -> Option<JudgeAssignment<'w>> {
    let by = eval.assign_judges(rubric, None)?;
    by.rule.is_some().then_some(by)
}

fn evals(workspace: &Workspace) -> impl Iterator<Item = ((&str, &str), (&Rubric, &Eval))> {
    workspace.rubrics.iter().flat_map(|rubric| {
        let evals = rubric.evals.iter();
        evals.map(move |eval| ((&*rubric.id, &*eval.id), (&**rubric, eval)))
    })
}

fn judges<'w>(rubric: &'w Rubric, eval: &'w Eval, workspace: &'w Workspace) -> Vec<&'w str> {
    let by = eval.assign_judges(rubric, workspace.judge.as_deref());
    by.map(|by| by.judges).unwrap_or_default()
}

fn how(
    was: Option<(&Rubric, &Eval)>,
    (rubric, eval): (&Rubric, &Eval),
    old: &Workspace,
    new: &Workspace,
) -> Option<How> {
    let judged = JUDGED.contains(eval.eval_type.as_str());
    // Which cells there are, and what is asked.
    let same = was.is_some_and(|(was_rubric, was)| {
        was.digest == eval.digest
            && was.enabled == eval.enabled
            && was.applies_to == eval.applies_to
            && was_rubric.applies_to == rubric.applies_to
            && (!judged
                || (was.repeat == eval.repeat
                    && old.replayed_evidence_run == new.replayed_evidence_run
                    && same_judge((was_rubric, was, old), (rubric, eval, new))))
    });
    let decides = was.is_some_and(|(_, was)| was.decision_settings != eval.decision_settings);
    match (same, judged) {
        (true, true) if decides => Some(How::Decides),
        (true, false) if decides => Some(How::Check),
        (true, _) => None,
        (false, false) => Some(How::Check),
        (false, true) => Some(how_judged(rubric, eval, new).0),
    }
}

fn same_judge(
    (was_rubric, was, old): (&Rubric, &Eval, &Workspace),
    (rubric, eval, new): (&Rubric, &Eval, &Workspace),
) -> bool {
    let digests = |rubric, eval, workspace: &Workspace| -> Vec<_> {
        let names = judges(rubric, eval, workspace).into_iter();
        let digest = |name: &str| workspace.judges.get(name).map(judge_digest);
        names.map(|name| (name.to_owned(), digest(name))).collect()
    };
    panel(was_rubric, was) == panel(rubric, eval)
        && digests(was_rubric, was, old) == digests(rubric, eval, new)
}
