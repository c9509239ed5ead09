//! Quantiles and tails of distributions, from `statrs`.

use statrs::distribution::{Beta, Binomial, ContinuousCDF, DiscreteCDF, Normal, StudentsT};
use statrs::function::erf::erfc;
pub(super) use statrs::function::gamma::ln_gamma;

/// Returns the quantile of the standard normal distribution at `p`.
pub(super) fn normal_quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

/// Returns the quantile of Student's t distribution at `p`.
pub(super) fn t_quantile(p: f64, degrees_of_freedom: f64) -> f64 {
    // From 1,000 degrees of freedom on, these four terms are exact to twelve digits. The library's root finder stops at
    // five digits for 100,000.
    if degrees_of_freedom >= 1000.0 {
        let (z, v) = (normal_quantile(p), degrees_of_freedom);
        return z
            + (z.powi(3) + z) / (4.0 * v)
            + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * v * v)
            + (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z)
                / (384.0 * v.powi(3));
    }
    StudentsT::new(0.0, 1.0, degrees_of_freedom).map_or(f64::NAN, |t| t.inverse_cdf(p))
}

/// Returns the quantile of the beta distribution at `p`.
pub(super) fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    Beta::new(a, b).map_or(f64::NAN, |beta| beta.inverse_cdf(p))
}

/// Returns the probability of at most `hits` of `n` fair coins.
pub(super) fn fair_coin_tail(hits: u64, n: u64) -> f64 {
    Binomial::new(0.5, n).map_or(f64::NAN, |coins| coins.cdf(hits))
}

/// Returns the probability of at most `hits` of `n` with probability `p` each.
pub(super) fn binomial_cdf(hits: u64, n: u64, p: f64) -> f64 {
    Binomial::new(p, n).map_or(f64::NAN, |hit| hit.cdf(hits))
}

/// Returns the probability of exactly `hits` of `n` with probability `p` each.
pub(super) fn binomial_probability(hits: u64, n: u64, p: f64) -> f64 {
    if p <= 0.0 || p >= 1.0 {
        let certain = if p <= 0.0 { 0 } else { n };
        return f64::from(u8::from(hits == certain));
    }
    let (x, n) = (hits as f64, n as f64);
    (ln_choose(n, x) + x * p.ln() + (n - x) * (-p).ln_1p()).exp()
}

/// Returns the logarithm of the number of subsets of size `k`.
pub(super) fn ln_choose(n: f64, k: f64) -> f64 {
    ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0)
}

/// Returns the upper tail of the chi-squared distribution with one degree of freedom.
pub(super) fn chi_squared_tail(statistic: f64) -> f64 {
    erfc((statistic / 2.0).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of SciPy.
    #[test]
    fn quantiles_of_t_are_precise_for_few_and_many_degrees_of_freedom() {
        let expected = [
            (1.0, 12.706_204_736),
            (2.0, 4.302_652_730),
            (5.0, 2.570_581_836),
            (30.0, 2.042_272_456),
            (999.0, 1.962_341_461),
            (1e3, 1.962_339_081),
            (1e5, 1.959_987_708),
            (1e6, 1.959_966_357),
            (1e8, 1.959_964_008),
        ];
        for (freedom, t) in expected {
            let found = t_quantile(0.975, freedom);
            assert!((found - t).abs() < 1e-6, "{freedom}: {found}");
            assert!((t_quantile(0.025, freedom) + t).abs() < 1e-6, "{freedom}");
        }
    }

    #[test]
    fn quantiles_of_beta_are_precise_for_many_labels() {
        let found = [
            (beta_quantile(0.025, 50_000.0, 50_001.0), 0.496_896_062),
            (beta_quantile(0.975, 50_001.0, 50_000.0), 0.503_103_938),
            (beta_quantile(0.025, 3.0, 99_998.0), 0.000_006_187),
            (beta_quantile(0.975, 4.0, 99_997.0), 0.000_087_670),
            (beta_quantile(0.025, 99_990.5, 10.5), 0.999_822_613),
            (beta_quantile(0.975, 99_990.5, 10.5), 0.999_948_584),
        ];
        for (found, expected) in found {
            assert!((found - expected).abs() < 1e-8, "{found} is not {expected}");
        }
    }

    #[test]
    fn binomial_probabilities_add_up_and_end_at_certainty() {
        let sum: f64 = (0..=500).map(|x| binomial_probability(x, 500, 0.03)).sum();
        assert!((sum - 1.0).abs() < 1e-9);
        assert!(
            (binomial_cdf(3, 500, 0.03)
                - (0..=3)
                    .map(|x| binomial_probability(x, 500, 0.03))
                    .sum::<f64>())
            .abs()
                < 1e-9
        );
        assert!(binomial_probability(0, 9, 0.0) > 0.0 && binomial_probability(1, 9, 0.0) <= 0.0);
        assert!(binomial_probability(9, 9, 1.0) > 0.0);
    }
}
