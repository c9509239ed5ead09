//! Transcripts that differ most from the others: by recorded figures, or by their words.

use super::catalog::{CatalogEntry, TranscriptFeatures};
use super::terms::{TermVector, distance, mean_vector};

/// 1.4826 × the median absolute deviation estimates the standard deviation.
const MAD_FACTOR: f64 = 1.4826;
/// 1.2533 × the mean absolute deviation does so, too. It is not 0 if more than half of the values are equal, as errors
/// and latencies often are.
const MEAN_FACTOR: f64 = 1.2533;

/// The score of a transcript: its largest robust z over all figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OutlierScore {
    /// The score.
    pub(super) z: f64,
    /// The figure with that score.
    pub(super) feature: &'static str,
}

/// A figure of transcripts: its name, and the value of one of them.
type Feature = (&'static str, fn(&TranscriptFeatures) -> Option<f64>);

/// The figures. Those with a long tail are logarithms.
const FEATURES: [Feature; 5] = [
    ("length", |of| Some((of.length as f64 + 1.0).ln())),
    ("calls", |of| Some(of.calls as f64)),
    ("errors", |of| Some(of.errors as f64)),
    ("latency", |of| of.latency_ms.map(|ms| (ms + 1.0).ln())),
    ("cost", |of| of.cost_usd.map(|usd| (usd * 1e6 + 1.0).ln())),
];

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// Returns the score of each transcript. A figure that all transcripts share says nothing about outliers.
pub(super) fn score_outliers(entries: &[CatalogEntry]) -> Vec<OutlierScore> {
    let mut scores = vec![
        OutlierScore {
            z: 0.0,
            feature: FEATURES[0].0,
        };
        entries.len()
    ];
    for (name, value_of) in FEATURES {
        let values: Vec<Option<f64>> = entries.iter().map(|one| value_of(&one.features)).collect();
        let mut known: Vec<f64> = values.iter().flatten().copied().collect();
        let centre = median(&mut known);
        let mut deviations: Vec<f64> = known.iter().map(|value| (value - centre).abs()).collect();
        let mut scale = MAD_FACTOR * median(&mut deviations);
        if scale <= 0.0 {
            let sum: f64 = deviations.iter().sum();
            scale = MEAN_FACTOR * sum / deviations.len().max(1) as f64;
        }
        if scale <= 0.0 {
            continue;
        }
        for (score, value) in scores.iter_mut().zip(values) {
            let z = value.map_or(0.0, |value| ((value - centre) / scale).abs());
            if z > score.z {
                *score = OutlierScore { z, feature: name };
            }
        }
    }
    scores
}

/// Returns the `size` most extreme eligible transcripts; of equal ones, those with the smallest ids.
pub(super) fn choose_outliers(
    entries: &[CatalogEntry],
    eligible: &[bool],
    size: usize,
) -> Vec<usize> {
    let scores = score_outliers(entries);
    let mut order: Vec<usize> = (0..entries.len()).filter(|at| eligible[*at]).collect();
    order.sort_by(|a, b| {
        let by_score = scores[*b].z.total_cmp(&scores[*a].z);
        by_score.then_with(|| entries[*a].reference.id.cmp(&entries[*b].reference.id))
    });
    order.truncate(size);
    order
}

/// Returns `size` eligible transcripts whose words differ most from each other (k-centre). `chosen` were chosen before,
/// so that new ones differ from them, too.
pub(super) fn choose_diverse(
    entries: &[CatalogEntry],
    vectors: &[TermVector],
    eligible: &[bool],
    chosen: &[usize],
    size: usize,
) -> Vec<usize> {
    let nearest = |at: usize, centres: &[usize]| -> f64 {
        let distances = centres
            .iter()
            .map(|centre| distance(&vectors[at], &vectors[*centre]));
        distances.fold(f64::INFINITY, f64::min)
    };
    let mut open: Vec<usize> = (0..entries.len()).filter(|at| eligible[*at]).collect();
    // The smallest id first decides between equal distances.
    open.sort_by(|a, b| entries[*a].reference.id.cmp(&entries[*b].reference.id));
    let mut gaps: Vec<f64> = open.iter().map(|at| nearest(*at, chosen)).collect();
    if chosen.is_empty() {
        // The first one is the most typical transcript: larger is nearer to the mean.
        let mean = mean_vector(vectors);
        gaps = open
            .iter()
            .map(|at| 2.0 - distance(&vectors[*at], &mean))
            .collect();
    }
    let mut found = Vec::new();
    while found.len() < size && !open.is_empty() {
        let mut best = 0;
        for at in 1..open.len() {
            if round(gaps[at]) > round(gaps[best]) {
                best = at;
            }
        }
        let next = open.remove(best);
        gaps.remove(best);
        let is_first = found.is_empty() && chosen.is_empty();
        for (at, gap) in open.iter().zip(&mut gaps) {
            let new = distance(&vectors[*at], &vectors[next]);
            *gap = if is_first { new } else { gap.min(new) };
        }
        found.push(next);
    }
    found
}

/// Rounds to 12 places, so that the order of additions does not decide.
pub(super) fn round(value: f64) -> f64 {
    (value * 1e12).round() / 1e12
}
