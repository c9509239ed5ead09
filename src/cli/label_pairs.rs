//! The choices of people between the transcripts of a pair: `dicta labels pairs`, `dicta labels choose`, and the part of
//! `dicta agree` about pairs.
//!
//! Responsible for the pairs of a workspace and for the counts per eval. The choices come from label files
//! (`{"pair", "better"}`) and from the transcripts' own metadata (`pair`, `choice`, `better`). An eval that compares pairs
//! chooses itself; of other evals, the transcript with the higher score counts as chosen.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::CommandCx;
use super::args::WorkspaceArgs;
use super::error::CommandError;
use super::figure_json::{estimate_to_json, people_to_json};
use super::format::Format;
use super::label_args::ChooseArgs;
use super::label_targets::{show_path, to_command_error};
use super::states::StateCatalog;
use super::workspace::load_workspace_without_judges;
use crate::compare::statistics::{Confidence, Estimate, Undefined, wilson_interval};
use crate::model::{
    Outcome, PairAgreement, PairChoice, PairPreference, compares_pairs, make_visible, pluralize,
};
use crate::record::{DecisionStanding, State};
use crate::report::agreement_text::format_estimate;
use crate::workspace::label_edit::set_choice;
use crate::workspace::{Workspace, find_label_author};

/// The transcripts of a pair, by choice.
type Pairs = BTreeMap<String, IndexMap<String, String>>;

/// The pairs of a workspace and the choices of people.
#[derive(Debug, Default)]
struct PairedTranscripts {
    pairs: Pairs,
    preferences: Vec<PairPreference>,
}

/// Prints the agreement of a state's scores and choices with the choices of people.
pub(super) fn list_pairs(
    state: &str,
    format: Format,
    place: &WorkspaceArgs,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let catalog = StateCatalog::open(place.workspace.as_deref(), &[state], cx)?;
    catalog.require_labels()?;
    let source = catalog.resolve(state)?;
    let loaded = catalog.load(state, source, 0, cx)?;
    let Some(workspace) = &catalog.workspace else {
        return Err(CommandError::usage(
            "`dicta labels pairs` needs a workspace, whose transcripts name their pairs",
        ));
    };
    let found = collect_pairs(workspace)?;
    if found.preferences.is_empty() {
        return Err(CommandError::usage(
            "no person chose between the transcripts of a pair: `dicta labels choose PAIR BETTER` writes a choice, and \
             `better` in a map with `answers` names the choices of a dataset",
        ));
    }
    let figures = compute_figures(&loaded.state, &found);
    let rows = || pairs_to_json(&figures, &found);
    let human = || {
        let out = format_pairs(&loaded.describe(), &figures, &found);
        make_visible(&out, true).into_owned()
    };
    cx.streams.print_list(format, rows, human);
    Ok(0)
}

/// Writes a person's choice between the transcripts of a pair.
pub(super) fn choose(args: &ChooseArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let workspace = load_workspace_without_judges(args.place.workspace.as_deref(), cx)?.workspace;
    let found = collect_pairs(&workspace)?;
    let choice = PairPreference {
        pair: args.pair.clone(),
        better: args.better.clone(),
        eval: args.eval.clone(),
        by: find_label_author(&cx.env, &workspace.root),
        at: Some(cx.clock.wall_time()),
        note: args.note.clone(),
    };
    let members = found.pairs.get(&choice.pair).filter(|all| all.len() > 1);
    let Some(members) = members else {
        let known: Vec<&str> = found.pairs.keys().map(String::as_str).take(5).collect();
        return Err(CommandError::usage(format!(
            "no two transcripts of this workspace have the pair `{}` in their metadata{}",
            choice.pair,
            if known.is_empty() {
                String::new()
            } else {
                format!("; the pairs are {}", known.join(", "))
            }
        )));
    };
    if found.find_members(&choice).is_none() {
        let names: Vec<&str> = members.keys().map(String::as_str).collect();
        return Err(CommandError::usage(format!(
            "`{}` is not a transcript of the pair {}; write {} or tie",
            choice.better,
            choice.pair,
            names.join(", ")
        )));
    }
    if let Some(eval) = &choice.eval
        && !workspace
            .rubrics
            .iter()
            .any(|rubric| rubric.evals.iter().any(|known| known.id == *eval))
    {
        return Err(CommandError::usage(format!(
            "no rubric of this workspace has an eval `{eval}`"
        )));
    }
    let file = workspace.labels_file_path();
    set_choice(&file, &choice).map_err(to_command_error)?;
    let shown = if workspace.is_sealed(&choice.pair) {
        "sealed"
    } else {
        &choice.better
    };
    let line = format!(
        "chose in {}: {shown} ({})\n",
        choice.pair,
        show_path(&workspace, &file)
    );
    cx.streams.print(&make_visible(&line, true));
    Ok(0)
}

