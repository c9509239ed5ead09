//! `dicta compare --migration`: two states that differ only in the judge, on the same labels.
//!
//! Responsible for the check that nothing else differs, for cost and latency, and for the output. Does not compute
//! figures; `compare` does.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::compare_figures::{ComparisonFigures, difference_to_json};
use super::error::CommandError;
use super::figure_json::estimate_to_json;
use super::states::{LoadedState, StateCatalog};
use crate::compare::statistics::{
    AgreementFigures, Confidence, Estimate, Figure, FigurePresentation, NonInferiority, Undefined,
    labels_for_non_inferiority,
};
use crate::compare::{PairSide, PairedLabels};
use crate::event::{EvalSpec, RunHeader};
use crate::model::{Digest, Millis, format_usd, pluralize};
use crate::record::{EvalEditKind, State, find_edits};
use crate::report::agreement_text::{format_range, format_with_range};
use crate::report::{describe_edit, format_points};

/// The classes of labels with their figures: TPR over labelled passes, TNR over labelled fails.
const CLASSES: [(&str, bool); 2] = [("TPR", true), ("TNR", false)];

/// The comparison of two judges.
pub(super) struct MigrationReport {
    margin: f64,
    sides: [JudgeSide; 2],
    evals: Vec<EvalMigration>,
}

/// One of the judges.
struct JudgeSide {
    /// The judges of the evals that moved, by name and model.
    judges: Vec<String>,
    /// The number of verdicts with a known cost, and the sum in USD.
    priced: u64,
    cost_usd: f64,
    /// The durations of the judged cells, sorted.
    durations: Vec<Millis>,
}

struct EvalMigration {
    rubric: String,
    eval: String,
    labels: PairedLabels,
    figures: [Option<AgreementFigures>; 2],
}

impl MigrationReport {
    /// Compares two states. The error names every difference that is not the judge.
    pub(super) fn new(
        sides: [&LoadedState; 2],
        figures: &ComparisonFigures,
        margin: f64,
        catalog: &StateCatalog,
    ) -> Result<Self, CommandError> {
        let [before, after] = sides.map(|side| &side.state);
        let moved = find_moved_evals(before, after).map_err(CommandError::usage)?;
        let names: HashSet<(&str, &str)> = moved
            .iter()
            .map(|(rubric, eval)| (rubric.as_str(), eval.as_str()))
            .collect();
        let evals = figures
            .labels
            .iter()
            .filter(|one| names.contains(&(one.rubric.as_str(), one.eval.as_str())));
        let evals = evals.map(|one| EvalMigration {
            rubric: one.rubric.clone(),
            eval: one.eval.clone(),
            figures: [PairSide::Older, PairSide::Newer]
                .map(|side| one.labels.side_figures(side, Confidence::P95)),
            labels: one.labels.clone(),
        });
        let evals = evals.collect();
        let [old, new] = [before, after].map(|state| measure_side(state, &names, sides, catalog));
        Ok(Self {
            margin,
            sides: [old?, new?],
            evals,
        })
    }

    /// Formats the report for people.
    pub(super) fn format_text(&self) -> String {
        let [old, new] = &self.sides;
        let mut out = format!(
            "\nmigration from {} to {}, margin {} points; intervals for further transcripts like these\n",
            old.judges.join(", "),
            new.judges.join(", "),
            format_points(self.margin).trim_start_matches('+')
        );
        for eval in &self.evals {
            let _infallible = writeln!(out, "\n{}/{}", eval.rubric, eval.eval);
            eval.write(&mut out, self.margin);
        }
        if self.evals.iter().all(|eval| eval.figures[0].is_none()) {
            out.push_str(
                "\nno drawn label has a verdict of both judges: `dicta label --queue random --eval EVAL` draws what to label\n",
            );
        }
        for (word, side) in [("before", old), ("after", new)] {
            let _infallible = writeln!(out, "{word}: {}", side.describe_cost());
        }
        out
    }

    /// Returns the report as JSON.
    pub(super) fn to_json(&self) -> Value {
        let [old, new] = &self.sides;
        json!({
            "margin": self.margin,
            "before": old.to_json(),
            "after": new.to_json(),
            "evals": self.evals.iter().map(|eval| eval.to_json(self.margin)).collect::<Vec<_>>(),
        })
    }
}

