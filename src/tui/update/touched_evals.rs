//! The evals that a save touched, and how each is decided again. Pure: it compares two workspaces.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use indexmap::IndexMap;

use crate::diag::{LoadedFile, yaml};
use crate::handlers::EvalTypeRegistry;
use crate::model::{Digest, ProviderKind, is_api_key_name, pluralize};
use crate::record::{EvalPlace, pair_replaced_evals};
use crate::rubric::{Eval, EvalTypeCatalog as _, Example, JudgeAssignment, Rubric, canonical_json};
use crate::run::judge_digest;
use crate::tui::state::edit_report::EvalName;
use crate::workspace::Workspace;

/// The eval types that a judge decides.
static JUDGED_EVAL_TYPES: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let registry = EvalTypeRegistry::builtin();
    let kinds = registry.eval_types().into_iter();
    kinds.filter(|kind| kind.judged).map(|k| k.name).collect()
});

/// The work that a touched eval needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TouchKind {
    /// Code decides it, so it is decided again.
    Check,
    /// Its recorded scores give new decisions without a judge call.
    Redecided,
    /// A free judge judges it again.
    Free,
    /// A judge that costs money, or may, judges it again.
    Costly,
}

/// An eval that a save touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TouchedEval {
    pub(super) name: EvalName,
    pub(super) kind: TouchKind,
    /// The judge, for judged evals.
    pub(super) judge: Option<String>,
    /// True if a decision setting changed.
    pub(super) decision_changed: bool,
}

/// Returns true if the two versions differ in anything that determines verdicts. Comments, layout, examples, labels and
/// transcripts do not count.
pub(super) fn changes_revision(old: &Workspace, new: &Workspace) -> bool {
    /// An eval with its judges.
    struct Question<'w> {
        name: (&'w str, &'w str),
        eval: &'w Eval,
        rubric: &'w Rubric,
        judges: Vec<Option<Digest>>,
        panel: Option<JudgeAssignment<'w>>,
    }
    fn list_questions(workspace: &Workspace) -> impl Iterator<Item = Question<'_>> {
        list_evals(workspace).map(|(name, (rubric, eval))| {
            let has_judge = is_judged(eval);
            let judges = list_judges(rubric, eval, workspace).into_iter();
            Question {
                name,
                eval,
                rubric,
                judges: judges
                    .filter(|_| has_judge)
                    .map(|name| workspace.judges.get(name).map(judge_digest))
                    .collect(),
                panel: find_panel(rubric, eval).filter(|_| has_judge),
            }
        })
    }
    let is_same = |a: &Question<'_>, b: &Question<'_>| {
        let (was, is) = (a.eval, b.eval);
        a.name == b.name
            && was.digest == is.digest
            && was.decision_settings == is.decision_settings
            && (was.weight, was.required, was.enabled) == (is.weight, is.required, is.enabled)
            && was.applies_to == is.applies_to
            && a.rubric.applies_to == b.rubric.applies_to
            && (!is_judged(is) || was.repeat == is.repeat)
            && a.judges == b.judges
            && a.panel.as_ref().map(|panel| panel.rule) == b.panel.as_ref().map(|panel| panel.rule)
    };
    let rubrics = |workspace: &Workspace| -> Vec<(String, Option<f64>)> {
        let rubrics = workspace.rubrics.iter();
        rubrics
            .map(|rubric| (rubric.id.clone(), rubric.threshold))
            .collect()
    };
    let (before, after): (Vec<_>, Vec<_>) =
        (list_questions(old).collect(), list_questions(new).collect());
    let same = before.len() == after.len()
        && before.iter().zip(&after).all(|(a, b)| is_same(a, b))
        && rubrics(old) == rubrics(new);
    let uses_tools = |workspace: &Workspace| {
        let mut judges = workspace.judges.values();
        judges.any(|judge| !workspace.tools.source_names(&judge.tools).is_empty())
    };
    !same
        || (!has_same_tools(&old.tools.recorded_files, &new.tools.recorded_files)
            && (uses_tools(old) || uses_tools(new)))
}