/// The agreement of one eval with the choices of people.
#[derive(Debug)]
pub(super) struct PairFigures {
    rubric: String,
    eval: String,
    /// True if the judge chooses itself; otherwise the higher score counts.
    is_choice: bool,
    agreement: PairAgreement,
    /// The choices of people in pairs that the eval did not decide.
    undecided: u64,
}

impl PairFigures {
    fn estimate(&self) -> Estimate {
        let labels = self.agreement.total();
        let share = self.agreement.same as f64 / labels as f64;
        let interval = wilson_interval(share, labels as f64, Confidence::P95);
        Estimate {
            point: if labels == 0 {
                Err(Undefined::NoLabels)
            } else {
                Ok(share)
            },
            interval,
            further: interval,
            labels,
            effective_labels: labels as f64,
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "type": "pair_agreement",
            "rubric": self.rubric,
            "eval": self.eval,
            "of": if self.is_choice { "choices" } else { "scores" },
            "confidence": Confidence::P95.share(),
            "agreement": estimate_to_json(&self.estimate()),
            "counts": {
                "same": self.agreement.same,
                "opposite": self.agreement.opposite,
                "judge_tie": self.agreement.undecided,
                "people_tie": self.agreement.split_ties,
                "undecided": self.undecided,
            },
        })
    }

    fn describe(&self) -> String {
        let counts = &self.agreement;
        let equal = if self.is_choice {
            "ties of the judge"
        } else {
            "with equal scores"
        };
        let mut line = format!(
            "{}/{}  {}: {} as people chose, {} the other way, {} {equal}, {} where people saw a tie",
            self.rubric,
            self.eval,
            pluralize(counts.total(), "choice"),
            counts.same,
            counts.opposite,
            counts.undecided,
            counts.split_ties
        );
        if self.undecided > 0 {
            let missing = if self.is_choice {
                "a verdict"
            } else {
                "two scores"
            };
            let _infallible = write!(line, "; {} without {missing}", self.undecided);
        }
        line
    }
}

/// Returns the agreement of each eval with the choices of people in the pairs that `is_counted` accepts. Empty if the
/// workspace has neither choices nor an eval that compares pairs, without a look at the transcripts.
pub(super) fn compute_pair_figures(
    state: &State,
    workspace: &Workspace,
    is_counted: &dyn Fn(&str) -> bool,
) -> Result<Vec<PairFigures>, CommandError> {
    if workspace.pair_preferences.is_empty() && !workspace.field_maps.joins_pairs {
        return Ok(Vec::new());
    }
    let mut found = collect_pairs(workspace)?;
    found.preferences.retain(|one| is_counted(&one.pair));
    let mut figures = compute_figures(state, &found);
    figures.retain(|one| one.agreement.total() + one.undecided > 0);
    Ok(figures)
}

/// Adds the figures to the text of `dicta agree`.
pub(super) fn write_pair_figures(out: &mut String, figures: &[PairFigures]) {
    for one in figures {
        let of = if one.is_choice { "choices" } else { "scores" };
        let _infallible = writeln!(
            out,
            "\n{}\n  {of:<10} {}",
            make_visible(&one.describe(), false),
            format_estimate(&one.estimate())
        );
    }
}

