//! The cosine of two vectors, such as the embeddings of two texts.

/// The tolerance of the cosine, because sums of products are not exact.
pub const COSINE_TOLERANCE: f64 = 1e-9;

/// Returns the vector scaled to length 1, or `None` if all its numbers are 0. Divides by the largest number first, so
/// that no square overflows or underflows.
pub fn normalize_vector(vector: &[f64]) -> Option<Vec<f64>> {
    let largest = vector.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return None;
    }
    let scaled: Vec<f64> = vector.iter().map(|x| x / largest).collect();
    let length = scaled.iter().map(|x| x * x).sum::<f64>().sqrt();
    Some(scaled.into_iter().map(|x| x / length).collect())
}

/// Returns the cosine of two vectors of length 1, between -1 and 1. Values within the tolerance of 1 or -1 are
/// rounded to it.
pub fn compute_cosine(a: &[f64], b: &[f64]) -> f64 {
    let product: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    if 1.0 - product.abs() < COSINE_TOLERANCE {
        return product.signum();
    }
    product.clamp(-1.0, 1.0)
}
