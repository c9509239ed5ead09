//! The figures of an eval against labels, as lines for people. `dicta agree` and the workbench print the same lines.
//!
//! Responsible for words and for the order of number and interval. Does not compute the figures; `compare` does.

mod details;

pub use details::{describe_details, details_table, explain_details};

use crate::compare::statistics::{
    AgreementFigures, ConfusionTable, Estimate, FEW_LABELS, Figure, FigurePresentation, Interval,
    SampledPopulation, rogan_gladen, shows_rogan_gladen,
};
use crate::compare::{EvalFigures, RaterFigures, RaterPair, ReferenceFigures};
use crate::model::pluralize;

/// The least TPR and TNR that people usually ask of a judge.
const LEAST_SHARE: f64 = 0.8;
/// The largest number of pairs of people that the lines name: all pairs of three people.
const MAX_LISTED_PAIRS: usize = 3;

/// Reports whether an eval has any label, or a draw whose labels are missing.
pub fn has_labels(eval: &EvalFigures) -> bool {
    let is_drawn = eval.population.cells.iter().any(|cell| cell.missing > 0);
    eval.measured.is_some() || eval.debug.labels() > 0.0 || is_drawn || eval.to_confirm > 0
}

/// Returns the number of drawn decisions without a label. The answer of a person who could not decide is a label, too.
pub fn count_missing_labels(eval: &EvalFigures) -> u64 {
    let undecided: u64 = eval.population.cells.iter().map(|cell| cell.missing).sum();
    undecided.saturating_sub(eval.drawn_unsure)
}

/// Returns the rate of Rogan and Gladen if it is meaningful.
pub fn adjusted_rate(eval: &EvalFigures) -> Option<f64> {
    let measured = eval.measured.as_ref()?;
    // The rate rests on both classes, so each needs enough labels for a number.
    if !shows_number(measured.tpr.labels) || !shows_number(measured.tnr.labels) {
        return None;
    }
    let (tpr, tnr) = (measured.tpr.point.ok()?, measured.tnr.point.ok()?);
    let judged = measured.judged_rate.ok()?;
    shows_rogan_gladen(eval.is_one_random_draw, tpr, tnr)
        .then(|| rogan_gladen(judged, tpr, tnr).ok())
        .flatten()
        .map(|found| found.rate)
}

/// Returns the lines about the population, then those about further transcripts; none without a label that a draw chose.
pub fn describe_measured(eval: &EvalFigures) -> Vec<String> {
    let Some(measured) = &eval.measured else {
        return Vec::new();
    };
    let counts = &measured.counts;
    // A draw can choose decisions with different probabilities, so a count alone is not the figure.
    let caught = |estimate: &Estimate, hits: f64, of: f64, what: &str| {
        let is_weighted = estimate
            .point
            .is_ok_and(|point| (point - hits / of).abs() >= 0.005);
        let weighted = if is_weighted {
            "; weighted by the draws"
        } else {
            ""
        };
        format!("agrees with {hits:.0} of {of:.0} {what}{weighted}")
    };
    let rows = [
        (
            "TPR",
            &measured.tpr,
            caught(
                &measured.tpr,
                counts.true_pass,
                counts.label_passes(),
                "pass labels",
            ),
        ),
        (
            "TNR",
            &measured.tnr,
            caught(
                &measured.tnr,
                counts.true_fail,
                counts.label_fails(),
                "fail labels",
            ),
        ),
        (
            "agreement",
            &measured.agreement,
            caught(
                &measured.agreement,
                counts.true_pass + counts.true_fail,
                counts.labels(),
                "labels",
            ),
        ),
    ];
    let mut out = vec![name_population(&eval.population)];
    out.extend(rows.into_iter().map(|(name, estimate, counts)| {
        format!("{name:<10} {}   {counts}", format_estimate(estimate))
    }));
    let judged = format_figure(measured.judged_rate);
    out.push(format!(
        "pass rate  {}   corrected by the labels; the judge alone: {judged}",
        format_estimate(&measured.corrected_rate)
    ));
    out.extend(adjusted_rate(eval).map(|rate| format!("           {rate:.2} by Rogan-Gladen")));
    // These two are points without an interval, so they need as many labels as a bare number.
    if FigurePresentation::for_labels(measured.agreement.labels) == FigurePresentation::CountsOnly {
        out.push(format!("base rate  {}", describe_missing_number()));
    } else {
        out.push(format!(
            "base rate  {} of the decisions should pass; a judge that only returns the more frequent verdict agrees on {}",
            format_figure(measured.weighted.base_rate()),
            format_figure(measured.weighted.majority_accuracy())
        ));
    }
    out.extend(describe_further(measured));
    out
}

