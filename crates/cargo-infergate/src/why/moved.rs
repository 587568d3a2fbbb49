//! How a time differs from block to block.

use super::tally::Tally;
use infergate_core::stats::{mean, sample_std, student_interval, student_t_upper_tail};
use infergate_receipts::Moved;

/// A block: base, head.
pub type Pair = (Tally, Tally);

/// What a time did, with Student's interval over blocks, and the chance of as much where nothing did (two-sided).
pub fn moved_of(base: &[f64], head: &[f64]) -> Option<(Moved, f64)> {
    let changes: Vec<f64> = head.iter().zip(base).map(|(head, base)| head - base).collect();
    let (low_ns, high_ns) = student_interval(&changes, 0.025)?;
    let (change_ns, freedom) = (mean(&changes)?, (changes.len() - 1) as f64);
    let error_ns = sample_std(&changes)? / (changes.len() as f64).sqrt();
    let p = match error_ns > 0.0 {
        true => (2.0 * student_t_upper_tail((change_ns / error_ns).abs(), freedom)?).min(1.0),
        // The same in all blocks.
        false if change_ns == 0.0 => 1.0,
        false => 0.0,
    };
    Some((Moved { base_ns: mean(base)?, head_ns: mean(head)?, low_ns, high_ns }, p))
}
