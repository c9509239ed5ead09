//! `dicta label --queue` and `dicta label plan`: what to label next.
//!
//! Responsible for the choice and for the record of draws. Does not label.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::CommandCx;
use super::agreement_args::{LabelPlanArgs, LabelQueueArgs};
use super::error::CommandError;
use super::format::{Format, format_list, join_lines};
use super::population::select_population;
use super::states::{LoadedState, StateCatalog};
use super::workspace_args::WorkspaceArgs;
use crate::compare::statistics::{
    ClassProgress, Confidence, DrawSuggestion, Estimate, FigurePresentation, MeasuredShare,
    VerdictStratum, labels_missing, suggest_draws,
};
use crate::compare::{
    DrawQuota, DrawRequest, EvalFigures, LabelQueue, QueueEval, QueueItem, QueueLabel,
    StratumProperty, VerdictDifferences, compute_label_figures, compute_whole_figures, is_noisy,
    list_whole_queues,
};
use crate::model::{CellNameRef, Labels, Outcome, RecordedDraw, ScoreBounds, pluralize};
use crate::record::{NoiseRecords, StateDecision};
use crate::report::agreement_text::count_missing_labels;
use crate::workspace::label_draws::{add_chosen_draw, draws_file_path};

/// The newest state: its verdicts choose and its decisions are drawn.
const NEWEST: &str = "@";

/// An eval whose decisions can be labelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum LabelledEval {
    /// The position in the header of the state.
    Header(u32),
    /// The position of a whole that several parts replace. Labels are about all parts together.
    Whole(usize),
}

/// A workspace with its newest state and its labels.
struct Labelling {
    catalog: StateCatalog,
    loaded: LoadedState,
    labels: Labels,
    draws: Vec<RecordedDraw>,
    /// The repeats of `dicta noise`; only the queue of noise reads them.
    noise: Option<NoiseRecords>,
}

impl Labelling {
    fn open(place: &WorkspaceArgs, cx: &CommandCx) -> Result<Self, CommandError> {
        let catalog = StateCatalog::open(place.workspace.as_deref(), &[NEWEST], cx)?;
        let source = catalog.resolve(NEWEST)?;
        let loaded = catalog.load(NEWEST, source, 0, cx)?;
        let labels = catalog.labels(&[&loaded], cx);
        let draws = catalog.draws()?;
        Ok(Self {
            catalog,
            loaded,
            labels,
            draws,
            noise: None,
        })
    }

    /// Returns the names of all evals of the newest state.
    fn list_names(&self) -> Vec<String> {
        let evals = self.list_evals().into_iter();
        evals
            .map(|(_, (rubric, eval))| format!("{rubric}/{eval}"))
            .collect()
    }

    /// Finds an eval by EVAL or RUBRIC/EVAL, also one that several parts replace.
    fn find_eval(&self, name: &str) -> Result<LabelledEval, CommandError> {
        let named = self.list_evals();
        let is_named =
            |(rubric, eval): &(String, String)| name == eval || name == format!("{rubric}/{eval}");
        let mut found = named.iter().filter(|(_, names)| is_named(names));
        match (found.next(), found.next()) {
            (Some((eval, _)), None) => Ok(*eval),
            (Some(_), Some(_)) => Err(CommandError::usage(format!(
                "several rubrics have an eval `{name}`; write RUBRIC/EVAL"
            ))),
            (None, _) => {
                let evals = self.list_names();
                let ids = named.iter().map(|(_, (_, eval))| eval.as_str());
                let full = evals.iter().map(String::as_str);
                let near = crate::diag::find_nearest(name, full.chain(ids));
                let near = near.map_or_else(
                    || format!("; it has {}", evals.join(", ")),
                    |near| format!("; did you mean `{near}`?"),
                );
                Err(CommandError::usage(format!(
                    "the newest state has no eval `{name}`{near}"
                )))
            }
        }
    }