/// Returns the figures for programs.
pub(super) fn pair_figures_to_json(figures: &[PairFigures]) -> impl Iterator<Item = Value> {
    figures.iter().map(PairFigures::to_json)
}

fn collect_pairs(workspace: &Workspace) -> Result<PairedTranscripts, CommandError> {
    let mut found = PairedTranscripts::default();
    for path in &workspace.transcripts {
        let trouble = |error: &dyn std::fmt::Display| CommandError::usage(error.to_string());
        let mut file = workspace
            .field_maps
            .open(path)
            .map_err(|error| trouble(&error))?;
        while let Some(block) = file.next_block().map_err(|error| trouble(&error))? {
            for (record, bytes) in block.records() {
                let default_id = file.default_id(record.span.number);
                let Ok(transcript) = record.parse(bytes, &default_id) else {
                    continue;
                };
                let Some(metadata) = &transcript.metadata else {
                    continue;
                };
                found.add_transcript(&transcript.id, &metadata.parse_value());
            }
        }
    }
    found
        .preferences
        .extend(workspace.pair_preferences.iter().cloned());
    found.keep_last_choices();
    Ok(found)
}

impl PairedTranscripts {
    fn add_transcript(&mut self, id: &str, metadata: &Value) {
        let text = |key: &str| metadata[key].as_str().map(str::to_owned);
        // A joined pair has the key, too, if both of its transcripts do.
        if metadata.get("compared").is_some() {
            return;
        }
        let Some(pair) = text("pair") else {
            return;
        };
        let choice = text("choice").unwrap_or_else(|| id.to_owned());
        let members = self.pairs.entry(pair.clone()).or_default();
        // The metadata of both transcripts states the choice, so the first one counts.
        if members.is_empty() {
            // Datasets of preferences name their better answer `chosen`.
            let better = text("better").or_else(|| {
                (choice == "chosen" || choice == "rejected").then(|| "chosen".to_owned())
            });
            if let Some(better) = better {
                self.preferences.push(PairPreference {
                    pair,
                    better,
                    eval: None,
                    by: None,
                    at: None,
                    note: None,
                });
            }
        }
        members.insert(choice, id.to_owned());
    }

    /// Removes all choices of a person about one question but the last one.
    fn keep_last_choices(&mut self) {
        let all = std::mem::take(&mut self.preferences).into_iter();
        let by_question: IndexMap<_, _> = all
            .map(|one| ((one.pair.clone(), one.eval.clone(), one.by.clone()), one))
            .collect();
        self.preferences = by_question.into_values().collect();
    }

    /// Returns the ids of the better and the other transcript; `None` if the pair does not have two transcripts.
    fn find_members(&self, preference: &PairPreference) -> Option<(&str, &str)> {
        let members = self.pairs.get(&preference.pair)?;
        let mut ids = members.iter();
        let (first, second) = (ids.next()?, ids.next()?);
        let is_second = |better: &str| better == second.0 || better == second.1;
        let is_first = |better: &str| better == first.0 || better == first.1;
        if preference.is_tie() || is_first(&preference.better) {
            return Some((first.1, second.1));
        }
        is_second(&preference.better).then_some((second.1, first.1))
    }

    /// Returns the number of choices of a pair that the workspace does not have, or of no transcript of their pair.
    fn count_unmatched(&self) -> u64 {
        let all = self.preferences.iter();
        let unmatched = all.filter(|one| self.find_members(one).is_none());
        unmatched.count() as u64
    }

    /// Returns true if the transcript is the first one of the pair in the file.
    fn is_first(&self, pair: &str, id: &str) -> bool {
        let first = self.pairs.get(pair).and_then(|members| members.first());
        first.is_some_and(|(_, first)| first == id)
    }
}

