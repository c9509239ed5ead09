//! The figures of `dicta compare`: both states on the same labels, and flips without a label next to the judge's noise.
//!
//! Responsible for collecting them and for their formats. Does not compute; `compare` does.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::error::CommandError;
use super::figure_json::interval_to_json;
use super::states::{LoadedState, StateCatalog};
use crate::compare::statistics::{
    Confidence, FigurePresentation, PairedCounts, PairedDifference, PairedMethod, RepeatedCell,
};
use crate::compare::{
    EvalLabels, EvalNoise, FlipNoise, NoiseBasis, PairedFigures, StateChange,
    collect_paired_labels, compare_with_noise, compute_paired_figures, find_noisy_flip,
    measure_noise,
};
use crate::model::{Labels, RecordedDraw, pluralize};
use crate::record::{NoiseRecords, State};
use crate::report::agreement_text::describe_to_confirm;
use crate::report::html::EvalFigureLines;
use crate::report::{
    describe_flip_noise, describe_noise, describe_paired_figures, describe_undrawn_labels,
    format_as_code, format_p_value, format_points, format_points_interval,
};

/// The figures of a comparison.
pub(super) struct ComparisonFigures {
    /// The labels of each eval of the newer state.
    pub(super) labels: Vec<EvalLabels>,
    /// The figures of each of these evals.
    pub(super) paired: Vec<PairedFigures>,
    /// The noise of the judged evals of the newer state.
    noise: Vec<EvalNoise>,
    /// The flips without a label, by eval.
    flip_noise: Vec<FlipNoise>,
    records: NoiseRecords,
}

/// The noise of evals by the ids of their rubric and themselves.
pub(super) type NoiseIndex<'n> = HashMap<(&'n str, &'n str), &'n EvalNoise>;

/// Indexes the noise of evals.
pub(super) fn index_noise(noise: &[EvalNoise]) -> NoiseIndex<'_> {
    let noise = noise.iter();
    noise
        .map(|one| ((one.rubric.as_str(), one.eval.as_str()), one))
        .collect()
}

/// The figures of one eval.
struct EvalRow<'f> {
    rubric: &'f str,
    eval: &'f str,
    to_confirm: u64,
    paired: Option<&'f PairedFigures>,
    noise: Option<&'f EvalNoise>,
    flips: Option<&'f FlipNoise>,
}

impl EvalRow<'_> {
    fn is_empty(&self) -> bool {
        self.to_confirm == 0
            && !self.paired.is_some_and(PairedFigures::has_labels)
            && self.noise.is_none_or(EvalNoise::is_unknown)
            && self.flips.is_none()
    }

    /// Returns true if the eval has only labels that no draw chose, and each agrees or disagrees as before.
    fn is_unmoved(&self) -> bool {
        self.to_confirm == 0
            && self.noise.is_none_or(EvalNoise::is_unknown)
            && self.flips.is_none()
            && self.paired.is_some_and(|figures| {
                figures.measured.labels() == 0
                    && figures.debug.lost == 0
                    && figures.debug.gained == 0
            })
    }
}

impl ComparisonFigures {
    /// Computes the figures of two states.
    pub(super) fn new(
        before: &State,
        after: &State,
        labels: &Labels,
        draws: &[RecordedDraw],
        records: NoiseRecords,
    ) -> Self {
        let paired_labels = collect_paired_labels(Some(before), after, labels, draws);
        Self {
            paired: compute_paired_figures(&paired_labels, Confidence::P95),
            labels: paired_labels,
            noise: measure_noise(after, &records, Confidence::P95),
            flip_noise: compare_with_noise(before, after, labels, &records),
            records,
        }
    }

    /// Returns the figures of the states of a command.
    pub(super) fn of_states(
        [before, after]: [&LoadedState; 2],
        labels: &Labels,
        catalog: &StateCatalog,
    ) -> Result<Self, CommandError> {
        let draws = catalog.draws()?;
        let noise = catalog.noise();
        Ok(Self::new(
            &before.state,
            &after.state,
            labels,
            &draws,
            noise,
        ))
    }

    /// Returns the repeats that make a flip worthless.
    pub(super) fn noisy_flip(
        &self,
        flip: &StateChange,
        states: (&State, &State),
    ) -> Option<RepeatedCell> {
        find_noisy_flip(flip, states, &self.records)
    }

    /// Returns the number of labels that wait for a confirmation.
    pub(super) fn to_confirm(&self) -> u64 {
        self.labels.iter().map(|eval| eval.labels.to_confirm).sum()
    }

