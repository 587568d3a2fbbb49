//! What rules found, in one sentence each.

use infergate_core::case::Case;
use infergate_core::printable::printable_within;

use crate::receipt::{Subject, Witness};
use crate::report::load::{INSTANT_NS, SLUGGISH_NS};
use crate::report::units;

/// Growth within this fraction of the input's is called "as the input".
const AS_THE_INPUT: f64 = 0.05;
/// Characters of a place in the code.
const MAX_PLACE_CHARS: usize = 160;

/// How many targets are met.
pub fn targets(met: usize, of: usize) -> String {
    match (met, of) {
        (1, 1) => "1 target is met".into(),
        _ if met == of => format!("All {of} targets are met"),
        _ => format!("{met} of {of} targets are met"),
    }
}

/// Memory that grows with the runs.
pub fn grows(subject: &Subject, witness: Witness, bytes_per_run: f64, place: Option<&str>) -> String {
    let what = match witness {
        Witness::Heap => "the live heap",
        Witness::Resident => "the resident set",
    };
    let place =
        place.map_or_else(String::new, |place| format!(", allocated in {}", printable_within(place, MAX_PLACE_CHARS)));
    format!("{subject}: {what} grows by {} a run{place}", units::bytes(Some(bytes_per_run)))
}

/// Cases that vary too much between processes, and the one that varies most.
pub fn unsteady(above: usize, cases: usize, worst: Case, cv: f64, limit: f64) -> String {
    let (cv, limit) = (units::percent(Some(cv)), units::percent(Some(limit)));
    format!("{above} of {cases} cases vary by more than {limit} between processes; {worst} varies most, by {cv}")
}

/// No case varies too much.
pub fn steady(cases: usize, worst: Case, cv: f64) -> String {
    format!("All {cases} cases are steady between processes; {worst} varies most, by {}", units::percent(Some(cv)))
}

/// No case varies too much, and some vary by more than a change that a gate looks for.
pub fn varied(worst: Case, cv: f64) -> String {
    let cv = units::percent(Some(cv));
    format!("{worst} varies most between processes, by {cv}: a smaller difference between two runs says nothing")
}

/// How a time grows with the prompt.
pub fn growth(family: &str, figure: &str, tokens: (usize, usize), input: f64, growth: f64) -> String {
    let pace = if growth > input * (1.0 + AS_THE_INPUT) {
        "faster than the input"
    } else if growth < input * (1.0 - AS_THE_INPUT) {
        "slower than the input"
    } else {
        "as the input does"
    };
    let (from, to) = tokens;
    format!("{family}: from {from} to {to} prompt tokens {figure} grows {growth:.1} times, {pace} ({input:.1} times)")
}

/// How decode speed changes with the context.
pub fn speed(family: &str, from: usize, to: usize, change: f64) -> String {
    let change = units::change(change);
    format!("{family}: tokens/s change by {change} from a context of {from} to one of {to} tokens")
}

/// The farthest from the hardware's limit and the nearest to it.
pub fn hardware(farthest: (Case, f64), nearest: (Case, f64)) -> String {
    format!(
        "{} is farthest from what the hardware gives ({} of it), {} nearest ({})",
        farthest.0,
        units::percent(Some(farthest.1)),
        nearest.0,
        units::percent(Some(nearest.1))
    )
}

/// A cold start beside a warm one.
pub fn first_token(times: f64, load: Option<f64>) -> String {
    let load =
        load.map_or_else(String::new, |share| format!("; reading the model is {} of it", units::percent(Some(share))));
    format!("The first token of a fresh process takes {times:.2} times as long as a warm one{load}")
}

/// How a stream feels.
pub fn smoothness(case: Case, gap_ns: f64) -> String {
    let class = match gap_ns {
        gap if gap < INSTANT_NS => "under 20 ms feels instant",
        gap if gap <= SLUGGISH_NS => "20 to 70 ms is acceptable",
        _ => "above 70 ms feels sluggish",
    };
    format!("{case}: the middle gap between tokens is {}: {class}", units::duration(Some(gap_ns)))
}
