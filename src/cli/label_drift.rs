//! `dicta labels drift` and `dicta labels confirm`: labels whose question or transcript changed.
//!
//! Responsible for the list of question versions and for confirmations. Does not decide which label counts;
//! `model::Labels` does.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::CommandCx;
use super::args::WorkspaceArgs;
use super::error::CommandError;
use super::format::{Format, format_list};
use super::label_args::ConfirmLabelsArgs;
use super::label_targets::{
    LabelTarget, list_label_targets, select_label_targets, show_path, to_command_error,
};
use super::workspace::load_workspace_without_judges;
use crate::model::{
    Digest, Label, LabelDrift, LabelLookup, Labels, make_visible, name_rater, pluralize,
};
use crate::workspace::label_edit::{
    LabelOrigin, NewAnswer, append_labels, change_labels, list_label_files, set_labels,
};
use crate::workspace::{LabelPlace, Workspace};

/// The labels of one version of a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct VersionCounts {
    /// Labels set for this version first.
    new: u64,
    /// Labels of an earlier version that a person confirmed for this one.
    confirmed: u64,
    /// Labels of an earlier version that a person changed for this one.
    changed: u64,
}

impl VersionCounts {
    fn total(self) -> u64 {
        self.new + self.confirmed + self.changed
    }
}

/// Returns the versions of a question that labels answer, in the order of the files. `None` is an unknown version.
fn count_versions<'l>(
    labels: impl IntoIterator<Item = &'l Label>,
) -> IndexMap<Option<&'l Digest>, VersionCounts> {
    let mut versions: IndexMap<Option<&Digest>, VersionCounts> = IndexMap::new();
    for label in labels {
        let earlier = label.earlier.iter();
        let answers = earlier.map(|answer| (answer.question_digest.as_ref(), answer.passed));
        let current = (label.question_digest.as_ref(), label.passed);
        let mut before: Option<(Option<&Digest>, Option<bool>)> = None;
        for (question, passed) in answers.chain([current]) {
            let counts = versions.entry(question).or_default();
            match before {
                None => counts.new += 1,
                // A changed transcript has the same question, and its label is counted once.
                Some((version, _)) if version == question => {}
                Some((_, answer)) if answer == passed => counts.confirmed += 1,
                Some(_) => counts.changed += 1,
            }
            before = Some((question, passed));
        }
    }
    versions
}

/// The labels of evals by their eval and rubric, each with its place in the order of the files.
type LabelsOfEvals<'w> = HashMap<(&'w str, Option<&'w str>), Vec<(usize, &'w Label)>>;

