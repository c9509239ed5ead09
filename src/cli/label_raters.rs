//! `dicta labels merge` and `close`: labels of several people, and the disagreements that they close.
//!
//! Responsible for the questions that several people answered. `rater_list` lists the people.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::CommandCx;
use super::args::WorkspaceArgs;
use super::error::CommandError;
use super::format::Format;
use super::label_args::CauseArg;
use super::label_targets::{LabelTarget, find_label_target, show_path, to_command_error};
use super::states::StateCatalog;
use super::workspace::load_workspace_without_judges;
use crate::model::{
    Digest, DisagreementCause, Label, LabelLookup, PairPreference, UNKNOWN_RATER, make_visible,
    name_rater, pluralize, quote_shell_word,
};
use crate::record::StateDecision;
use crate::run::collect_transcript_ids;
use crate::workspace::label_draws::{draws_file_path, read_draws};
use crate::workspace::label_edit::{
    LabelEditError, append_chosen_choices, append_chosen_labels, change_labels, list_label_files,
    read_label_lines,
};
use crate::workspace::{Workspace, matches_an_eval};

/// The questions that the evals of a workspace ask now. After a return to an earlier text, this is not the question that
/// a label answered last.
#[derive(Debug, Default)]
pub(super) struct CurrentQuestions<'w> {
    /// The rubric and the question of each eval, by its id.
    by_eval: HashMap<&'w str, Vec<(&'w str, &'w Digest)>>,
}

impl<'w> CurrentQuestions<'w> {
    pub(super) fn of(workspace: &'w Workspace) -> Self {
        let mut by_eval: HashMap<&str, Vec<(&str, &Digest)>> = HashMap::new();
        for rubric in &workspace.rubrics {
            for eval in &rubric.evals {
                // Labels of an eval with parts are about the whole.
                let whole = eval.part_of.as_ref();
                let whole = whole.map(|whole| (whole.id.as_str(), &whole.question));
                for (id, question) in whole.into_iter().chain([(&*eval.id, &eval.question)]) {
                    let questions = by_eval.entry(id).or_default();
                    questions.push((rubric.id.as_str(), question));
                }
            }
        }
        Self { by_eval }
    }

    /// Reports whether an eval that a label is about asks this question now.
    fn contains(&self, label: &Label, question: &Digest) -> bool {
        let mut questions = self.by_eval.get(label.eval.as_str()).into_iter().flatten();
        let rubric = label.rubric.as_deref();
        questions.any(|(id, known)| *known == question && rubric.is_none_or(|one| one == *id))
    }

    /// Returns the answer of a label to the question of now with that question; otherwise the newest answer.
    fn find_answer<'l>(&self, label: &'l Label) -> (Option<&'l Digest>, Option<bool>) {
        let mut all = list_answers(label);
        let is_current = |(question, _): &(Option<&Digest>, Option<bool>)| {
            question.is_some_and(|question| self.contains(label, question))
        };
        let newest = (label.question_digest.as_ref(), label.passed);
        all.find(is_current).unwrap_or(newest)
    }
}

/// Returns the answers of a label with their questions, the newest first.
fn list_answers(label: &Label) -> impl Iterator<Item = (Option<&Digest>, Option<bool>)> {
    let earlier = label.earlier.iter().rev();
    let earlier = earlier.map(|answer| (answer.question_digest.as_ref(), answer.passed));
    std::iter::once((label.question_digest.as_ref(), label.passed)).chain(earlier)
}

/// The question that several people answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct AnsweredQuestion<'l> {
    transcript: &'l str,
    rubric: Option<&'l str>,
    eval: &'l str,
    question: Option<&'l Digest>,
}

/// A question and the person who answered it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct MergeKey {
    transcript: String,
    rubric: Option<String>,
    eval: String,
    question: Option<Digest>,
    by: Option<String>,
}

impl MergeKey {
    fn of(label: &Label, question: Option<&Digest>) -> Self {
        Self {
            transcript: label.transcript.clone(),
            rubric: label.rubric.clone(),
            eval: label.eval.clone(),
            question: question.cloned(),
            by: label.by.clone(),
        }
    }
}

