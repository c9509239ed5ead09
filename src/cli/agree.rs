//! `dicta agree`: the agreement of a state with the labels, per eval, with intervals.
//!
//! Responsible for the population and for the output. Does not compute the figures; `compare` does.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::CommandCx;
use super::agree_gate::apply_gate;
use super::agree_unseal::{look_to_json, read_looks, record_unsealing, unseal_labels, write_looks};
use super::agreement_args::AgreeArgs;
use super::compare_figures::{NoiseIndex, index_noise, noise_to_json};
use super::error::CommandError;
use super::figure_json::{estimate_to_json, figure_to_json, interval_to_json};
use super::format::{Format, format_list};
use super::label_pairs::{compute_pair_figures, pair_figures_to_json, write_pair_figures};
use super::population::select_figures_population;
use super::states::{LoadedState, StateCatalog};
use crate::compare::statistics::{
    BootstrapInterval, Confidence, ConfusionTable, Estimate, Interval,
};
use crate::compare::{
    EvalFigures, EvalNoise, RaterFigures, ReferenceFigures, TableIntervals, compute_judge_figures,
    compute_label_figures, compute_reference_figures, measure_noise, measure_own_noise,
};
use crate::event::EvalSpec;
use crate::model::{make_visible, pluralize, quote_shell_word};
use crate::record::RecordedCell;
use crate::report::agreement_text::{
    AgreementStep, adjusted_rate, answer_whether_good, count_missing_labels, describe_debug,
    describe_details, describe_label_gaps, describe_measured, describe_people, describe_reference,
    find_next_step, format_estimate, has_labels,
};
use crate::report::{ReportDetail, describe_noise};

/// Prints the figures.
pub(super) fn agree(args: &AgreeArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let catalog = StateCatalog::open(args.place.workspace.as_deref(), &[&args.state], cx)?;
    catalog.require_labels()?;
    let source = catalog.resolve(&args.state)?;
    let loaded = catalog.load(&args.state, source, 0, cx)?;
    let labels = if args.unseal {
        unseal_labels(&catalog, &loaded)?
    } else {
        catalog.labels(&[&loaded], cx)
    };
    let draws = catalog.draws()?;
    let population = match (&args.population, &catalog.workspace) {
        (None, _) => None,
        (Some(filter), Some(workspace)) => Some(select_figures_population(filter, workspace, cx)?),
        (Some(_), None) => {
            return Err(CommandError::usage(
                "--population needs a workspace: a file of results alone has no tags and groups",
            ));
        }
    };
    let state = &loaded.state;
    let mut figures = compute_label_figures(state, &labels, &draws, Confidence::P95, |decision| {
        let selected = population.as_ref();
        selected
            .is_none_or(|names: &HashSet<String>| names.contains(&state.name(decision).to_string()))
    });
    let mut noise = measure_noise(state, &catalog.noise(), Confidence::P95);
    let several = || state.decisions().filter(|one| one.cells.len() > 1);
    // The agreement of judges and repeats needs the results of their cells, which the state does not keep. Only details
    // and the noise of repeats show it.
    let evals = &state.header.evals;
    let needs_results = args.unseal
        || cx.streams.out.detail == ReportDetail::Verbose
        || matches!(args.format, Format::Json | Format::Jsonl)
        || evals.iter().any(|eval| eval.repeat > 1);
    if needs_results && several().next().is_some() {
        let cells = several().flat_map(|one| one.cells.iter().copied());
        let results = catalog.read_results([&loaded, &loaded], cells)?;
        let verdict = |cell: &RecordedCell| results.get(cell)?.outcome.passed();
        measure_own_noise(&mut noise, state, Confidence::P95, verdict);
        for (eval, judges) in figures
            .iter_mut()
            .zip(compute_judge_figures(state, verdict))
        {
            eval.judges = judges;
        }
    }
    let references = compare_with_references(&catalog, &loaded, population.as_ref());
    if args.unseal {
        let rows = figures.iter().filter(|eval| has_labels(eval));
        record_unsealing(
            &catalog,
            &loaded,
            rows.map(|eval| eval_to_json(eval, None)).collect(),
            cx,
        )?;
    }
    let pairs = match &catalog.workspace {
        // The choices of the test part appear only after it is unsealed, as its labels do.
        Some(workspace) => compute_pair_figures(state, workspace, &|pair| {
            workspace.is_sealed(pair) == args.unseal
        })?,
        None => Vec::new(),
    };
    let looks = read_looks(&catalog)?;
    let noise = index_noise(&noise);
    let to_json = || {
        let evals = figures.iter();
        let evals = evals.map(|eval| eval_to_json(eval, find_noise(&noise, eval)));
        let evals = evals.chain(references.iter().map(reference_to_json));
        let evals = evals.chain(pair_figures_to_json(&pairs));
        evals.chain(looks.iter().map(look_to_json)).collect()
    };
    let text = match args.format {
        Format::Markdown => {
            let mut out = format_markdown(&figures, &references, &noise);
            if let Some(lines) = describe_unlabelled(&figures, &state.header.evals) {
                let _infallible = write!(out, "\n- {}\n", lines.join("\n  - "));
            }
            out
        }
        format => format_list(format, to_json, || {
            let labels = if args.unseal {
                "the sealed labels"
            } else {
                "the labels"
            };
            let title = format!(
                "agreement of {} with {labels} as they are now, 95% intervals\n",
                loaded.describe()
            );
            let mut out = format_human(title, &figures, &noise, cx.streams.out.detail);
            if let Some(lines) = describe_unlabelled(&figures, &state.header.evals) {
                let lines = lines.join("\n  ");
                let _infallible = writeln!(out, "\n{}", make_visible(&lines, true));
            }
            write_noise_without_labels(&mut out, &figures, &noise);
            write_references(&mut out, &references);
            write_pair_figures(&mut out, &pairs);
            write_looks(&mut out, &looks, &figures);
            out
        }),
    };
    cx.streams.print_format(args.format, &text);
    Ok(args
        .fail_on
        .as_ref()
        .map_or(0, |gate| apply_gate(gate, state, &figures, cx)))
}