/// Lists the question versions of every labelled eval, and the labels to confirm.
pub(super) fn list_drift(
    format: Format,
    place: &WorkspaceArgs,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let workspace = load_workspace_without_judges(place.workspace.as_deref(), cx)?.workspace;
    let targets = list_label_targets(&workspace, cx)?;
    let labels = workspace.index_labels();
    let stale = find_labels_to_confirm(targets.values(), &labels);
    let mut out = String::new();
    let mut rows: Vec<Value> = Vec::new();
    let mut labels_of: LabelsOfEvals<'_> = HashMap::new();
    for (at, label) in workspace.labels.iter().enumerate() {
        let name = (label.eval.as_str(), label.rubric.as_deref());
        labels_of.entry(name).or_default().push((at, &**label));
    }
    let mut to_confirm: HashMap<(&str, &str), u64> = HashMap::new();
    for (target, ..) in &stale {
        let name = (target.name.rubric.as_str(), target.name.eval.as_str());
        *to_confirm.entry(name).or_default() += 1;
    }
    for rubric in &workspace.rubrics {
        for eval in &rubric.evals {
            let of_rubrics = [Some(rubric.id.as_str()), None];
            let found = of_rubrics
                .iter()
                .filter_map(|id| labels_of.get(&(eval.id.as_str(), *id)));
            let mut found: Vec<(usize, &Label)> = found.flatten().copied().collect();
            // In the order of the files.
            found.sort_unstable_by_key(|(at, _)| *at);
            let versions = count_versions(found.into_iter().map(|(_, label)| label));
            if versions.is_empty() {
                continue;
            }
            let _infallible = writeln!(out, "{}/{}", rubric.id, eval.id);
            for (version, counts) in &versions {
                rows.push(json!({
                    "type": "question",
                    "rubric": rubric.id,
                    "eval": eval.id,
                    "question": version,
                    "now": *version == Some(&eval.question),
                    "labels": counts.total(),
                    "new": counts.new,
                    "confirmed": counts.confirmed,
                    "changed": counts.changed,
                }));
                let name = version.map_or("unknown", Digest::short);
                let now = if *version == Some(&eval.question) {
                    "  now"
                } else {
                    ""
                };
                let _infallible = writeln!(
                    out,
                    "  question {name:<12}  {}: {} new, {} confirmed, {} changed{now}",
                    pluralize(counts.total(), "label"),
                    counts.new,
                    counts.confirmed,
                    counts.changed
                );
            }
            if let Some(count) = to_confirm.get(&(rubric.id.as_str(), eval.id.as_str())) {
                let _infallible = writeln!(out, "  {} to confirm", pluralize(*count, "label"));
            }
        }
    }
    let places = LabelPlaces::new(&workspace);
    for (target, label, drift) in &stale {
        let at = places.find(label);
        rows.push(json!({
            "type": "to_confirm",
            "cell": target.name.to_string(),
            "label": label.passed,
            "changed": drift.as_str(),
            "file": at.map(|at| at.file.display().to_string()),
            "line": at.map(|at| at.span.line),
        }));
        let _infallible = writeln!(
            out,
            "{}to confirm: {}: {} (the {} changed)",
            places.format(label),
            target.name,
            describe_answer(label.passed),
            drift.as_str()
        );
    }
    let undated = find_labels_without_digest(targets.values(), &labels);
    if let Some((_, first)) = undated.first() {
        rows.push(json!({"type": "without_digest", "labels": undated.len()}));
        let _infallible = writeln!(
            out,
            "{}{} without a digest, so dicta cannot know if the question changed since; \
             `dicta labels confirm --all --without-digest` gives them today's",
            places.format(first),
            pluralize(undated.len() as u64, "label")
        );
    }
    if out.is_empty() {
        cx.streams
            .print_stderr("this workspace has no labels of its evals");
    }
    let sealed = workspace.count_sealed() as u64;
    if sealed > 0 {
        rows.push(json!({"type": "sealed", "labels": sealed}));
        let _infallible = writeln!(out, "{} not listed", pluralize(sealed, "sealed label"));
    }
    cx.streams.print_list(format, || rows, || out);
    Ok(0)
}

/// The places of labels, by decision.
struct LabelPlaces<'w>(HashMap<(&'w str, &'w str), Vec<(&'w Label, &'w LabelPlace)>>);

impl<'w> LabelPlaces<'w> {
    fn new(workspace: &'w Workspace) -> Self {
        let mut places: HashMap<_, Vec<_>> = HashMap::new();
        for (label, place) in workspace.labels.iter().zip(&workspace.label_places) {
            let key = (label.transcript.as_str(), label.eval.as_str());
            places.entry(key).or_default().push((&**label, place));
        }
        Self(places)
    }

    /// Returns the place of a label; `None` if no file has it.
    fn find<'a>(&'a self, label: &'a Label) -> Option<&'a LabelPlace> {
        let key = (label.transcript.as_str(), label.eval.as_str());
        let mut known = self.0.get(&key).into_iter().flatten();
        let found = known.find(|(known, _)| *known == label);
        found.map(|(_, place)| *place)
    }

    /// Returns `labels.jsonl:3: `, or nothing for a label that no file has.
    fn format(&self, label: &Label) -> String {
        self.find(label).map_or_else(String::new, |place| {
            let file = place.file.display().to_string();
            format!("{}:{}: ", make_visible(&file, false), place.span.line)
        })
    }
}

/// The labels of a confirmation, each with its decision.
#[derive(Default)]
struct ChosenLabels<'t> {
    /// Those whose question or transcript changed. The person who confirms them answers again.
    stale: Vec<(&'t LabelTarget, &'t Label)>,
    /// Those without digests, which are stored in them.
    undated: Vec<(&'t LabelTarget, &'t Label)>,
}

impl<'t> ChosenLabels<'t> {
    fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    fn all(&self) -> impl Iterator<Item = &(&'t LabelTarget, &'t Label)> {
        self.stale.iter().chain(&self.undated)
    }
}

