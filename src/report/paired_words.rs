//! Comparisons of two states on the same labels, and the noise of judges, in words. All formats and the screen share
//! them.
//!
//! Responsible for the wording. Does not compute figures; `compare` does.

use std::fmt::Write as _;

use crate::compare::statistics::{
    FigurePresentation, Interval, MIN_DISCORDANT, PairedCounts, RepeatedCell,
};
use crate::compare::{EvalNoise, FlipNoise, NoiseBasis, PairedFigures};
use crate::model::pluralize;

/// Formats a difference of shares in points: `+6`, `-12`, `0`.
pub fn format_points(difference: f64) -> String {
    let points = (difference * 100.0).round();
    if points == 0.0 {
        // A minus before 0 would look like a loss.
        "0".to_owned()
    } else {
        format!("{points:+.0}")
    }
}

/// Formats an interval of a difference: `+6 to +58`.
pub fn format_points_interval(interval: Interval) -> String {
    format!(
        "{} to {}",
        format_points(interval.lower),
        format_points(interval.upper)
    )
}

/// Formats a p-value: `0.063`, `<0.001`.
pub fn format_p_value(p: f64) -> String {
    if p < 0.001 {
        "<0.001".to_owned()
    } else {
        format!("{p:.3}")
    }
}

fn format_counts(counts: PairedCounts) -> String {
    let n = counts.labels();
    format!("{}/{n} → {}/{n}", counts.old_right(), counts.new_right())
}

/// Describes the progress since an earlier state: `10/15 → 15/15 agree since state 5, 95% interval of the difference
/// +6 to +58 points; 15 labels are few`. `None` if no label has a verdict in both states.
pub fn describe_progress(figures: &PairedFigures, since: &str) -> Option<String> {
    if !figures.has_labels() {
        return None;
    }
    let counts = format_counts(figures.shown_counts());
    let mut text = format!("{counts} agree since {since}");
    match &figures.difference {
        Ok(difference) if figures.measured.labels() > 0 => {
            let interval = format_points_interval(difference.further);
            let _infallible = write!(text, ", 95% interval of the difference {interval} points");
            let n = figures.measured.labels();
            if figures.has_few_labels() {
                let verb = if n == 1 { "is" } else { "are" };
                let _infallible = write!(text, "; {} {verb} few", pluralize(n, "label"));
            }
        }
        _ => text.push_str("; no interval: no label was drawn by chance"),
    }
    Some(text)
}

/// Describes the same progress with fewer words, for a narrow screen: `10/15 → 15/15 since state 5, +6 to +58 points`.
pub fn describe_progress_briefly(figures: &PairedFigures, since: &str) -> Option<String> {
    if !figures.has_labels() {
        return None;
    }
    let counts = format_counts(figures.shown_counts());
    let rest = match &figures.difference {
        Ok(difference) if figures.measured.labels() > 0 => {
            let interval = format_points_interval(difference.further);
            format!(", {interval} points")
        }
        _ => "; no interval".to_owned(),
    };
    Some(format!("{counts} since {since}{rest}"))
}

/// Describes the figures of one eval, one line each: counts, lost and gained labels, McNemar's test and the difference. Empty without
/// labels.
pub fn describe_paired_figures(figures: &PairedFigures) -> Vec<String> {
    let mut lines = Vec::new();
    let counts = figures.measured;
    if counts.labels() > 0 {
        lines.push(format!(
            "{} drawn labels agree: {} lost, {} gained",
            format_counts(counts),
            counts.lost,
            counts.gained
        ));
        if let Some(difference) = describe_difference(figures) {
            lines.push(difference);
        }
        lines.push(describe_test(figures));
    }
    lines.extend(describe_undrawn_labels(figures));
    lines
}

/// Describes the counts of labels that no draw chose; `None` without such labels.
pub fn describe_undrawn_labels(figures: &PairedFigures) -> Option<String> {
    let counts = figures.debug;
    (counts.labels() > 0).then(|| {
        format!(
            "{} labels that no draw chose agree: {} lost, {} gained; no interval, because they were not drawn by chance",
            format_counts(counts),
            counts.lost,
            counts.gained
        )
    })
}