/// Returns the heading of the figures about the population: without it, they look like those for further transcripts.
fn name_population(population: &SampledPopulation) -> String {
    let covered = population.covered();
    let these = match covered {
        1 => "this decision".to_owned(),
        many => format!("these {many} decisions"),
    };
    let mut cells = population.cells.iter();
    if cells.all(|cell| cell.labels == cell.population) {
        let all = if covered == 1 { "it has" } else { "all have" };
        return format!("of {these}; {all} a label, so the figures are exact for them:");
    }
    format!("of {these}, with 95% limits:")
}

/// Returns a heading and the intervals for further transcripts; nothing if they are those of the population.
fn describe_further(measured: &AgreementFigures) -> Vec<String> {
    let rows = [
        ("TPR", &measured.tpr),
        ("TNR", &measured.tnr),
        ("agreement", &measured.agreement),
        ("pass rate", &measured.corrected_rate),
    ];
    let rows = rows
        .into_iter()
        .filter(|(_, estimate)| estimate.point.is_ok());
    let differs = |(_, estimate): &(&str, &Estimate)| {
        format_range(estimate.interval) != format_range(estimate.further)
    };
    if !rows.clone().any(|row| differs(&row)) {
        return Vec::new();
    }
    let ranges: Vec<String> = rows
        .map(|(name, estimate)| format!("{name} {}", format_range(estimate.further)))
        .collect();
    vec![
        "of further transcripts like these, with 95% limits; the answer and gates use them:"
            .to_owned(),
        format!("further    {}", ranges.join(", ")),
    ]
}

/// Formats an interval of shares: `0.91–0.98`.
pub fn format_range(interval: Interval) -> String {
    let Interval { lower, upper } = interval;
    if lower < 0.0 {
        // A dash next to a minus is hard to read.
        format!("{lower:.2} to {upper:.2}")
    } else {
        format!("{lower:.2}–{upper:.2}")
    }
}

/// Returns the sentences about labels that are missing, to confirm or undecided.
pub fn describe_label_gaps(eval: &EvalFigures) -> Vec<String> {
    let population = &eval.population;
    let mut out = Vec::new();
    if eval.measured.is_some() && population.covered() < population.total() {
        out.push(format!(
            "covers {} of {}: the others have no verdict, or no draw could choose them",
            population.covered(),
            pluralize(population.total(), "decision")
        ));
    }
    let missing = count_missing_labels(eval);
    if missing > 0 && population.cells_with_missing_labels().next().is_some() {
        let drawn = pluralize(missing, "decision");
        out.push(if eval.to_confirm > 0 {
            format!("{drawn} drawn and without a label that counts: label or confirm them first")
        } else {
            format!(
                "{drawn} drawn and without a label: label them first, because those that are easy to label may differ"
            )
        });
    }
    if eval.to_confirm > 0 {
        out.push(describe_to_confirm(eval.to_confirm));
    }
    if eval.unrecorded > 0 {
        out.push(format!(
            "{} of a draw without a record, in no figure of the population: add its line to the file of draws",
            pluralize(eval.unrecorded, "label")
        ));
    }
    if eval.shots > 0 {
        out.push(format!(
            "{} left out, because the prompt shows them or copies of them to the judge",
            pluralize(eval.shots, "shot")
        ));
    }
    if eval.unsure > 0 {
        out.push(format!(
            "{} unsure or with a tie between people, in no figure",
            pluralize(eval.unsure, "label")
        ));
    }
    out
}

/// Describes labels that wait for a confirmation.
pub fn describe_to_confirm(labels: u64) -> String {
    format!(
        "{} to confirm, because the question or the transcript changed: `dicta labels drift` lists them",
        pluralize(labels, "label")
    )
}

/// Returns the line about labels that no draw chose; `None` without such labels.
pub fn describe_debug(eval: &EvalFigures) -> Option<String> {
    (eval.debug.labels() > 0.0).then(|| {
        format!(
            "debug labels, not drawn by chance, so they do not measure: {}",
            format_table(&eval.debug)
        )
    })
}