/// Confirms labels for the question and the transcript as they are now.
pub(super) fn confirm_labels(args: &ConfirmLabelsArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let workspace = load_workspace_without_judges(args.place.workspace.as_deref(), cx)?.workspace;
    let targets = list_label_targets(&workspace, cx)?;
    let selected: Vec<&LabelTarget> = match &args.cell {
        Some(pattern) => select_label_targets(&targets, pattern)?,
        None => targets.values().collect(),
    };
    let labels = workspace.index_labels();
    let choose = |labels| {
        let stale = find_labels_to_confirm(selected.iter().copied(), labels);
        let stale = stale.into_iter().map(|(target, label, _)| (target, label));
        // A named cell is certainly meant, and `--all` alone means what changed.
        let undated = if args.without_digest || args.cell.is_some() {
            find_labels_without_digest(selected.iter().copied(), labels)
        } else {
            Vec::new()
        };
        ChosenLabels {
            stale: stale.collect(),
            undated,
        }
    };
    let visible = choose(&labels);
    // Sealed labels are confirmed with the others, or a changed question would leave none to measure with. Their answers
    // are not printed.
    let unsealed = workspace.sealed.as_ref().map(|sealed| {
        let author = workspace.label_author.clone();
        sealed.unseal().with_author(author)
    });
    let sealed = unsealed.as_ref().map_or_else(ChosenLabels::default, choose);
    if visible.is_empty() && sealed.is_empty() {
        cx.streams
            .print(&format_list(args.format, Vec::new, String::new));
        cx.streams.print_stderr("no label to confirm");
        return Ok(0);
    }
    let file = workspace.labels_file_path();
    if !args.dry_run {
        let chosen = visible.stale.iter().chain(&sealed.stale);
        let answers = chosen.map(|(target, label)| NewAnswer {
            decision: target.name.clone(),
            passed: label.passed,
            // A confirmed label keeps the draw that chose its item.
            origin: LabelOrigin {
                sample: label.sample.clone(),
                ..target.origin()
            },
        });
        let answers: Vec<NewAnswer> = answers.collect();
        // One change of the file, because it may have 100,000 lines.
        if !answers.is_empty() {
            set_labels(&file, &answers, &cx.env, &cx.clock.wall_time())
                .map_err(to_command_error)?;
        }
        let undated: Vec<(&LabelTarget, &Label)> = visible
            .undated
            .iter()
            .chain(&sealed.undated)
            .copied()
            .collect();
        store_digests(&workspace, &undated)?;
    }
    let file = show_path(&workspace, &file);
    let sealed = sealed.all().count() as u64;
    let human = || format_confirmation(&visible, sealed, args.dry_run, &file);
    let rows = || confirmation_to_json(&visible, sealed, args.dry_run, &file);
    cx.streams.print_list(args.format, rows, human);
    Ok(0)
}

fn format_confirmation(
    visible: &ChosenLabels<'_>,
    sealed: u64,
    is_dry_run: bool,
    file: &str,
) -> String {
    let mut out = String::new();
    for (target, label) in visible.all() {
        let answer = describe_answer(label.passed);
        let _infallible = if is_dry_run {
            writeln!(out, "would confirm {}: {answer}", target.name)
        } else {
            writeln!(out, "confirmed {}: {answer} ({file})", target.name)
        };
    }
    if sealed > 0 {
        let verb = if is_dry_run {
            "would confirm"
        } else {
            "confirmed"
        };
        let count = pluralize(sealed, "sealed label");
        let _infallible = writeln!(out, "{verb} {count}, whose answers stay hidden");
    }
    out
}

fn confirmation_to_json(
    visible: &ChosenLabels<'_>,
    sealed: u64,
    is_dry_run: bool,
    file: &str,
) -> Vec<Value> {
    let rows = visible.all().map(|(target, label)| {
        json!({
            "type": "confirmation",
            "cell": target.name.to_string(),
            "label": label.passed,
            "confirmed": !is_dry_run,
            "file": file,
        })
    });
    let sealed =
        (sealed > 0).then(|| json!({"type": "sealed", "labels": sealed, "confirmed": !is_dry_run}));
    rows.chain(sealed).collect()
}