/// Returns true if the tools files define the same. Comments and layout do not count.
fn has_same_tools(old: &[LoadedFile], new: &[LoadedFile]) -> bool {
    let texts = |files: &[LoadedFile]| -> Vec<_> {
        files.iter().map(|file| Arc::clone(&file.text)).collect()
    };
    if texts(old) == texts(new) {
        return true;
    }
    let define = |files: &[LoadedFile]| -> Vec<String> {
        let files = files.iter();
        files
            .map(
                |file| match yaml::read_all_documents(&file.text, &file.path) {
                    Ok(documents) => {
                        let values = documents.iter().map(|one| canonical_json(&one.value));
                        values.collect::<Vec<_>>().join("\n")
                    }
                    Err(_) => file.text.to_string(),
                },
            )
            .collect()
    };
    define(old) == define(new)
}

/// Returns the evals that ask the same question under another name: the old name and the new one.
pub(super) fn find_renames(old: &Workspace, new: &Workspace) -> Vec<(EvalName, EvalName)> {
    let (before, after) = (list_names(old), list_names(new));
    let gone: Vec<((&str, &str), &Eval)> = list_evals(old)
        .filter(|(name, _)| !after.contains(name))
        .map(|(name, (_, eval))| (name, eval))
        .collect();
    // The positions in `gone` of each question, also by rubric, because a new id of a rubric renames all its evals.
    let mut of_question: HashMap<(&Digest, &str), VecDeque<usize>> = HashMap::new();
    let mut of_rubric: HashMap<(&Digest, &str, &str), VecDeque<usize>> = HashMap::new();
    for (at, (name, eval)) in gone.iter().enumerate() {
        let (digest, eval_type) = (&eval.digest, eval.eval_type.as_str());
        let positions = of_question.entry((digest, eval_type)).or_default();
        positions.push_back(at);
        let positions = of_rubric.entry((digest, eval_type, name.0)).or_default();
        positions.push_back(at);
    }
    let mut is_renamed = vec![false; gone.len()];
    let mut renames = Vec::new();
    for (name, (_, eval)) in list_evals(new).filter(|(name, _)| !before.contains(name)) {
        let (digest, eval_type) = (&eval.digest, eval.eval_type.as_str());
        let mut take_first = |positions: Option<&mut VecDeque<usize>>| -> Option<usize> {
            let positions = positions?;
            while let Some(at) = positions.pop_front() {
                // The other map may have the position, too.
                if !std::mem::replace(&mut is_renamed[at], true) {
                    return Some(at);
                }
            }
            None
        };
        // Of several evals with the same question, one of the same rubric comes first.
        let found = take_first(of_rubric.get_mut(&(digest, eval_type, name.0)))
            .or_else(|| take_first(of_question.get_mut(&(digest, eval_type))));
        if let Some(at) = found {
            renames.push((to_name(gone[at].0), to_name(name)));
        }
    }
    renames
}

/// An eval with the ids of its rubric and itself.
type NamedEval<'w> = ((&'w str, &'w str), (&'w Rubric, &'w Eval));

fn list_places<'w>(evals: &[NamedEval<'w>]) -> Vec<EvalPlace<'w>> {
    let evals = evals.iter();
    evals
        .map(|&((rubric, _), (_, eval))| EvalPlace {
            rubric,
            eval_type: &eval.eval_type,
        })
        .collect()
}

/// Returns the new evals that are probably removed ones, renamed and edited at once: the old name and the new one.
pub(super) fn find_replaced(old: &Workspace, new: &Workspace) -> Vec<(EvalName, EvalName)> {
    let renames = find_renames(old, new);
    let old_names: HashMap<(&str, &str), (&str, &str)> = renames
        .iter()
        .map(|(from, to)| ((&*to.rubric, &*to.eval), (&*from.rubric, &*from.eval)))
        .collect();
    let before: Vec<NamedEval<'_>> = list_evals(old).collect();
    let after: Vec<NamedEval<'_>> = list_evals(new).collect();
    let known: HashMap<(&str, &str), usize> =
        before.iter().map(|(name, _)| *name).zip(0..).collect();
    let matched: Vec<Option<usize>> = after
        .iter()
        .map(|(name, _)| known.get(old_names.get(name).unwrap_or(name)).copied())
        .collect();
    let (old_places, new_places) = (list_places(&before), list_places(&after));
    let found = pair_replaced_evals(&old_places, &new_places, &matched);
    let pairs = after.iter().zip(found);
    pairs
        .filter_map(|((name, _), old)| Some((to_name(before[old?].0), to_name(*name))))
        .collect()
}