/// Returns the evals whose judge differs. The error lists what else differs.
fn find_moved_evals(before: &State, after: &State) -> Result<Vec<(String, String)>, String> {
    let edits = find_edits(&before.header, &after.header);
    let (judges, others): (Vec<_>, Vec<_>) = edits
        .iter()
        .partition(|edit| edit.kind == EvalEditKind::Judge);
    let mut problems: Vec<String> = others.into_iter().map(describe_edit).collect();
    let old = before.transcripts.iter();
    let old: HashMap<&str, &Digest> = old.map(|one| (&*one.id, &one.digest)).collect();
    for transcript in after.transcripts.iter() {
        match old.get(&*transcript.id) {
            Some(digest) if **digest == transcript.digest => {}
            Some(_) => problems.push(format!("transcript {}: another text", transcript.id)),
            None => problems.push(format!(
                "transcript {}: only in the newer state",
                transcript.id
            )),
        }
    }
    let new: HashSet<&str> = after.transcripts.iter().map(|one| &*one.id).collect();
    let gone = before.transcripts.iter();
    let gone = gone.filter(|one| !new.contains(&*one.id));
    problems.extend(gone.map(|one| format!("transcript {}: only in the older state", one.id)));
    if !problems.is_empty() {
        const SHOWN: usize = 5;
        let more = problems.len().saturating_sub(SHOWN);
        problems.truncate(SHOWN);
        let more = if more > 0 {
            format!(", and {more} more")
        } else {
            String::new()
        };
        return Err(format!(
            "--migration needs two states that differ only in the judge; these differ in {}{more}. Judge the newer \
             rubric with the old judge first, or leave out --migration",
            problems.join(", ")
        ));
    }
    if judges.is_empty() {
        return Err(
            "--migration needs two states that differ in the judge, and both have the same judges; change the judge in \
             dicta.yaml and run again"
                .to_owned(),
        );
    }
    Ok(judges
        .into_iter()
        .map(|edit| (edit.rubric.clone(), edit.eval.clone()))
        .collect())
}

fn name_judges(header: &RunHeader, spec: &EvalSpec) -> Vec<String> {
    let judges = match &spec.panel {
        Some(panel) => panel.judges.as_slice(),
        None => spec.judge.as_slice(),
    };
    let configs = judges
        .iter()
        .filter_map(|judge| header.judges.get(*judge as usize));
    configs
        .map(|judge| {
            let config = &judge.config;
            if config.model.is_empty() {
                config.name.clone()
            } else {
                format!("{} ({})", config.name, config.model)
            }
        })
        .collect()
}

/// Reads the cost and the duration of the verdicts of the evals that moved.
fn measure_side(
    state: &State,
    evals: &HashSet<(&str, &str)>,
    sides: [&LoadedState; 2],
    catalog: &StateCatalog,
) -> Result<JudgeSide, CommandError> {
    let moved = |spec: &EvalSpec| evals.contains(&(state.rubric_id(spec), spec.id.as_str()));
    let mut judges: Vec<String> = Vec::new();
    let mut cells = Vec::new();
    for (spec, eval) in state.header.evals.iter().zip(&state.evals) {
        if !moved(spec) {
            continue;
        }
        for name in name_judges(&state.header, spec) {
            if !judges.contains(&name) {
                judges.push(name);
            }
        }
        cells.extend(
            eval.decisions
                .iter()
                .flat_map(|one| one.cells.iter().copied()),
        );
    }
    let results = catalog.read_results(sides, cells.into_iter())?;
    let (mut priced, mut cost_usd, mut durations) = (0, 0.0, Vec::new());
    for result in results.values() {
        // A look-up in the cache is free and fast, so a cached result counts with what it took at first.
        let (usd, duration) = result.asking();
        durations.extend(duration);
        if let Some(usd) = usd {
            priced += 1;
            cost_usd += usd;
        }
    }
    durations.sort_unstable();
    Ok(JudgeSide {
        judges,
        priced,
        cost_usd,
        durations,
    })
}

impl JudgeSide {
    fn mean_cost(&self) -> Option<f64> {
        (self.priced > 0).then(|| self.cost_usd / self.priced as f64)
    }

    /// Returns the duration that this share of the verdicts does not exceed.
    fn duration(&self, share: f64) -> Option<Millis> {
        let last = self.durations.len().checked_sub(1)?;
        let at = (last as f64 * share).round();
        // The share is at most 1, so the position is at most `last`.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "see above"
        )]
        self.durations.get(at as usize).copied()
    }

    fn describe_cost(&self) -> String {
        let cost = self.mean_cost().map_or_else(
            || "cost unknown".to_owned(),
            |usd| format!("{} per verdict", format_usd(usd)),
        );
        let time = match (self.duration(0.5), self.duration(0.95)) {
            (Some(median), Some(late)) => format!("median {median}, 95% within {late}"),
            _ => "latency unknown".to_owned(),
        };
        format!(
            "{}: {cost}, {time}, from {}",
            self.judges.join(", "),
            pluralize(self.durations.len() as u64, "verdict")
        )
    }

    fn to_json(&self) -> Value {
        json!({
            "judges": self.judges,
            "verdicts": self.durations.len(),
            "mean_cost_usd": self.mean_cost(),
            "median_ms": self.duration(0.5).map(|time| time.0),
            "p95_ms": self.duration(0.95).map(|time| time.0),
        })
    }
}

/// Formats a figure with its interval for further transcripts, because the newer judge is about to be used on them.
fn format_estimate(estimate: &Estimate) -> String {
    let interval = Some(estimate.further);
    match FigurePresentation::for_labels(estimate.labels) {
        FigurePresentation::CountsOnly if estimate.point.is_ok() => format_range(estimate.further),
        _ => format_with_range(estimate.point, interval, estimate.labels),
    }
}

