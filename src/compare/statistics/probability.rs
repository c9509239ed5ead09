//! The quality of probabilities: pairs of a predicted probability of pass and the label.

use super::interval::{Figure, Undefined};

/// Returns the mean squared distance between probability and label.
pub fn brier_score(predictions: &[(f64, bool)]) -> Figure {
    if predictions.is_empty() {
        return Err(Undefined::NoLabels);
    }
    let squares: f64 = predictions
        .iter()
        .map(|(p, label)| (p - f64::from(u8::from(*label))).powi(2))
        .sum();
    Ok(squares / predictions.len() as f64)
}

/// Returns the mean distance between probability and share of passes over `bins` bins of equal width.
///
/// A probability at a limit between two bins counts in the upper bin.
pub fn expected_calibration_error(predictions: &[(f64, bool)], bins: u32) -> Figure {
    if predictions.is_empty() || bins == 0 {
        return Err(Undefined::NoLabels);
    }
    let limits: Vec<f64> = (1..bins)
        .map(|bin| f64::from(bin) / f64::from(bins))
        .collect();
    let mut sums = vec![0.0; limits.len() + 1];
    for (p, label) in predictions {
        let bin = limits.partition_point(|limit| limit <= p);
        sums[bin] += f64::from(u8::from(*label)) - p;
    }
    Ok(sums.iter().map(|sum: &f64| sum.abs()).sum::<f64>() / predictions.len() as f64)
}

/// Returns the share of pairs of a pass and a fail in which the pass has the higher probability; ties count half.
pub fn area_under_roc(predictions: &[(f64, bool)]) -> Figure {
    let mut sorted = predictions.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let passes = sorted.iter().filter(|(_, label)| *label).count() as f64;
    let fails = sorted.len() as f64 - passes;
    if passes <= 0.0 {
        return Err(Undefined::NoLabelPasses);
    }
    if fails <= 0.0 {
        return Err(Undefined::NoLabelFails);
    }
    let (mut fails_below, mut wins) = (0.0, 0.0);
    for tied in sorted.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let tied_passes = tied.iter().filter(|(_, label)| *label).count() as f64;
        let tied_fails = tied.len() as f64 - tied_passes;
        wins += tied_passes * (fails_below + tied_fails / 2.0);
        fails_below += tied_fails;
    }
    Ok(wins / (passes * fails))
}