/// Stores the digests of today in labels without them. No person answers again here, so the labels keep their
/// person, time and answer. A label of a file that dicta does not write is copied into the file that it writes.
fn store_digests(
    workspace: &Workspace,
    undated: &[(&LabelTarget, &Label)],
) -> Result<(), CommandError> {
    let mut places: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
    for (at, (_, label)) in undated.iter().enumerate() {
        let key = (label.transcript.as_str(), label.eval.as_str());
        places.entry(key).or_default().push(at);
    }
    let stored: RefCell<HashSet<usize>> = RefCell::default();
    let change = |known: &Label| {
        let key = (known.transcript.as_str(), known.eval.as_str());
        let mut stored = stored.borrow_mut();
        let equal = places.get(&key)?.iter().copied();
        let equal: Vec<usize> = equal.filter(|at| undated[*at].1 == known).collect();
        // Two equal lines are two labels.
        let open = equal.iter().copied().find(|at| !stored.contains(at));
        let at = open.or(equal.first().copied())?;
        stored.insert(at);
        Some(undated[at].0.add_digests(known))
    };
    if !undated.is_empty() {
        for file in list_label_files(workspace) {
            change_labels(&file, &change).map_err(to_command_error)?;
        }
    }
    let stored = stored.into_inner();
    let rest = undated.iter().enumerate();
    let rest: Vec<Label> = rest
        .filter(|(at, _)| !stored.contains(at))
        .map(|(_, (target, label))| target.add_digests(label))
        .collect();
    if rest.is_empty() {
        return Ok(());
    }
    append_labels(&workspace.labels_file_path(), &rest).map_err(to_command_error)
}

/// Returns the labels that count although dicta does not know which question they answer: those of files that older
/// versions or other programs wrote. Each person's label is one, because the digests are stored in it.
fn find_labels_without_digest<'t, 'l>(
    targets: impl IntoIterator<Item = &'t LabelTarget>,
    labels: &'l Labels,
) -> Vec<(&'t LabelTarget, &'l Label)> {
    let targets = targets.into_iter();
    targets
        .filter(|target| target.name.message.is_none())
        .flat_map(|target| {
            let answers = labels.find_answers(&target.query());
            let is_known = |label: &Label| {
                label.question_digest.is_some() && label.transcript_digest.is_some()
            };
            let known: HashSet<&str> = answers
                .iter()
                .filter(|answer| is_known(answer.label))
                .map(|answer| name_rater(answer.label))
                .collect();
            let undated = answers.into_iter().map(|answer| answer.label);
            undated
                .filter(move |label| !is_known(label) && !known.contains(name_rater(label)))
                .map(move |label| (target, label))
        })
        .collect()
}

/// Returns the targets whose label waits for a confirmation. A decision about one message has no label.
fn find_labels_to_confirm<'t, 'l>(
    targets: impl IntoIterator<Item = &'t LabelTarget>,
    labels: &'l Labels,
) -> Vec<(&'t LabelTarget, &'l Label, LabelDrift)> {
    let targets = targets.into_iter();
    targets
        .filter(|target| target.name.message.is_none())
        .filter_map(|target| match labels.look_up(&target.query()) {
            LabelLookup::ToConfirm(label, drift) => Some((target, label, drift)),
            LabelLookup::Counted(_)
            | LabelLookup::Sealed { .. }
            | LabelLookup::Shot(_)
            | LabelLookup::Unlabelled => None,
        })
        .collect()
}

fn describe_answer(passed: Option<bool>) -> &'static str {
    match passed {
        Some(true) => "pass",
        Some(false) => "fail",
        None => "unsure",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_count_new_confirmed_and_changed_labels() {
        let digest = |text: &str| Some(Digest::hash_bytes(text.as_bytes()));
        let label = |question: &str, passed| Label {
            question_digest: digest(question),
            ..Label::new("t", "e", Some(passed))
        };
        let again = |passed| {
            let mut label = label("b", passed);
            label.answer_again(&self::Label {
                question_digest: digest("a"),
                ..Label::new("t", "e", Some(true))
            });
            label
        };
        let all = [
            label("a", true),
            again(true),
            again(false),
            again(false),
            Label::new("t", "e", None),
        ];
        let (a, b) = (digest("a"), digest("b"));
        let versions = count_versions(&all);
        let counts = |new, confirmed, changed| VersionCounts {
            new,
            confirmed,
            changed,
        };
        assert_eq!(versions[&a.as_ref()], counts(4, 0, 0));
        assert_eq!(versions[&b.as_ref()], counts(0, 1, 2));
        assert_eq!(versions[&None], counts(1, 0, 0));
    }
}
