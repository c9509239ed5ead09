//! `dicta labels raters`: the people who labelled, and how often two of them agree.
//!
//! Responsible for counts of people, pairs and causes. Does not compute rates of agreement beyond chance.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::CommandCx;
use super::args::WorkspaceArgs;
use super::error::CommandError;
use super::figure_json::people_to_json;
use super::format::Format;
use super::label_raters::{CurrentQuestions, RaterConflict, collect_answers, list_conflicts};
use super::workspace::load_workspace_without_judges;
use crate::model::{DisagreementCause, Label, make_visible, pluralize};

/// Lists the people who labelled, the agreement of each pair, the conflicts and the causes.
pub(super) fn list_raters(
    format: Format,
    place: &WorkspaceArgs,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let workspace = load_workspace_without_judges(place.workspace.as_deref(), cx)?.workspace;
    let labels = workspace.labels.iter().map(Arc::as_ref);
    let report = RaterReport {
        sealed: workspace.count_sealed() as u64,
        ..RaterReport::collect(labels, &CurrentQuestions::of(&workspace))
    };
    let human = || make_visible(&report.to_string(), true).into_owned();
    cx.streams.print_list(format, || report.to_json(), human);
    Ok(0)
}

/// The people who labelled, and their answers to common questions.
pub(super) struct RaterReport<'l> {
    /// The number of labels of each person.
    people: BTreeMap<&'l str, u64>,
    /// The numbers of common answers, and of equal ones, of each two people.
    pairs: BTreeMap<(&'l str, &'l str), (u64, u64)>,
    conflicts: Vec<RaterConflict<'l>>,
    /// The number of closed disagreements of each cause that has some.
    causes: Vec<(DisagreementCause, u64)>,
    /// The number of sealed labels, which are in no count.
    sealed: u64,
}

impl<'l> RaterReport<'l> {
    /// Counts the labels of people, without the sealed ones.
    pub(super) fn collect(
        labels: impl Iterator<Item = &'l Label> + Clone,
        questions: &CurrentQuestions<'_>,
    ) -> Self {
        let mut report = Self {
            people: BTreeMap::new(),
            pairs: BTreeMap::new(),
            conflicts: list_conflicts(labels.clone(), questions),
            causes: Vec::new(),
            sealed: 0,
        };
        for answers in collect_answers(labels.clone(), questions).into_values() {
            let mut decided: Vec<(&'l str, bool)> = Vec::new();
            for (by, passed) in answers {
                *report.people.entry(by).or_default() += 1;
                decided.extend(passed.map(|passed| (by, passed)));
            }
            for (at, (first, answer)) in decided.iter().enumerate() {
                for (second, other) in &decided[at + 1..] {
                    let (common, same) = report.pairs.entry((*first, *second)).or_default();
                    *common += 1;
                    *same += u64::from(answer == other);
                }
            }
        }
        let causes: Vec<DisagreementCause> = labels.filter_map(|label| label.cause).collect();
        for cause in DisagreementCause::ALL {
            let count = causes.iter().filter(|one| **one == cause).count() as u64;
            if count > 0 {
                report.causes.push((cause, count));
            }
        }
        report
    }

    fn to_json(&self) -> Vec<Value> {
        let people = self.people.iter();
        let people =
            people.map(|(by, labels)| json!({"type": "rater", "by": by, "labels": labels}));
        let pairs = self.pairs.iter();
        let pairs = pairs.map(|(people, answers)| people_to_json(*people, *answers));
        let conflicts = self.conflicts.iter().map(RaterConflict::to_json);
        let causes = self.causes.iter().map(
            |(cause, labels)| json!({"type": "cause", "cause": cause.as_str(), "labels": labels}),
        );
        let sealed = (self.sealed > 0).then(|| json!({"type": "sealed", "labels": self.sealed}));
        people
            .chain(pairs)
            .chain(conflicts)
            .chain(causes)
            .chain(sealed)
            .collect()
    }
}

/// Formats the report for people.
impl fmt::Display for RaterReport<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (by, count) in &self.people {
            writeln!(out, "{by}  {}", pluralize(*count, "label"))?;
        }
        for ((first, second), (common, same)) in &self.pairs {
            writeln!(
                out,
                "{first} and {second}  {same} of {} the same",
                pluralize(*common, "common answer")
            )?;
        }
        for conflict in &self.conflicts {
            writeln!(out, "conflict: {}", conflict.describe())?;
        }
        for (cause, count) in &self.causes {
            writeln!(out, "closed with the cause {}: {count}", cause.as_str())?;
        }
        if self.sealed > 0 {
            writeln!(
                out,
                "{} in no count",
                pluralize(self.sealed, "sealed label")
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(transcript: &str, by: &str, passed: Option<bool>) -> Label {
        Label {
            by: Some(by.to_owned()),
            ..Label::new(transcript, "e", passed)
        }
    }

    #[test]
    fn raters_are_compared_on_their_common_answers() {
        let closed = Label {
            cause: Some(DisagreementCause::Unclear),
            ..label("a", "bo", Some(true))
        };
        let labels = [
            label("a", "ann", Some(true)),
            closed,
            label("b", "ann", Some(true)),
            label("b", "bo", Some(false)),
            label("c", "ann", None),
            label("c", "bo", Some(true)),
            label("d", "bo", Some(true)),
        ];
        let report = RaterReport::collect(labels.iter(), &CurrentQuestions::default());
        assert_eq!(
            report.to_string(),
            "ann  3 labels\nbo  4 labels\nann and bo  1 of 2 common answers the same\n\
             conflict: b/*/e: ann pass, bo fail\nclosed with the cause unclear: 1\n"
        );
    }
}