fn describe_difference(figures: &PairedFigures) -> Option<String> {
    let difference = figures.difference.ok()?;
    let interval = format_points_interval(difference.interval);
    let point = format_points(difference.difference);
    let further = format_points_interval(difference.further);
    let further = if further == interval {
        String::new()
    } else {
        format!("; {further} for further transcripts like these")
    };
    let text = match FigurePresentation::for_labels(figures.measured.labels()) {
        FigurePresentation::PointFirst => {
            format!("difference {point} points, 95% interval {interval}")
        }
        FigurePresentation::IntervalFirst => {
            format!(
                "difference {interval} points with 95% confidence ({point}); the labels are few"
            )
        }
        FigurePresentation::CountsOnly => {
            format!(
                "difference {interval} points with 95% confidence; {} more labels needed for a number",
                FigurePresentation::missing_labels(figures.measured.labels())
            )
        }
    };
    Some(text + &further)
}

fn describe_test(figures: &PairedFigures) -> String {
    let p = figures.p_value.unwrap_or(1.0);
    let mut text = format!("exact McNemar test p = {}", format_p_value(p));
    if let Some(holm) = figures.p_holm.filter(|holm| (holm - p).abs() > 1e-12) {
        let _infallible = write!(text, ", over all evals {} (Holm)", format_p_value(holm));
    }
    if figures.measured.discordant() < MIN_DISCORDANT {
        let _infallible = write!(
            text,
            "; under {MIN_DISCORDANT} changed labels, p < 0.05 is impossible"
        );
    }
    text
}

/// Describes flips without a label next to the flips that noise gives: `9 flips without a label; noise alone gives 0–10`.
pub fn describe_flip_noise(flips: &FlipNoise) -> String {
    let counts = format!(
        "{} without a label of {} judged again",
        pluralize(flips.flips, "flip"),
        pluralize(flips.judged_again, "decision")
    );
    let Some(expected) = flips.expected else {
        let why = if flips.is_vote {
            "they are votes, and the noise of single verdicts does not show that of votes"
        } else {
            "the judge's noise is unknown; `dicta noise` measures it"
        };
        return format!("{counts}; {why}");
    };
    let mut text = format!(
        "{counts}; noise alone gives {}–{} (measured on {})",
        expected.least,
        expected.most,
        pluralize(expected.cells, "cell")
    );
    if expected.basis == NoiseBasis::Older {
        text.push_str(", with the question and judge before the edit");
    }
    if expected.p_value < 0.05 {
        let p = format_p_value(expected.p_value);
        let _infallible = write!(text, "; noise does not explain them (p = {p})");
    } else {
        text.push_str("; noise alone can explain them");
    }
    text
}

/// Describes the noise of a judge: the self-flip rate with its interval, and repeats that are about something else.
/// `None` if nothing was repeated.
pub fn describe_noise(noise: &EvalNoise) -> Option<String> {
    if noise.is_unknown() {
        return None;
    }
    let mut text = match (&noise.rate, &noise.own_rate) {
        (Ok(rate), _) => format!(
            "{:.2} self-flip rate, 95% interval {:.2}–{:.2}, {} in {}; {} {} without an edit",
            rate.rate,
            rate.interval.lower,
            rate.interval.upper,
            pluralize(noise.repeats, "verdict"),
            pluralize(rate.cells, "cell"),
            noise.noisy.len(),
            if noise.noisy.len() == 1 {
                "differs"
            } else {
                "differ"
            }
        ),
        (Err(_), Ok(own)) => format!(
            "{:.2} self-flip rate of the eval's own repeats, 95% interval {:.2}–{:.2}, in {}",
            own.rate,
            own.interval.lower,
            own.interval.upper,
            pluralize(own.cells, "decision")
        ),
        (Err(_), Err(_)) => "unknown for this question, judge and these transcripts".to_owned(),
    };
    if let Some(stale) = noise.stale.describe() {
        let _infallible = write!(text, "; not used: {stale}");
    }
    Some(text)
}