/// A label of a file to merge.
struct MergeCandidate {
    /// The file and the line.
    place: String,
    label: Label,
}

/// The labels of other files, and what decides which of them are new.
struct LabelMerge<'w> {
    candidates: Vec<MergeCandidate>,
    /// The ids of the transcripts; `None` if they cannot be read.
    ids: Option<HashSet<String>>,
    workspace: &'w Workspace,
}

/// The labels that a merge adds, and what it reports.
struct MergePlan {
    added: Vec<Label>,
    refused: Vec<String>,
    sealed_twice: u64,
}

impl LabelMerge<'_> {
    /// Returns the labels to add to a file that has these labels now.
    fn plan(&self, present: &[Label]) -> MergePlan {
        let workspace = self.workspace;
        let mut plan = MergePlan {
            added: Vec::new(),
            refused: Vec::new(),
            sealed_twice: 0,
        };
        let mut known: HashMap<MergeKey, Option<bool>> = HashMap::new();
        let questions = CurrentQuestions::of(workspace);
        // The first answer of a person to a question stays, as a file lists it.
        let add_answers = |known: &mut HashMap<MergeKey, Option<bool>>, label: &Label| {
            for (question, passed) in list_answers(label) {
                let key = MergeKey::of(label, question);
                known.entry(key).or_insert(passed);
            }
        };
        let loaded = workspace.list_labels().map(|(label, _)| label);
        for label in loaded.chain(present) {
            add_answers(&mut known, label);
        }
        for MergeCandidate { place, label } in &self.candidates {
            if let Some(problem) = label.list_invalid_values().first() {
                let line = format!("{place}: {problem}, so dicta does not add it");
                plan.refused.push(line);
                continue;
            }
            // The same person may not answer one question twice; the label of the workspace stays.
            let (question, passed) = questions.find_answer(label);
            match known.get(&MergeKey::of(label, question)) {
                None => {
                    let mut lists = self.ids.iter();
                    let is_known = lists.all(|ids| ids.contains(&label.transcript));
                    if !(is_known && matches_an_eval(label, &workspace.rubrics)) {
                        plan.refused.push(format!(
                            "{place}: {} names no decision of this workspace, so the label counts for nothing",
                            AnsweredQuestion::of(label).describe()
                        ));
                    }
                    add_answers(&mut known, label);
                    plan.added.push(label.clone());
                }
                // Whether two sealed answers are the same is a fact about them.
                Some(_) if workspace.is_sealed(&label.transcript) => {
                    plan.sealed_twice += 1;
                }
                Some(known) if *known == passed => {}
                Some(known) => plan.refused.push(format!(
                    "{place}: {}: {} answers {} here and {} in this workspace, so dicta does not add it",
                    AnsweredQuestion::of(label).describe(),
                    name_rater(label),
                    describe_answer(passed),
                    describe_answer(*known)
                )),
            }
        }
        plan
    }
}

impl<'l> AnsweredQuestion<'l> {
    fn of(label: &'l Label) -> Self {
        Self {
            transcript: &label.transcript,
            rubric: label.rubric.as_deref(),
            eval: &label.eval,
            question: label.question_digest.as_ref(),
        }
    }

    fn describe(&self) -> String {
        let rubric = self.rubric.unwrap_or("*");
        format!("{}/{rubric}/{}", self.transcript, self.eval)
    }
}

/// Returns the last answer of each person to each question, in the order of the files. Of several answers of a label,
/// the one to the question of now counts. A label without a digest answers the question of now if another label of its
/// decision does; otherwise the newest one.
pub(super) fn collect_answers<'l>(
    labels: impl IntoIterator<Item = &'l Label>,
    questions: &CurrentQuestions<'_>,
) -> IndexMap<AnsweredQuestion<'l>, BTreeMap<&'l str, Option<bool>>> {
    let labels: Vec<&Label> = labels.into_iter().collect();
    let without_question = |label: &'l Label| AnsweredQuestion {
        question: None,
        ..AnsweredQuestion::of(label)
    };
    let mut newest: HashMap<AnsweredQuestion<'_>, &Digest> = HashMap::new();
    let mut current: HashMap<AnsweredQuestion<'_>, &Digest> = HashMap::new();
    for label in &labels {
        if let Some(question) = questions.find_answer(label).0 {
            newest.insert(without_question(label), question);
            if questions.contains(label, question) {
                current.insert(without_question(label), question);
            }
        }
    }
    newest.extend(current);
    let mut answers: IndexMap<AnsweredQuestion<'l>, BTreeMap<&str, Option<bool>>> = IndexMap::new();
    for label in labels {
        let (digest, passed) = questions.find_answer(label);
        let mut question = AnsweredQuestion {
            question: digest,
            ..AnsweredQuestion::of(label)
        };
        if question.question.is_none() {
            question.question = newest.get(&question).copied();
        }
        let people = answers.entry(question).or_default();
        // The last label of a person counts, because files of labels grow at their end.
        people.insert(name_rater(label), passed);
    }
    answers
}