    fn rows<'f>(&'f self, after: &'f State) -> Vec<EvalRow<'f>> {
        let labels = self.labels.iter().enumerate();
        let labels: HashMap<usize, usize> = labels
            .filter_map(|(at, one)| Some((one.position?, at)))
            .collect();
        let noise = index_noise(&self.noise);
        let flips = self.flip_noise.iter().map(|one| (one.position, one));
        let flips: HashMap<usize, &FlipNoise> = flips.collect();
        let evals = after.header.evals.iter().enumerate();
        let rows = evals.map(|(position, spec)| {
            let rubric = after.rubric_id(spec);
            let at = labels.get(&position).copied();
            EvalRow {
                rubric,
                eval: &spec.id,
                to_confirm: at.map_or(0, |at| self.labels[at].labels.to_confirm),
                paired: at.map(|at| &self.paired[at]),
                noise: noise.get(&(rubric, spec.id.as_str())).copied(),
                flips: flips.get(&position).copied(),
            }
        });
        let wholes = self.labels.iter().zip(&self.paired);
        let wholes = wholes.filter(|(eval, _)| eval.position.is_none());
        let wholes = wholes.map(|(eval, figures)| EvalRow {
            rubric: &eval.rubric,
            eval: &eval.eval,
            to_confirm: eval.labels.to_confirm,
            paired: Some(figures),
            noise: None,
            flips: None,
        });
        rows.chain(wholes).filter(|row| !row.is_empty()).collect()
    }

    /// Formats the figures for people; empty without any.
    pub(super) fn format_text(&self, after: &State) -> String {
        let mut out = String::new();
        let (same, changed): (Vec<_>, Vec<_>) =
            self.rows(after).into_iter().partition(EvalRow::is_unmoved);
        let has_changed = !changed.is_empty();
        for row in changed {
            let _infallible = writeln!(out, "\n{}/{}", row.rubric, row.eval);
            for line in describe_row(&row) {
                let _infallible = writeln!(out, "  {line}");
            }
        }
        if !same.is_empty() {
            let counts = same.iter().filter_map(|row| row.paired);
            let (right, labels) = counts.fold((0, 0), |(right, labels), figures| {
                let debug = figures.debug;
                (right + debug.new_right(), labels + debug.labels())
            });
            let _infallible = writeln!(
                out,
                "\n{} with labels: agreement as before, {right} of {labels}",
                pluralize(
                    same.len() as u64,
                    if has_changed { "other eval" } else { "eval" }
                )
            );
        }
        out
    }

    /// Returns the figures for a page, by eval.
    pub(super) fn to_page(&self, after: &State) -> Vec<EvalFigureLines> {
        let rows = self.rows(after);
        let lines = rows.iter().map(|row| EvalFigureLines {
            name: format!("{}/{}", row.rubric, row.eval),
            lines: describe_row(row),
        });
        lines.collect()
    }

    /// Returns the repeats of the noise runs.
    pub(super) fn records(&self) -> &NoiseRecords {
        &self.records
    }

    /// Returns the lines on each eval with figures, by the ids of its rubric and itself.
    pub(super) fn describe_evals<'f>(
        &'f self,
        after: &'f State,
    ) -> HashMap<(&'f str, &'f str), Vec<String>> {
        let mut lines = HashMap::new();
        for row in self.rows(after) {
            let name = (row.rubric, row.eval);
            lines.entry(name).or_insert_with(|| describe_row(&row));
        }
        lines
    }

    /// Formats the figures as a table for a pull request, with the flips below; empty without any.
    pub(super) fn format_markdown(&self, after: &State) -> String {
        let rows = self.rows(after);
        if rows.is_empty() {
            return String::new();
        }
        let mut out = "\n| eval | drawn labels | agree before | agree now | lost | gained | difference, 95% interval | McNemar p | Holm p | self-flip rate |\n\
                       |---|---|---|---|---|---|---|---|---|---|\n"
            .to_owned();
        for row in &rows {
            let name = format_as_code(&format!("{}/{}", row.rubric, row.eval));
            let counts = row
                .paired
                .map_or_else(PairedCounts::default, |one| one.measured);
            let difference = row.paired.and_then(|one| one.difference.ok());
            let difference = difference.filter(|_| counts.labels() > 0).map_or_else(
                || "–".to_owned(),
                |one| {
                    let interval = format_points_interval(one.further);
                    // Very few labels show no bare number.
                    if FigurePresentation::for_labels(counts.labels())
                        == FigurePresentation::CountsOnly
                    {
                        format!("{interval} points")
                    } else {
                        format!("{interval} points ({})", format_points(one.difference))
                    }
                },
            );
            let p = |p: Option<f64>| p.map_or_else(|| "–".to_owned(), format_p_value);
            let noise = row.noise.and_then(|noise| noise.rate.ok());
            let noise = noise.map_or_else(
                || "–".to_owned(),
                |rate| {
                    let interval = rate.interval;
                    format!(
                        "{:.2} ({:.2}–{:.2})",
                        rate.rate, interval.lower, interval.upper
                    )
                },
            );
            let _infallible = writeln!(
                out,
                "| {name} | {} | {} | {} | {} | {} | {difference} | {} | {} | {noise} |",
                counts.labels(),
                counts.old_right(),
                counts.new_right(),
                counts.lost,
                counts.gained,
                p(row.paired.and_then(|one| one.p_value)),
                p(row.paired.and_then(|one| one.p_holm)),
            );
        }
        for row in &rows {
            // The table counts drawn labels alone.
            let others = row.paired.and_then(describe_undrawn_labels);
            let waiting = (row.to_confirm > 0).then(|| describe_to_confirm(row.to_confirm));
            for line in others.into_iter().chain(waiting) {
                let name = format_as_code(&format!("{}/{}", row.rubric, row.eval));
                let _infallible = writeln!(out, "\n{name}: {line}.");
            }
            if let Some(flips) = row.flips {
                let name = format_as_code(&format!("{}/{}", row.rubric, row.eval));
                let _infallible = writeln!(out, "\n{name}: {}.", describe_flip_noise(flips));
            }
        }
        out
    }

    /// Returns one JSON object per eval with figures.
    pub(super) fn to_lines(&self, after: &State) -> Vec<Value> {
        let rows = self.rows(after);
        rows.iter().map(row_to_json).collect()
    }
}

