//! Two states on the same labels: gains, losses, McNemar's test and the difference with its interval, by eval.
//!
//! Responsible for choosing the labels. The label of the newer state counts for both, so that an edit of the question
//! compares both verdicts with one answer. Only drawn labels enter tests and intervals; labels that a person picked are
//! counted apart. Does not compute the figures; [`super::statistics`] does.

use std::collections::HashMap;
use std::ops::Range;

use super::eval_draws::EvalDraws;
use super::label_figures::classify_label;
use super::matched::MatchedStates;
use super::statistics::{
    AgreementFigures, Confidence, Estimate, FigurePresentation, MeasuredLabel, NonInferiority,
    PairedCounts, PairedDifference, PairedItem, PopulationItem, SampledPopulation, Undefined,
    adjust_holm, check_non_inferiority, paired_counts, paired_difference, paired_strata,
};
use super::whole_evals::join_parts;
use crate::model::{LabelLookup, LabelQuery, Labels, RecordedDraw};
use crate::record::{State, StateDecision};

/// One of two states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairSide {
    /// The older state.
    Older,
    /// The newer state.
    Newer,
}

/// The labels of some evals of a state, with the verdicts of that state and of an older one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PairedLabels {
    items: Vec<LabelledDecision>,
    /// The recorded strata of all items, one after the other.
    strata: Vec<Option<u32>>,
    /// The number of labels that wait for a confirmation.
    pub to_confirm: u64,
}

/// A decision that a draw could choose, or that has a label.
#[derive(Debug, Clone, PartialEq)]
struct LabelledDecision {
    /// The eval, because draws of different evals are different strata.
    eval: u32,
    strata: Range<usize>,
    measured: MeasuredLabel,
    /// The label that no draw chose.
    debug: Option<bool>,
    old: Option<bool>,
    new: Option<bool>,
}

/// The labels of one eval.
#[derive(Debug, Clone, PartialEq)]
pub struct EvalLabels {
    /// The id of the rubric in the newer state.
    pub rubric: String,
    /// The id of the eval in the newer state.
    pub eval: String,
    /// The position of the eval in the newer header; `None` if several parts replace it.
    pub position: Option<usize>,
    /// The labels.
    pub labels: PairedLabels,
}

/// The figures of two states on the same labels.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedFigures {
    /// The drawn labels with a verdict in both states.
    pub measured: PairedCounts,
    /// The other labels with a verdict in both states.
    pub debug: PairedCounts,
    /// The difference of the agreements, from drawn labels.
    pub difference: Result<PairedDifference, Undefined>,
    /// The p-value of McNemar's exact test; `None` without a drawn label.
    pub p_value: Option<f64>,
    /// The p-value adjusted for all evals of the comparison, by Holm.
    pub p_holm: Option<f64>,
}

impl PairedFigures {
    /// Returns the drawn labels if there are any, else all others. Their counts are those that people read.
    pub fn shown_counts(&self) -> PairedCounts {
        if self.measured.labels() > 0 {
            self.measured
        } else {
            self.debug
        }
    }

    /// Returns true if both states have a verdict on a label.
    pub fn has_labels(&self) -> bool {
        self.shown_counts().labels() > 0
    }

    /// Returns true if there are so few drawn labels that figures show their interval first.
    pub fn has_few_labels(&self) -> bool {
        FigurePresentation::for_labels(self.measured.labels()) != FigurePresentation::PointFirst
    }
}

/// Collects the labels of every eval of the newer state, and of evals that several parts replace. Without an older state,
/// only figures of the newer one exist. Decisions on single messages have no labels.
pub fn collect_paired_labels(
    before: Option<&State>,
    after: &State,
    labels: &Labels,
    draws: &[RecordedDraw],
) -> Vec<EvalLabels> {
    if labels.is_empty() && draws.is_empty() {
        return Vec::new();
    }
    let matched = before.map(|before| MatchedStates::new(before, after));
    let wholes = OldWholes::new(before, matched.as_ref());
    let mut all = Vec::new();
    for (position, (spec, eval)) in after.header.evals.iter().zip(&after.evals).enumerate() {
        let rubric = after.rubric_id(spec);
        let name = (rubric, spec.id.as_str());
        let first = eval.decisions.first();
        let later_name = first.and_then(|first| after.later_name(first));
        let draws = EvalDraws::of_eval(draws, name, later_name);
        let mut own = LabelCollector::new(after, labels, draws, all.len(), name);
        for decision in eval.decisions.iter().filter(|one| one.message.is_none()) {
            let old = matched.as_ref().and_then(|all| all.old_decision(decision));
            let old = match old {
                Some(old) => old.judged_verdict(),
                None => wholes.joined_verdict(name, decision),
            };
            own.add(
                decision,
                after.label_query(decision),
                (old, decision.judged_verdict()),
            );
        }
        all.push(own.finish(Some(position)));
    }
    for whole in join_parts(after, &|_| true) {
        let name = (whole.rubric, whole.id);
        let draws = EvalDraws::new(draws, whole.rubric, whole.id);
        let mut own = LabelCollector::new(after, labels, draws, all.len(), name);
        let undivided = wholes.find_undivided(name);
        for decision in &whole.decisions {
            let old = match undivided {
                Some(eval) => wholes.undivided_verdict(eval, decision.first),
                None => wholes.joined_verdict(name, decision.first),
            };
            own.add(
                decision.first,
                decision.label_query(after),
                (old, decision.verdict),
            );
        }
        all.push(own.finish(None));
    }
    all
}

