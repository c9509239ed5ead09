//! The table of `dicta variants`, for people, as JSON and as Markdown. Does not compute figures.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::format::{Format, format_document};
use crate::compare::{PairedVariant, ShareFigure, VariantFigures, VariantTable, WinnerLuck};
use crate::model::{format_usd, make_visible, pluralize};
use crate::report::format_p_value;

/// The headings of the table.
const HEADINGS: [&str; 9] = [
    "variant",
    "TPR",
    "TNR",
    "agreement",
    "self-flip",
    "$/1000",
    "latency",
    "against the first",
    "front",
];

/// The comparison of variants on the dev labels.
pub(super) struct VariantReport {
    pub(super) eval: String,
    pub(super) table: VariantTable,
    pub(super) label_passes: u64,
    pub(super) label_fails: u64,
}

impl VariantReport {
    /// Formats the report.
    pub(super) fn format(&self, format: Format) -> String {
        match format {
            Format::Human => self.format_text(),
            Format::Markdown => self.format_markdown(),
            format => format_document(format, &self.to_json()),
        }
    }

    fn rows(&self) -> Vec<[String; 9]> {
        self.table.variants.iter().map(format_row).collect()
    }

    fn heading(&self) -> String {
        format!(
            "variants of {} on {} of dev: {} pass, {} fail",
            self.eval,
            pluralize(self.label_passes + self.label_fails, "label"),
            self.label_passes,
            self.label_fails
        )
    }