fn describe_row(row: &EvalRow<'_>) -> Vec<String> {
    let mut lines = row.paired.map(describe_paired_figures).unwrap_or_default();
    lines.extend(row.flips.map(describe_flip_noise));
    let noise = row.noise.and_then(describe_noise);
    lines.extend(noise.map(|noise| format!("noise: {noise}")));
    if row.to_confirm > 0 {
        lines.push(describe_to_confirm(row.to_confirm));
    }
    lines
}

fn counts_to_json(counts: PairedCounts) -> Value {
    json!({
        "labels": counts.labels(),
        "agree_before": counts.old_right(),
        "agree_after": counts.new_right(),
        "b": counts.lost,
        "c": counts.gained,
    })
}

/// Returns a difference of two states as JSON.
pub(super) fn difference_to_json(one: &PairedDifference) -> Value {
    json!({
        "value": one.difference,
        "lower": one.interval.lower,
        "upper": one.interval.upper,
        "further_lower": one.further.lower,
        "further_upper": one.further.upper,
        "method": name_method(one.method),
    })
}

/// Returns the word of a method in JSON.
fn name_method(method: PairedMethod) -> &'static str {
    match method {
        PairedMethod::Tango => "tango",
        PairedMethod::StratifiedT => "stratified_t",
        PairedMethod::MoverTango => "mover_tango",
    }
}

/// Returns the figures of two states on the same labels.
pub(super) fn paired_to_json(figures: &PairedFigures) -> Value {
    let measured = Some(figures).filter(|one| one.measured.labels() > 0);
    let difference = measured.and_then(|one| one.difference.ok());
    json!({
        "measured": measured.map(|one| counts_to_json(one.measured)),
        "debug": counts_to_json(figures.debug),
        "difference": difference.as_ref().map(difference_to_json),
        "undefined": measured.and_then(|one| one.difference.err()).map(|why| why.to_string()),
        "confidence": Confidence::P95.share(),
        "mcnemar_p": measured.and_then(|one| one.p_value),
        "holm_p": measured.and_then(|one| one.p_holm),
    })
}

fn row_to_json(row: &EvalRow<'_>) -> Value {
    json!({
        "type": "eval",
        "rubric": row.rubric,
        "eval": row.eval,
        "labels": row.paired.map(paired_to_json),
        "to_confirm": row.to_confirm,
        "flips_unlabelled": row.flips.map(|flips| json!({
            "flips": flips.flips,
            "judged_again": flips.judged_again,
            "noise_least": flips.expected.map(|one| one.least),
            "noise_most": flips.expected.map(|one| one.most),
            "noise_p": flips.expected.map(|one| one.p_value),
            "noise_cells": flips.expected.map(|one| one.cells),
            "noise_before_edit": flips.expected.map(|one| one.basis == NoiseBasis::Older),
        })),
        "noise": row.noise.filter(|noise| !noise.is_unknown()).map(noise_to_json),
    })
}

/// Returns the noise of an eval as JSON.
pub(super) fn noise_to_json(noise: &EvalNoise) -> Value {
    let (rate, source) = match (noise.rate, noise.own_rate) {
        (Err(_), Ok(own)) => (Some(own), "repeats"),
        (measured, _) => (measured.ok(), "noise_runs"),
    };
    let (lower, upper) = interval_to_json(rate.map(|rate| rate.interval));
    json!({
        "source": source,
        "self_flip_rate": rate.map(|rate| rate.rate),
        "lower": lower,
        "upper": upper,
        "cells": rate.map_or(0, |rate| rate.cells),
        "verdicts": noise.repeats,
        "noisy_cells": noise.noisy.len(),
        "stale": {
            "question": noise.stale.question,
            "judge": noise.stale.judge,
            "transcript": noise.stale.transcript,
        },
    })
}