/// The verdicts of evals in the older state by name, for evals that have parts in one of two states.
struct OldWholes<'s> {
    before: Option<&'s State>,
    matched: Option<&'s MatchedStates<'s>>,
    /// The joined verdicts by rubric, eval and transcript.
    joined: HashMap<(&'s str, &'s str), HashMap<u32, Option<bool>>>,
    /// The positions of the older evals by rubric and eval.
    positions: HashMap<(&'s str, &'s str), usize>,
}

impl<'s> OldWholes<'s> {
    fn new(before: Option<&'s State>, matched: Option<&'s MatchedStates<'s>>) -> Self {
        let mut joined: HashMap<(&str, &str), HashMap<u32, Option<bool>>> = HashMap::new();
        let mut positions = HashMap::new();
        if let Some(state) = before {
            for (position, spec) in state.header.evals.iter().enumerate() {
                let name = (state.rubric_id(spec), spec.id.as_str());
                positions.entry(name).or_insert(position);
            }
            for whole in join_parts(state, &|_| true) {
                let verdicts = whole.decisions.iter();
                let verdicts = verdicts.map(|one| (one.first.transcript, one.verdict));
                joined.insert((whole.rubric, whole.id), verdicts.collect());
            }
        }
        Self {
            before,
            matched,
            joined,
            positions,
        }
    }

    /// Returns the older verdict of all parts together on the transcript of a newer decision.
    fn joined_verdict(&self, name: (&str, &str), decision: &StateDecision) -> Option<bool> {
        let verdicts = self.joined.get(&name)?;
        let transcript = self.matched?.old_transcript(decision)?;
        verdicts.get(&transcript).copied()?
    }

    /// Returns the position of the older eval of this name, if no parts replace it.
    fn find_undivided(&self, name: (&str, &str)) -> Option<usize> {
        self.positions.get(&name).copied()
    }

    /// Returns the older verdict of an eval without parts on the transcript of a newer decision.
    fn undivided_verdict(&self, eval: usize, decision: &StateDecision) -> Option<bool> {
        let transcript = self.matched?.old_transcript(decision)?;
        self.before?.find(eval, transcript, None)?.judged_verdict()
    }
}

/// Collects the labels of one eval.
struct LabelCollector<'l> {
    state: &'l State,
    labels: &'l Labels,
    draws: EvalDraws<'l>,
    /// The number of the eval in its items.
    eval: u32,
    found: EvalLabels,
}

impl<'l> LabelCollector<'l> {
    /// `number` is another one for each eval.
    fn new(
        state: &'l State,
        labels: &'l Labels,
        draws: EvalDraws<'l>,
        number: usize,
        (rubric, eval): (&str, &str),
    ) -> Self {
        Self {
            state,
            labels,
            draws,
            eval: u32::try_from(number).unwrap_or(u32::MAX),
            found: EvalLabels {
                rubric: rubric.to_owned(),
                eval: eval.to_owned(),
                position: None,
                labels: PairedLabels::default(),
            },
        }
    }

    fn add(
        &mut self,
        decision: &StateDecision,
        query: Option<LabelQuery<'_>>,
        (old, new): (Option<bool>, Option<bool>),
    ) {
        let transcript = &*self.state.transcript(decision).id;
        let label = query.map_or(LabelLookup::Unlabelled, |query| self.labels.look_up(&query));
        // The judge saw the label, so it measures nothing.
        if matches!(label, LabelLookup::Shot(_)) {
            return;
        }
        // A split is one more random draw: it hides labels, and the sampling cells stay.
        let row = self.draws.find(transcript);
        let is_drawn = !self.labels.is_sealed(transcript) && self.draws.has_drawn(row);
        let passed = label.counted().and_then(|label| label.passed);
        let found = &mut self.found.labels;
        found.to_confirm += u64::from(label.is_to_confirm());
        let first = found.strata.len();
        found.strata.extend_from_slice(self.draws.strata(row));
        let is_outside = found.strata[first..].iter().all(Option::is_none);
        if is_outside && passed.is_none() {
            // Neither a figure nor a count uses the decision.
            found.strata.truncate(first);
            return;
        }
        found.items.push(LabelledDecision {
            eval: self.eval,
            strata: first..found.strata.len(),
            measured: classify_label(is_drawn, passed),
            debug: passed.filter(|_| !is_drawn),
            old,
            new,
        });
    }