/// Returns the lines about people: the agreement of each pair, the ceiling for the judge, and the causes of
/// disagreements.
pub fn describe_people(eval: &EvalFigures) -> Vec<String> {
    let pairs = eval.people.pairs.iter();
    let mut out: Vec<String> = pairs
        .take(MAX_LISTED_PAIRS)
        .map(|pair| format!("people     {}", describe_pair(pair)))
        .collect();
    // The first pair has the most common decisions.
    if let Some(first) = out.first_mut() {
        first.push_str(", the ceiling for a judge");
    }
    let more = eval.people.pairs.len().saturating_sub(MAX_LISTED_PAIRS);
    if more > 0 {
        out.push(format!(
            "people     {} of people; `dicta agree --format json` has them",
            pluralize(more as u64, "more pair")
        ));
    }
    if eval.people.raters.len() > 2 && !out.is_empty() {
        out.push(describe_raters("all people ", &eval.people));
    }
    let causes = eval.causes;
    if causes.all_closed() > 0 {
        let counts = causes.by_cause().filter(|(_, count)| *count > 0);
        let counts: Vec<String> = counts
            .map(|(cause, count)| format!("{count} {}", cause.as_str()))
            .collect();
        out.push(format!(
            "causes     {} closed: {}; {} open",
            pluralize(causes.all_closed(), "disagreement"),
            counts.join(", "),
            causes.open
        ));
    }
    out
}

/// Describes the agreement of two people.
fn describe_pair(pair: &RaterPair) -> String {
    format!(
        "{} and {}: {} of {} the same{}; κ {}",
        pair.first,
        pair.second,
        pair.same,
        pluralize(pair.common, "common label"),
        match pair.table.agreement() {
            Ok(share) if shows_number(pair.common) => format!(" ({:.0}%)", share * 100.0),
            _ => String::new(),
        },
        format_with_range(pair.kappa(), pair.kappa_interval.ok(), pair.common),
    )
}

/// Returns the line about the agreement of several raters.
fn describe_raters(what: &str, raters: &RaterFigures) -> String {
    format!(
        "{what}{} with two answers or more, {}; α {}, Fleiss' κ {}",
        pluralize(raters.units, "decision"),
        match raters.agreement {
            Ok(share) if shows_number(raters.units) => format!("{share:.2} of pairs agree"),
            Ok(_) => format!("too few for a number (under {FEW_LABELS})"),
            Err(why) => why.to_string(),
        },
        format_few(raters.alpha, raters.units),
        format_few(raters.fleiss, raters.units),
    )
}

/// Returns the answer to "is my judge good enough?" in a sentence, as far as the labels give one.
pub fn answer_whether_good(eval: &EvalFigures) -> String {
    let Some(measured) = &eval.measured else {
        let why = match find_next_step(eval) {
            Some(AgreementStep::Confirm) => {
                "not known yet: the labels of the drawn decisions wait for a confirmation"
            }
            Some(AgreementStep::LabelDrawn) => "not known yet: the drawn decisions have no labels",
            _ if eval.drawn_unsure > 0 => {
                "not known yet: the people who labelled the drawn decisions could not decide"
            }
            _ if eval.unrecorded > 0 => {
                "not known: the file of draws has no record of the draws of these labels"
            }
            _ => "not known: no label was drawn by chance, and others do not measure",
        };
        return why.to_owned();
    };
    let missing = [
        (&measured.tpr, "more pass label"),
        (&measured.tnr, "more fail label"),
    ];
    let missing: Vec<(u64, &str)> = missing
        .into_iter()
        .map(|(estimate, class)| (FigurePresentation::missing_labels(estimate.labels), class))
        .filter(|(missing, _)| *missing > 0)
        .collect();
    let range = |estimate: &Estimate| {
        let further = estimate.further;
        format!(
            "{:.0} to {:.0}%",
            further.lower * 100.0,
            further.upper * 100.0
        )
    };
    let says = format!(
        "on further transcripts like these, the judge passes {} of what should pass, and fails {} of what should fail",
        range(&measured.tpr),
        range(&measured.tnr)
    );
    // Enough labels of one class can show that the judge is not good, whatever the other class says.
    if !missing.is_empty() && list_too_low(measured).is_empty() {
        return format!(
            "too few labels to decide: {says}. {}",
            describe_needed_labels(&missing)
        );
    }
    let baseline = measured.weighted.majority_accuracy();
    let lower = measured.agreement.further.lower;
    let answer = format!("{}: {says}", compare_with_custom(measured));
    match baseline {
        Ok(baseline) if lower <= baseline => format!(
            "{answer}. It is not shown to be better than a judge that only returns the more frequent verdict ({:.0}%)",
            baseline * 100.0
        ),
        _ => answer,
    }
}

