//! Several tests at once.

/// Holm's adjusted p values (Holm 1979), in the order given: a hypothesis is rejected at family-wise level alpha when its
/// adjusted p is at most alpha. `None` when a value is not a probability.
pub fn holm_adjusted(p_values: &[f64]) -> Option<Vec<f64>> {
    if !p_values.iter().all(|p| (0.0..=1.0).contains(p)) {
        return None;
    }
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (rank, &at) in order.iter().enumerate() {
        largest = largest.max(((p_values.len() - rank) as f64 * p_values[at]).min(1.0));
        adjusted[at] = largest;
    }
    Some(adjusted)
}
