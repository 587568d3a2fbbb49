//! How a level begins: users that start one after the other, or a rate that rises. Pure.

/// When user number `user` of `users` starts, nanoseconds after the level began, where the starts are spread evenly over
/// `ramp_ns`: the first at 0.
pub fn user_start_ns(user: u64, users: u64, ramp_ns: u64) -> u64 {
    let start_ns = u128::from(ramp_ns) * u128::from(user) / u128::from(users.max(1));
    u64::try_from(start_ns).unwrap_or(u64::MAX)
}

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