/// Describes the labels that a decision needs: `1 more pass label and 13 more fail labels are needed`.
fn describe_needed_labels(missing: &[(u64, &str)]) -> String {
    let classes: Vec<String> = missing.iter().map(|one| pluralize(one.0, one.1)).collect();
    let verb = if let [(1, _)] = missing { "is" } else { "are" };
    format!("{} {verb} needed", classes.join(" and "))
}

/// A step that brings a person nearer to the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgreementStep {
    /// No label measures, so decisions must be drawn.
    Draw,
    /// The drawn decisions need labels.
    LabelDrawn,
    /// The labels of drawn decisions wait for a confirmation.
    Confirm,
    /// The drawn labels are too few.
    DrawMore,
    /// Every decision has a label, and they are too few.
    AddTranscripts,
}

/// Returns the step to a better answer than [`answer_whether_good`] gives now; `None` if it is a yes or a no.
pub fn find_next_step(eval: &EvalFigures) -> Option<AgreementStep> {
    let missing = count_missing_labels(eval) > 0;
    let Some(measured) = &eval.measured else {
        return Some(match (missing, eval.to_confirm > 0) {
            (true, true) => AgreementStep::Confirm,
            (true, false) => AgreementStep::LabelDrawn,
            (false, _) if has_label_everywhere(eval) => AgreementStep::AddTranscripts,
            (false, _) => AgreementStep::Draw,
        });
    };
    let mut classes = [&measured.tpr, &measured.tnr].into_iter();
    let is_no = !list_too_low(measured).is_empty();
    let is_yes =
        classes.all(|estimate| has_enough(estimate) && estimate.further.lower >= LEAST_SHARE);
    match (is_no || is_yes, missing) {
        (true, _) => None,
        (false, true) if eval.to_confirm > 0 => Some(AgreementStep::Confirm),
        (false, true) => Some(AgreementStep::LabelDrawn),
        (false, false) if has_label_everywhere(eval) => Some(AgreementStep::AddTranscripts),
        (false, false) => Some(AgreementStep::DrawMore),
    }
}

/// Returns `true` if the draws chose decisions, and none is left to label.
fn has_label_everywhere(eval: &EvalFigures) -> bool {
    let population = &eval.population;
    let labelled = population.labels() + eval.drawn_unsure;
    population.unreachable == 0 && labelled > 0 && labelled == population.covered()
}

/// Returns `TPR`, `TNR` or both: those with enough labels that are certainly under the usual measure.
fn list_too_low(measured: &AgreementFigures) -> Vec<&'static str> {
    let is_too_low =
        |estimate: &Estimate| has_enough(estimate) && estimate.further.upper < LEAST_SHARE;
    let classes = [("TPR", &measured.tpr), ("TNR", &measured.tnr)].into_iter();
    classes
        .filter(|(_, estimate)| is_too_low(estimate))
        .map(|(name, _)| name)
        .collect()
}

/// Returns true if a figure has enough labels to decide with.
fn has_enough(estimate: &Estimate) -> bool {
    FigurePresentation::missing_labels(estimate.labels) == 0
}

/// Compares TPR and TNR with the numbers that people usually ask of a judge: at least 0.80 of both, better 0.90.
fn compare_with_custom(measured: &AgreementFigures) -> String {
    const WISHED: f64 = 0.9;
    let classes = [("TPR", &measured.tpr), ("TNR", &measured.tnr)];
    let names = |is_named: &dyn Fn(&Estimate) -> bool| {
        let named = classes.iter().filter(|(_, estimate)| is_named(estimate));
        let named: Vec<&str> = named.map(|(name, _)| *name).collect();
        named.join(" and ")
    };
    let too_low = list_too_low(measured).join(" and ");
    if !too_low.is_empty() {
        return format!("no by the usual measure, because {too_low} is under {LEAST_SHARE:.2}");
    }
    let open = names(&|estimate| estimate.further.lower < LEAST_SHARE);
    if !open.is_empty() {
        return format!(
            "not shown yet by the usual measure, because {open} may be under {LEAST_SHARE:.2}"
        );
    }
    if names(&|estimate| estimate.further.lower < WISHED).is_empty() {
        format!("yes by the usual measure, because TPR and TNR are at least {WISHED:.2}")
    } else {
        format!("yes by the usual measure, because TPR and TNR are at least {LEAST_SHARE:.2}")
    }
}