/// Returns the score of each transcript's decision about the whole transcript: a verdict without a score is 1 or 0.
fn score_transcripts(state: &State, eval: usize) -> BTreeMap<&str, f64> {
    let mut scores = BTreeMap::new();
    for decision in &state.evals[eval].decisions {
        let DecisionStanding::Decided { outcome, score } = decision.standing else {
            continue;
        };
        let score = match (score, outcome) {
            (Some(score), _) if outcome.is_verdict() => score,
            (None, Outcome::Pass) => 1.0,
            (None, Outcome::Fail) => 0.0,
            _ => continue,
        };
        if let (None, Some(transcript)) = (
            decision.message,
            state.transcripts.get(decision.transcript as usize),
        ) {
            scores.insert(&*transcript.id, score);
        }
    }
    scores
}

/// Returns the judge's choice in each pair: the ids of pairs with the scores of the first and the second transcript.
fn choices_of_judge(state: &State, eval: usize) -> BTreeMap<&str, (f64, f64)> {
    let scores = score_transcripts(state, eval).into_iter();
    let choices = scores.map(|(pair, score)| {
        let score = match PairChoice::from_score(score) {
            PairChoice::First => 1.0,
            PairChoice::Second => 0.0,
            PairChoice::Tie => 0.5,
        };
        (pair, (score, 1.0 - score))
    });
    choices.collect()
}

fn compute_figures(state: &State, found: &PairedTranscripts) -> Vec<PairFigures> {
    let evals = state.header.evals.iter().enumerate();
    let figures = evals.map(|(index, spec)| {
        let is_choice = compares_pairs(&spec.eval_type);
        let choices = if is_choice {
            choices_of_judge(state, index)
        } else {
            BTreeMap::new()
        };
        let scores = score_transcripts(state, index);
        let mut figures = PairFigures {
            rubric: state
                .header
                .rubrics
                .get(spec.rubric as usize)
                .map_or_else(String::new, |rubric| rubric.id.clone()),
            eval: spec.id.clone(),
            is_choice,
            agreement: PairAgreement::default(),
            undecided: 0,
        };
        let about = |one: &&PairPreference| one.eval.as_ref().is_none_or(|eval| *eval == spec.id);
        for preference in found.preferences.iter().filter(about) {
            let Some((better, other)) = found.find_members(preference) else {
                continue;
            };
            let compared = if is_choice {
                let is_first = found.is_first(&preference.pair, better);
                choices
                    .get(preference.pair.as_str())
                    .map(|(first, second)| {
                        if is_first {
                            (*first, *second)
                        } else {
                            (*second, *first)
                        }
                    })
            } else {
                scores.get(better).copied().zip(scores.get(other).copied())
            };
            match compared {
                Some((better, other)) => {
                    figures.agreement.add(better, other, preference.is_tie());
                }
                None => figures.undecided += 1,
            }
        }
        figures
    });
    figures.collect()
}

fn format_pairs(name: &str, figures: &[PairFigures], found: &PairedTranscripts) -> String {
    let mut out = format!("scores of {name} and the choices of people\n");
    for figures in figures {
        out.push_str(&figures.describe());
        out.push('\n');
    }
    let unmatched = found.count_unmatched();
    if unmatched > 0 {
        let _infallible = writeln!(
            out,
            "{} of no pair of this workspace, or of no transcript of the pair",
            pluralize(unmatched, "choice")
        );
    }
    out.push_str(&format_people(found));
    out
}

/// Returns the figures of each eval, the choices of unknown pairs, and the common choices of each two people.
fn pairs_to_json(figures: &[PairFigures], found: &PairedTranscripts) -> Vec<Value> {
    let mut rows: Vec<Value> = figures.iter().map(PairFigures::to_json).collect();
    let unmatched = found.count_unmatched();
    if unmatched > 0 {
        rows.push(json!({"type": "unmatched_choices", "choices": unmatched}));
    }
    let people = compare_people(found).into_iter();
    rows.extend(people.map(|(people, answers)| people_to_json(people, answers)));
    rows
}

