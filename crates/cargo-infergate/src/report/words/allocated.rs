//! Where a case allocates more, in lines.

use infergate_core::case::Phase;
use infergate_core::printable::printable_within;

use crate::receipt::{Allocated, AllocatedPlace};
use crate::report::units;

/// Places that are named.
const MOST_NAMED: usize = 3;
/// Frames of a place.
const MOST_FRAMES: usize = 2;
/// Characters of a frame.
const MOST_CHARACTERS: usize = 100;

/// `24 more allocations a token, 36.0 KiB more, in Vec::from_iter at src/step.rs:140, called by attend at src/step.rs:131`.
pub fn lines(allocated: &Allocated) -> Vec<String> {
    let each = match allocated.id.phase() {
        Phase::Prefill => "a prefill",
        Phase::Bench => "an iteration",
        Phase::Decode | Phase::Generate => "a token",
    };
    let line = |place: &AllocatedPlace| {
        let frames = place.frames.iter().take(MOST_FRAMES);
        let frames: Vec<String> = frames.map(|frame| printable_within(frame, MOST_CHARACTERS).into_owned()).collect();
        let number = more(place.head_allocations - place.base_allocations, |number| {
            format!("{} allocations", units::number(number))
        });
        let bytes = more(place.head_bytes - place.base_bytes, |bytes| units::bytes(Some(bytes)));
        format!("{number} {each}, {bytes}, in {}", frames.join(", called by "))
    };
    allocated
        .places
        .iter()
        .filter(|place| place.head_allocations != place.base_allocations)
        .take(MOST_NAMED)
        .map(line)
        .collect()
}

fn more(change: f64, said: impl Fn(f64) -> String) -> String {
    let how = if change < 0.0 { "fewer" } else { "more" };
    let said = said(change.abs());
    match said.split_once(" allocations") {
        Some((number, _)) => format!("{number} {how} allocations"),
        None => format!("{said} {}", if change < 0.0 { "less" } else { "more" }),
    }
}
