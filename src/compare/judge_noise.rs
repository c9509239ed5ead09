//! The noise of the judges of a state: how often they contradict themselves, and how many flips that alone gives.
//!
//! Responsible for choosing the repeats that are about the same question. Repeats of another question, judge or
//! transcript are counted and never used. Does not compute rates; [`super::statistics`] does.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::matched::MatchedStates;
use super::states::StateChange;
use super::statistics::{
    Confidence, FlipPrior, RepeatedCell, SelfFlipRate, Undefined, flips_of_other_cells,
    flips_of_same_cells, self_flip_rate,
};
use crate::event::{EvalSpec, JudgeSpec};
use crate::model::{CellName, Digest, LabelLookup, Labels, ScoreBounds, VoteParams};
use crate::record::{
    NoiseRecords, RecordedCell, RepeatedQuestion, RepeatedVerdicts, State, StateDecision,
};

/// The smallest number of verdicts of a cell that show whether it flips.
const MIN_REPEATS: u64 = 2;

/// The noise of one eval of a state.
#[derive(Debug, Clone, PartialEq)]
pub struct EvalNoise {
    /// The id of the rubric.
    pub rubric: String,
    /// The id of the eval.
    pub eval: String,
    /// The self-flip rate of the eval's judges on the questions of the state.
    pub rate: Result<SelfFlipRate, Undefined>,
    /// The self-flip rate of the state's own repeats, from which a vote decides. It has no noise runs.
    pub own_rate: Result<SelfFlipRate, Undefined>,
    /// The number of repeats with a verdict.
    pub repeats: u64,
    /// The cells whose repeats have different verdicts, by name.
    pub noisy: Vec<NoisyCell>,
    /// The repeats of each cell with at least two verdicts.
    cells: Vec<RepeatedCell>,
    /// The cells whose repeats are about something else.
    pub stale: StaleNoise,
}

/// A cell that differs without an edit.
#[derive(Debug, Clone, PartialEq)]
pub struct NoisyCell {
    /// The name, without the repeat.
    pub name: CellName,
    /// The repeats.
    pub repeats: RepeatedCell,
}

/// The numbers of repeated cells that a state does not use, by what changed since.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StaleNoise {
    /// The question is another one.
    pub question: u64,
    /// The judge, its settings or its tools are other ones.
    pub judge: u64,
    /// The transcript is another one, or the state does not plan it.
    pub transcript: u64,
}

impl StaleNoise {
    /// Returns the number of all cells.
    pub fn total(self) -> u64 {
        self.question + self.judge + self.transcript
    }

