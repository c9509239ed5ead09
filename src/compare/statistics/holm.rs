//! The correction of p-values for several tests at once.

/// Returns the p-values adjusted by Holm (1979), in the order of the input.
pub fn adjust_holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (rank, at) in order.into_iter().enumerate() {
        let tests = (p_values.len() - rank) as f64;
        largest = largest.max((tests * p_values[at]).min(1.0));
        adjusted[at] = largest;
    }
    adjusted
}