/// Returns the noise of the judge of an eval.
fn find_noise<'n>(noise: &NoiseIndex<'n>, eval: &EvalFigures) -> Option<&'n EvalNoise> {
    noise.get(&(&*eval.rubric, &*eval.eval)).copied()
}

fn format_human(
    title: String,
    figures: &[EvalFigures],
    noise: &NoiseIndex<'_>,
    detail: ReportDetail,
) -> String {
    let mut out = title;
    for eval in figures.iter().filter(|eval| has_labels(eval)) {
        let _infallible = write!(out, "\n{}/{}", eval.rubric, eval.eval);
        let population = &eval.population;
        if eval.measured.is_some() {
            let _infallible = writeln!(
                out,
                "  {} drawn by chance from {}",
                pluralize(population.labels(), "label"),
                pluralize(population.covered(), "decision")
            );
        } else {
            out.push('\n');
        }
        let mut lines = vec![format!("good enough? {}", answer_whether_good(eval))];
        lines.extend(describe_next_step(eval));
        lines.extend(describe_measured(eval));
        let noise = find_noise(noise, eval).and_then(describe_noise);
        lines.extend(noise.map(|noise| format!("noise      {noise}")));
        lines.extend(describe_label_gaps(eval));
        lines.extend(describe_debug(eval));
        lines.extend(describe_people(eval));
        if detail == ReportDetail::Verbose {
            lines.extend(describe_details(eval));
        }
        for line in lines {
            let _infallible = writeln!(out, "  {}", make_visible(&line, false));
        }
    }
    out
}

/// Returns the lines of the evals without labels, and the next step for one of them; `None` if all have labels.
fn describe_unlabelled(figures: &[EvalFigures], specs: &[EvalSpec]) -> Option<Vec<String>> {
    let without = list_unlabelled(figures, specs);
    let (mut names, mut no_figure) = (Vec::new(), Vec::new());
    for (eval, _) in &without {
        let name = format!("{}/{}", eval.rubric, eval.eval);
        match describe_useless_labels(eval) {
            Some(labels) => no_figure.push(format!("{name} ({labels})")),
            None => names.push(name),
        }
    }
    let (first, _) = without.first()?;
    let mut lines = Vec::new();
    for (title, evals) in [
        ("without labels that make a figure", no_figure),
        ("without labels", names),
    ] {
        if !evals.is_empty() {
            lines.push(format!("{title}: {}", evals.join(", ")));
        }
    }
    // Code decides the others, so their labels are less urgent, unless no eval has labels.
    let mut judged = without
        .iter()
        .filter(|(eval, is_judged)| *is_judged && eval.decisions > 0);
    let next = judged.next().map(|(eval, _)| eval);
    let next = next.or_else(|| (!figures.iter().any(has_labels)).then_some(first));
    lines.extend(next.and_then(describe_next_step));
    Some(lines)
}

