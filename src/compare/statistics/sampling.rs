//! Draws by chance, with the probability of every drawn item.
//!
//! A draw is one act of selection. Its record has to keep the stratum of every member and the sizes of the strata:
//! labels alone do not show how many items could have been drawn.

use fastrand::Rng;

/// The rule of a draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DrawPlan {
    /// Every item has the same probability.
    Random,
    /// Every item of a stratum has the same probability.
    Stratified,
    /// A set that was fixed beforehand is read completely; the rest is drawn at random.
    TakeAll,
}

impl DrawPlan {
    /// Returns the name in label files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Stratified => "stratified",
            Self::TakeAll => "take_all",
        }
    }
}

/// A drawn item.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DrawnItem {
    /// The position of the item in the population.
    pub item: usize,
    /// The stratum at the time of the draw.
    pub stratum: u32,
    /// The probability of the item in this draw: drawn items of the stratum / items of the stratum.
    pub probability: f64,
}

/// The sizes of a stratum in a draw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DrawnStratum {
    /// The number of items that could be drawn.
    pub eligible: usize,
    /// The number of drawn items.
    pub drawn: usize,
}

/// A draw: what to record, and what to label.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelDraw {
    /// The rule.
    pub plan: DrawPlan,
    /// The seed. The same population, plan and seed give the same draw.
    pub seed: u64,
    /// The sizes of the strata, by the number of the stratum.
    pub strata: Vec<DrawnStratum>,
    /// The drawn items in random order, so that an interrupted session has labelled a random part.
    pub items: Vec<DrawnItem>,
}

/// Draws `size` of the eligible items at random, all of them if there are fewer.
pub fn draw_random(eligible: &[bool], size: usize, seed: u64) -> LabelDraw {
    draw(
        DrawPlan::Random,
        &vec![0; eligible.len()],
        eligible,
        &[size],
        seed,
    )
}

/// Draws from each stratum as many eligible items as its quota. Quotas above the size of a stratum move to the others.
///
/// `strata` has the stratum of every item. Items that have a label from an earlier draw are not eligible.
pub fn draw_by_strata(strata: &[u32], eligible: &[bool], quotas: &[usize], seed: u64) -> LabelDraw {
    draw(DrawPlan::Stratified, strata, eligible, quotas, seed)
}

/// Takes all eligible items of a set, and draws `size` items of the rest at random.
///
/// The set is stratum 0 and the rest is stratum 1. The rule of the set must not read labels.
pub fn draw_take_all(set: &[bool], eligible: &[bool], size: usize, seed: u64) -> LabelDraw {
    let strata: Vec<u32> = set.iter().map(|inside| u32::from(!inside)).collect();
    let all = set.iter().zip(eligible).filter(|(s, e)| **s && **e).count();
    draw(DrawPlan::TakeAll, &strata, eligible, &[all, size], seed)
}

fn draw(
    plan: DrawPlan,
    strata: &[u32],
    eligible: &[bool],
    quotas: &[usize],
    seed: u64,
) -> LabelDraw {
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); quotas.len()];
    for (item, (stratum, eligible)) in strata.iter().zip(eligible).enumerate() {
        // Items of a stratum without a quota cannot be drawn.
        if *eligible && let Some(members) = members.get_mut(*stratum as usize) {
            members.push(item);
        }
    }
    let sizes: Vec<usize> = members.iter().map(Vec::len).collect();
    let quotas = fill_quotas(quotas, &sizes);
    let mut random = Rng::with_seed(seed);
    let mut items = Vec::new();
    for ((stratum, members), quota) in (0..).zip(&mut members).zip(&quotas) {
        for at in 0..*quota {
            let chosen = random.usize(at..members.len());
            members.swap(at, chosen);
        }
        let probability = *quota as f64 / members.len() as f64;
        items.extend(members[..*quota].iter().map(|item| DrawnItem {
            item: *item,
            stratum,
            probability,
        }));
    }
    random.shuffle(&mut items);
    let strata = sizes.into_iter().zip(quotas);
    LabelDraw {
        plan,
        seed,
        strata: strata
            .map(|(eligible, drawn)| DrawnStratum { eligible, drawn })
            .collect(),
        items,
    }
}

/// Returns equal quotas of `size` items for strata of these sizes; a stratum that is too small leaves its rest to others.
pub fn split_evenly(size: usize, sizes: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    // Small strata first, so that each later share already contains what they left.
    order.sort_by_key(|stratum| sizes[*stratum]);
    let mut quotas = vec![0; sizes.len()];
    let mut left = size;
    for (done, stratum) in order.into_iter().enumerate() {
        let quota = (left / (sizes.len() - done)).min(sizes[stratum]);
        quotas[stratum] = quota;
        left -= quota;
    }
    quotas
}

/// Cuts quotas to the sizes of the strata. What is cut moves to strata with room, in proportion to their quotas.
pub(super) fn fill_quotas(quotas: &[usize], sizes: &[usize]) -> Vec<usize> {
    let wanted: usize = quotas.iter().sum();
    let mut filled: Vec<usize> = quotas.iter().zip(sizes).map(|(q, s)| *q.min(s)).collect();
    let mut left = wanted - filled.iter().sum::<usize>();
    // A stratum that the user gave no quota gets nothing: no one asked for its labels.
    let has_room = |filled: &[usize], at: usize| quotas[at] > 0 && filled[at] < sizes[at];
    while left > 0 {
        let open: Vec<usize> = (0..sizes.len())
            .filter(|at| has_room(&filled, *at))
            .collect();
        let weight: usize = open.iter().map(|at| quotas[*at]).sum();
        if open.is_empty() {
            break;
        }
        let round = left;
        for at in open {
            // At least one each, so that the loop ends.
            let part = (round * quotas[at] / weight).max(1);
            let part = part.min(left).min(sizes[at] - filled[at]);
            filled[at] += part;
            left -= part;
        }
    }
    filled
}

/// Returns the probability of being drawn at least once, from the probabilities of draws without repeats.
///
/// The probability of a later draw is that of an item without a label. Cells are better: they need no product.
pub fn combine_probabilities(probabilities: &[f64]) -> f64 {
    1.0 - probabilities.iter().map(|p| 1.0 - p).product::<f64>()
}

/// A label with the weight of its item: 1 / probability, or items of the cell / labels of the cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightedLabel {
    /// The label is a pass.
    pub label: bool,
    /// The verdict is a pass.
    pub verdict: bool,
    /// The number of items of the population that the label represents.
    pub weight: f64,
}

/// Returns Kish's effective number of labels; 0 without labels. Print it, but do not compute intervals from it.
pub fn effective_labels(weights: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut squares) = (0.0, 0.0);
    for weight in weights {
        sum += weight;
        squares += weight * weight;
    }
    if squares > 0.0 {
        sum * sum / squares
    } else {
        0.0
    }
}