/// Describes a flip whose cell differs without an edit: `noise: 3 of 5 repeats pass, so this flip proves nothing`.
pub fn mark_noisy_flip(cell: RepeatedCell) -> String {
    format!(
        "noise: {} of {} repeats pass, so this flip proves nothing",
        cell.passes, cell.repeats
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::ExpectedFlips;
    use crate::compare::statistics::{Confidence, PairedDifference, PairedMethod, tango_interval};

    fn figures(lost: u64, gained: u64, labels: u64) -> PairedFigures {
        let measured = PairedCounts {
            both_right: labels - lost - gained,
            lost,
            gained,
            both_wrong: 0,
        };
        PairedFigures {
            measured,
            debug: PairedCounts::default(),
            difference: Ok(PairedDifference {
                difference: measured.difference().expect("labels"),
                interval: tango_interval(lost, gained, labels, Confidence::P95),
                further: tango_interval(lost, gained, labels, Confidence::P95),
                method: PairedMethod::Tango,
                mean: None,
            }),
            p_value: Some(measured.mcnemar_exact()),
            p_holm: Some((2.0 * measured.mcnemar_exact()).min(1.0)),
        }
    }

    #[test]
    fn progress_has_counts_interval_and_a_warning_about_few_labels() {
        assert_eq!(
            describe_progress(&figures(0, 5, 15), "state 5").as_deref(),
            Some(
                "10/15 → 15/15 agree since state 5, 95% interval of the difference +6 to +58 points; 15 labels are few"
            )
        );
        assert_eq!(
            describe_progress_briefly(&figures(0, 5, 15), "state 5").as_deref(),
            Some("10/15 → 15/15 since state 5, +6 to +58 points")
        );
        let many = describe_progress(&figures(3, 11, 100), "state 2").expect("labels");
        assert!(many.ends_with("difference +1 to +16 points"), "{many}");
    }

    #[test]
    fn labels_that_no_draw_chose_have_no_interval() {
        let picked = PairedFigures {
            measured: PairedCounts::default(),
            debug: figures(0, 1, 3).measured,
            p_value: None,
            ..figures(0, 1, 3)
        };
        assert_eq!(
            describe_progress(&picked, "state 1").as_deref(),
            Some("2/3 → 3/3 agree since state 1; no interval: no label was drawn by chance")
        );
        assert_eq!(describe_paired_figures(&picked).len(), 1);
    }

    #[test]
    fn test_names_the_limit_of_few_changed_labels() {
        let lines = describe_paired_figures(&figures(0, 5, 15));
        assert_eq!(
            lines,
            [
                "10/15 → 15/15 drawn labels agree: 0 lost, 5 gained",
                "difference +6 to +58 points with 95% confidence (+33); the labels are few",
                "exact McNemar test p = 0.062, over all evals 0.125 (Holm); under 6 changed labels, p < 0.05 is impossible",
            ]
        );
        // Strata that were labelled completely have no width for themselves, next to a p-value of 0.727.
        let mut complete = figures(3, 5, 26);
        complete.difference = complete.difference.map(|one| PairedDifference {
            interval: Interval::exact(one.difference),
            method: PairedMethod::StratifiedT,
            ..one
        });
        let lines = describe_paired_figures(&complete).join("\n");
        assert!(
            lines.contains("interval +8 to +8; -15 to +30 for further transcripts like these"),
            "{lines}"
        );
        let progress = describe_progress(&complete, "state 2").expect("labels");
        assert!(
            progress.ends_with("difference -15 to +30 points"),
            "{progress}"
        );
        let few = describe_paired_figures(&figures(0, 1, 3)).join("\n");
        assert!(
            few.contains("17 more labels needed") && !few.contains("(+33)"),
            "{few}"
        );
    }

    #[test]
    fn flips_are_next_to_the_range_of_noise() {
        let flips = |expected| FlipNoise {
            position: 0,
            flips: 9,
            judged_again: 60,
            expected,
            is_vote: false,
        };
        let expected = ExpectedFlips {
            least: 0,
            most: 10,
            p_value: 0.06,
            cells: 100,
            basis: NoiseBasis::Newer,
        };
        assert_eq!(
            describe_flip_noise(&flips(Some(expected))),
            "9 flips without a label of 60 decisions judged again; noise alone gives 0–10 (measured on 100 cells); noise \
             alone can explain them"
        );
        let older = ExpectedFlips {
            basis: NoiseBasis::Older,
            p_value: 0.01,
            ..expected
        };
        let text = describe_flip_noise(&flips(Some(older)));
        assert!(
            text.contains("before the edit; noise does not explain them (p = 0.010)"),
            "{text}"
        );
        assert!(describe_flip_noise(&flips(None)).contains("the judge's noise is unknown"));
    }

    #[test]
    fn no_loss_has_no_sign() {
        assert_eq!(format_points(-0.001), "0");
        assert_eq!(format_points(-0.12), "-12");
        assert_eq!(format_p_value(0.0004), "<0.001");
    }
}
