//! Which functions took the time, in lines.

use infergate_core::printable::printable_within;

use crate::units;
use infergate_receipts::{CalledFunction, Explained, ExplainedFunction, Moved};

/// Functions that are named.
const MOST_NAMED: usize = 4;
/// Functions that went the other way.
const MOST_AGAINST: usize = 2;
/// Characters of a function's name.
const MOST_CHARACTERS: usize = 100;
/// Of the whole change, what has to wait, or be left over, to be said.
const LEAST_SHARE: f64 = 0.1;

/// `8 more blocks with a profiler: an iteration +28.6 µs (+24.5 µs to +32.6 µs)`; `None` where nothing was seen.
pub fn heading(explained: &Explained) -> Option<String> {
    let total = explained.total.as_ref()?;
    Some(format!("{} more blocks with a profiler: an iteration {}", explained.blocks, change(total)))
}

/// A line for what is to be said of a case, the largest change first.
pub fn lines(explained: &Explained) -> Vec<String> {
    if let Some(why) = &explained.why_not {
        return vec![format!("which function takes the time was not found: {why}")];
    }
    let Explained { total: Some(total), functions, .. } = explained else { return Vec::new() };
    let slower = total.change_ns() >= 0.0;
    let mut lines = Vec::new();
    if !total.is_sure() {
        lines.push("these blocks show no difference in its time".to_owned());
    }
    if explained.runs_changed == Some(false) {
        lines.push(
            "no function that changed was sampled: it runs too briefly, or before what is timed, as what loads does"
                .to_owned(),
        );
    }
    let with_it = |time: &Moved| (time.change_ns() >= 0.0) == slower;
    let named: Vec<&ExplainedFunction> = functions.iter().filter(|function| with_it(&function.time)).collect();
    let waits = explained.waiting.filter(|waiting| {
        waiting.is_sure() && with_it(waiting) && waiting.change_ns().abs() >= LEAST_SHARE * total.change_ns().abs()
    });
    let waits = waits
        .map(|waiting| format!("{} in which no thread works: it waits, sleeps, or reads a file", change(&waiting)));
    let waits_most = explained
        .waiting
        .zip(named.first())
        .is_some_and(|(waiting, first)| waiting.change_ns().abs() > first.time.change_ns().abs());
    lines.extend(waits.clone().filter(|_| waits_most));
    // Where threads work side by side, their time together grows by more than the iteration's.
    let whose = if explained.waiting.is_none() { " of all threads' time" } else { "" };
    let named_lines = named.iter().zip(std::iter::once(whose).chain(std::iter::repeat("")));
    lines.extend(named_lines.take(MOST_NAMED).map(|(named, whose)| function(named, whose)));
    lines.extend(waits.clone().filter(|_| !waits_most));
    let against = functions.iter().filter(|function| {
        !with_it(&function.time) && function.time.change_ns().abs() >= LEAST_SHARE * total.change_ns().abs()
    });
    lines.extend(against.rev().take(MOST_AGAINST).map(|against| function(against, "")));
    if named.len() > MOST_NAMED {
        lines.push(format!("and {} more functions", named.len() - MOST_NAMED));
    }
    if named.is_empty() && waits.is_none() && total.is_sure() {
        let samples = explained.base_samples + explained.head_samples;
        lines.push(format!("no function stands out of the noise of {samples} samples"));
    }
    let known: f64 = functions.iter().map(|function| function.time.change_ns()).sum();
    let known = known + explained.waiting.filter(|_| waits.is_some()).map_or(0.0, |waiting| waiting.change_ns());
    let left = total.change_ns() - known;
    let is_worth_it = left.abs() >= LEAST_SHARE * total.change_ns().abs();
    if explained.waiting.is_some() && !(named.is_empty() && waits.is_none()) && is_worth_it {
        lines.push(format!("{} not attributed", signed(left)));
    }
    lines
}

/// `+0.81 ms (+0.74 ms to +0.88 ms) in engine::attend, src/step.rs:131, whose code changed; of that +0.5 ms in memcpy`.
fn function(function: &ExplainedFunction, whose: &str) -> String {
    let ExplainedFunction { name: called_name, place, changed, edited, caller, time, called } = function;
    let place = place.as_ref().map_or_else(String::new, |place| format!(", {}", name(place)));
    let code = match (changed, caller) {
        _ if *edited == Some(true) => ", which this change edits".to_owned(),
        (Some(true), Some(caller)) => format!(", whose machine code changed; called by {}", name(caller)),
        (Some(true), None) if *edited == Some(false) => ", whose machine code changed, but not its source".to_owned(),
        (Some(true), None) => ", whose machine code changed".to_owned(),
        (Some(false), Some(caller)) => format!(", whose code did not change; called by {}", name(caller)),
        (Some(false), None) => ", whose code did not change".to_owned(),
        (None, Some(caller)) => format!(", called by {}", name(caller)),
        (None, None) => String::new(),
    };
    let below = |called: &CalledFunction| format!("{} in {}", signed(called.time.change_ns()), name(&called.name));
    let below: Vec<String> = called.iter().map(below).collect();
    let below = if below.is_empty() { String::new() } else { format!("; of that {}", below.join(", ")) };
    format!("{}{whose} in {}{place}{code}{below}", change(time), name(called_name))
}

/// `+0.81 ms (+0.74 ms to +0.88 ms)`.
pub fn change(time: &Moved) -> String {
    format!("{} ({} to {})", signed(time.change_ns()), signed(time.low_ns), signed(time.high_ns))
}

fn signed(ns: f64) -> String {
    let sign = if ns < 0.0 { "-" } else { "+" };
    format!("{sign}{}", units::duration(Some(ns.abs())))
}

fn name(name: &str) -> String {
    printable_within(name, MOST_CHARACTERS).into_owned()
}