/// Returns the evals without labels, each with true if a judge decides it. Labels are about the whole of several parts, so the
/// parts have none: a whole without labels replaces them.
fn list_unlabelled(figures: &[EvalFigures], specs: &[EvalSpec]) -> Vec<(EvalFigures, bool)> {
    let mut all: Vec<(EvalFigures, bool)> = Vec::new();
    let known = figures.iter().map(|one| (&*one.rubric, &*one.eval));
    let mut known: HashSet<(&str, &str)> = known.collect();
    for (at, eval) in figures.iter().enumerate() {
        if has_labels(eval) {
            continue;
        }
        // Figures of evals that several parts replace come after those of the header's evals.
        let spec = specs.get(at);
        let is_judged = spec.is_none_or(|spec| spec.judge.is_some() || spec.panel.is_some());
        let Some(whole) = spec.and_then(|spec| spec.part_of.as_ref()) else {
            all.push((eval.clone(), is_judged));
            continue;
        };
        if known.insert((&*eval.rubric, &*whole.id)) {
            let whole = EvalFigures {
                eval: whole.id.clone(),
                ..eval.clone()
            };
            all.push((whole, is_judged));
        }
    }
    all
}

/// Adds the noise of the evals without labels.
fn write_noise_without_labels(out: &mut String, figures: &[EvalFigures], noise: &NoiseIndex<'_>) {
    for eval in figures.iter().filter(|eval| !has_labels(eval)) {
        if let Some(noise) = find_noise(noise, eval).and_then(describe_noise) {
            let _infallible = writeln!(out, "noise of {}/{}: {noise}", eval.rubric, eval.eval);
        }
    }
}