    fn format_text(&self) -> String {
        let rows = self.rows();
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.chain([HEADINGS[column].len()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
        let mut out = format!("{}\n\n", self.heading());
        let headings = HEADINGS.map(str::to_owned);
        for row in std::iter::once(&headings).chain(&rows) {
            let cells = row.iter().zip(&widths);
            let line: Vec<String> = cells
                .map(|(cell, width)| format!("{cell:<width$}"))
                .collect();
            let _infallible = writeln!(out, "{}", line.join("  ").trim_end());
        }
        for line in self.notes() {
            let _infallible = writeln!(out, "\n{line}");
        }
        out
    }

    fn format_markdown(&self) -> String {
        let mut out = format!("### {}\n\n", self.heading());
        let _infallible = writeln!(out, "| {} |", HEADINGS.join(" | "));
        let _infallible = writeln!(out, "|{}", "---|".repeat(HEADINGS.len()));
        for row in self.rows() {
            let cells = row.map(|cell| cell.replace('|', "\\|"));
            let _infallible = writeln!(out, "| {} |", cells.join(" | "));
        }
        for line in self.notes() {
            let _infallible = writeln!(out, "\n{line}");
        }
        out
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let without: u64 = self
            .table
            .variants
            .iter()
            .map(|one| one.without_verdict)
            .sum();
        if without > 0 {
            notes.push(format!(
                "no figure contains {} without a verdict; `dicta runs` lists the runs",
                pluralize(without, "decision")
            ));
        }
        notes.push(
            "intervals are 95 % (Wilson); every dev label counts once, also those that no draw chose; p is McNemar's exact test, \
             adjusted by Holm for all variants"
                .to_owned(),
        );
        if let Some(winner) = &self.table.winner {
            notes.push(describe_luck(winner));
        }
        notes
    }

    fn to_json(&self) -> Value {
        let variants = self.table.variants.iter().map(variant_to_json);
        json!({
            "type": "variants",
            "eval": self.eval,
            "labels": {"pass": self.label_passes, "fail": self.label_fails},
            "variants": variants.collect::<Vec<_>>(),
            "winner": self.table.winner.as_ref().map(|winner| json!({
                "name": self.table.variants.get(winner.position).map(|one| &one.name),
                "variants": winner.variants,
                "labels": winner.labels,
                "agreement": winner.agreement,
                "optimism": {"lower": winner.optimism.lower, "upper": winner.optimism.upper},
            })),
        })
    }
}

/// Returns the warning about the winner: `Best of 6 on 40 labels: its 92% includes 3 to 7 points of luck. Expect about
/// 85–89% on test.`
fn describe_luck(winner: &WinnerLuck) -> String {
    let percent = |share: f64| (share * 100.0).round().clamp(0.0, 100.0);
    let [lower, upper] = [winner.optimism.lower, winner.optimism.upper];
    format!(
        "Best of {} on {}: its {}% includes {} to {} points of luck. Expect about {}–{}% on test.",
        winner.variants,
        pluralize(winner.labels, "label"),
        percent(winner.agreement),
        percent(lower),
        percent(upper),
        percent(winner.agreement - upper),
        percent(winner.agreement - lower)
    )
}

fn format_row(variant: &VariantFigures) -> [String; 9] {
    let percent = |share: f64| format!("{:.0}%", share * 100.0);
    [
        make_visible(&variant.name, false).into_owned(),
        format_share(variant.tpr),
        format_share(variant.tnr),
        format_share(variant.agreement),
        variant
            .self_flip
            .map_or_else(|| "–".to_owned(), |flips| percent(flips.rate)),
        variant
            .cost_per_1000
            .map_or_else(|| "unknown".to_owned(), format_usd),
        variant
            .median
            .map_or_else(|| "cached".to_owned(), |median| median.to_string()),
        variant.paired.map_or_else(|| "–".to_owned(), format_paired),
        if variant.is_on_front { "*" } else { "" }.to_owned(),
    ]
}

/// Formats a share: `0.92 [0.80–0.97] of 40`. Few labels show no bare number.
fn format_share(share: ShareFigure) -> String {
    const FEW: u64 = 5;
    match (share.share(), share.interval) {
        (Some(_), Some(interval)) if share.labels < FEW => format!(
            "{} of {} [{:.2}–{:.2}]",
            share.hits, share.labels, interval.lower, interval.upper
        ),
        (Some(point), Some(interval)) => format!(
            "{point:.2} [{:.2}–{:.2}] of {}",
            interval.lower, interval.upper, share.labels
        ),
        _ => "no label".to_owned(),
    }
}

fn format_paired(paired: PairedVariant) -> String {
    format!(
        "+{} -{}, p {}",
        paired.counts.gained,
        paired.counts.lost,
        format_p_value(paired.p_holm)
    )
}

fn variant_to_json(variant: &VariantFigures) -> Value {
    let share = |one: ShareFigure| {
        json!({
            "value": one.share(),
            "hits": one.hits,
            "labels": one.labels,
            "lower": one.interval.map(|interval| interval.lower),
            "upper": one.interval.map(|interval| interval.upper),
        })
    };
    json!({
        "name": variant.name,
        "tpr": share(variant.tpr),
        "tnr": share(variant.tnr),
        "agreement": share(variant.agreement),
        "without_verdict": variant.without_verdict,
        "self_flip_rate": variant.self_flip.map(|flips| json!({
            "value": flips.rate,
            "lower": flips.interval.lower,
            "upper": flips.interval.upper,
            "cells": flips.cells,
        })),
        "cost_usd_per_1000": variant.cost_per_1000,
        "median_ms": variant.median.map(|median| median.0),
        "against_first": variant.paired.map(|paired| json!({
            "b": paired.counts.lost,
            "c": paired.counts.gained,
            "labels": paired.counts.labels(),
            "p": paired.p_value,
            "p_holm": paired.p_holm,
        })),
        "on_front": variant.is_on_front,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::statistics::OptimismRange;

    #[test]
    fn warning_states_the_luck_of_the_winner() {
        let winner = WinnerLuck {
            position: 1,
            variants: 6,
            labels: 40,
            agreement: 0.92,
            optimism: OptimismRange {
                lower: 0.03,
                upper: 0.07,
            },
        };
        assert_eq!(
            describe_luck(&winner),
            "Best of 6 on 40 labels: its 92% includes 3 to 7 points of luck. Expect about 85–89% on test."
        );
    }
}