    /// Returns all evals with the ids of their rubrics and their own: first those of the header, then the wholes.
    fn list_evals(&self) -> Vec<(LabelledEval, (String, String))> {
        let state = &self.loaded.state;
        let evals = (0..).zip(&state.header.evals).map(|(at, spec)| {
            let names = (state.rubric_id(spec).to_owned(), spec.id.clone());
            (LabelledEval::Header(at), names)
        });
        let wholes = list_whole_queues(state, &self.labels, |_| false).into_iter();
        let wholes = wholes
            .enumerate()
            .map(|(at, whole)| (LabelledEval::Whole(at), (whole.rubric, whole.eval)));
        evals.chain(wholes).collect()
    }

    /// Returns the decisions of an eval that can be labelled.
    fn items(
        &self,
        eval: LabelledEval,
        by: Option<&StratumProperty>,
        cx: &CommandCx,
    ) -> Result<QueueEval, CommandError> {
        let state = &self.loaded.state;
        let tagged = match by {
            Some(StratumProperty::Tag(tag)) => Some(self.select_tag(tag, cx)?),
            _ => None,
        };
        let eval = match eval {
            LabelledEval::Header(eval) => eval,
            LabelledEval::Whole(at) => {
                let has_tag = |first: &StateDecision| {
                    let tagged = tagged.as_ref();
                    tagged.is_some_and(|names| names.contains(&state.name(first).to_string()))
                };
                let mut queues = list_whole_queues(state, &self.labels, has_tag);
                return Ok(queues.swap_remove(at));
            }
        };
        let spec = &state.header.evals[eval as usize];
        let rubric = state.rubric_id(spec).to_owned();
        // A label is about a whole transcript.
        let decisions = state.evals[eval as usize].decisions.iter();
        let decisions: Vec<&StateDecision> =
            decisions.filter(|one| one.message.is_none()).collect();
        let cells = decisions.iter().filter(|one| one.cells.len() > 1);
        let cells = cells.flat_map(|one| one.cells.iter().copied());
        let results = self
            .catalog
            .read_results([&self.loaded, &self.loaded], cells)?;
        let items = decisions.into_iter().map(|decision| {
            let places = decision.cells.iter().zip(&decision.slots);
            let verdicts: Vec<(Option<u32>, bool)> = places
                .filter_map(|(cell, slot)| Some((slot.judge, results.get(cell)?.outcome.passed()?)))
                .collect();
            let differs = VerdictDifferences::of(&verdicts);
            let transcript = state.transcript(decision).id.to_string();
            let name = state.name(decision).to_string();
            QueueItem {
                outcome: decision.outcome(),
                score: decision.score(),
                judges_differ: differs.between_judges,
                repeats_differ: differs.between_repeats,
                is_noisy: self
                    .noise
                    .as_ref()
                    .is_some_and(|noise| is_noisy(state, decision, noise)),
                label: state
                    .label_query(decision)
                    .map_or(QueueLabel::Unlabelled, |query| {
                        QueueLabel::from_lookup(self.labels.look_up(&query))
                    }),
                is_hidden: self.labels.is_sealed(&transcript),
                has_tag: tagged.as_ref().is_some_and(|names| names.contains(&name)),
                transcript,
            }
        });
        Ok(QueueEval {
            eval: spec.id.clone(),
            bounds: ScoreBounds::from_decision_settings(&spec.decision_settings),
            items: items.collect(),
            rubric,
        })
    }

    fn select_tag(&self, tag: &str, cx: &CommandCx) -> Result<HashSet<String>, CommandError> {
        let Some(workspace) = &self.catalog.workspace else {
            return Err(CommandError::usage(
                "the workspace does not load, so its tags are unknown; `dicta check` lists the problems",
            ));
        };
        select_population(&format!("tag:\"{tag}\""), workspace, cx)
    }
}