    /// Describes the cells: `12 repeated cells are about another question, 3 about another judge`; `None` without any.
    pub fn describe(self) -> Option<String> {
        let parts = [
            (self.question, "another question"),
            (self.judge, "another judge"),
            (self.transcript, "another transcript"),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(cells, _)| *cells > 0)
            .map(|(cells, what)| format!("{cells} measured with {what}"))
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

impl EvalNoise {
    /// Returns the numbers of flips that noise alone gives between two judgings of the measured cells.
    pub fn flips_of_measured(&self) -> Option<(u64, u64)> {
        let range = |prior| flips_of_same_cells(&self.cells, prior).range(Confidence::P95);
        // The prior makes cells without a flip uncertain. It must not claim flips that no repeat showed.
        let (least, most) = (range(FlipPrior::Observed).0, range(FlipPrior::Jeffreys).1);
        (!self.cells.is_empty()).then_some((least, most))
    }

    /// Returns the numbers of flips that noise alone gives between two judgings of so many other cells.
    pub fn flips_of_others(&self, cells: u64) -> Option<(u64, u64)> {
        let rates = self.cells.iter().filter_map(|cell| cell.flip_rate());
        let flips = flips_of_other_cells(rates.sum(), self.cells.len() as u64, cells);
        (!self.cells.is_empty()).then(|| flips.range(Confidence::P95))
    }

    /// Returns true if nothing was repeated, neither this question nor an earlier one.
    pub fn is_unknown(&self) -> bool {
        self.own_rate.is_err() && !self.has_noise_run()
    }

    /// Returns true if a noise run repeated this question or an earlier one.
    pub fn has_noise_run(&self) -> bool {
        self.rate.is_ok() || self.stale.total() > 0
    }
}

/// Returns the noise of every judged eval of a state.
pub fn measure_noise(
    state: &State,
    records: &NoiseRecords,
    confidence: Confidence,
) -> Vec<EvalNoise> {
    let evals = state.header.evals.iter().zip(&state.evals);
    let asked = evals.filter(|(spec, _)| spec.judged || is_judged(spec));
    // Each eval needs only its own repeats, so group them once.
    let mut records_of: HashMap<(&str, &str), Vec<_>> = HashMap::new();
    for (question, repeats) in records.iter() {
        let name = (repeats.name.rubric.as_str(), repeats.name.eval.as_str());
        records_of
            .entry(name)
            .or_default()
            .push((question, repeats));
    }
    asked
        .map(|(spec, eval)| {
            let rubric = state.rubric_id(spec);
            let bounds = ScoreBounds::from_decision_settings(&spec.decision_settings);
            let mut used = HashSet::new();
            let (mut cells, mut noisy) = (Vec::new(), Vec::new());
            if !records.is_empty() {
                for decision in &eval.decisions {
                    for question in state.repeated_questions(decision) {
                        let Some(cell) = find_repeats(records, &question, bounds) else {
                            continue;
                        };
                        cells.push(cell);
                        if let Some(repeats) = records.get(&question).filter(|_| cell.has_flip()) {
                            noisy.push(NoisyCell {
                                name: repeats.name.clone(),
                                repeats: cell,
                            });
                        }
                        used.insert(question);
                    }
                }
            }
            let mut unused = StaleNoise::default();
            let judges = list_judge_digests(state, spec);
            let own = records_of.get(&(rubric, spec.id.as_str()));
            for (question, repeats) in own.into_iter().flatten().copied() {
                if !used.contains(question) && is_measured(repeats, bounds) {
                    *if question.eval != spec.digest {
                        &mut unused.question
                    } else if !judges.contains(&question.judge) {
                        &mut unused.judge
                    } else {
                        &mut unused.transcript
                    } += 1;
                }
            }
            EvalNoise {
                rubric: rubric.to_owned(),
                eval: spec.id.clone(),
                rate: self_flip_rate(&cells, confidence),
                own_rate: self_flip_rate(&[], confidence),
                repeats: cells.iter().map(|cell| cell.repeats).sum(),
                noisy,
                cells,
                stale: unused,
            }
        })
        .collect()
}

/// Measures the noise of the state's own repeats. `verdict` returns the verdict of a cell, which a state does not keep.
pub fn measure_own_noise(
    noise: &mut [EvalNoise],
    state: &State,
    confidence: Confidence,
    verdict: impl Fn(&RecordedCell) -> Option<bool>,
) {
    // The first row of a name counts, so insert it last.
    let rows = noise.iter_mut().rev();
    let rows = rows.map(|row| ((row.rubric.clone(), row.eval.clone()), row));
    let mut rows: HashMap<(String, String), &mut EvalNoise> = rows.collect();
    for (spec, eval) in state.header.evals.iter().zip(&state.evals) {
        let name = (state.rubric_id(spec).to_owned(), spec.id.clone());
        let Some(row) = rows.get_mut(&name) else {
            continue;
        };
        let repeats = eval.decisions.iter().filter_map(|decision| {
            let slots = decision.slots.iter().zip(&decision.cells);
            let cells = slots.map(|(slot, cell)| (slot.judge, slot.repeat, verdict(cell)));
            count_certain_repeats(spec.vote_params(), cells)
        });
        row.own_rate = self_flip_rate(&repeats.collect::<Vec<_>>(), confidence);
    }
}

/// Counts the repeats of the first judge of a decision, from the judge, repeat and verdict of its cells. Repeats that a
/// vote made only because earlier ones differed are left out: with them, the rate of flips is too low.
pub fn count_certain_repeats(
    terms: VoteParams<'_>,
    cells: impl IntoIterator<Item = (Option<u32>, Option<u32>, Option<bool>)>,
) -> Option<RepeatedCell> {
    // The two orders of a pair are different questions.
    if terms.needs_all_repeats || terms.repeat < 2 {
        return None;
    }
    let certain = terms.count_certain_repeats();
    let mut cells = cells.into_iter().peekable();
    let first = cells.peek()?.0;
    let own = cells.filter(|(judge, repeat, _)| {
        *judge == first && repeat.is_some_and(|repeat| repeat <= certain)
    });
    let verdicts: Vec<bool> = own.filter_map(|(_, _, passed)| passed).collect();
    (verdicts.len() > 1).then(|| RepeatedCell {
        passes: verdicts.iter().filter(|passed| **passed).count() as u64,
        repeats: verdicts.len() as u64,
    })
}

fn is_judged(spec: &EvalSpec) -> bool {
    spec.judge.is_some() || spec.panel.is_some()
}

fn is_measured(repeats: &RepeatedVerdicts, bounds: ScoreBounds) -> bool {
    repeats.count(bounds).1 >= MIN_REPEATS
}

/// Returns the digests of an eval's judges as they are called.
fn list_judge_digests(state: &State, spec: &EvalSpec) -> Vec<Digest> {
    let judges = match &spec.panel {
        Some(panel) => panel.judges.as_slice(),
        None => spec.judge.as_slice(),
    };
    let specs = judges
        .iter()
        .filter_map(|judge| state.header.judges.get(*judge as usize));
    specs.map(JudgeSpec::call_digest).collect()
}

/// Returns the repeats of a question with at least two verdicts under these bounds.
pub fn find_repeats(
    noise: &NoiseRecords,
    question: &RepeatedQuestion,
    bounds: ScoreBounds,
) -> Option<RepeatedCell> {
    let (passes, repeats) = noise.get(question)?.count(bounds);
    (repeats >= MIN_REPEATS).then_some(RepeatedCell { passes, repeats })
}

/// Returns the repeats of a decision that rests on one verdict of one judge. A vote has other noise than its verdicts.
fn repeats_of_decision(
    state: &State,
    decision: &StateDecision,
    noise: &NoiseRecords,
) -> Option<RepeatedCell> {
    if noise.is_empty() || decision.slots.len() != 1 {
        return None;
    }
    let bounds = ScoreBounds::from_decision_settings(&state.eval(decision).decision_settings);
    let question = state.repeated_questions(decision).pop()?;
    find_repeats(noise, &question, bounds)
}

/// Returns true if a repeated judge of the decision gives different verdicts to the same question.
pub fn is_noisy(state: &State, decision: &StateDecision, noise: &NoiseRecords) -> bool {
    if noise.is_empty() {
        return false;
    }
    let bounds = ScoreBounds::from_decision_settings(&state.eval(decision).decision_settings);
    let questions = state.repeated_questions(decision).into_iter();
    let mut repeats = questions.filter_map(|question| find_repeats(noise, &question, bounds));
    repeats.any(RepeatedCell::has_flip)
}

/// Returns the repeats that make a flip worthless: one of its verdicts differs from itself without an edit.
pub fn find_noisy_flip(
    flip: &StateChange,
    (before, after): (&State, &State),
    noise: &NoiseRecords,
) -> Option<RepeatedCell> {
    let newer = repeats_of_decision(after, &flip.after, noise).filter(|cell| cell.has_flip());
    newer
        .or_else(|| repeats_of_decision(before, &flip.before, noise).filter(|cell| cell.has_flip()))
}

/// The state whose question the repeats are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoiseBasis {
    /// The question of the newer state.
    Newer,
    /// The question of the older state, because the newer one has no repeats.
    Older,
}

/// The flips without a label of one eval, compared with the flips that noise alone gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlipNoise {
    /// The position of the eval in the newer header.
    pub position: usize,
    /// The number of flips without a label.
    pub flips: u64,
    /// The number of decisions without a label that were judged again.
    pub judged_again: u64,
    /// The number of flips that noise alone gives; `None` if the noise is unknown.
    pub expected: Option<ExpectedFlips>,
    /// True if the decisions are votes, whose noise the repeats of single verdicts do not show.
    pub is_vote: bool,
}