/// Returns the evals that differ, in the order of the newer files. Removed evals are not included. A renamed eval is
/// compared with itself under its old name.
pub(super) fn find_touched(old: &Workspace, new: &Workspace) -> Vec<TouchedEval> {
    let mut before: IndexMap<(&str, &str), (&Rubric, &Eval)> = list_evals(old).collect();
    let renames = find_renames(old, new);
    for (from, to) in &renames {
        if let Some(was) = before.get(&(&*from.rubric, &*from.eval)).copied() {
            before.insert((&to.rubric, &to.eval), was);
        }
    }
    list_evals(new)
        .filter_map(|((rubric, eval), (rubric_of_eval, now))| {
            let was = before.get(&(rubric, eval)).copied();
            let kind = classify_touch(was, (rubric_of_eval, now), old, new)?;
            // The recorded verdicts of a panel may be enough for its new vote rule.
            let decides = was.is_some_and(|(old_rubric, was)| {
                was.decision_settings != now.decision_settings
                    || find_panel(old_rubric, was) != find_panel(rubric_of_eval, now)
            });
            let judged = JUDGED_EVAL_TYPES.contains(now.eval_type.as_str());
            Some(TouchedEval {
                name: EvalName {
                    rubric: rubric.to_owned(),
                    eval: eval.to_owned(),
                },
                kind,
                // A check has no judge to name.
                judge: judged
                    .then(|| find_costly_judge(rubric_of_eval, now, new).map(str::to_owned))
                    .flatten(),
                decision_changed: decides,
            })
        })
        .collect()
}

/// Removes evals that are the same as in `base` again and whose decisions still hold, according to `holds`.
pub(super) fn drop_restored(
    base: &Workspace,
    old: &Workspace,
    new: &Workspace,
    all: &mut Vec<TouchedEval>,
    holds: impl Fn(&EvalName) -> bool,
) {
    let then = find_touched(base, new).into_iter();
    let then: HashMap<EvalName, TouchKind> = then.map(|one| (one.name, one.kind)).collect();
    let (in_base, in_old) = (list_names(base), list_names(old));
    all.retain_mut(|one| {
        let name = (one.name.rubric.as_str(), one.name.eval.as_str());
        // An earlier save removed the eval, and this save restores it.
        let comes_back = !in_old.contains(&name) && in_base.contains(&name);
        if !comes_back || !holds(&one.name) {
            return true;
        }
        let same = then.get(&one.name);
        // The change is the difference to the state before the pieces, not to the broken one.
        if let Some(kind) = same {
            one.kind = *kind;
        }
        same.is_some()
    });
}

/// Returns the evals by the ids of their rubric and themselves.
pub(super) fn index_evals(workspace: &Workspace) -> HashMap<(&str, &str), &Eval> {
    let evals = list_evals(workspace);
    evals.map(|(name, (_, eval))| (name, eval)).collect()
}

/// Returns the ids of the rubric and of itself of each eval.
pub(super) fn list_names(workspace: &Workspace) -> HashSet<(&str, &str)> {
    list_evals(workspace).map(|(name, _)| name).collect()
}

/// Returns true if all evals of `base` that `old` lacks are in `new` again.
pub(super) fn are_evals_back(base: &Workspace, old: &Workspace, new: &Workspace) -> bool {
    count_removed(base, old) > count_removed(base, new)
}

/// Returns the number of evals that were removed. A renamed eval is not removed.
pub(super) fn count_removed(old: &Workspace, new: &Workspace) -> usize {
    let now = list_names(new);
    let gone = list_evals(old).filter(|(name, _)| !now.contains(name));
    gone.count() - find_renames(old, new).len()
}

/// Returns true if a file changed whose text the workspace does not keep: one with transcripts, or one that a field mapping
/// joins.
pub(super) fn has_changed_data(old: &Workspace, new: &Workspace, changed: &[PathBuf]) -> bool {
    let files = old.files.iter().chain(&new.files);
    let kept: HashSet<&PathBuf> = files.map(|file| &file.path).collect();
    !changed.iter().all(|path| kept.contains(path))
}

