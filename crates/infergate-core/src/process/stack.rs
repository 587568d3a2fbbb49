//! Where the stack lies within a page, which the system draws for each process.
//!
//! A load that follows a store to an address with the same last twelve bits waits for it, whatever the other bits. So a function that works
//! on its stack and on a table is 20 to 40 % slower where both lie badly within their pages: a multiplication of curve25519-dalek in three
//! of five processes. Both processes of a pair therefore begin their benches at the same place of a page, another one in each block.

use std::env;
use std::hint::black_box;

/// Bytes below the end of a page at which a worker begins its work.
pub const VARIABLE: &str = "INFERGATE_STACK_OFFSET";

const PAGE_BYTES: usize = 4096;
/// What calls keep a stack aligned to.
const ALIGNMENT_BYTES: usize = 16;
/// Each takes some 64 bytes of stack; one of 256 places is met after 256 of them in the mean.
const MOST_LEVELS: u32 = 6_000;

/// The offset of the pair of processes of this number: they spread evenly over a page, however many there are.
pub fn offset_bytes(pair: usize) -> usize {
    // The golden ratio of the places of a page, which is odd.
    pair * 157 % (PAGE_BYTES / ALIGNMENT_BYTES) * ALIGNMENT_BYTES
}

/// Runs `work`, at the place that the environment names if it does.
pub fn placed<R>(work: impl FnOnce() -> R) -> R {
    match env::var(VARIABLE).ok().and_then(|bytes| bytes.parse().ok()) {
        Some(offset_bytes) => at(offset_bytes, work),
        None => work(),
    }
}

/// Runs `work` this far below the end of a page.
pub fn at<R>(offset_bytes: usize, work: impl FnOnce() -> R) -> R {
    let place = offset_bytes.wrapping_neg() % PAGE_BYTES / ALIGNMENT_BYTES;
    let (mut work, mut result) = (Some(work), None);
    descend::<ALIGNMENT_BYTES>(place, MOST_LEVELS, &mut || result = work.take().map(|work| work()));
    match result {
        Some(result) => result,
        None => unreachable!("work runs once, at the last level"),
    }
}

/// Takes levels of two sizes by chance, which differ by one place, until one of the smaller ones lies at `place`. There is no portable way to
/// move a stack at once.
#[inline(never)]
fn descend<const BYTES: usize>(place: usize, levels: u32, work: &mut dyn FnMut()) {
    let room = [0_u8; BYTES];
    let here = black_box(&room).as_ptr() as usize % PAGE_BYTES / ALIGNMENT_BYTES;
    if levels == 0 || (here == place && BYTES == ALIGNMENT_BYTES) {
        work();
    } else if levels.wrapping_mul(0x9e37_79b9) >> 31 == 0 {
        descend::<ALIGNMENT_BYTES>(place, levels - 1, work);
    } else {
        descend::<{ 2 * ALIGNMENT_BYTES }>(place, levels - 1, work);
    }
    // Behind the call, so that this level stays.
    black_box(&room);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_begins_at_the_same_place_wherever_its_caller_stands() {
        #[inline(never)]
        fn place() -> usize {
            let mark = 0_u8;
            black_box(&mark) as *const u8 as usize % PAGE_BYTES
        }
        #[inline(never)]
        fn deeper(levels: usize, offset_bytes: usize) -> usize {
            let room = [levels; 3];
            let found = if levels == 0 { at(offset_bytes, place) } else { deeper(levels - 1, offset_bytes) };
            black_box(&room);
            found
        }
        for offset in (0..PAGE_BYTES).step_by(ALIGNMENT_BYTES) {
            let places: Vec<usize> = (0..5).map(|levels| deeper(levels, offset)).collect();
            assert!(places.iter().all(|place| *place == places[0]), "{offset}: {places:?}");
            assert_eq!((places[0] + offset) % PAGE_BYTES, deeper(0, 0), "{offset} is that far below 0");
        }
    }

    #[test]
    fn offsets_take_every_place_of_a_page_once() {
        let mut places: Vec<usize> = (0..256).map(offset_bytes).collect();
        places.sort_unstable();
        assert!(places.iter().enumerate().all(|(at, bytes)| *bytes == at * ALIGNMENT_BYTES));
    }
}