/// The flips that noise alone gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpectedFlips {
    /// The lower limit.
    pub least: u64,
    /// The upper limit.
    pub most: u64,
    /// The probability of at least the flips that were found.
    pub p_value: f64,
    /// The number of repeated cells.
    pub cells: u64,
    /// The question of the repeats.
    pub basis: NoiseBasis,
}

/// Compares the flips without a label of every eval with the noise of its judge. Leaves out evals without such a flip.
pub fn compare_with_noise(
    before: &State,
    after: &State,
    labels: &Labels,
    noise: &NoiseRecords,
) -> Vec<FlipNoise> {
    let matched = MatchedStates::new(before, after);
    let mut found = Vec::new();
    for (position, eval) in after.evals.iter().enumerate() {
        let is_unchanged = matched
            .old_eval(position)
            .is_none_or(|old| Arc::ptr_eq(&before.evals[old], eval));
        let spec = &after.header.evals[position];
        if is_unchanged || !(spec.judged || is_judged(spec)) {
            continue;
        }
        let mut flips = 0;
        let mut is_vote = false;
        let mut again: Vec<(&StateDecision, &StateDecision)> = Vec::new();
        for (old, new) in matched.pairs(position) {
            let (Some(was), Some(is)) = (old.judged_verdict(), new.judged_verdict()) else {
                continue;
            };
            // A decision that rests on the same verdict cannot differ by chance.
            if old.cells == new.cells || has_label(after, new, labels) {
                continue;
            }
            is_vote |= new.slots.len() > 1;
            flips += u64::from(was != is);
            again.push((old, new));
        }
        if flips == 0 {
            continue;
        }
        let expected = if is_vote {
            None
        } else {
            let newer = |(_, new): &(_, &StateDecision)| repeats_of_decision(after, new, noise);
            let older = |(old, _): &(&StateDecision, _)| repeats_of_decision(before, old, noise);
            let expect = |cells: Vec<RepeatedCell>, basis| {
                expect_flips(&cells, again.len() as u64, flips, basis)
            };
            expect(again.iter().filter_map(newer).collect(), NoiseBasis::Newer)
                .or_else(|| expect(again.iter().filter_map(older).collect(), NoiseBasis::Older))
        };
        found.push(FlipNoise {
            position,
            flips,
            judged_again: again.len() as u64,
            expected,
            is_vote,
        });
    }
    found
}

fn has_label(state: &State, decision: &StateDecision, labels: &Labels) -> bool {
    let query = state.label_query(decision);
    let found = query.map_or(LabelLookup::Unlabelled, |query| labels.look_up(&query));
    found.counted().and_then(|label| label.passed).is_some()
}

/// Returns the flips of `judged` decisions that noise alone gives, from the repeats of some or all of them.
fn expect_flips(
    cells: &[RepeatedCell],
    judged: u64,
    flips: u64,
    basis: NoiseBasis,
) -> Option<ExpectedFlips> {
    if cells.is_empty() {
        return None;
    }
    let measured = cells.len() as u64;
    let distribution = if measured == judged {
        flips_of_same_cells(cells, FlipPrior::Jeffreys)
    } else {
        let rates = cells.iter().filter_map(|cell| cell.flip_rate());
        flips_of_other_cells(rates.sum(), measured, judged)
    };
    let (least, most) = distribution.range(Confidence::P95);
    Some(ExpectedFlips {
        least,
        most,
        p_value: distribution.at_least(flips),
        cells: measured,
        basis,
    })
}

#[cfg(test)]
mod tests;
