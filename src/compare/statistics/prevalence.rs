//! The pass rate of a population, corrected for the errors of the judge (Rogan and Gladen 1978).

use super::interval::{Figure, Undefined};

/// The smallest TPR + TNR with which the correction is shown next to the corrected rate.
const MIN_SHOWN_SUM: f64 = 1.1;

/// A pass rate corrected by TPR and TNR.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoganGladen {
    /// The rate, between 0 and 1.
    pub rate: f64,
    /// The rate before it is limited. Outside of 0 to 1, the three samples contradict each other.
    pub unlimited: f64,
}

impl RoganGladen {
    /// Reports whether the formula gave a value outside of 0 to 1, which deserves a warning.
    pub fn is_limited(self) -> bool {
        !(0.0..=1.0).contains(&self.unlimited)
    }

    /// Returns the standard error by the delta method for three independent samples: `n` judged transcripts,
    /// `label_passes` and `label_fails`.
    pub fn standard_error(
        self,
        (judged_rate, n): (f64, u64),
        (tpr, label_passes): (f64, u64),
        (tnr, label_fails): (f64, u64),
    ) -> Figure {
        let (n, passes, fails) = (n as f64, label_passes as f64, label_fails as f64);
        if n <= 0.0 {
            return Err(Undefined::NoLabels);
        }
        if passes <= 0.0 {
            return Err(Undefined::NoLabelPasses);
        }
        if fails <= 0.0 {
            return Err(Undefined::NoLabelFails);
        }
        let rate = self.rate;
        let variance = judged_rate * (1.0 - judged_rate) / n
            + rate * rate * tpr * (1.0 - tpr) / passes
            + (1.0 - rate).powi(2) * tnr * (1.0 - tnr) / fails;
        Ok(variance.sqrt() / (tpr + tnr - 1.0))
    }
}

/// Returns the pass rate that explains a judged pass rate, given TPR and TNR.
pub fn rogan_gladen(judged_rate: f64, tpr: f64, tnr: f64) -> Result<RoganGladen, Undefined> {
    let informative = tpr + tnr - 1.0;
    if informative <= 0.0 {
        return Err(Undefined::UninformativeJudge);
    }
    let unlimited = (judged_rate + tnr - 1.0) / informative;
    Ok(RoganGladen {
        rate: unlimited.clamp(0.0, 1.0),
        unlimited,
    })
}

/// Reports whether this correction may appear next to the corrected rate: only for one random sample and a judge that is
/// clearly better than chance.
pub fn shows_rogan_gladen(is_random_sample: bool, tpr: f64, tnr: f64) -> bool {
    is_random_sample && tpr + tnr > MIN_SHOWN_SUM
}
