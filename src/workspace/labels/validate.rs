//! The check that labels match: each label names an existing eval and transcript, and no two labels contradict each
//! other. A label that matches nothing would silently count nowhere, so dicta reports it with the likely intended name:
//! one warning for all labels of a renamed rubric or eval, because one command fixes them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use foldhash::fast::RandomState;
use serde_json::Value;

use super::mismatch::{LabelMismatch, UnmatchedLabels, find_mismatch, with_location};
use super::{LABEL_CODE, LabelPlace, UNMATCHED_LABEL_CODE};
use crate::diag::yaml::YamlDoc;
use crate::diag::{Diagnostic, find_nearest};
use crate::model::{Digest, Label, make_visible};
use crate::rubric::Rubric;
use crate::storage::{InputFiles, may_have_other_names};
use crate::workspace::Workspace;
use crate::workspace::paths::display_path;

/// The decision and question that a label of one person is about.
#[derive(PartialEq, Eq, Hash)]
struct LabelTarget<'l> {
    transcript: &'l str,
    rubric: Option<&'l str>,
    eval: &'l str,
    /// Several people may label one decision, and one person may answer each version of a question.
    by: Option<&'l str>,
    question: Option<&'l Digest>,
}

/// The maximum number of problems of one kind that dicta reports one by one, because a wrong column affects every
/// row.
const MAX_REPORTED: usize = 20;

/// Checks labels against the rubrics: unknown evals and contradictions. [`check_map_labels`] checks the first
/// `mapped` labels, once per field mapping.
pub(in crate::workspace) fn check_labels_against_rubrics<'l>(
    labels: impl IntoIterator<Item = (&'l Label, &'l LabelPlace)>,
    mapped: usize,
    rubrics: &[Arc<Rubric>],
    texts: &dyn Fn(&Path) -> Option<Arc<str>>,
) -> Vec<Diagnostic> {
    let mut unmatched = UnmatchedLabels::default();
    let mut warnings = Vec::new();
    let mut first: HashMap<LabelTarget<'_>, (Option<bool>, &LabelPlace), RandomState> =
        HashMap::default();
    // Many labels share few evals, so the result is computed once per eval.
    let mut known: HashMap<(Option<&str>, &str), Option<LabelMismatch>, RandomState> =
        HashMap::default();
    for (nth, (label, place)) in labels.into_iter().enumerate() {
        let about = (label.rubric.as_deref(), label.eval.as_str());
        let wrong = known
            .entry(about)
            .or_insert_with(|| find_mismatch(about, rubrics));
        if let Some(mismatch) = wrong {
            // The label of a mapping has its warning at the mapping in dicta.yaml, not at each record.
            if nth >= mapped {
                unmatched.add(mismatch, &label.eval, place);
            }
            continue;
        }
        let target = LabelTarget {
            transcript: &label.transcript,
            rubric: label.rubric.as_deref(),
            eval: &label.eval,
            by: label.by.as_deref(),
            question: label.question_digest.as_ref(),
        };
        if let Some((passed, before)) = first.insert(target, (label.passed, place))
            && passed != label.passed
        {
            let message = format!(
                "this label of `{}` on `{}` contradicts the one in {}:{}; the last one counts",
                label.eval,
                label.transcript,
                make_visible(&before.file.display().to_string(), false),
                before.span.line
            );
            warnings.push(with_location(
                Diagnostic::warning(LABEL_CODE, &*place.file, message),
                &place.span,
                texts(&place.file),
            ));
        }
    }
    cap_problems(&mut warnings, "more labels contradict earlier ones");
    let mut problems = unmatched.into_warnings(rubrics, texts);
    problems.append(&mut warnings);
    problems
}