fn shows_number(labels: u64) -> bool {
    FigurePresentation::for_labels(labels) != FigurePresentation::CountsOnly
}

/// Formats a figure without an interval. Very few labels give no number.
fn format_few(figure: Figure, labels: u64) -> String {
    match figure {
        Ok(_) if !shows_number(labels) => format_missing_number(),
        figure => format_figure(figure),
    }
}

/// Formats a figure with its interval, which comes first if there are few labels.
pub fn format_with_range(figure: Figure, interval: Option<Interval>, labels: u64) -> String {
    let range = interval.map(format_range);
    match (figure, range, FigurePresentation::for_labels(labels)) {
        (Err(why), ..) => format!("undefined ({why})"),
        (Ok(_), _, FigurePresentation::CountsOnly) => format_missing_number(),
        (Ok(value), None, _) => format!("{value:.2}"),
        (Ok(value), Some(range), FigurePresentation::IntervalFirst) => {
            format!("{range} ({value:.2})")
        }
        (Ok(value), Some(range), FigurePresentation::PointFirst) => format!("{value:.2} [{range}]"),
    }
}

/// Returns the lines about an eval against one that code decides: a headline, then figures. No person set these labels.
pub fn describe_reference(one: &ReferenceFigures) -> Vec<String> {
    let mut out = vec![format!(
        "against {}/{}, which code decides: {}; limits for further transcripts like these",
        one.rubric,
        one.reference,
        pluralize(one.agreement.labels, "common verdict")
    )];
    let estimates = [
        ("TPR", &one.tpr),
        ("TNR", &one.tnr),
        ("agreement", &one.agreement),
    ];
    let figures = estimates
        .iter()
        .map(|(name, estimate)| format!("{name:<10} {}", format_estimate(estimate)));
    out.extend(figures);
    out.push(format_table(&one.counts));
    if one.uncompared > 0 {
        let verdicts = pluralize(one.uncompared, "verdict");
        out.push(format!("{verdicts} without a verdict of the reference"));
    }
    out
}

/// Formats a figure with its interval. With few labels the interval comes first, and with very few no number appears.
pub fn format_estimate(estimate: &Estimate) -> String {
    let range = format_range(estimate.interval);
    let point = match estimate.point {
        Ok(point) => format!("{point:.2}"),
        Err(why) => return format!("undefined: {why}"),
    };
    match FigurePresentation::for_labels(estimate.labels) {
        FigurePresentation::CountsOnly => {
            format!(
                "{range}  {}; {} more needed to decide",
                describe_missing_number(),
                FigurePresentation::missing_labels(estimate.labels)
            )
        }
        FigurePresentation::IntervalFirst => format!("{range}  ({point})"),
        FigurePresentation::PointFirst => format!("{point}  {range}"),
    }
}

/// Returns the reason why a figure of very few labels shows no number.
pub fn describe_missing_number() -> String {
    format!("too few labels for a number (under {FEW_LABELS})")
}

/// Returns the text in the place of a figure of very few labels.
fn format_missing_number() -> String {
    format!("– (under {FEW_LABELS})")
}

fn format_figure(figure: Figure) -> String {
    match figure {
        Ok(value) => format!("{value:.2}"),
        Err(why) => format!("undefined ({why})"),
    }
}

/// Formats the counts of a table: `3 true passes, 1 false pass, …`.
pub fn format_table(table: &ConfusionTable) -> String {
    let count = |n: f64, one: &str, many: &str| {
        format!("{n:.0} {}", if (n - 1.0).abs() < 0.5 { one } else { many })
    };
    [
        count(table.true_pass, "true pass", "true passes"),
        count(table.false_pass, "false pass", "false passes"),
        count(table.true_fail, "true fail", "true fails"),
        count(table.false_fail, "false fail", "false fails"),
    ]
    .join(", ")
}

#[cfg(test)]
mod tests;
