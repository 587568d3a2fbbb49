//! After a verdict: where the allocations are that a case makes more of.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use infergate_core::case::Case;
use infergate_core::worker::{Capability, Client, Patience};

use crate::gate::paired::{PairedPolicy, decide};
use crate::paired::{PairedRequest, Program};
use crate::receipt::{Allocated, AllocatedPlace, AllocationSite, MOST_PLACES, Outcome, PairedReceipt};

/// Cases that are looked at.
const MOST_CASES: usize = 2;
/// What is more than rounding.
const LEAST: f64 = 0.01;

/// Asks both programs that count, and writes into the receipt what differs. What cannot be found is left out: the counters say what
/// fails.
pub fn attach(
    receipt: &mut PairedReceipt,
    policy: &PairedPolicy,
    request: &PairedRequest,
    (base, head): (&Program, &Program),
    cancelled: &AtomicBool,
) {
    let verdict = decide(receipt, policy);
    let rose = verdict.rows.iter().filter(|row| row.outcome == Outcome::CounterRegressed);
    let mut cases: Vec<Case> = rose.filter_map(|row| row.subject.case()).collect();
    cases.dedup();
    cases.truncate(MOST_CASES);
    for case in cases {
        let sites = |program| sites(case, program, request, cancelled);
        if let (Ok(base), Ok(head)) = (sites(base), sites(head)) {
            let places = differences(&base, &head);
            if !places.is_empty() {
                receipt.allocated.push(Allocated { id: case, places });
            }
        }
    }
}

fn sites(
    case: Case,
    program: &Program,
    request: &PairedRequest,
    cancelled: &AtomicBool,
) -> Result<Vec<AllocationSite>> {
    let (mut client, _) = Client::spawn(&program.open()?, &request.load, Patience::default(), cancelled)?;
    anyhow::ensure!(client.can(Capability::Sites), "its worker cannot say where it allocates");
    client.load(&request.load, request.prompt_text.as_deref())?;
    client.prepare(case, None)?;
    Ok(client.sites(case)?)
}

/// Places by the function that allocates, wherever its lines are, with both sides' numbers; those that differ.
pub fn differences(base: &[AllocationSite], head: &[AllocationSite]) -> Vec<AllocatedPlace> {
    let mut places: BTreeMap<&str, AllocatedPlace> = BTreeMap::new();
    for (sites, is_head) in [(base, false), (head, true)] {
        for site in sites {
            let frame = site.frames.first().map_or("", String::as_str);
            let function = frame.split_once(" at ").map_or(frame, |(function, _)| function);
            let nothing = || AllocatedPlace {
                frames: Vec::new(),
                base_allocations: 0.0,
                head_allocations: 0.0,
                base_bytes: 0.0,
                head_bytes: 0.0,
            };
            let place = places.entry(function).or_insert_with(nothing);
            if is_head {
                // Sites come with the most frequent first: who calls it most is shown.
                if place.head_allocations == 0.0 {
                    place.frames.clone_from(&site.frames);
                }
                place.head_allocations += site.allocations;
                place.head_bytes += site.bytes;
            } else {
                if place.frames.is_empty() {
                    place.frames.clone_from(&site.frames);
                }
                place.base_allocations += site.allocations;
                place.base_bytes += site.bytes;
            }
        }
    }
    let change = |place: &AllocatedPlace| place.head_allocations - place.base_allocations;
    let mut places: Vec<AllocatedPlace> = places.into_values().collect();
    places.retain(|place| change(place).abs() >= LEAST || (place.head_bytes - place.base_bytes).abs() >= 1.0);
    places.sort_by(|a, b| change(b).total_cmp(&change(a)).then(b.head_bytes.total_cmp(&a.head_bytes)));
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
    fn what_is_gone_is_a_place_too_and_comes_last() {
        let found = differences(&[site(3.0, 9.0, &["old"])], &[site(1.0, 9.0, &["new"])]);
        let names: Vec<&str> = found.iter().map(|place| place.frames[0].as_str()).collect();
        assert_eq!(names, ["new", "old"]);
    }
}