/// Checks the `label` entries of field mappings against the rubrics, at their places in dicta.yaml.
pub(in crate::workspace) fn check_map_labels(
    doc: &YamlDoc,
    rubrics: &[Arc<Rubric>],
) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    let Some(Value::Array(entries)) = doc.value.get("transcripts") else {
        return problems;
    };
    for (nth, entry) in entries.iter().enumerate() {
        let at = format!("/transcripts/{nth}/map/label");
        let written: Vec<(String, &Value)> = match entry.pointer("/map/label") {
            // A mapping has one label entry or a list of them.
            Some(Value::Array(all)) => {
                let all = all.iter().enumerate();
                all.map(|(nth, one)| (format!("{at}/{nth}"), one)).collect()
            }
            Some(one) => vec![(at, one)],
            None => continue,
        };
        for (at, label) in written {
            let text = |key: &str| label.get(key).and_then(Value::as_str);
            let rubric = text("rubric");
            let Some(mismatch) =
                text("eval").and_then(|eval| find_mismatch((rubric, eval), rubrics))
            else {
                continue;
            };
            // The warning marks the key that is wrong.
            let key = match &mismatch {
                LabelMismatch::Rubric { .. } => "rubric",
                LabelMismatch::Eval { .. } | LabelMismatch::EachMessage { .. } => "eval",
            };
            let message = mismatch.describe("the labels of this mapping are", rubrics, &[]);
            let at = doc.span(&format!("{at}/{key}"));
            problems.push(
                Diagnostic::warning(UNMATCHED_LABEL_CODE, &doc.path, message)
                    .with_span(at, &doc.source)
                    .help("change the name here; until then, these labels count for nothing"),
            );
        }
    }
    problems
}

/// Returns the error about a file of new labels that is also one of these other files, under another name. A new label
/// would change that file.
pub(in crate::workspace) fn check_labels_place(
    root: &Path,
    labels: &Path,
    others: impl Iterator<Item = PathBuf>,
) -> Option<Diagnostic> {
    // Without a second name, the comparison would only cost a system call per file.
    if !may_have_other_names(labels) {
        return None;
    }
    // A file that dicta.yaml lists twice is reported where it is read.
    let others: InputFiles = others.filter(|other| other != labels).collect();
    let other = display_path(root, others.find(labels)?);
    let message = format!(
        "this is the file {} under another name, and a new label would change that file",
        other.display()
    );
    let problem = Diagnostic::error("io", display_path(root, labels), message);
    Some(problem.help("replace the link by a file of its own, or name another file as `labels:`"))
}

pub(super) fn cap_problems(problems: &mut Vec<Diagnostic>, what: &str) {
    let more = problems.len().saturating_sub(MAX_REPORTED);
    if more == 0 {
        return;
    }
    // The summary gets the place of the first problem that is left out.
    let last = problems[MAX_REPORTED].clone();
    problems.truncate(MAX_REPORTED);
    problems.push(Diagnostic {
        message: format!("… and {more} {what}"),
        ..last
    });
}

/// Reports labels whose transcript does not exist, each at its place. `ids` are the ids of all transcripts, made
/// unique as in a run.
pub(crate) fn find_stray_labels(workspace: &Workspace, ids: &HashSet<String>) -> Vec<Diagnostic> {
    let mut reported: HashSet<&str> = HashSet::new();
    let mut problems = Vec::new();
    for (label, place) in workspace.list_labels() {
        // One report per transcript is enough, also if it has many labels.
        if ids.contains(&label.transcript) || !reported.insert(&label.transcript) {
            continue;
        }
        // dicta shows only the first problems, so only these need a suggestion.
        let near = if problems.len() < MAX_REPORTED {
            find_nearest(&label.transcript, ids.iter().map(String::as_str))
        } else {
            None
        };
        let near = near.map_or_else(String::new, |n| format!("; did you mean `{n}`?"));
        let message = format!(
            "a label for the transcript `{}`, which is not here{near}",
            label.transcript
        );
        let text = || {
            let mut files = workspace.files.iter();
            let found = files.find(|file| *file.path == *place.file);
            found.map(|file| Arc::clone(&file.text))
        };
        let problem = Diagnostic::error(LABEL_CODE, &*place.file, message)
            .help("`dicta labels prune` deletes labels that match nothing");
        problems.push(with_location(problem, &place.span, text()));
    }
    cap_problems(
        &mut problems,
        "more labels are for transcripts that are not here",
    );
    problems
}