fn describe_answer(passed: Option<bool>) -> &'static str {
    match passed {
        Some(true) => "pass",
        Some(false) => "fail",
        None => "unsure",
    }
}

/// A question that people answer differently.
pub(super) struct RaterConflict<'l> {
    question: AnsweredQuestion<'l>,
    answers: BTreeMap<&'l str, Option<bool>>,
}

impl RaterConflict<'_> {
    /// Returns one line: `refund-02/support/tone: ann pass, bo fail`.
    pub(super) fn describe(&self) -> String {
        let people = self.answers.iter();
        let people = people.map(|(by, passed)| format!("{by} {}", describe_answer(*passed)));
        let people: Vec<String> = people.collect();
        format!("{}: {}", self.question.describe(), people.join(", "))
    }

    /// Returns the conflict for programs.
    pub(super) fn to_json(&self) -> Value {
        let answers = self.answers.iter();
        let answers = answers.map(|(by, passed)| ((*by).to_owned(), json!(passed)));
        json!({
            "type": "conflict",
            "transcript": self.question.transcript,
            "rubric": self.question.rubric,
            "eval": self.question.eval,
            "answers": answers.collect::<Map<String, Value>>(),
        })
    }
}

/// Returns the questions that people answer differently.
pub(super) fn list_conflicts<'l>(
    labels: impl IntoIterator<Item = &'l Label>,
    questions: &CurrentQuestions<'_>,
) -> Vec<RaterConflict<'l>> {
    let answers = collect_answers(labels, questions).into_iter();
    let conflicting = answers.filter(|(_, people)| {
        let mut decided = people.values().flatten();
        let first = decided.next();
        first.is_some_and(|first| decided.any(|other| other != first))
    });
    conflicting
        .map(|(question, answers)| RaterConflict { question, answers })
        .collect()
}

/// Adds the labels of other files to the labels file. A label that is there already is not added again.
pub(super) fn merge_labels(
    files: &[PathBuf],
    format: Format,
    place: &WorkspaceArgs,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let workspace = load_workspace_without_judges(place.workspace.as_deref(), cx)?.workspace;
    let mut candidates = Vec::new();
    let mut choices = Vec::new();
    for path in files {
        let lines = read_label_lines(path).map_err(|error| describe_read_error(&error))?;
        let name_line = |line: u64| format!("{}:{line}", path.display());
        let labels = lines.labels.into_iter();
        candidates.extend(labels.map(|(line, label)| MergeCandidate {
            place: name_line(line),
            label,
        }));
        let found = lines.choices.into_iter();
        choices.extend(found.map(|(line, choice)| (name_line(line), choice)));
    }
    let merge = LabelMerge {
        candidates,
        // Labels can be merged before the transcripts can be read.
        ids: collect_transcript_ids(&workspace).ok(),
        workspace: &workspace,
    };
    let file = workspace.labels_file_path();
    let mut plan = merge.plan(&[]);
    // Without a new label, the file is not created.
    if !plan.added.is_empty() {
        // Another process may have added labels since the workspace was loaded, so the file decides.
        plan = append_chosen_labels(&file, |present| {
            let plan = merge.plan(present);
            (plan.added.clone(), plan)
        })
        .map_err(to_command_error)?;
    }
    let MergePlan {
        added,
        refused,
        sealed_twice,
    } = plan;
    let mut merged = plan_choices(&choices, &[], &workspace);
    if !merged.added.is_empty() {
        merged = append_chosen_choices(&file, |present| {
            let plan = plan_choices(&choices, present, &workspace);
            (plan.added.clone(), plan)
        })
        .map_err(to_command_error)?;
    }
    let visible = added
        .iter()
        .filter(|label| !workspace.is_sealed(&label.transcript));
    let visible = workspace.labels.iter().map(Arc::as_ref).chain(visible);
    let conflicts = list_conflicts(visible, &CurrentQuestions::of(&workspace));
    let report = MergeReport {
        file: show_path(&workspace, &file),
        labels: added.len() as u64,
        choices: merged.added.len() as u64,
        sealed_labels: sealed_twice,
        sealed_choices: merged.sealed_twice,
        conflicts: &conflicts,
        refused: [refused, merged.refused].concat(),
    };
    let human = || report.format_text();
    cx.streams.print_list(format, || report.to_json(), human);
    note_unrecorded_draws(&added, &file, cx)?;
    if !conflicts.is_empty() {
        cx.streams.print_note(
            "note: a tie between people counts as unsure; it ends when one of them answers again, or a third person does: `dicta label CELL pass|fail`",
        );
    }
    Ok(0)
}