    fn finish(self, position: Option<usize>) -> EvalLabels {
        EvalLabels {
            position,
            ..self.found
        }
    }
}

/// Returns the figures of each eval, with p-values adjusted for all of them.
pub fn compute_paired_figures(evals: &[EvalLabels], confidence: Confidence) -> Vec<PairedFigures> {
    let mut figures: Vec<PairedFigures> = evals
        .iter()
        .map(|eval| eval.labels.figures(confidence))
        .collect();
    let p_values: Vec<f64> = figures.iter().filter_map(|one| one.p_value).collect();
    let mut adjusted = adjust_holm(&p_values).into_iter();
    for one in figures.iter_mut().filter(|one| one.p_value.is_some()) {
        one.p_holm = adjusted.next();
    }
    figures
}

impl PairedLabels {
    /// Joins the labels of several evals. Each eval stays a stratum of its own.
    pub fn join<'l>(all: impl IntoIterator<Item = &'l Self>) -> Self {
        let mut joined = Self::default();
        for one in all {
            let offset = joined.strata.len();
            joined.strata.extend_from_slice(&one.strata);
            joined.items.extend(one.items.iter().map(|item| {
                let strata = item.strata.start + offset..item.strata.end + offset;
                LabelledDecision {
                    strata,
                    ..item.clone()
                }
            }));
            joined.to_confirm += one.to_confirm;
        }
        joined
    }

    fn paired_items(&self) -> impl Iterator<Item = PairedItem<'_>> {
        self.items.iter().map(|item| PairedItem {
            arrival: item.eval,
            strata: &self.strata[item.strata.clone()],
            label: item.measured,
            old_verdict: item.old,
            new_verdict: item.new,
        })
    }

    /// Returns the drawn labels of a class with a verdict in both states: `None` for all labels.
    pub fn counts(&self, class: Option<bool>) -> PairedCounts {
        paired_counts(self.paired_items(), class)
    }

    /// Returns the labels of a class that no draw chose, with a verdict in both states: `None` for all labels.
    pub fn debug_counts(&self, class: Option<bool>) -> PairedCounts {
        let debug = self.items.iter().filter_map(|item| {
            let (label, old, new) = (item.debug?, item.old?, item.new?);
            let is_own = class.is_none_or(|class| class == label);
            is_own.then_some((old == label, new == label))
        });
        PairedCounts::from_pairs(debug)
    }

    /// Returns the difference of the agreements (`None`), of TPR (`Some(true)`) or of TNR.
    pub fn difference(
        &self,
        class: Option<bool>,
        confidence: Confidence,
    ) -> Result<PairedDifference, Undefined> {
        paired_difference(&paired_strata(self.paired_items(), class), confidence)
    }

    /// Tests whether the newer state is at most `margin` worse.
    pub fn non_inferiority(
        &self,
        class: Option<bool>,
        margin: f64,
    ) -> Result<NonInferiority, Undefined> {
        check_non_inferiority(&paired_strata(self.paired_items(), class), margin)
    }

    /// Returns all figures of the pair. The p-value is not adjusted.
    pub fn figures(&self, confidence: Confidence) -> PairedFigures {
        let measured = self.counts(None);
        PairedFigures {
            measured,
            debug: self.debug_counts(None),
            difference: self.difference(None, confidence),
            p_value: (measured.labels() > 0).then(|| measured.mcnemar_exact()),
            p_holm: None,
        }
    }

    /// Returns the agreement of the newer state with its drawn labels; `None` without one.
    pub fn agreement(&self, confidence: Confidence) -> Option<Estimate> {
        let population = self.population(PairSide::Newer, false);
        (population.labels() > 0).then(|| population.agreement(confidence))
    }

    /// Returns the figures of a state over the decisions that both states decide; `None` without a drawn label.
    pub fn side_figures(&self, side: PairSide, confidence: Confidence) -> Option<AgreementFigures> {
        let population = self.population(side, true);
        (population.labels() > 0).then(|| population.figures(confidence))
    }

    fn population(&self, side: PairSide, needs_both: bool) -> SampledPopulation {
        let items = self.items.iter().map(|item| {
            let own = match side {
                PairSide::Older => item.old,
                PairSide::Newer => item.new,
            };
            let has_both = item.old.is_some() && item.new.is_some();
            PopulationItem {
                arrival: item.eval,
                strata: &self.strata[item.strata.clone()],
                verdict: own.filter(|_| has_both || !needs_both),
                label: item.measured,
            }
        });
        SampledPopulation::from_items(items)
    }
}

#[cfg(test)]
mod tests;