/// Describes a change that touched no eval, as a sentence. `None` if only comments or layout changed.
pub(super) fn describe_other_changes(
    old: &Workspace,
    new: &Workspace,
    changed: &[PathBuf],
    gone: usize,
) -> Option<String> {
    if gone > 0 {
        // The most specific reason comes first, because the report has one line.
        let evals = pluralize(gone as u64, "eval");
        let are = if gone == 1 { "is" } else { "are" };
        return Some(format!("{evals} {are} gone, nothing to judge again"));
    }
    let scoring = |workspace: &Workspace| -> Vec<_> {
        let all = list_evals(workspace);
        all.map(|(_, (rubric, eval))| (rubric.threshold, eval.weight, eval.required))
            .collect()
    };
    if scoring(old) != scoring(new) {
        return Some("only how rubrics are scored changed, nothing to judge again".to_owned());
    }
    // Without removed or added evals, both lists have the same order.
    let mut pairs = list_evals(old).zip(list_evals(new));
    let kept =
        pairs.all(|((_, (_, was)), (_, (_, is)))| has_same_examples(&was.examples, &is.examples));
    if !kept {
        return Some("only examples changed, nothing to judge again".to_owned());
    }
    if has_changed_data(old, new, changed) {
        return Some("transcripts are read again: R judges what they are now".to_owned());
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

/// Returns true if the examples are equal except for their positions in the file.
pub(super) fn has_same_examples(was: &[Example], is: &[Example]) -> bool {
    // A position changes with each line above the example.
    let content = |one: &Example| (one.input.clone(), one.expect, one.why.clone());
    was.iter().map(content).eq(is.iter().map(content))
}

/// Returns true if a judge decides the eval.
pub(super) fn is_judged(eval: &Eval) -> bool {
    JUDGED_EVAL_TYPES.contains(eval.eval_type.as_str())
}

/// Returns the kind of judging that an eval needs, and its judge.
pub(super) fn classify_judged<'w>(
    rubric: &'w Rubric,
    eval: &'w Eval,
    workspace: &'w Workspace,
) -> (TouchKind, Option<&'w str>) {
    let judges = list_judges(rubric, eval, workspace);
    let costly = judges.iter().find(|name| !is_judge_free(name, workspace));
    let free = costly.is_none() && !judges.is_empty();
    // A judge that may cost decides for the whole panel, because dicta must ask then.
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

/// Returns the judges of an eval that may cost money: of a jury or cascade all of them.
pub(super) fn list_paid_judges(name: &EvalName, workspace: Option<&Workspace>) -> Vec<String> {
    let Some(workspace) = workspace else {
        return Vec::new();
    };
    let Some((rubric, at)) = workspace.find_eval(&name.rubric, &name.eval) else {
        return Vec::new();
    };
    let judges = list_judges(rubric, &rubric.evals[at], workspace).into_iter();
    let paid = judges.filter(|judge| !is_judge_free(judge, workspace));
    paid.map(str::to_owned).collect()
}

fn is_judge_free(name: &str, workspace: &Workspace) -> bool {
    let config = workspace.judges.get(name);
    config.is_some_and(crate::model::JudgeConfig::is_free)
}

/// Returns the eval's judge; of a panel the first judge that may cost money.
fn find_costly_judge<'w>(
    rubric: &'w Rubric,
    eval: &'w Eval,
    workspace: &'w Workspace,
) -> Option<&'w str> {
    classify_judged(rubric, eval, workspace).1
}

/// Returns the panel of an eval, if it has one.
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

fn to_name((rubric, eval): (&str, &str)) -> EvalName {
    EvalName {
        rubric: rubric.to_owned(),
        eval: eval.to_owned(),
    }
}

pub(super) fn list_judges<'w>(
    rubric: &'w Rubric,
    eval: &'w Eval,
    workspace: &'w Workspace,
) -> Vec<&'w str> {
    let by = workspace.assign_judges(rubric, eval);
    by.map(|by| by.judges).unwrap_or_default()
}