/// The result of a merge.
struct MergeReport<'m> {
    /// The file that got the labels and choices.
    file: String,
    /// The number of added labels.
    labels: u64,
    /// The number of added choices.
    choices: u64,
    /// The number of sealed labels that the same person gave in the workspace.
    sealed_labels: u64,
    /// The number of sealed choices that the same person made in the workspace.
    sealed_choices: u64,
    conflicts: &'m [RaterConflict<'m>],
    /// One line per label or choice that is not added, or that counts for nothing.
    refused: Vec<String>,
}

impl MergeReport<'_> {
    fn format_text(&self) -> String {
        let and_choices = match self.choices {
            0 => String::new(),
            many => format!(" and {}", pluralize(many, "choice")),
        };
        let mut out = format!(
            "{}: added {}{and_choices}\n",
            self.file,
            pluralize(self.labels, "label")
        );
        if self.sealed_labels > 0 {
            let _infallible = writeln!(
                out,
                "{} of questions that the same person answered in this workspace stay out",
                pluralize(self.sealed_labels, "sealed label")
            );
        }
        if self.sealed_choices > 0 {
            let _infallible = writeln!(
                out,
                "{} of pairs about which the same person chose in this workspace stay out",
                pluralize(self.sealed_choices, "sealed choice")
            );
        }
        let conflicts = self.conflicts.iter();
        let conflicts = conflicts.map(|conflict| format!("conflict: {}", conflict.describe()));
        for line in conflicts.chain(self.refused.iter().cloned()) {
            let _infallible = writeln!(out, "{}", make_visible(&line, false));
        }
        out
    }

    fn to_json(&self) -> Vec<Value> {
        let merge = json!({
            "type": "merge",
            "file": self.file,
            "labels": self.labels,
            "choices": self.choices,
            "sealed_labels_left_out": self.sealed_labels,
            "sealed_choices_left_out": self.sealed_choices,
        });
        let conflicts = self.conflicts.iter().map(RaterConflict::to_json);
        let refused = self.refused.iter();
        let refused = refused.map(|why| json!({"type": "refused", "why": why}));
        std::iter::once(merge)
            .chain(conflicts)
            .chain(refused)
            .collect()
    }
}

/// Describes why a file to merge cannot be read. Nothing was written.
fn describe_read_error(error: &LabelEditError) -> CommandError {
    CommandError::usage(match error {
        LabelEditError::NoLabel { .. } => format!(
            "{error}; a file to merge has one JSON object per line, and `labels:` of dicta.yaml reads other forms"
        ),
        other => other.to_string(),
    })
}

/// The effects of a merge of choices between two transcripts.
#[derive(Debug, Default)]
struct ChoiceMergePlan {
    /// The choices to add.
    added: Vec<PairPreference>,
    /// One line per choice that contradicts one of the same person.
    refused: Vec<String>,
    /// The number of sealed choices that the same person made in the workspace.
    sealed_twice: u64,
}