/// Lists the decisions of a queue, one name per line.
pub(super) fn list_queue(
    queue: LabelQueue,
    args: &LabelQueueArgs,
    place: &WorkspaceArgs,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let mut labelling = Labelling::open(place, cx)?;
    if queue == LabelQueue::Noise {
        labelling.noise = Some(labelling.catalog.noise());
    }
    let Some(name) = &args.eval else {
        return Err(CommandError::usage(format!(
            "a queue needs an eval: add --eval EVAL or --eval RUBRIC/EVAL; the evals are {}",
            labelling.list_names().join(", ")
        )));
    };
    let by = (queue == LabelQueue::Stratified).then(|| args.by.clone());
    let items = labelling.items(labelling.find_eval(name)?, by.as_ref(), cx)?;
    if let Some(StratumProperty::Tag(tag)) = &by
        && !items.items.iter().any(|item| item.has_tag)
    {
        // Both strata would be one, and the record would claim a draw by tag.
        return Err(CommandError::usage(format!(
            "no transcript of {}/{} has the tag `{tag}`; `dicta label --queue random` draws without strata",
            items.rubric, items.eval
        )));
    }
    let drawn = if queue.measures() {
        let seed = args.seed.unwrap_or_else(draw_seed);
        let quota = DrawQuota::Total(args.size.get());
        let request = DrawRequest {
            by,
            quota,
            seed,
            at: cx.clock.wall_time(),
            excludes_hidden: false,
        };
        draw_queue(&request, &labelling, &items, cx)?
    } else {
        choose_queue(queue, args.size.get(), &items, cx)
    };
    print_names(&drawn, &items, args.format, cx);
    Ok(0)
}

fn draw_seed() -> u64 {
    fastrand::u64(..=u64::from(u32::MAX))
}

/// Prints the names of decisions as `dicta label` takes them.
fn print_names(transcripts: &[String], items: &QueueEval, format: Format, cx: &CommandCx) {
    let names = || name_decisions(transcripts, items);
    let rows = || names().map(|name| name_to_json(&name)).collect();
    cx.streams
        .print(&format_list(format, rows, || join_lines(names())));
}

fn name_decisions<'n>(
    transcripts: &'n [String],
    items: &'n QueueEval,
) -> impl Iterator<Item = CellNameRef<'n>> {
    transcripts.iter().map(move |transcript| CellNameRef {
        transcript,
        rubric: &items.rubric,
        eval: &items.eval,
        message: None,
        judge: None,
        repeat: None,
    })
}

fn name_to_json(name: &CellNameRef<'_>) -> Value {
    json!({
        "type": "queued",
        "cell": name.to_string(),
        "transcript": name.transcript,
        "rubric": name.rubric,
        "eval": name.eval,
    })
}

/// Draws, records the draw, and returns the drawn transcripts.
fn draw_queue(
    request: &DrawRequest,
    labelling: &Labelling,
    items: &QueueEval,
    cx: &CommandCx,
) -> Result<Vec<String>, CommandError> {
    let Some(workspace) = &labelling.catalog.workspace else {
        return Err(CommandError::usage(
            "the workspace does not load, so dicta does not know its file of labels; `dicta check` lists the problems",
        ));
    };
    let file = workspace.labels_file_path();
    // Another process may have drawn since the labels were loaded, so the file decides.
    let draws = add_chosen_draw(&file, |draws| items.draw(request, draws))
        .map_err(|error| CommandError::from_error(&error))?;
    let Some(draw) = draws.and_then(|mut draws| draws.pop()) else {
        cx.streams
            .print_note(&format!("note: {}", LabelQueue::Random.describe_empty()));
        return Ok(Vec::new());
    };
    let population: usize = draw.strata.iter().map(|one| one.members.len()).sum();
    cx.streams.print_note(&format!(
        "note: drew {} of {} (seed {}), recorded in {}; label all of them: `dicta label CELL pass|fail|unsure`",
        draw.drawn.len(),
        pluralize(population as u64, "decision"),
        draw.seed,
        draws_file_path(&file).display()
    ));
    Ok(draw.drawn)
}

/// Returns the transcripts that a rule chooses. Their labels measure nothing.
fn choose_queue(queue: LabelQueue, size: usize, items: &QueueEval, cx: &CommandCx) -> Vec<String> {
    let chosen = items.choose(queue, size).into_iter();
    let chosen: Vec<String> = chosen
        .map(|at| items.items[at].transcript.clone())
        .collect();
    let what = match queue {
        _ if chosen.is_empty() => queue.describe_empty(),
        LabelQueue::ToConfirm => {
            "a confirmed label keeps its purpose, so one of a drawn decision measures again: `dicta labels confirm CELL`, or `dicta label CELL pass|fail|unsure`"
                .to_owned()
        }
        _ => "chosen by a rule and not by chance: a label of a decision that no draw chose helps to debug, and no figure of the population uses it"
            .to_owned(),
    };
    cx.streams.print_note(&format!("note: {what}"));
    chosen
}

