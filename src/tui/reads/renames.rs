//! Finds the recorded verdicts of renamed evals.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::model::{CellName, Digest};
use crate::record::NewestVerdicts;
use crate::tui::state::edit_report::{EvalName, EvalRename};
use crate::workspace::Workspace;

/// Copies the newest verdicts of renamed evals to their new names, so that rows and traces find them. `renames` are those
/// of this session; others are found by the digest of the question.
pub(crate) fn follow_renames(
    board: &mut NewestVerdicts,
    workspace: &Workspace,
    renames: &[EvalRename],
) {
    let current: HashMap<(&str, &str), &Digest> = workspace
        .rubrics
        .iter()
        .flat_map(|rubric| {
            let evals = rubric.evals.iter();
            evals.map(|eval| ((&*rubric.id, &*eval.id), &eval.digest))
        })
        .collect();
    let mut targets: HashMap<EvalName, EvalName> = HashMap::new();
    for rename in renames {
        for target in targets
            .values_mut()
            .filter(|target| **target == rename.from)
        {
            target.clone_from(&rename.to);
        }
        targets.insert(rename.from.clone(), rename.to.clone());
    }
    let names = board.iter().filter_map(|(text, result)| {
        let name: CellName = text.parse().ok()?;
        Some((text.to_owned(), name, Arc::clone(&result.eval)))
    });
    let names: Vec<(String, CellName, Arc<Digest>)> = names.collect();
    // A question that has verdicts under its own name needs no others.
    let own: HashSet<&Digest> = names
        .iter()
        .filter(|(_, name, _)| current.contains_key(&(&*name.rubric, &*name.eval)))
        .map(|(_, _, digest)| &**digest)
        .collect();
    let mut by_digest: HashMap<&Digest, EvalName> = HashMap::new();
    for ((rubric, eval), digest) in &current {
        if !own.contains(*digest) {
            by_digest.insert(
                digest,
                EvalName {
                    rubric: (*rubric).to_owned(),
                    eval: (*eval).to_owned(),
                },
            );
        }
    }
    for (_, name, digest) in &names {
        let old = EvalName {
            rubric: name.rubric.clone(),
            eval: name.eval.clone(),
        };
        if let Some(target) = by_digest.get(&**digest)
            && !current.contains_key(&(&*name.rubric, &*name.eval))
        {
            targets.entry(old).or_insert_with(|| target.clone());
        }
    }
    for (text, name, _) in &names {
        let old = EvalName {
            rubric: name.rubric.clone(),
            eval: name.eval.clone(),
        };
        let Some(target) = targets.get(&old) else {
            continue;
        };
        // A new eval may have the old name of a renamed one.
        if current.contains_key(&(&*name.rubric, &*name.eval)) {
            continue;
        }
        let new_name = CellName {
            rubric: target.rubric.clone(),
            eval: target.eval.clone(),
            ..name.clone()
        };
        board.copy_extra_results(
            &name.decision_name().to_string(),
            &new_name.decision_name().to_string(),
        );
        let new_name = new_name.to_string();
        if board.get(&new_name).is_some() {
            continue;
        }
        let results = [board.verdict(text).cloned(), board.get(text).cloned()];
        for result in results.into_iter().flatten() {
            board.insert(new_name.clone(), result);
        }
    }
}