/// Plans which choices a merge adds: those of a person in a pair that neither the workspace nor `present` has.
fn plan_choices(
    choices: &[(String, PairPreference)],
    present: &[PairPreference],
    workspace: &Workspace,
) -> ChoiceMergePlan {
    let key = |one: &PairPreference| (one.pair.clone(), one.eval.clone(), one.by.clone());
    let loaded = workspace.pair_preferences.iter().chain(present);
    let mut known: HashMap<_, String> = loaded.map(|one| (key(one), one.better.clone())).collect();
    let mut plan = ChoiceMergePlan::default();
    for (place, choice) in choices {
        match known.get(&key(choice)) {
            None => {
                known.insert(key(choice), choice.better.clone());
                plan.added.push(choice.clone());
            }
            // Whether two sealed choices are the same is a fact about them.
            Some(_) if workspace.is_sealed(&choice.pair) => plan.sealed_twice += 1,
            Some(better) if *better == choice.better => {}
            Some(better) => plan.refused.push(format!(
                "{place}: pair {}: {} chooses {} here and {better} in this workspace, so dicta does not add it",
                choice.pair,
                choice.by.as_deref().unwrap_or(UNKNOWN_RATER),
                choice.better
            )),
        }
    }
    plan
}

/// Names the labels of draws that the workspace has no record of: without the record, they measure nothing.
fn note_unrecorded_draws(added: &[Label], file: &Path, cx: &CommandCx) -> Result<(), CommandError> {
    let draws = read_draws(file).map_err(|error| CommandError::usage(error.to_string()))?;
    let known: HashSet<(&str, &str)> = draws
        .iter()
        .flat_map(|draw| {
            draw.drawn
                .iter()
                .map(|id| (draw.eval.as_str(), id.as_str()))
        })
        .collect();
    let unrecorded = added.iter().filter(|label| {
        let question = (label.eval.as_str(), label.transcript.as_str());
        label.sample.is_some() && !known.contains(&question)
    });
    let unrecorded = unrecorded.count() as u64;
    if unrecorded > 0 {
        cx.streams.print_note(&format!(
            "note: {} of draws that {} does not have, so they measure nothing: add its lines from the other workspace",
            pluralize(unrecorded, "added label"),
            draws_file_path(file).display()
        ));
    }
    Ok(())
}

/// Returns the verdict on a decision in the newest state; `None` if no run decided it.
fn find_newest_verdict(
    target: &LabelTarget,
    place: &WorkspaceArgs,
    cx: &CommandCx,
) -> Result<Option<bool>, CommandError> {
    let catalog = StateCatalog::open(place.workspace.as_deref(), &["@"], cx)?;
    let newest = catalog.history()?.newest().map(|entry| &entry.state);
    let verdict = newest.and_then(|state| {
        let mut decisions = state.decisions();
        let found = decisions.find(|decision| state.name(decision) == target.name);
        found.and_then(StateDecision::passed)
    });
    Ok(verdict)
}

