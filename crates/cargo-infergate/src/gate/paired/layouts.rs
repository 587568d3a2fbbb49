//! How many layouts of each side a gate needs.
//!
//! Where the linker put the code is luck that a build has for good: with one build a side, evidence about it only grows. When
//! each block draws one of L builds of each side, what is left of it for the whole gate is tau / sqrt(L).

use infergate_core::case::{Case, Phase};

/// No more builds of a side are linked: with as many as a gate has blocks, chance alone is left, and few gates need 16 blocks.
pub const MOST_LAYOUTS: usize = 16;

/// The limit has to be this many times what layouts still differ by: then at most about 1 % of suites of unchanged cases are
/// called for their layouts (simulated in `tests/rules/gate_looks/layouts.rs`, and its table in docs/GATE.md).
const LIMIT_BY_LEFT: f64 = 3.5;

/// GPT-2's tau, the largest of its cases (docs/GATE.md).
const TAU_OF_ENGINES: f64 = 0.005;

/// What tau is taken for of a case of this limit (ln) whose layouts were never compared. Benches of short functions moved by as much as
/// their limit; an engine spends its time in a few long loops.
pub fn unknown_tau(case: Case, limit: f64) -> f64 {
    if case.phase() == Phase::Bench { limit } else { TAU_OF_ENGINES }
}

/// Builds of each side for a suite of cases, each with its limit (ln) and tau, the standard deviation of the ln ratio between
/// two builds that do the same: the fewest L for which every limit is at least 3.5 tau / sqrt(L), up to [`MOST_LAYOUTS`].
/// 1 for an empty suite; a limit or a tau that is no positive number asks for none.
pub fn layouts_wanted(suite: impl IntoIterator<Item = (f64, f64)>) -> usize {
    let of_case = |(limit, tau): (f64, f64)| {
        let wanted = (LIMIT_BY_LEFT * tau / limit).powi(2);
        if wanted.is_finite() { wanted.ceil().clamp(1.0, MOST_LAYOUTS as f64) as usize } else { 1 }
    };
    suite.into_iter().map(of_case).max().unwrap_or(1)
}