/// Describes the labels of an eval whose labels make no figure; `None` without any label.
fn describe_useless_labels(eval: &EvalFigures) -> Option<String> {
    let counts = [
        (eval.undecided, "of decisions without a verdict"),
        (eval.unsure, "unsure"),
        (eval.shots, "shown to the judge as shots"),
        (eval.sealed, "sealed"),
    ];
    let parts = counts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Returns the line with the command that brings a better answer; `None` if the answer is a yes or a no.
fn describe_next_step(eval: &EvalFigures) -> Option<String> {
    let name = format!("{}/{}", eval.rubric, eval.eval);
    let name = quote_shell_word(&name);
    let step = match find_next_step(eval)? {
        AgreementStep::Draw => {
            format!("`dicta label --queue random --eval {name}` draws what to label")
        }
        AgreementStep::LabelDrawn => {
            "`dicta label CELL pass|fail` labels them; in the workbench, `Q` goes on with the draw"
                .to_owned()
        }
        AgreementStep::Confirm => {
            format!("`dicta label --queue to-confirm --eval {name}` lists them")
        }
        AgreementStep::DrawMore => {
            format!("`dicta label plan --eval {name} --draw` draws what is missing")
        }
        AgreementStep::AddTranscripts => {
            "every decision has a label, so add transcripts like these and label them, too"
                .to_owned()
        }
    };
    Some(format!("next: {step}"))
}

fn format_markdown(
    figures: &[EvalFigures],
    references: &[ReferenceFigures],
    noise: &NoiseIndex<'_>,
) -> String {
    let mut out = "| eval | labels | TPR | TNR | agreement | corrected pass rate | noise |\n|---|---|---|---|---|---|---|\n".to_owned();
    for eval in figures.iter().filter(|eval| has_labels(eval)) {
        let cell = |estimate: Option<&Estimate>| estimate.map_or("–".to_owned(), format_estimate);
        let measured = eval.measured.as_ref();
        let name = crate::report::format_as_code(&format!("{}/{}", eval.rubric, eval.eval));
        let noise = find_noise(noise, eval).and_then(describe_noise);
        let _infallible = writeln!(
            out,
            "| {name} | {} | {} | {} | {} | {} | {} |",
            eval.population.labels(),
            cell(measured.map(|one| &one.tpr)),
            cell(measured.map(|one| &one.tnr)),
            cell(measured.map(|one| &one.agreement)),
            cell(measured.map(|one| &one.corrected_rate)),
            noise.unwrap_or_else(|| "–".to_owned()),
        );
    }
    for one in references {
        let name = |eval: &str| crate::report::format_as_code(&format!("{}/{eval}", one.rubric));
        let _infallible = writeln!(
            out,
            "| {} against {} | {:.0} | {} | {} | {} | – | – |",
            name(&one.eval),
            name(&one.reference),
            one.counts.labels(),
            format_estimate(&one.tpr),
            format_estimate(&one.tnr),
            format_estimate(&one.agreement),
        );
    }
    for (at, eval) in figures.iter().filter(|eval| has_labels(eval)).enumerate() {
        let gap = if at == 0 { "\n" } else { "" };
        let name = crate::report::format_as_code(&format!("{}/{}", eval.rubric, eval.eval));
        let answer = answer_whether_good(eval);
        let _infallible = writeln!(out, "{gap}- {name}: good enough? {answer}");
        for line in describe_label_gaps(eval) {
            let _infallible = writeln!(out, "  - {line}");
        }
    }
    out
}

/// Compares the judged evals of a state with the evals that code decides and that they name as their reference.
fn compare_with_references(
    catalog: &StateCatalog,
    loaded: &LoadedState,
    population: Option<&HashSet<String>>,
) -> Vec<ReferenceFigures> {
    let Some(workspace) = &catalog.workspace else {
        return Vec::new();
    };
    let state = &loaded.state;
    compute_reference_figures(
        state,
        Confidence::P95,
        |rubric, eval| {
            let (rubric, at) = workspace.find_eval(rubric, eval)?;
            rubric.evals.get(at)?.reference.clone()
        },
        |decision| population.is_none_or(|names| names.contains(&state.name(decision).to_string())),
    )
}

/// Adds the figures against evals that code decides. No person set these labels.
fn write_references(out: &mut String, references: &[ReferenceFigures]) {
    for one in references {
        let mut lines = describe_reference(one).into_iter();
        let headline = lines.next().unwrap_or_default();
        let _infallible = writeln!(out, "\n{}/{}  {headline}", one.rubric, one.eval);
        for line in lines {
            let _infallible = writeln!(out, "  {line}");
        }
    }
}

fn reference_to_json(one: &ReferenceFigures) -> Value {
    json!({
        "type": "reference_agreement",
        "rubric": one.rubric,
        "eval": one.eval,
        "reference": one.reference,
        "confidence": Confidence::P95.share(),
        "tpr": estimate_to_json(&one.tpr),
        "tnr": estimate_to_json(&one.tnr),
        "agreement": estimate_to_json(&one.agreement),
        "counts": table_to_json(&one.counts),
        "uncompared": one.uncompared,
    })
}

fn table_to_json(table: &ConfusionTable) -> Value {
    json!({
        "true_pass": table.true_pass,
        "false_pass": table.false_pass,
        "true_fail": table.true_fail,
        "false_fail": table.false_fail,
    })
}

fn details_to_json(
    table: &ConfusionTable,
    intervals: Option<&TableIntervals>,
    recall: Option<Interval>,
) -> Value {
    let limits = |choose: fn(&TableIntervals) -> Option<BootstrapInterval>| {
        interval_to_json(intervals.and_then(choose).map(|one| one.interval))
    };
    let (kappa, mcc) = (limits(|one| one.kappa), limits(|one| one.mcc));
    let (f1, ac1) = (limits(|one| one.f1), limits(|one| one.ac1));
    let precision = limits(|one| one.precision);
    let balanced = limits(|one| one.balanced_accuracy);
    let recall = interval_to_json(recall);
    json!({
        "precision_on_fail": figure_to_json(table.precision_on_fail()),
        "precision_on_fail_lower": precision.0,
        "precision_on_fail_upper": precision.1,
        "recall_on_fail": figure_to_json(table.tnr()),
        "recall_on_fail_lower": recall.0,
        "recall_on_fail_upper": recall.1,
        "f1_on_fail": figure_to_json(table.f1_on_fail()),
        "f1_on_fail_lower": f1.0,
        "f1_on_fail_upper": f1.1,
        "balanced_accuracy": figure_to_json(table.balanced_accuracy()),
        "balanced_accuracy_lower": balanced.0,
        "balanced_accuracy_upper": balanced.1,
        "mcc": figure_to_json(table.mcc()),
        "mcc_lower": mcc.0,
        "mcc_upper": mcc.1,
        "kappa": figure_to_json(table.kappa()),
        "kappa_lower": kappa.0,
        "kappa_upper": kappa.1,
        "kappa_max": figure_to_json(table.kappa_max()),
        "ac1": figure_to_json(table.ac1()),
        "ac1_lower": ac1.0,
        "ac1_upper": ac1.1,
        "bootstrap": intervals.map(|one| json!({
            "resamples": one.settings.draws,
            "seed": one.settings.seed,
            "approximate": one.is_approximate,
        })),
    })
}

fn raters_to_json(raters: &RaterFigures) -> Value {
    let pairs = raters.pairs.iter().map(|pair| {
        let interval = pair.kappa_interval.ok();
        json!({
            "raters": [pair.first, pair.second],
            "common": pair.common,
            "same": pair.same,
            "kappa": figure_to_json(pair.kappa()),
            "kappa_lower": interval.map(|interval| interval.lower),
            "kappa_upper": interval.map(|interval| interval.upper),
        })
    });
    json!({
        "raters": raters.raters,
        "decisions": raters.units,
        "agreement": figure_to_json(raters.agreement),
        "alpha": figure_to_json(raters.alpha),
        "fleiss": figure_to_json(raters.fleiss),
        "pairs": pairs.collect::<Vec<Value>>(),
    })
}

fn eval_to_json(eval: &EvalFigures, noise: Option<&EvalNoise>) -> Value {
    json!({
        "type": "agreement",
        "rubric": eval.rubric,
        "eval": eval.eval,
        "decisions": eval.decisions,
        "covered": eval.population.covered(),
        "labels": eval.population.labels(),
        "missing_labels": count_missing_labels(eval),
        "unsure": eval.unsure,
        "to_confirm": eval.to_confirm,
        "unrecorded_draws": eval.unrecorded,
        "sealed": eval.sealed,
        "shots": eval.shots,
        "noise": noise.filter(|noise| !noise.is_unknown()).map(noise_to_json),
        "confidence": Confidence::P95.share(),
        "answer": answer_whether_good(eval),
        "measured": eval.measured.as_ref().map(|measured| json!({
            "tpr": estimate_to_json(&measured.tpr),
            "tnr": estimate_to_json(&measured.tnr),
            "agreement": estimate_to_json(&measured.agreement),
            "corrected_pass_rate": estimate_to_json(&measured.corrected_rate),
            "judged_pass_rate": figure_to_json(measured.judged_rate),
            "rogan_gladen": adjusted_rate(eval),
            "base_rate": figure_to_json(measured.weighted.base_rate()),
            "majority_accuracy": figure_to_json(measured.weighted.majority_accuracy()),
            "counts": table_to_json(&measured.counts),
            "details": details_to_json(
                &measured.weighted,
                eval.intervals.as_ref(),
                Some(measured.tnr.interval),
            ),
        })),
        "debug": {
            "counts": table_to_json(&eval.debug),
            "details": details_to_json(&eval.debug, None, None),
        },
        "scores": eval.scores.as_ref().map(|scores| json!({
            "pairs": scores.pairs,
            "measured": scores.is_measured,
            "weighted_kappa": figure_to_json(scores.weighted_kappa),
            "rho": figure_to_json(scores.rho),
            "tau_b": figure_to_json(scores.tau_b),
            "mean_error": figure_to_json(scores.mean_error),
            "bias": figure_to_json(scores.bias),
        })),
        "people": raters_to_json(&eval.people),
        "judges": raters_to_json(&eval.judges),
        "kappa_ceiling": eval.people.closest_pair().and_then(|pair| pair.kappa().ok()),
        "causes": {
            "open": eval.causes.open,
            "closed": eval.causes.by_cause()
                .map(|(cause, count)| (cause.as_str().to_owned(), count.into()))
                .collect::<serde_json::Map<String, Value>>(),
        },
    })
}
