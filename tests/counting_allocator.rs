//! An engine on an allocator of its own is counted on that one. It is that of the whole process, so no other test is in it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use infergate::memory::{CountingAllocator, heap};

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
}
