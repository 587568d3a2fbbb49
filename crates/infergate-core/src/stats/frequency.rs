//! Whether something is more frequent on one side than on the other, where trials depend on each other.

use super::proportion::ends;
use super::student::student_t_quantile;

/// Whether hits are shown to be more frequent in `head` than in `base`, with a chance of at most `level` that they are not. Each side
/// is batches, as counts of hits and trials: [`batches`](super::batches) of a run, or runs.
///
/// Trials of one batch may depend on each other in any way, as requests do that fail in bursts; batches of one side may not. Both sides'
/// trials are divided by how much the shares of batches vary beyond those of independent trials, on the side where they vary more,
/// and the exact intervals of what is left must lie apart. So a burst that fills one batch shows nothing, however many failed in it;
/// and neither do fewer than two batches, or base's where head varies far more. The level was simulated for bursts of up to half a
/// run (infergate-judge's tests/rules/gate/bursts.rs).
pub fn is_more_frequent(head: &[(u64, u64)], base: &[(u64, u64)], level: f64) -> bool {
    let shown = || {
        let divisor = excess(head, level)?.max(excess(base, level)?);
        let of = |batches: &[(u64, u64)]| {
            let (hits, trials) = total(batches);
            ends(hits / divisor, (trials - hits) / divisor, level)
        };
        Some(of(head)?.0 > of(base)?.1)
    };
    shown().unwrap_or(false)
}

/// How many trials say as much as an independent one: from how batches vary, and that this is from few batches. `None` below two.
fn excess(batches: &[(u64, u64)], level: f64) -> Option<f64> {
    // From here on Student's distribution is the normal one, but for 2 of 1,000.
    const NORMAL_FROM: f64 = 1_000.0;
    let freedom = batches.len().checked_sub(1).filter(|freedom| *freedom > 0)? as f64;
    let (hits, trials) = total(batches);
    let share = hits / trials;
    let squares: f64 = batches
        .iter()
        .filter(|(_, trials)| *trials > 0)
        .map(|(hits, trials)| *trials as f64 * (*hits as f64 / *trials as f64 - share).powi(2))
        .sum();
    let seen = squares / freedom / (share * (1.0 - share));
    let student = student_t_quantile(1.0 - level, freedom)? / student_t_quantile(1.0 - level, NORMAL_FROM)?;
    // Where all or none hit it is no number.
    Some(seen.max(1.0) * student.powi(2))
}

fn total(batches: &[(u64, u64)]) -> (f64, f64) {
    batches.iter().fold((0.0, 0.0), |sum, (hits, trials)| (sum.0 + *hits as f64, sum.1 + *trials as f64))
}
