//! Where a median may lie.

use infergate::stats::finite;
use statrs::distribution::{Binomial, DiscreteCDF};

/// The order-statistic interval of the median at `confidence` (0.95), at least: the widest pair of mirrored order statistics that
/// leaves no more than half the rest on either side (the sign test's interval, David and Nagaraja 2003, section 7.1). It asks
/// nothing of the distribution. `None` where there are too few values for one (below 6 at 0.95), when one is not finite, or for a
/// confidence outside (0, 1).
pub fn median_interval(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let mut sorted = finite(values)?.to_vec();
    if !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    sorted.sort_by(f64::total_cmp);
    let below = Binomial::new(0.5, sorted.len() as u64).ok()?;
    let tail = (1.0 - confidence) / 2.0;
    // The k smallest values may all be left out where so few lie below the median that rarely.
    let (mut out, mut kept) = (0, sorted.len() as u64);
    while out < kept {
        let k = out.midpoint(kept);
        if below.cdf(k) <= tail { out = k + 1 } else { kept = k }
    }
    let low = usize::try_from(out.checked_sub(1)?).ok()?;
    Some((*sorted.get(low)?, *sorted.get(sorted.len() - 1 - low)?))
}
