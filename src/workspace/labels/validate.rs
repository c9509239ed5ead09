//! The check that labels match: each label names an existing eval and transcript, and no two labels contradict each
//! other. A label that matches nothing would silently count nowhere, so it is an error with the likely intended name.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::{LABEL_CODE, LabelPlace};
use crate::diag::yaml::YamlDoc;
use crate::diag::{Diagnostic, SourceSpan, find_nearest};
use crate::model::{Label, make_visible};
use crate::rubric::{Rubric, Trigger};
use crate::workspace::Workspace;

/// The decision that a label is about.
#[derive(PartialEq, Eq, Hash)]
struct LabelTarget<'l> {
    transcript: &'l str,
    rubric: Option<&'l str>,
    eval: &'l str,
}

/// The maximum number of problems of one kind that dicta reports one by one, because a wrong column affects every
/// row.
const MAX_REPORTED: usize = 20;

/// Checks labels against the rubrics: unknown evals and contradictions. [`check_map_labels`] checks the first
/// `mapped` labels, once per field mapping.
pub(in crate::workspace) fn check_labels_against_rubrics(
    labels: &[Label],
    places: &[LabelPlace],
    mapped: usize,
    rubrics: &[Arc<Rubric>],
    texts: &dyn Fn(&Path) -> Option<Arc<str>>,
) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    let mut warnings = Vec::new();
    let mut first: HashMap<LabelTarget<'_>, (Option<bool>, &LabelPlace)> = HashMap::new();
    // Many labels share few evals, so the result is computed once per eval.
    let mut known: HashMap<(Option<&str>, &str), Option<String>> = HashMap::new();
    for (nth, (label, place)) in labels.iter().zip(places).enumerate() {
        let about = (label.rubric.as_deref(), label.eval.as_str());
        let wrong = known
            .entry(about)
            .or_insert_with(|| explain_unmatched_label(about, rubrics));
        if let Some(message) = wrong {
            // A mapping's label has its error at the mapping in dicta.yaml, not at each record.
            if nth < mapped {
                continue;
            }
            errors.push(with_location(
                Diagnostic::error(LABEL_CODE, &*place.file, message.as_str()),
                &place.span,
                texts(&place.file),
            ));
            continue;
        }
        let target = LabelTarget {
            transcript: &label.transcript,
            rubric: label.rubric.as_deref(),
            eval: &label.eval,
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
    // The two kinds are capped apart, so that many warnings do not hide the errors.
    cap_problems(&mut errors, "more labels like these match nothing");
    cap_problems(&mut warnings, "more labels contradict earlier ones");
    errors.append(&mut warnings);
    errors
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
            let Some(message) =
                text("eval").and_then(|eval| explain_unmatched_label((rubric, eval), rubrics))
            else {
                continue;
            };
            // The error marks the key that is wrong.
            let none = rubric.is_some_and(|id| rubrics.iter().all(|known| known.id != id));
            let key = if none { "rubric" } else { "eval" };
            problems.push(doc.error(&format!("{at}/{key}"), LABEL_CODE, message));
        }
    }
    problems
}

fn with_location(problem: Diagnostic, span: &SourceSpan, text: Option<Arc<str>>) -> Diagnostic {
    Diagnostic {
        span: Some(span.clone()),
        source: text,
        ..problem
    }
}

fn cap_problems(problems: &mut Vec<Diagnostic>, what: &str) {
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

/// Explains why no decision can match the label; `None` if one can.
fn explain_unmatched_label(
    (rubric, eval): (Option<&str>, &str),
    rubrics: &[Arc<Rubric>],
) -> Option<String> {
    // A label without a rubric is for every rubric that has the eval.
    let of_rubric: Vec<&Arc<Rubric>> = rubrics
        .iter()
        .filter(|known| rubric.is_none_or(|id| id == known.id))
        .collect();
    if let (Some(id), true) = (rubric, of_rubric.is_empty()) {
        let known = rubrics.iter().map(|rubric| rubric.id.as_str());
        let message = format!("a label for the rubric `{id}`, which is not here");
        return Some(with_nearest(message, id, known));
    }
    let evals = || of_rubric.iter().flat_map(|rubric| &rubric.evals);
    let mut named = evals().filter(|known| known.id == eval).peekable();
    if named.peek().is_none() {
        let message = format!("a label for the eval `{eval}`, which is not here");
        let ids = evals().map(|eval| eval.id.as_str());
        return Some(with_nearest(message, eval, ids));
    }
    let per_message =
        |trigger: Trigger| matches!(trigger, Trigger::EveryTurn | Trigger::SampleTurns);
    named.all(|eval| per_message(eval.trigger)).then(|| {
        format!(
            "the eval `{eval}` judges message by message, and a label is about a whole transcript: it cannot be labelled yet"
        )
    })
}

/// Reports labels whose transcript does not exist, each at its place. `ids` are the ids of all transcripts, made
/// unique as in a run.
pub(crate) fn find_stray_labels(workspace: &Workspace, ids: &HashSet<String>) -> Vec<Diagnostic> {
    let mut reported: HashSet<&str> = HashSet::new();
    let mut problems = Vec::new();
    for (label, place) in workspace.labels.iter().zip(&workspace.label_places) {
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
        let problem = Diagnostic::error(LABEL_CODE, &*place.file, message);
        problems.push(with_location(problem, &place.span, text()));
    }
    cap_problems(
        &mut problems,
        "more labels are for transcripts that are not here",
    );
    problems
}

fn with_nearest<'k>(
    message: String,
    written: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> String {
    match find_nearest(written, known) {
        Some(near) => format!("{message}; did you mean `{near}`?"),
        None => message,
    }
}