/// Stores the cause of a disagreement in the label that counts.
pub(super) fn close_disagreement(
    cell: &str,
    chosen: CauseArg,
    clause: Option<&str>,
    place: &WorkspaceArgs,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let workspace = load_workspace_without_judges(place.workspace.as_deref(), cx)?.workspace;
    let target = find_label_target(&workspace, cell, cx)?;
    let labels = workspace.index_labels();
    let (label, answer) = match labels.look_up(&target.query()) {
        LabelLookup::Counted(counted) => (counted.label, counted.passed),
        LabelLookup::Shot(label) => (label, label.passed),
        LabelLookup::ToConfirm(..) => {
            return Err(CommandError::usage(format!(
                "the label of {} is to confirm; `dicta labels confirm {}` confirms it",
                target.name,
                quote_shell_word(&target.name.to_string())
            )));
        }
        LabelLookup::Sealed { .. } => {
            return Err(CommandError::usage(format!(
                "the label of {} is sealed, so its disagreement is unknown until `dicta agree --unseal`",
                target.name
            )));
        }
        LabelLookup::Unlabelled => {
            return Err(CommandError::usage(format!(
                "{} has no label; `dicta label {} pass` sets one",
                target.name,
                quote_shell_word(&target.name.to_string())
            )));
        }
    };
    let people = labels.list_answers(&target.query()).into_iter();
    let mut people = people.filter_map(|(_, passed)| passed);
    let first = people.next();
    let people_differ = first.is_some_and(|first| people.any(|other| other != first));
    if !people_differ
        && let Some(verdict) = find_newest_verdict(&target, place, cx)?
        && answer.is_none_or(|answer| answer == verdict)
    {
        return Err(CommandError::usage(format!(
            "{} has no disagreement: no label differs from the verdict or from another label",
            target.name
        )));
    }
    let closed = Label {
        cause: Some(match chosen {
            CauseArg::Rubric => DisagreementCause::Rubric,
            CauseArg::Label => DisagreementCause::Label,
            CauseArg::Unclear => DisagreementCause::Unclear,
        }),
        clause: clause.map(str::to_owned),
        ..label.clone()
    };
    let mut changed = 0;
    for file in list_label_files(&workspace) {
        changed += change_labels(&file, &|known| (known == label).then(|| closed.clone()))
            .map_err(to_command_error)?;
    }
    if changed == 0 {
        return Err(CommandError::usage(format!(
            "the label of {} is in a file that dicta does not write; set `cause` there",
            target.name
        )));
    }
    let word = closed.cause.map_or("", DisagreementCause::as_str);
    cx.streams
        .print_wrapped(&format!("closed {}: {word}\n", target.name));
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::super::rater_list::RaterReport;
    use super::*;

    fn describe_conflicts(labels: &[Label], questions: &CurrentQuestions<'_>) -> Vec<String> {
        let conflicts = list_conflicts(labels, questions).into_iter();
        conflicts.map(|conflict| conflict.describe()).collect()
    }

    fn label(transcript: &str, by: &str, passed: Option<bool>) -> Label {
        Label {
            by: Some(by.to_owned()),
            ..Label::new(transcript, "e", passed)
        }
    }

    #[test]
    fn label_without_a_digest_conflicts_with_one_that_has_it() {
        let dated = Label {
            question_digest: Some(Digest::hash_bytes(b"q")),
            ..label("a", "ann", Some(true))
        };
        let labels = [label("a", "bo", Some(false)), dated];
        let questions = CurrentQuestions::default();
        assert_eq!(
            describe_conflicts(&labels, &questions),
            ["a/*/e: ann pass, bo fail"]
        );
    }

    #[test]
    fn answers_to_different_questions_are_no_conflict() {
        let asked = |question: &str, label: Label| Label {
            question_digest: Some(Digest::hash_bytes(question.as_bytes())),
            ..label
        };
        let old = asked("old", label("a", "ann", Some(true)));
        let new = asked("new", label("a", "bo", Some(false)));
        let questions = CurrentQuestions::default();
        assert_eq!(describe_conflicts(&[old, new], &questions), [""; 0]);
    }

    #[test]
    fn after_a_return_to_an_earlier_question_its_answers_are_compared() {
        let [first, second] = [b"first", b"other"].map(|text| Digest::hash_bytes(text));
        let answered_twice = |by: &str, [before, now]: [bool; 2]| {
            let mut one = Label {
                question_digest: Some(second.clone()),
                ..label("a", by, Some(now))
            };
            one.answer_again(&Label {
                question_digest: Some(first.clone()),
                ..label("a", by, Some(before))
            });
            one
        };
        let labels = [
            answered_twice("ann", [true, false]),
            answered_twice("bo", [true, true]),
            // A label without a digest answers the question of now.
            label("a", "cy", Some(true)),
        ];
        let asks = |question| CurrentQuestions {
            by_eval: HashMap::from([("e", vec![("r", question)])]),
        };
        let conflicts = |question| describe_conflicts(&labels, &asks(question));
        assert_eq!(conflicts(&second), ["a/*/e: ann fail, bo pass, cy pass"]);
        assert_eq!(conflicts(&first), [""; 0]);
        let raters = RaterReport::collect(labels.iter(), &asks(&first)).to_string();
        let agree = "ann and bo  1 of 1 common answer the same";
        assert!(raters.contains(agree), "{raters}");
    }
}
