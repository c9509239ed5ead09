//! Coverage and bias of the figures, by simulation with a known truth.
//!
//! A setting is a population of 1,000 items with a true pass rate, a judge, and a plan of draws. Each trial draws labels
//! by the plan, and compares the figures with those of all labels.

use dicta::compare::statistics::{
    Confidence, Estimate, LabelDraw, MeasuredLabel, PopulationItem, SampledPopulation,
    draw_by_strata, draw_random, draw_take_all, split_evenly,
};
use fastrand::Rng;

/// The size of a population.
const ITEMS: usize = 1000;
/// The share of items on which the errors of a judge concentrate in half of the settings.
const HARD_SHARE: f64 = 0.25;

/// A plan of draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// One random draw.
    Random,
    /// Half of the labels from each verdict.
    Verdict,
    /// Half of the labels from items on which a second judge has another verdict.
    Disagreement,
    /// Half of the labels from items with a tag that marks hard items.
    Tag,
    /// A take-all set of a tenth of the labels, then random draws from the rest.
    TakeAll,
    /// Half of the labels by a random draw, then half by verdict from the items without a label.
    Mixture,
    /// A random draw, then 200 new items and a draw by verdict from all items without a label.
    Arrivals,
}

impl Plan {
    pub(crate) const ALL: [Self; 7] = [
        Self::Random,
        Self::Verdict,
        Self::Disagreement,
        Self::Tag,
        Self::TakeAll,
        Self::Mixture,
        Self::Arrivals,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Verdict => "verdict",
            Self::Disagreement => "disagreement",
            Self::Tag => "tag",
            Self::TakeAll => "take all, then random",
            Self::Mixture => "random, then verdict",
            Self::Arrivals => "random, new items, verdict",
        }
    }
}

/// A judge and the rate of passes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Truth {
    pub(crate) pass_rate: f64,
    pub(crate) tpr: f64,
    pub(crate) tnr: f64,
    /// All errors of the judge are on hard items.
    pub(crate) has_hard_items: bool,
}

impl Truth {
    pub(crate) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for pass_rate in [0.5, 0.8, 0.95] {
            for (tpr, tnr) in [(0.88, 0.84), (0.97, 0.95)] {
                for has_hard_items in [false, true] {
                    all.push(Self {
                        pass_rate,
                        tpr,
                        tnr,
                        has_hard_items,
                    });
                }
            }
        }
        all
    }
}

/// An item of the population.
#[derive(Debug, Clone, Copy)]
struct Item {
    label: bool,
    verdict: bool,
    second_verdict: bool,
    is_hard: bool,
}

/// A population and its true figures.
pub(crate) struct World {
    items: Vec<Item>,
    truth: [f64; 4],
    /// The figures of the source that the population comes from.
    source: [f64; 4],
}

/// The figures of a trial, in the order of [`FIGURES`].
pub(crate) type Figures = [Estimate; 4];
pub(crate) const FIGURES: [&str; 4] = ["corrected rate", "TPR", "TNR", "agreement"];

impl World {
    /// Makes a population. Its figures differ from the rates of the setting by chance.
    pub(crate) fn new(truth: Truth, seed: u64) -> Self {
        Self::with_items(truth, ITEMS, seed)
    }

    /// Makes a population of any size.
    pub(crate) fn with_items(truth: Truth, items: usize, seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let items: Vec<Item> = (0..items)
            .map(|_| {
                let label = random.f64() < truth.pass_rate;
                let is_hard = random.f64() < HARD_SHARE;
                let error = 1.0 - if label { truth.tpr } else { truth.tnr };
                let mut judge = |error: f64| {
                    let error = match (truth.has_hard_items, is_hard) {
                        (false, _) => error,
                        (true, true) => error / HARD_SHARE,
                        (true, false) => 0.0,
                    };
                    label ^ (random.f64() < error)
                };
                Item {
                    label,
                    verdict: judge(error),
                    second_verdict: judge(0.2),
                    is_hard,
                }
            })
            .collect();
        let census = |items: &[Item]| -> [f64; 4] {
            let share = |wanted: &dyn Fn(&Item) -> bool, of: &dyn Fn(&Item) -> bool| {
                let all = items.iter().filter(|item| of(item)).count() as f64;
                items.iter().filter(|item| of(item) && wanted(item)).count() as f64 / all
            };
            [
                share(&|item| item.label, &|_| true),
                share(&|item| item.verdict, &|item| item.label),
                share(&|item| !item.verdict, &|item| !item.label),
                share(&|item| item.verdict == item.label, &|_| true),
            ]
        };
        let pass_rate = truth.pass_rate;
        let source = [
            pass_rate,
            truth.tpr,
            truth.tnr,
            pass_rate * truth.tpr + (1.0 - pass_rate) * truth.tnr,
        ];
        let truth = census(&items);
        Self {
            items,
            truth,
            source,
        }
    }

