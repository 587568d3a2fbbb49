//! What rules recommend, in one sentence each.

use infergate_core::case::Case;

use crate::report::units;

fn time(ns: f64) -> String {
    units::duration(Some(ns))
}

/// Prompts of up to so many tokens have their first token at once.
pub fn shorter_prompts((short, least_ns): (usize, f64), (long, most_ns): (usize, f64), limit_ns: f64) -> String {
    format!(
        "Keep prompts near {short} tokens where somebody waits for the first word: TTFT is {} there and {} at {long}, and up to {} \
         it seems to come at once",
        time(least_ns),
        time(most_ns),
        time(limit_ns)
    )
}

/// Even the shortest prompt is waited for.
pub fn no_prompt_is_short((tokens, ttft_ns): (usize, f64), limit_ns: f64) -> String {
    format!(
        "Use a faster prefill or a smaller model where somebody waits for the first word: TTFT is {} at {tokens} prompt tokens \
         already, and up to {} it seems to come at once",
        time(ttft_ns),
        time(limit_ns)
    )
}

/// A process that stays.
pub fn keep_it_warm(cold_ns: f64, warm_ns: f64) -> String {
    format!(
        "Keep the process running: its very first token takes {}, {:.2} times as long as a warm one ({})",
        time(cold_ns),
        cold_ns / warm_ns,
        time(warm_ns)
    )
}

/// The case with most to gain.
pub fn look_there_first(case: Case, share: f64) -> String {
    format!("Optimise {case} first: it reaches {} of what the hardware gives", units::percent(Some(share)))
}

/// A machine that is too busy.
pub fn measure_in_quiet(case: Case, figure: &str, cv: f64, limit: f64) -> String {
    format!(
        "Measure again on an idle machine, on cores of its own: {figure} of {case} varies by {} from sample to sample, and up to {} is \
         steady",
        units::percent(Some(cv)),
        units::percent(Some(limit))
    )
}

/// A run that was too short.
pub fn take_more_samples(case: Case, samples: usize, needed: usize) -> String {
    format!("Take more samples (--runs, --seconds-per-case): {case} has {samples}, and a P95 takes {needed}")
}