/// Prints how many labels of each class are missing for a half-width, and which draw is expected to give them.
pub(super) fn plan_labels(args: &LabelPlanArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let labelling = Labelling::open(&args.place, cx)?;
    let chosen = match &args.eval {
        Some(name) => Some(labelling.find_eval(name)?),
        None => None,
    };
    let state = &labelling.loaded.state;
    let (labels, draws) = (&labelling.labels, &labelling.draws);
    let mut figures = compute_label_figures(state, labels, draws, Confidence::P95, |_| true);
    // Wholes without labels have none there, and may be labelled.
    figures.truncate(state.header.evals.len());
    figures.extend(compute_whole_figures(
        state,
        labels,
        draws,
        Confidence::P95,
        |_| true,
    ));
    let mut out = format!(
        "labels that are missing for 95% intervals of ±{}, for further transcripts like these\n",
        args.half_width
    );
    let mut rows: Vec<Value> = Vec::new();
    let mut suggestions: HashMap<LabelledEval, DrawSuggestion> = HashMap::new();
    for ((target, _), eval) in labelling.list_evals().into_iter().zip(&figures) {
        let is_judged = match target {
            LabelledEval::Header(at) => {
                let spec = &state.header.evals[at as usize];
                // Labels are about the whole and not about its parts.
                (spec.judge.is_some() || spec.panel.is_some()) && spec.part_of.is_none()
            }
            LabelledEval::Whole(_) => true,
        };
        let is_wanted = chosen.map_or(is_judged, |chosen| chosen == target);
        if !is_wanted || eval.decisions == 0 {
            continue;
        }
        let measured = eval.measured.as_ref();
        let [tpr, tnr] = [measured.map(|one| &one.tpr), measured.map(|one| &one.tnr)];
        let [passes, fails] = [tpr, tnr].map(|one| count_missing(one, args.half_width));
        let items = labelling.items(target, None, cx)?;
        let suggestion = suggest(passes, fails, eval, &labelling, &items);
        let _infallible = writeln!(
            out,
            "\n{}/{}\n  missing: {} for TPR, {} for TNR\n  {}\n  {}\n  {}",
            eval.rubric,
            eval.eval,
            pluralize(passes, "pass label"),
            pluralize(fails, "fail label"),
            describe_class("TPR", tpr, "pass labels"),
            describe_class("TNR", tnr, "fail labels"),
            describe_suggestion(&suggestion, passes + fails)
        );
        let unlabelled = count_missing_labels(eval);
        rows.push(json!({
            "type": "label_plan",
            "rubric": eval.rubric,
            "eval": eval.eval,
            "half_width": args.half_width,
            "missing_label_passes": passes,
            "missing_label_fails": fails,
            "tpr": class_to_json(tpr),
            "tnr": class_to_json(tnr),
            "draw_judge_passes": suggestion.from_judged_passes,
            "draw_judge_fails": suggestion.from_judged_fails,
            "is_enough": suggestion.is_enough,
            "drawn_without_label": unlabelled,
        }));
        if unlabelled > 0 {
            let waiting = pluralize(unlabelled, "drawn decision");
            let _infallible = writeln!(
                out,
                "  {waiting} without a label that counts: label what is drawn before you draw more"
            );
        }
        if passes + fails > 0 {
            suggestions.insert(target, suggestion);
        }
    }
    if rows.is_empty() {
        out.push_str("\nno eval has a judge; name one with --eval\n");
    }
    let is_human = args.format == Format::Human;
    if is_human {
        cx.streams.print_wrapped(&out);
    }
    let target = chosen.filter(|_| args.draw);
    let to_draw = target.and_then(|target| Some((target, suggestions.get(&target)?)));
    if let Some((target, suggestion)) = to_draw {
        let (chosen, items) = draw_suggested(target, suggestion, &labelling, cx)?;
        if is_human {
            print_names(&chosen, &items, Format::Human, cx);
        }
        rows.extend(name_decisions(&chosen, &items).map(|name| name_to_json(&name)));
    }
    if !is_human {
        // One document has the plan and the draw.
        cx.streams
            .print(&format_list(args.format, || rows, String::new));
    }
    Ok(0)
}