    /// Returns the true figures.
    pub(crate) fn truth(&self) -> [f64; 4] {
        self.truth
    }

    /// Draws `size` labels by a plan and returns the sampled population.
    pub(crate) fn sample(&self, plan: Plan, size: usize, seed: u64) -> SampledPopulation {
        let items = &self.items;
        let by = |stratum: &dyn Fn(&Item) -> bool| -> Vec<u32> {
            items.iter().map(|item| u32::from(stratum(item))).collect()
        };
        let everything = vec![true; items.len()];
        let mut sampling = Sampling::new(items.len());
        let halves = |strata: &[u32], eligible: &[bool], size: usize| {
            let mut sizes = [0, 0];
            for (stratum, _) in strata
                .iter()
                .zip(eligible)
                .filter(|(_, eligible)| **eligible)
            {
                sizes[*stratum as usize] += 1;
            }
            split_evenly(size, &sizes)
        };
        let by_verdict = by(&|item| item.verdict);
        match plan {
            Plan::Random => {
                let strata = vec![0; items.len()];
                sampling.add(&strata, &everything, draw_random(&everything, size, seed));
            }
            Plan::Verdict | Plan::Disagreement | Plan::Tag => {
                let strata = match plan {
                    Plan::Disagreement => by(&|item| item.verdict != item.second_verdict),
                    Plan::Tag => by(&|item| item.is_hard),
                    _ => by_verdict,
                };
                let quotas = halves(&strata, &everything, size);
                let draw = draw_by_strata(&strata, &everything, &quotas, seed);
                sampling.add(&strata, &everything, draw);
            }
            Plan::TakeAll => {
                // The rule of the set reads a feature: the position among hard items.
                let mut left = size / 10;
                let set: Vec<bool> = items
                    .iter()
                    .map(|item| {
                        let takes = item.is_hard && left > 0;
                        left -= usize::from(takes);
                        takes
                    })
                    .collect();
                let strata: Vec<u32> = set.iter().map(|inside| u32::from(!inside)).collect();
                let draw = draw_take_all(&set, &everything, size - size / 10, seed);
                sampling.add(&strata, &everything, draw);
            }
            Plan::Mixture | Plan::Arrivals => {
                // In a plan with arrivals, the last fifth of the items is not there for the first draw.
                let there = if plan == Plan::Arrivals {
                    items.len() * 4 / 5
                } else {
                    items.len()
                };
                let present: Vec<bool> = (0..items.len()).map(|item| item < there).collect();
                let strata = vec![0; items.len()];
                sampling
                    .arrivals
                    .iter_mut()
                    .skip(there)
                    .for_each(|arrival| *arrival = 1);
                sampling.add(&strata, &present, draw_random(&present, size / 2, seed));
                let open: Vec<bool> = sampling.drawn.iter().map(|drawn| !drawn).collect();
                let rest = size - size / 2;
                let quotas = halves(&by_verdict, &open, rest);
                let draw = draw_by_strata(&by_verdict, &open, &quotas, seed ^ 0x5EED);
                // A second draw records a stratum of every member, also of those with a label.
                sampling.add(&by_verdict, &everything, draw);
            }
        }
        sampling.into_population(items)
    }
}

/// The draws so far.
struct Sampling {
    arrivals: Vec<u32>,
    strata: Vec<Vec<Option<u32>>>,
    drawn: Vec<bool>,
}

