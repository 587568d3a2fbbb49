//! How a level begins whose rate rises. Pure.

/// When a request starts whose start in the schedule of a constant rate is `start_ns`, where the rate rises in a straight
/// line from 0 over `ramp_ns` and stays from there on. The schedule's time is stretched (a Poisson process with a rate that
/// changes is one of rate 1 in the time of its cumulated rate): after `t` of the ramp it has gone `t^2 / (2 ramp)`, half the
/// ramp at its end.
pub fn ramped_ns(start_ns: u64, ramp_ns: u64) -> u64 {
    let (start, ramp) = (start_ns as f64, ramp_ns as f64);
    if 2.0 * start < ramp {
        return (2.0 * ramp * start).sqrt().round() as u64;
    }
    start_ns.saturating_add(ramp_ns / 2)
}