/// Draws the decisions that a plan suggests, and records the draw.
fn draw_suggested(
    target: LabelledEval,
    suggestion: &DrawSuggestion,
    labelling: &Labelling,
    cx: &CommandCx,
) -> Result<(Vec<String>, QueueEval), CommandError> {
    let by = StratumProperty::Verdict;
    let items = labelling.items(target, Some(&by), cx)?;
    let quota = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let quota = DrawQuota::ByStratum(vec![
        quota(suggestion.from_judged_passes),
        quota(suggestion.from_judged_fails),
        0,
    ]);
    let request = DrawRequest {
        by: Some(by),
        quota,
        seed: draw_seed(),
        at: cx.clock.wall_time(),
        excludes_hidden: true,
    };
    let chosen = draw_queue(&request, labelling, &items, cx)?;
    Ok((chosen, items))
}

/// Returns TPR or TNR if it has enough labels. A share of few labels would promise too much.
fn find_measured_share(estimate: &Estimate) -> Option<MeasuredShare> {
    let share = estimate.point.ok()?;
    let presentation = FigurePresentation::for_labels(estimate.labels);
    (presentation == FigurePresentation::PointFirst).then(|| MeasuredShare {
        share,
        half_width: estimate.further.half_width(),
    })
}

fn count_missing(estimate: Option<&Estimate>, half_width: f64) -> u64 {
    let progress = estimate.map_or_else(ClassProgress::default, |estimate| ClassProgress {
        labels: estimate.labels,
        effective_labels: estimate.effective_labels,
        measured: find_measured_share(estimate),
    });
    labels_missing(progress, half_width, Confidence::P95).unwrap_or(u64::MAX)
}

/// Describes the labels of a class so far: `TPR now: 60 pass labels, 0.95 ±0.06`.
fn describe_class(name: &str, estimate: Option<&Estimate>, class: &str) -> String {
    let labels = estimate.map_or(0, |estimate| estimate.labels);
    match estimate.and_then(find_measured_share) {
        Some(MeasuredShare { share, half_width }) => {
            format!("{name} now: {labels} {class}, {share:.2} ±{half_width:.2}")
        }
        None => {
            format!("{name} now: {labels} {class}, under 20, so the plan expects a share of 0.90")
        }
    }
}

/// Returns the labels of a class so far. The share is null under 20 labels.
fn class_to_json(estimate: Option<&Estimate>) -> Value {
    let share = estimate.and_then(find_measured_share);
    json!({
        "labels": estimate.map_or(0, |estimate| estimate.labels),
        "value": share.map(|one| one.share),
        "half_width": share.map(|one| one.half_width),
    })
}

fn describe_suggestion(suggestion: &DrawSuggestion, missing: u64) -> String {
    if missing == 0 {
        return "nothing is missing".to_owned();
    }
    let enough = if suggestion.is_enough {
        ""
    } else {
        "; all that there are will not be enough: more transcripts are needed"
    };
    format!(
        "about: draw {} of the judge's passes and {} of its fails{enough}",
        suggestion.from_judged_passes, suggestion.from_judged_fails
    )
}

fn suggest(
    passes: u64,
    fails: u64,
    eval: &EvalFigures,
    labelling: &Labelling,
    items: &QueueEval,
) -> DrawSuggestion {
    let eligible = items.eligible_and_visible(&labelling.draws);
    let available = |verdict: bool| {
        let places = items.items.iter().zip(&eligible);
        let verdict_of = |one: &QueueItem| one.outcome.and_then(Outcome::passed);
        let open = places.filter(|(one, eligible)| **eligible && verdict_of(one) == Some(verdict));
        open.count() as u64
    };
    let stratum = |verdict: bool| {
        let cells = eval.population.cells.iter();
        let cells: Vec<_> = cells.filter(|cell| cell.verdict == verdict).collect();
        VerdictStratum {
            available: available(verdict),
            labels: cells.iter().map(|cell| cell.labels).sum(),
            label_passes: cells.iter().map(|cell| cell.label_passes).sum(),
        }
    };
    suggest_draws(passes, fails, stratum(true), stratum(false))
}