fn classify_touch(
    was: Option<(&Rubric, &Eval)>,
    (rubric, eval): (&Rubric, &Eval),
    old: &Workspace,
    new: &Workspace,
) -> Option<TouchKind> {
    let judged = is_judged(eval);
    // These settings determine the cells and the question that a judge gets.
    let same = was.is_some_and(|(was_rubric, was)| {
        was.digest == eval.digest
            && was.enabled == eval.enabled
            && was.applies_to == eval.applies_to
            && was_rubric.applies_to == rubric.applies_to
            // A check calls no judge, so repeats and judges do not concern it.
            && (!judged
                || (was.repeat == eval.repeat
                    && old.replayed_evidence_run == new.replayed_evidence_run
                    && has_same_judge((was_rubric, was, old), (rubric, eval, new))))
    });
    let decides = was.is_some_and(|(_, was)| was.decision_settings != eval.decision_settings);
    match (same, judged) {
        // Such a judge returns its recorded verdicts again at once. They have no cache key, so no run takes them from the
        // cache.
        (true, true) if decides && has_only_recorded_judges(rubric, eval, new) => {
            Some(classify_judged(rubric, eval, new).0)
        }
        (true, true) if decides => Some(TouchKind::Redecided),
        (true, false) if decides => Some(TouchKind::Check),
        (true, _) => None,
        (false, false) => Some(TouchKind::Check),
        (false, true) => Some(classify_judged(rubric, eval, new).0),
    }
}

/// Returns true if all judges of an eval return verdicts that were recorded, and ask no model.
fn has_only_recorded_judges(rubric: &Rubric, eval: &Eval, workspace: &Workspace) -> bool {
    let judges = list_judges(rubric, eval, workspace);
    let is_recorded = |name: &&str| {
        let judge = workspace.find_judge(name);
        judge.is_some_and(|judge| {
            matches!(judge.provider, ProviderKind::Replay | ProviderKind::Source)
        })
    };
    !judges.is_empty() && judges.iter().all(is_recorded)
}

fn has_same_judge(
    (was_rubric, was, old): (&Rubric, &Eval, &Workspace),
    (rubric, eval, new): (&Rubric, &Eval, &Workspace),
) -> bool {
    let digests = |rubric, eval, workspace: &Workspace| -> Vec<_> {
        let names = list_judges(rubric, eval, workspace).into_iter();
        // Two judges of one name may have different settings, so digests are compared. They omit secrets.
        let settings = |name: &str| {
            let judge = workspace.judges.get(name)?;
            let headers = judge.headers.clone().into_iter();
            let headers = headers.filter(|(name, _)| !is_api_key_name(name));
            let headers: Vec<_> = headers.collect();
            Some((judge_digest(judge), headers, judge.extra_body.clone()))
        };
        names
            .map(|name| (name.to_owned(), settings(name)))
            .collect()
    };
    find_panel(was_rubric, was) == find_panel(rubric, eval)
        && digests(was_rubric, was, old) == digests(rubric, eval, new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{Env, load};

    /// Returns a workspace of rubrics with these ids and evals. All evals ask the same question.
    fn version(rubrics: [(&str, &[&str]); 2]) -> Workspace {
        let dir = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            std::fs::write(dir.path().join(name), text).expect("written");
        };
        write("t.jsonl", "{\"messages\":[]}\n");
        write(
            "dicta.yaml",
            "transcripts: [t.jsonl]\nrubrics: [r-*.yaml]\n",
        );
        for (rubric, evals) in rubrics {
            let evals = evals.iter().map(|eval| {
                format!("  - {{id: {eval}, type: contains, params: {{patterns: [hello]}}}}\n")
            });
            let evals: Vec<String> = evals.collect();
            let text = format!("id: {rubric}\nevals:\n{}", evals.concat());
            write(&format!("r-{rubric}.yaml"), &text);
        }
        let loaded = load(dir.path(), &Env::default(), &EvalTypeRegistry::builtin());
        loaded.unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    #[test]
    fn eval_with_the_same_question_is_renamed_first_in_its_own_rubric_and_only_once() {
        let old = version([("one", &["stays", "a"]), ("two", &["stays", "b", "c"])]);
        let new = version([("one", &["stays"]), ("two", &["stays", "d", "e", "f", "g"])]);
        let renames = find_renames(&old, &new);
        let names: Vec<[&str; 4]> = renames
            .iter()
            .map(|(from, to)| [&*from.rubric, &*from.eval, &*to.rubric, &*to.eval])
            .collect();
        assert_eq!(
            names,
            [
                ["two", "b", "two", "d"],
                ["two", "c", "two", "e"],
                ["one", "a", "two", "f"],
            ]
        );
        assert_eq!(count_removed(&old, &new), 0);
    }
}
