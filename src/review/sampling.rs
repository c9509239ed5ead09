//! The choice of transcripts to read, with the probability of each.
//!
//! A draw has up to three strata. `outlier` and `diverse` are take-all sets: a rule fixes them without a look at notes,
//! and all of them are read. `random` is a random sample of the rest. A later draw extends the sample: it adds
//! transcripts that no draw has chosen, and its random part goes on in the same population.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

use fastrand::Rng;
use thiserror::Error;

use super::answers::ReviewBook;
use super::catalog::ReviewCatalog;
use super::note::NoteSample;
use super::outliers::{choose_diverse, choose_outliers, score_outliers};
use super::terms::weigh_terms;
use crate::compare::statistics::combine_probabilities;
use crate::model::{DrawStratum, RecordedDraw, WallTime};

/// The stratum of the random part.
pub(super) const RANDOM: &str = "random";
/// The stratum of transcripts with extreme figures.
pub(super) const OUTLIER: &str = "outlier";
/// The stratum of transcripts with unlike words.
pub(super) const DIVERSE: &str = "diverse";
/// The plan of a transcript that the reader picked.
pub(super) const HAND: &str = "hand";

/// The number of transcripts of each plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewMix {
    /// The number of transcripts drawn at random.
    pub random: usize,
    /// The number of transcripts with extreme length, calls, errors, latency or cost.
    pub outlier: usize,
    /// The number of transcripts with unlike words.
    pub diverse: usize,
}

impl Default for ReviewMix {
    fn default() -> Self {
        Self {
            random: 50,
            outlier: 30,
            diverse: 20,
        }
    }
}

/// The reason why a mix is not valid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MixError {
    /// A part is not `PLAN=NUMBER`.
    #[error("`{0}` is not PLAN=NUMBER: write random=50,outlier=30,diverse=20")]
    Syntax(String),
    /// A plan is unknown.
    #[error("`{0}` is not a plan: the plans are random, outlier and diverse")]
    UnknownPlan(String),
    /// All numbers are 0.
    #[error("the mix selects nothing: give a plan a number above 0")]
    Empty,
}

impl FromStr for ReviewMix {
    type Err = MixError;

    fn from_str(text: &str) -> Result<Self, MixError> {
        let mut mix = Self {
            random: 0,
            outlier: 0,
            diverse: 0,
        };
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let syntax = || MixError::Syntax(part.to_owned());
            // A plan alone gets everything.
            let (plan, number) = match part.split_once('=') {
                Some((plan, number)) => (plan.trim(), number.trim().parse().map_err(|_| syntax())?),
                None => (part, 1),
            };
            match plan {
                RANDOM => mix.random = number,
                OUTLIER => mix.outlier = number,
                DIVERSE => mix.diverse = number,
                _ => return Err(MixError::UnknownPlan(plan.to_owned())),
            }
        }
        if mix.total() == 0 {
            return Err(MixError::Empty);
        }
        Ok(mix)
    }
}

impl fmt::Display for ReviewMix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (RANDOM, self.random),
            (OUTLIER, self.outlier),
            (DIVERSE, self.diverse),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(_, number)| *number > 0)
            .map(|(plan, number)| format!("{plan}={number}"))
            .collect();
        f.write_str(&parts.join(","))
    }
}

impl ReviewMix {
    /// Returns the number of transcripts.
    pub fn total(self) -> usize {
        let sets = self.outlier.saturating_add(self.diverse);
        self.random.saturating_add(sets)
    }

    /// Returns the mix with another total and the same proportions. The largest remainders are rounded up.
    #[must_use]
    pub fn scaled_to(self, total: usize) -> Self {
        // A user may write any numbers, and their products do not fit into 64 bits.
        let parts = [self.random, self.outlier, self.diverse].map(|part| part as u128);
        let whole = parts.iter().sum::<u128>().max(1);
        let products = parts.map(|part| part * total as u128);
        let mut sizes = products.map(|product| usize::try_from(product / whole).unwrap_or(total));
        let mut order = [0, 1, 2];
        order.sort_by_key(|at| std::cmp::Reverse(products[*at] % whole));
        let missing = total - sizes.iter().sum::<usize>();
        for at in order.into_iter().filter(|at| parts[*at] > 0).take(missing) {
            sizes[at] += 1;
        }
        Self {
            random: sizes[0],
            outlier: sizes[1],
            diverse: sizes[2],
        }
    }
}

/// An order to draw.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleRequest {
    /// The numbers of transcripts.
    pub mix: ReviewMix,
    /// The seed of the random part.
    pub seed: u64,
    /// The time of the draw.
    pub at: WallTime,
}