impl Sampling {
    fn new(items: usize) -> Self {
        Self {
            arrivals: vec![0; items],
            strata: vec![Vec::new(); items],
            drawn: vec![false; items],
        }
    }

    fn add(&mut self, strata: &[u32], members: &[bool], draw: LabelDraw) {
        for ((recorded, stratum), member) in self.strata.iter_mut().zip(strata).zip(members) {
            recorded.push(member.then_some(*stratum));
        }
        for drawn in draw.items {
            self.drawn[drawn.item] = true;
        }
    }

    fn into_population(self, items: &[Item]) -> SampledPopulation {
        let recorded = items.iter().zip(&self.strata).zip(&self.arrivals);
        SampledPopulation::from_items(recorded.zip(&self.drawn).map(
            |(((item, strata), arrival), drawn)| PopulationItem {
                arrival: *arrival,
                strata,
                verdict: Some(item.verdict),
                label: if *drawn {
                    MeasuredLabel::Is(item.label)
                } else {
                    MeasuredLabel::NotDrawn
                },
            },
        ))
    }
}

/// The results of the trials of one setting and figure.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) trials: u32,
    pub(crate) covered: u32,
    pub(crate) undefined: u32,
    pub(crate) error: f64,
    pub(crate) width: f64,
    pub(crate) effective_labels: f64,
}

impl Tally {
    pub(crate) fn add(&mut self, estimate: &Estimate, truth: f64) {
        self.trials += 1;
        self.effective_labels += estimate.effective_labels;
        match estimate.point {
            Err(_) => self.undefined += 1,
            Ok(point) => {
                // Rounding must not miss an interval without a width.
                let near = estimate.interval.including(estimate.interval.lower - 1e-9);
                let near = near.including(near.upper + 1e-9);
                self.covered += u32::from(near.contains(truth));
                self.error += point - truth;
                self.width += estimate.interval.width();
            }
        }
    }

    fn defined(self) -> f64 {
        f64::from(self.trials - self.undefined)
    }

    /// Returns the share of trials with a value whose interval contains the truth.
    pub(crate) fn coverage(self) -> f64 {
        f64::from(self.covered) / self.defined()
    }

    /// Returns the mean error of the trials with a value.
    pub(crate) fn bias(self) -> f64 {
        self.error / self.defined()
    }

    /// Returns the mean of Kish's effective number of labels.
    pub(crate) fn mean_effective_labels(self) -> f64 {
        self.effective_labels / f64::from(self.trials)
    }

    pub(crate) fn mean_width(self) -> f64 {
        self.width / self.defined()
    }

    pub(crate) fn undefined_share(self) -> f64 {
        f64::from(self.undefined) / f64::from(self.trials)
    }
}

/// Runs the trials of one setting. Returns a tally for each figure.
pub(crate) fn run_setting(truth: Truth, plan: Plan, size: usize, trials: u64) -> [Tally; 4] {
    let mut tallies = [Tally::default(); 4];
    for seed in 0..trials {
        let world = World::new(truth, seed);
        let figures = estimate(&world.sample(plan, size, !seed));
        for ((tally, estimate), truth) in tallies.iter_mut().zip(&figures).zip(world.truth()) {
            tally.add(estimate, truth);
        }
    }
    tallies
}

/// Runs trials with populations of `items` items. The intervals for further items must contain the figures of the source.
pub(crate) fn run_further(
    truth: Truth,
    plan: Plan,
    (items, size): (usize, usize),
    trials: u64,
) -> [Tally; 4] {
    let mut tallies = [Tally::default(); 4];
    for seed in 0..trials {
        let world = World::with_items(truth, items, seed);
        let figures = estimate(&world.sample(plan, size, !seed));
        for ((tally, estimate), truth) in tallies.iter_mut().zip(figures).zip(world.source) {
            let further = Estimate {
                interval: estimate.further,
                ..estimate
            };
            tally.add(&further, truth);
        }
    }
    tallies
}

fn estimate(population: &SampledPopulation) -> Figures {
    let figures = population.figures(Confidence::P95);
    [
        figures.corrected_rate,
        figures.tpr,
        figures.tnr,
        figures.agreement,
    ]
}
