//! An engine on an allocator of its own is counted on that one. It is that of the whole process, so no other test is in it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anyhow::Result;
use infergate::engine::{Engine, EngineInfo, TokenId};
use infergate::measure::prepare;
use infergate::memory::{CountingAllocator, allocations, count, heap};

/// A size nobody else asks for.
const SIZE: usize = 123_457;

static SEEN: AtomicUsize = AtomicUsize::new(0);

/// Stands for mimalloc or jemalloc.
struct Own;

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() == SIZE {
            SEEN.fetch_add(1, Relaxed);
        }
        // SAFETY: the caller keeps this trait's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if layout.size() == SIZE {
            SEEN.fetch_sub(1, Relaxed);
        }
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator<Own> = CountingAllocator::new(Own);

/// Reads a prompt into a buffer that is too large, gives the rest of it back, and makes it larger again. Its first step
/// allocates once.
#[derive(Default)]
struct Resizing {
    steps: usize,
    starts: usize,
    /// Each third prompt takes 64 times as much.
    at_times_more: bool,
}

impl Engine for Resizing {
    fn info(&self) -> EngineInfo {
        EngineInfo {
            name: "resizing".into(),
            model: "none".into(),
            context_tokens: 16,
            vocab_tokens: 16,
            ..EngineInfo::default()
        }
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        self.steps = 0;
        self.starts += 1;
        let more = if self.at_times_more && self.starts % 3 == 0 { 64 * SIZE } else { 0 };
        black_box(Vec::<u8>::with_capacity(more));
        let mut buffer: Vec<u8> = Vec::with_capacity(4 * SIZE);
        buffer.shrink_to(3 * SIZE);
        buffer.reserve_exact(5 * SIZE);
        assert!(prompt.len() < black_box(&mut buffer).capacity());
        Ok(1)
    }

    fn next(&mut self) -> Result<TokenId> {
        self.steps += 1;
        Ok(if self.steps == 1 { black_box(Vec::<u8>::with_capacity(SIZE)).len() as TokenId + 1 } else { 1 })
    }
}

/// One allocation in four tokens is one, whatever a token's share is.
fn a_whole_generation_is_counted() {
    let case = "generate/p4-o5".parse().expect("a case");
    let mut engine = Resizing::default();
    let prepared = prepare(&mut engine, case, vec![0; 4], None).expect("an output");
    let counters = count(&mut engine, &prepared, 8).expect("counters").counters;
    let least = |name: &str| counters[name].min;
    assert_eq!((least("allocations_per_generation"), least("allocations_per_token")), (1, 1), "{counters:?}");
}

/// Two of eight runs are enough to be no luck.
fn what_some_runs_reach_is_kept() {
    let case = "prefill/p4".parse().expect("a case");
    for at_times_more in [false, true] {
        let mut engine = Resizing { at_times_more, ..Resizing::default() };
        let prepared = prepare(&mut engine, case, vec![0; 4], None).expect("an output");
        let counted = count(&mut engine, &prepared, 8).expect("counters");
        let (least, twice) = (counted.counters["peak_live_bytes"].min, counted.reached_twice["peak_live_bytes"]);
        assert!(least < 10 * SIZE as u64 && (twice > 60 * SIZE as u64) == at_times_more, "{counted:?}");
    }
}

/// A place says as many bytes as the counter that it explains.
fn places_say_what_the_counters_say() {
    let case = "prefill/p4".parse().expect("a case");
    let mut engine = Resizing::default();
    let prepared = prepare(&mut engine, case, vec![0; 4], None).expect("an output");
    let counted = count(&mut engine, &prepared, 3).expect("counters").counters;
    let places = allocations(&mut engine, &prepared).expect("places");
    let bytes: f64 = places.iter().map(|place| place.bytes).sum();
    let counter = counted["allocated_bytes_per_prefill"];
    // The test harness allocates a little on threads of its own.
    assert!((bytes - counter.min as f64).abs() < SIZE as f64, "{bytes} at the places, {counter:?} counted");
}

#[test]
fn every_call_reaches_the_allocator_below_and_is_counted() {
    let before = heap().expect("this process counts");
    let held: Vec<Vec<u8>> = (0..10).map(|_| Vec::with_capacity(SIZE)).collect();
    let with = heap().expect("it still does");
    assert_eq!(SEEN.load(Relaxed), 10, "the allocator below served them");
    // The test harness allocates a little on threads of its own.
    let grown = with.live_bytes - before.live_bytes;
    assert!((10 * SIZE as u64..11 * SIZE as u64).contains(&grown), "{grown}");
    assert!(with.allocations >= before.allocations + 10);
    drop(held);
    let after = heap().expect("it still does");
    assert_eq!(SEEN.load(Relaxed), 0);
    assert!(after.live_bytes < before.live_bytes + SIZE as u64, "{after:?} after {before:?}");
    assert!(after.peak_bytes >= with.live_bytes);
    places_say_what_the_counters_say();
    a_whole_generation_is_counted();
    what_some_runs_reach_is_kept();
}
