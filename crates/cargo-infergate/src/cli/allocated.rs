//! After a verdict: finds where a case's additional allocations are made.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use anyhow::Result;
use infergate_core::case::Case;
use infergate_core::worker::Timeouts;

use crate::paired::{PairedRequest, Program};
use infergate_judge::paired::{Policy, judge_without_power};
use infergate_receipts::{Allocated, AllocatedPlace, AllocationSite, MOST_PLACES, Outcome, PairedReceipt};

/// The most cases that are examined.
const MOST_CASES: usize = 2;

/// Has both programs that count list their allocations, and writes the differences into the receipt. A case that cannot be examined is
/// skipped: its counters say what fails.
pub fn attach(
    receipt: &mut PairedReceipt,
    policy: &Policy,
    request: &PairedRequest,
    (base, head): (&Program, &Program),
) {
    let verdict = judge_without_power(receipt, policy);
    let rose = verdict.rows.iter().filter(|row| row.outcome == Outcome::CounterRegressed);
    let mut cases: Vec<Case> = rose.filter_map(|row| row.subject.case()).collect();
    cases.dedup();
    cases.truncate(MOST_CASES);
    for case in cases {
        let sites = |program| sites(case, program, request);
        if let (Ok(base), Ok(head)) = (sites(base), sites(head)) {
            let places = differences(&base, &head);
            if !places.is_empty() {
                receipt.allocated.push(Allocated { id: case, places });
            }
        }
    }
}

fn sites(case: Case, program: &Program, request: &PairedRequest) -> Result<Vec<AllocationSite>> {
    let mut client = request.start(&program.open()?, Timeouts::default())?;
    client.prepare(case, None)?;
    Ok(client.sites(case)?)
}

/// Allocations by the function that makes them, on whatever line, with both sides' numbers. Only functions that differ, sorted by
/// additional allocations, then by additional bytes. A function without a line counts to its caller: the linker gives one name to functions
/// with the same code.
pub fn differences(base: &[AllocationSite], head: &[AllocationSite]) -> Vec<AllocatedPlace> {
    let mut places: BTreeMap<&str, AllocatedPlace> = BTreeMap::new();
    for (sites, is_head) in [(base, false), (head, true)] {
        for site in sites {
            let named = site.frames.iter().position(|frame| frame.contains(" at ")).unwrap_or(0);
            let frames = site.frames.get(named..).unwrap_or_default();
            let frame = frames.first().map_or("", String::as_str);
            let function = frame.split_once(" at ").map_or(frame, |(function, _)| function);
            let place = places.entry(function).or_default();
            // The most frequent site comes first, so its callers are shown: head's, if head has the function.
            if place.frames.is_empty() || is_head && place.head_allocations == 0.0 {
                place.frames = frames.to_vec();
            }
            let (allocations, bytes) = if is_head {
                (&mut place.head_allocations, &mut place.head_bytes)
            } else {
                (&mut place.base_allocations, &mut place.base_bytes)
            };
            *allocations += site.allocations;
            *bytes += site.bytes;
        }
    }
    let more = |place: &AllocatedPlace| [place.more_allocations(), place.more_bytes()].map(Option::unwrap_or_default);
    let mut places: Vec<AllocatedPlace> = places.into_values().filter(|place| more(place) != [0.0, 0.0]).collect();
    places.sort_by(|a, b| more(b).partial_cmp(&more(a)).unwrap_or(Ordering::Equal));
    places.truncate(MOST_PLACES);
    places
}

#[cfg(test)]
mod tests {
    use infergate_core::receipt::AllocationSite;

    use super::differences;

    fn site(allocations: f64, bytes: f64, frames: &[&str]) -> AllocationSite {
        AllocationSite { allocations, bytes, frames: frames.iter().map(|frame| (*frame).to_owned()).collect() }
    }

    #[test]
    fn a_place_is_a_function_wherever_its_lines_are() {
        let base =
            [site(4.0, 400.0, &["attend at src/step.rs:10", "step"]), site(2.0, 64.0, &["load at src/load.rs:1"])];
        let head = [
            site(5.0, 500.0, &["attend at src/step.rs:30", "step"]),
            site(1.0, 50.0, &["attend at src/step.rs:12", "other"]),
            site(2.0, 64.0, &["load at src/load.rs:9"]),
        ];
        let found = differences(&base, &head);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].frames, ["attend at src/step.rs:30", "step"]);
        assert_eq!((found[0].base_allocations, found[0].head_allocations), (4.0, 6.0));
        assert_eq!(found[0].head_bytes - found[0].base_bytes, 150.0);
    }

    #[test]
    fn a_name_without_a_line_is_no_place_where_a_caller_has_one() {
        let base = [site(4.0, 32.0, &["From<(usize,)>::from", "shape at src/device.rs:50", "new"])];
        let head = [site(4.0, 32.0, &["From<usize>::from", "shape at src/device.rs:50", "new"])];
        assert_eq!(differences(&base, &head), []);
        assert_eq!(differences(&[], &head)[0].frames, ["shape at src/device.rs:50", "new"]);
    }

    #[test]
    fn of_as_many_allocations_those_come_first_that_grew_most() {
        let base = [site(3.0, 9_000.0, &["reserve"]), site(3.0, 10.0, &["grow"]), site(1.0, 50.0, &["shrink"])];
        let head = [site(3.0, 9_001.0, &["reserve"]), site(3.0, 5_000.0, &["grow"]), site(1.0, 10.0, &["shrink"])];
        let found = differences(&base, &head);
        let names: Vec<&str> = found.iter().map(|place| place.frames[0].as_str()).collect();
        assert_eq!(names, ["grow", "reserve", "shrink"]);
        let more = |at: usize| (found[at].more_allocations(), found[at].more_bytes());
        assert_eq!([more(0), more(2)], [(None, Some(4_990.0)), (None, Some(-40.0))]);
    }

    #[test]
    fn what_is_gone_is_a_place_too_and_comes_last() {
        let found = differences(&[site(3.0, 9.0, &["old"])], &[site(1.0, 9.0, &["new"])]);
        let names: Vec<&str> = found.iter().map(|place| place.frames[0].as_str()).collect();
        assert_eq!(names, ["new", "old"]);
    }
}