impl EvalMigration {
    fn write(&self, out: &mut String, margin: f64) {
        let [Some(old), Some(new)] = &self.figures else {
            out.push_str("  no drawn label has a verdict of both judges\n");
            self.write_debug(out);
            return;
        };
        for (name, class) in CLASSES {
            let estimate = |figures: &AgreementFigures| {
                format_estimate(if class { &figures.tpr } else { &figures.tnr })
            };
            let counts = self.labels.counts(Some(class));
            let _infallible = writeln!(
                out,
                "  {name:<10} {} → {}   {} lost, {} gained of {}",
                estimate(old),
                estimate(new),
                counts.lost,
                counts.gained,
                pluralize(counts.labels(), "label")
            );
            let _infallible = writeln!(out, "             {}", self.describe_test(class, margin));
        }
        let rows = [
            ("agreement", &old.agreement, &new.agreement),
            ("pass rate", &old.corrected_rate, &new.corrected_rate),
        ];
        for (name, old, new) in rows {
            let _infallible = writeln!(
                out,
                "  {name:<10} {} → {}{}",
                format_estimate(old),
                format_estimate(new),
                if name == "pass rate" {
                    "   corrected by the labels"
                } else {
                    ""
                }
            );
        }
        self.write_debug(out);
    }

    /// Writes the counts of labels that no draw chose. They describe themselves only, so they have no interval.
    fn write_debug(&self, out: &mut String) {
        for (name, class) in CLASSES {
            let counts = self.labels.debug_counts(Some(class));
            let labels = counts.labels();
            if labels > 0 {
                let _infallible = writeln!(
                    out,
                    "  {name:<10} {} → {} of {} that no draw chose   {} lost, {} gained; no interval",
                    counts.old_right(),
                    counts.new_right(),
                    pluralize(labels, "label"),
                    counts.lost,
                    counts.gained,
                );
            }
        }
    }

    fn test(&self, class: bool, margin: f64) -> Result<NonInferiority, Undefined> {
        self.labels.non_inferiority(Some(class), margin)
    }

    fn describe_test(&self, class: bool, margin: f64) -> String {
        let points = format_points(margin);
        let points = points.trim_start_matches('+');
        match self.test(class, margin) {
            Ok(NonInferiority {
                lower_limit,
                is_shown,
            }) => {
                let answer = if is_shown {
                    format!("not worse by {points} points or more")
                } else {
                    let needed = self.labels_needed(class, margin);
                    format!(
                        "not shown; about {needed} labels of the class show it if nothing changed"
                    )
                };
                format!(
                    "{answer}: the lower limit of the difference is {} points",
                    format_points(lower_limit)
                )
            }
            Err(why) => format!("undefined: {why}"),
        }
    }

    fn labels_needed(&self, class: bool, margin: f64) -> u64 {
        /// The smallest share of discordant labels to plan with; without one, no label would be needed.
        const LEAST_DISCORDANT: f64 = 0.05;
        let counts = self.labels.counts(Some(class));
        let share = counts.discordant() as f64 / counts.labels().max(1) as f64;
        labels_for_non_inferiority(margin, share.max(LEAST_DISCORDANT))
    }

    fn to_json(&self, margin: f64) -> Value {
        let estimates = |choose: &dyn Fn(&AgreementFigures) -> Estimate| {
            let [old, new] = &self.figures;
            json!({
                "before": old.as_ref().map(|one| estimate_to_json(&choose(one))),
                "after": new.as_ref().map(|one| estimate_to_json(&choose(one))),
            })
        };
        let class_to_json = |class: bool| {
            let counts = self.labels.counts(Some(class));
            let test = self.test(class, margin).ok();
            let difference = self.labels.difference(Some(class), Confidence::P95).ok();
            let mut value = estimates(&|one| if class { one.tpr } else { one.tnr });
            let debug = self.labels.debug_counts(Some(class));
            value["debug"] = json!({"labels": debug.labels(), "b": debug.lost, "c": debug.gained});
            value["labels"] = counts.labels().into();
            value["b"] = counts.lost.into();
            value["c"] = counts.gained.into();
            value["difference"] = json!(difference.as_ref().map(difference_to_json));
            value["lower_limit"] = json!(test.map(|test| test.lower_limit));
            value["non_inferior"] = json!(test.map(|test| test.is_shown));
            value
        };
        let rate = |figure: Figure| figure.ok();
        let judged_rates = self
            .figures
            .each_ref()
            .map(|one| one.as_ref().and_then(|one| rate(one.judged_rate)));
        json!({
            "rubric": self.rubric,
            "eval": self.eval,
            "tpr": class_to_json(true),
            "tnr": class_to_json(false),
            "agreement": estimates(&|one| one.agreement),
            "corrected_pass_rate": estimates(&|one| one.corrected_rate),
            "judged_pass_rate": {"before": judged_rates[0], "after": judged_rates[1]},
        })
    }
}