/// Returns the numbers of common and of equal choices of each two people who chose in the same pairs.
fn compare_people(found: &PairedTranscripts) -> BTreeMap<(&str, &str), (u64, u64)> {
    let mut choices = BTreeMap::<_, BTreeMap<&str, Option<&str>>>::new();
    for preference in &found.preferences {
        let (Some(by), Some((better, _))) = (&preference.by, found.find_members(preference)) else {
            continue;
        };
        let question = (preference.pair.as_str(), preference.eval.as_deref());
        // People name a transcript by its id or by its choice.
        let choice = (!preference.is_tie()).then_some(better);
        choices.entry(question).or_default().insert(by, choice);
    }
    let mut pairs: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for people in choices.into_values() {
        let people: Vec<_> = people.into_iter().collect();
        for (at, (first, choice)) in people.iter().enumerate() {
            for (second, other) in &people[at + 1..] {
                let (common, same) = pairs.entry((first, second)).or_default();
                *common += 1;
                *same += u64::from(choice == other);
            }
        }
    }
    pairs
}

fn format_people(found: &PairedTranscripts) -> String {
    let mut out = String::new();
    for ((first, second), (common, same)) in compare_people(found) {
        let choices = pluralize(common, "common choice");
        let _infallible = writeln!(out, "{first} and {second}  {same} of {choices} the same");
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn preference(pair: &str, better: &str, by: &str) -> PairPreference {
        PairPreference {
            pair: pair.to_owned(),
            better: better.to_owned(),
            eval: None,
            by: Some(by.to_owned()),
            at: None,
            note: None,
        }
    }

    #[test]
    fn better_transcript_is_named_by_id_or_choice() {
        let mut found = PairedTranscripts::default();
        found.add_transcript("q1:a", &json!({"pair": "q1", "choice": "a", "better": "b"}));
        found.add_transcript("q1:b", &json!({"pair": "q1", "choice": "b", "better": "b"}));
        found.add_transcript("q2:a", &json!({"pair": "q2", "choice": "a"}));
        found.add_transcript("x", &json!({"topic": "q3"}));
        assert_eq!(found.preferences.len(), 1, "one choice per pair");
        assert_eq!(
            found.find_members(&found.preferences[0]),
            Some(("q1:b", "q1:a"))
        );
        for (better, wanted) in [
            ("q1:a", Some(("q1:a", "q1:b"))),
            ("a", Some(("q1:a", "q1:b"))),
            ("tie", Some(("q1:a", "q1:b"))),
            ("c", None),
        ] {
            assert_eq!(
                found.find_members(&preference("q1", better, "ann")),
                wanted,
                "{better}"
            );
        }
        assert_eq!(
            found.find_members(&preference("q2", "a", "ann")),
            None,
            "one transcript"
        );
    }

    #[test]
    fn people_are_compared_on_their_common_pairs() {
        let mut found = PairedTranscripts::default();
        for pair in ["q1", "q2", "q3", "q4"] {
            for choice in ["a", "b"] {
                let metadata = json!({"pair": pair, "choice": choice});
                found.add_transcript(&format!("{pair}:{choice}"), &metadata);
            }
        }
        found.preferences = vec![
            preference("q1", "a", "ann"),
            preference("q1", "b", "bo"),
            preference("q1", "q1:a", "bo"),
            preference("q2", "tie", "ann"),
            preference("q2", "a", "bo"),
            preference("q3", "Tie", "ann"),
            preference("q3", "tie", "bo"),
            preference("q4", "x", "ann"),
            preference("q4", "x", "bo"),
            preference("q4", "a", "cy"),
        ];
        found.keep_last_choices();
        assert_eq!(found.preferences.len(), 9, "the last choice counts");
        assert_eq!(
            format_people(&found),
            "ann and bo  2 of 3 common choices the same\n"
        );
    }
}