/// Draws transcripts that no earlier draw has chosen. Returns `None` if every transcript was drawn.
///
/// What a take-all set lacks, because earlier draws chose its transcripts or there are too few, moves to the random part.
/// If the sample takes every transcript, sets add nothing, so all of it is random: each part of it that is read first
/// is a random sample, which shares can use at once.
pub fn draw_sample(
    catalog: &ReviewCatalog,
    earlier: &[RecordedDraw],
    request: &SampleRequest,
) -> Option<RecordedDraw> {
    let ids: Vec<&str> = catalog
        .entries
        .iter()
        .map(|entry| entry.reference.id.as_str())
        .collect();
    let drawn_before: HashSet<&str> = list_drawn(earlier).collect();
    let is_drawn: Vec<bool> = ids.iter().map(|id| drawn_before.contains(id)).collect();
    let open = is_drawn.iter().filter(|drawn| !**drawn).count();
    if open == 0 {
        return None;
    }
    let mix = match request.mix {
        mix if mix.random > 0 && mix.total() >= open => ReviewMix {
            random: open,
            outlier: 0,
            diverse: 0,
        },
        mix => mix,
    };
    // Step: the sets. A rule on figures fixes them, so an earlier random draw may have read a part of them already.
    let earlier_sets: HashSet<&str> = [OUTLIER, DIVERSE]
        .into_iter()
        .flat_map(|name| list_members(earlier, name))
        .collect();
    let mut is_free: Vec<bool> = ids.iter().map(|id| !earlier_sets.contains(id)).collect();
    let outliers = choose_outliers(&catalog.entries, &is_free, mix.outlier);
    for at in &outliers {
        is_free[*at] = false;
    }
    let diverse = if mix.diverse == 0 {
        Vec::new()
    } else {
        let terms: Vec<_> = catalog
            .entries
            .iter()
            .map(|one| one.terms.clone())
            .collect();
        let vectors = weigh_terms(&terms);
        let chosen: Vec<usize> = list_members(earlier, DIVERSE)
            .filter_map(|id| catalog.position(id))
            .collect();
        let entries = &catalog.entries;
        choose_diverse(entries, &vectors, &is_free, &chosen, mix.diverse)
    };
    for at in &diverse {
        is_free[*at] = false;
    }
    // Step: the random part, with the rest of the quotas.
    let of_sets: Vec<usize> = outliers.iter().chain(&diverse).copied().collect();
    let mut drawn: Vec<usize> = of_sets
        .iter()
        .copied()
        .filter(|at| !is_drawn[*at])
        .collect();
    let mut rest: Vec<usize> = (0..ids.len())
        .filter(|at| is_free[*at] && !is_drawn[*at])
        .collect();
    let quota = mix.total().saturating_sub(drawn.len()).min(rest.len());
    let mut random = Rng::with_seed(request.seed);
    for at in 0..quota {
        let chosen = random.usize(at..rest.len());
        rest.swap(at, chosen);
    }
    drawn.extend(&rest[..quota]);
    if drawn.is_empty() {
        return None;
    }
    // An interrupted review has read a random part of the random part.
    random.shuffle(&mut drawn);
    let name = |at: &usize| ids[*at].to_owned();
    let members_of_rest: Vec<String> = (0..ids.len())
        .filter(|at| is_free[*at])
        .map(|at| name(&at))
        .collect();
    let strata = [
        (OUTLIER, outliers.iter().map(name).collect()),
        (DIVERSE, diverse.iter().map(name).collect()),
        (
            RANDOM,
            if quota > 0 {
                members_of_rest
            } else {
                Vec::new()
            },
        ),
    ];
    let strata = strata
        .into_iter()
        .filter(|(_, members): &(_, Vec<String>)| !members.is_empty());
    let known: HashSet<&str> = earlier
        .iter()
        .flat_map(|draw| draw.strata.iter().flat_map(|stratum| &stratum.members))
        .chain(earlier.iter().flat_map(|draw| &draw.arrived))
        .map(String::as_str)
        .collect();
    let arrived = ids
        .iter()
        .filter(|id| !earlier.is_empty() && !known.contains(*id));
    Some(RecordedDraw {
        // A review is about no eval.
        rubric: String::new(),
        eval: String::new(),
        plan: mix.to_string(),
        by: Some("review plan".to_owned()),
        seed: request.seed,
        at: request.at.clone(),
        population: RecordedDraw::digest_population(ids.iter().copied()),
        arrived: arrived.map(|id| (*id).to_owned()).collect(),
        strata: strata
            .map(|(name, members)| DrawStratum {
                name: name.to_owned(),
                members,
            })
            .collect(),
        drawn: drawn.iter().map(name).collect(),
    })
}

