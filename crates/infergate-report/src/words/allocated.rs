//! Where a case allocates more, in lines.

use infergate_core::case::Phase;
use infergate_core::printable::printable_within;

use crate::{units, words};
use infergate_receipts::{Allocated, AllocatedPlace};

/// Places that are named.
const MOST_NAMED: usize = 3;
/// Frames of a place.
const MOST_FRAMES: usize = 2;
/// Characters of a frame.
const MOST_CHARACTERS: usize = 100;

/// `24 more allocations a token, 36.0 KiB more, in Vec::from_iter at src/step.rs:140, called by attend at src/step.rs:131`, each as code; of as many
/// allocations their bytes alone.
pub fn lines(allocated: &Allocated) -> Vec<String> {
    let is_of_tokens = allocated.id.phase() == Phase::Generate;
    let each = if is_of_tokens { "a token" } else { words::each(allocated.id) };
    let line = |place: &AllocatedPlace| {
        let how = |more: f64, less: &'static str| if more < 0.0 { less } else { "more" };
        let number = place
            .more_allocations()
            .map(|more| format!("{} {} allocations", units::number(more.abs()), how(more, "fewer")));
        let bytes = place.more_bytes().map(|more| format!("{} {}", units::bytes(more.abs()), how(more, "less")));
        let said = match (number, bytes) {
            (Some(number), Some(bytes)) => format!("{number} {each}, {bytes}"),
            (number, bytes) => format!("{} {each}", number.or(bytes)?),
        };
        let frames = place.frames.iter().take(MOST_FRAMES);
        let frames: Vec<String> =
            frames.map(|frame| format!("`{}`", printable_within(frame, MOST_CHARACTERS))).collect();
        Some(format!("{said}, in {}", frames.join(", called by ")))
    };
    allocated.places.iter().filter_map(line).take(MOST_NAMED).collect()
}

#[cfg(test)]
mod tests {
    use super::{Allocated, AllocatedPlace, lines};

    #[test]
    fn what_differs_is_said_and_nothing_else() {
        let place = |head_allocations: f64, head_bytes: f64| AllocatedPlace {
            frames: vec!["attend at src/step.rs:1".into(), "step".into()],
            base_allocations: 4.0,
            head_allocations,
            base_bytes: 4096.0,
            head_bytes,
        };
        let places = vec![place(6.0, 8192.0), place(4.0, 8192.0), place(3.0, 4096.0), place(4.0, 4096.0)];
        let said = lines(&Allocated { id: "decode/p8".parse().expect("a case"), places });
        let at = "in `attend at src/step.rs:1`, called by `step`";
        let more =
            ["2 more allocations a token, 4.00 KiB more", "4.00 KiB more a token", "1 fewer allocations a token"];
        assert_eq!(said, more.map(|more| format!("{more}, {at}")));
    }
}