/// Returns the transcripts that draws chose, in the order of the draws.
pub(super) fn list_drawn(draws: &[RecordedDraw]) -> impl Iterator<Item = &str> {
    draws
        .iter()
        .flat_map(|draw| &draw.drawn)
        .map(String::as_str)
}

fn list_members<'d>(draws: &'d [RecordedDraw], name: &str) -> impl Iterator<Item = &'d str> {
    let strata = draws.iter().flat_map(|draw| &draw.strata);
    let strata = strata.filter(move |stratum| stratum.name == name);
    // The name is compared before the members are returned, so the iterator borrows only the draws.
    let members: Vec<&str> = strata
        .flat_map(|stratum| stratum.members.iter().map(String::as_str))
        .collect();
    members.into_iter()
}

/// A transcript of the queue.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewQueueItem {
    /// The id of the transcript.
    pub transcript: String,
    /// The plan that selected it, with its probability.
    pub sample: NoteSample,
    /// The figure by which it is an outlier.
    pub feature: Option<&'static str>,
}

/// Returns the drawn transcripts in the order in which to read them. Transcripts that are gone are left out.
pub fn list_queue(catalog: &ReviewCatalog, draws: &[RecordedDraw]) -> Vec<ReviewQueueItem> {
    let samples = sample_of_each(draws);
    let mut scores = None;
    let mut seen = HashSet::new();
    let chosen = list_drawn(draws).filter(|id| seen.insert(*id));
    chosen
        .filter_map(|id| {
            let at = catalog.position(id)?;
            let sample = samples.get(id)?.clone();
            let feature = (sample.plan == OUTLIER).then(|| {
                let scores = scores.get_or_insert_with(|| score_outliers(&catalog.entries));
                scores[at].feature
            });
            Some(ReviewQueueItem {
                transcript: id.to_owned(),
                sample,
                feature,
            })
        })
        .collect()
}

/// Returns the drawn transcripts after those that the reader picked by hand and no draw chose.
pub(super) fn list_queue_with_picks(
    catalog: &ReviewCatalog,
    draws: &[RecordedDraw],
    picks: &[String],
) -> Vec<ReviewQueueItem> {
    let chosen = list_queue(catalog, draws);
    let mut seen: HashSet<&str> = chosen.iter().map(|item| item.transcript.as_str()).collect();
    let by_hand = picks
        .iter()
        .filter(|id| catalog.find(id).is_some() && seen.insert(id));
    let mut queue: Vec<ReviewQueueItem> = by_hand
        .map(|id| ReviewQueueItem {
            transcript: id.clone(),
            sample: NoteSample::new(HAND, None),
            feature: None,
        })
        .collect();
    queue.extend(chosen.iter().cloned());
    queue
}

/// Returns the plan of each drawn transcript, and the probability that one of the draws chose it.
pub(super) fn sample_of_each(draws: &[RecordedDraw]) -> HashMap<&str, NoteSample> {
    // The probability of each draw that could choose a transcript and was the first to do so.
    let mut chances: HashMap<&str, Vec<f64>> = HashMap::new();
    let mut samples = HashMap::new();
    let mut before: HashSet<&str> = HashSet::new();
    for draw in draws {
        let read: HashSet<&str> = draw.drawn.iter().map(String::as_str).collect();
        for stratum in &draw.strata {
            let open: Vec<&str> = stratum
                .members
                .iter()
                .map(String::as_str)
                .filter(|id| !before.contains(id))
                .collect();
            let chosen = open.iter().filter(|id| read.contains(*id)).count();
            let p = chosen as f64 / open.len().max(1) as f64;
            for id in open {
                let chances = chances.entry(id).or_default();
                chances.push(p);
                if read.contains(id) {
                    let p = combine_probabilities(chances);
                    samples.insert(id, NoteSample::new(&stratum.name, Some(p)));
                }
            }
        }
        before.extend(&read);
    }
    samples
}

/// Returns the take-all sets that are not read completely yet, with the numbers of read and of all transcripts. Until
/// then, they have no probability.
pub(super) fn open_sets<'d>(
    draws: &'d [RecordedDraw],
    book: &ReviewBook,
    catalog: &ReviewCatalog,
) -> Vec<(&'d DrawStratum, usize, usize)> {
    let strata = draws.iter().flat_map(|draw| &draw.strata);
    let sets = strata.filter(|stratum| stratum.name != RANDOM);
    sets.filter_map(|set| {
        let present = set.members.iter().filter(|id| catalog.find(id).is_some());
        let present: Vec<&String> = present.collect();
        // A transcript that was visited and skipped is a missing answer, and not an unread one.
        let read = present
            .iter()
            .filter(|id| book.notes_of(id).next().is_some())
            .count();
        (read < present.len()).then_some((set, read, present.len()))
    })
    .collect()
}
