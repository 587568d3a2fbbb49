//! [`CountingAllocator`]: any allocator with exact counters.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::sites;

/// Counts every allocation of the process that goes through Rust, on whatever thread, and passes it on to the allocator `A`.
///
/// Install it in a binary of its own, never in one that is timed:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: infergate::memory::CountingAllocator = infergate::memory::CountingAllocator;
/// # fn main() {}
/// ```
///
/// An engine that runs on another allocator is counted on that one:
///
/// ```
/// # use std::alloc::System as MiMalloc;
/// use infergate::memory::CountingAllocator;
///
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator<MiMalloc> = CountingAllocator::new(MiMalloc);
/// # fn main() {}
/// ```
///
/// What it does not see: memory a program maps itself (`mmap`, mapped weight files), the heaps of C and C++ libraries, thread
/// stacks, and what the allocator below needs for itself. The resident set shows those. Its cost is a handful of atomic
/// additions for each allocation and release; docs/evidence/leaks.md has it measured.
///
/// All that are installed share their counters: a process has one global allocator.
#[derive(Debug, Clone, Copy, Default)]
pub struct CountingAllocator<A = System> {
    inner: A,
}

/// The system's allocator, counted: the value of the type that has the same name.
#[expect(non_upper_case_globals, reason = "`CountingAllocator` names the type and, as a unit struct would, its value")]
pub const CountingAllocator: CountingAllocator = CountingAllocator::new(System);

impl<A> CountingAllocator<A> {
    /// Counts what goes to `inner`.
    pub const fn new(inner: A) -> Self {
        Self { inner }
    }
}

/// Each on a cache line of its own: threads that allocate meet on as few as possible.
#[repr(align(64))]
struct Counter(AtomicU64);

static ALLOCATIONS: Counter = Counter(AtomicU64::new(0));
static ALLOCATED_BYTES: Counter = Counter(AtomicU64::new(0));
static RELEASES: Counter = Counter(AtomicU64::new(0));
static LIVE_BYTES: Counter = Counter(AtomicU64::new(0));
static PEAK_BYTES: Counter = Counter(AtomicU64::new(0));

/// The counters at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heap {
    /// Allocations since the process began. Moving one to another size is one more.
    pub allocations: u64,
    /// Bytes they asked for. Of a move, the bytes it adds.
    pub allocated_bytes: u64,
    /// Bytes not released.
    pub live_bytes: u64,
    /// Allocations not released.
    pub live_blocks: u64,
    /// The most bytes that were live at once since [`reset_peak`].
    pub peak_bytes: u64,
}

/// The heap now; `None` in a process without the [`struct@CountingAllocator`].
pub fn heap() -> Option<Heap> {
    let allocations = ALLOCATIONS.0.load(Relaxed);
    // Rust's own start allocates.
    (allocations > 0).then(|| Heap {
        allocations,
        allocated_bytes: ALLOCATED_BYTES.0.load(Relaxed),
        live_bytes: LIVE_BYTES.0.load(Relaxed),
        live_blocks: allocations.saturating_sub(RELEASES.0.load(Relaxed)),
        peak_bytes: PEAK_BYTES.0.load(Relaxed),
    })
}

static UNCOUNTED_ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static UNCOUNTED_BYTES: AtomicU64 = AtomicU64::new(0);
/// What was live when the stretch of counted work began that goes on now, and the most that any stretch had beyond that.
static STRETCH_LIVE_BYTES: AtomicU64 = AtomicU64::new(0);
static STRETCH_PEAK_BYTES: AtomicU64 = AtomicU64::new(0);

/// Does `work` that no iteration has in it. What it allocates is in the counters, and in [`uncounted_so_far`].
pub fn uncounted<T>(work: impl FnOnce() -> T) -> T {
    let Some(before) = heap() else { return work() };
    end_stretch();
    let done = sites::paused(work);
    if let Some(after) = heap() {
        UNCOUNTED_ALLOCATIONS.fetch_add(after.allocations - before.allocations, Relaxed);
        UNCOUNTED_BYTES.fetch_add(after.allocated_bytes - before.allocated_bytes, Relaxed);
    }
    begin_stretch();
    done
}

fn begin_stretch() {
    STRETCH_LIVE_BYTES.store(LIVE_BYTES.0.load(Relaxed), Relaxed);
    reset_peak();
}

fn end_stretch() {
    let beyond = PEAK_BYTES.0.load(Relaxed).saturating_sub(STRETCH_LIVE_BYTES.load(Relaxed));
    STRETCH_PEAK_BYTES.fetch_max(beyond, Relaxed);
}

/// The most bytes that `work` has live at once beyond those before it, and in it before each stretch between [`uncounted`] work.
pub fn own_peak_bytes(work: impl FnOnce()) -> u64 {
    STRETCH_PEAK_BYTES.store(0, Relaxed);
    begin_stretch();
    work();
    end_stretch();
    STRETCH_PEAK_BYTES.load(Relaxed)
}

/// Allocations and bytes of all [`uncounted`] work since the process began.
pub fn uncounted_so_far() -> (u64, u64) {
    (UNCOUNTED_ALLOCATIONS.load(Relaxed), UNCOUNTED_BYTES.load(Relaxed))
}

/// From now on the peak is that of what follows.
pub fn reset_peak() {
    PEAK_BYTES.0.store(LIVE_BYTES.0.load(Relaxed), Relaxed);
}

fn allocated(bytes: usize) {
    let bytes = bytes as u64;
    ALLOCATIONS.0.fetch_add(1, Relaxed);
    ALLOCATED_BYTES.0.fetch_add(bytes, Relaxed);
    let live = LIVE_BYTES.0.fetch_add(bytes, Relaxed) + bytes;
    // Most allocations are no new peak: a look is cheaper than an exchange.
    if live > PEAK_BYTES.0.load(Relaxed) {
        PEAK_BYTES.0.fetch_max(live, Relaxed);
    }
}

fn released(bytes: usize) {
    RELEASES.0.fetch_add(1, Relaxed);
    LIVE_BYTES.0.fetch_sub(bytes as u64, Relaxed);
}

// SAFETY: every call goes to `inner` with what it was called with; counting touches no memory of the caller.
unsafe impl<A: GlobalAlloc> GlobalAlloc for CountingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps this trait's contract.
        let pointer = unsafe { self.inner.alloc(layout) };
        note_allocation(pointer, layout.size());
        pointer
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above. Not through `alloc`: an allocator hands out fresh pages without writing zeros into them.
        let pointer = unsafe { self.inner.alloc_zeroed(layout) };
        note_allocation(pointer, layout.size());
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        released(layout.size());
        sites::released(pointer);
        // SAFETY: as above.
        unsafe { self.inner.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Before it may give the old place to another thread.
        sites::released(pointer);
        // SAFETY: as above.
        let moved = unsafe { self.inner.realloc(pointer, layout, size) };
        if moved.is_null() {
            sites::allocated(pointer, layout.size(), 0);
        } else {
            ALLOCATIONS.0.fetch_add(1, Relaxed);
            RELEASES.0.fetch_add(1, Relaxed);
            if size >= layout.size() {
                let more = (size - layout.size()) as u64;
                ALLOCATED_BYTES.0.fetch_add(more, Relaxed);
                let live = LIVE_BYTES.0.fetch_add(more, Relaxed) + more;
                PEAK_BYTES.0.fetch_max(live, Relaxed);
            } else {
                LIVE_BYTES.0.fetch_sub((layout.size() - size) as u64, Relaxed);
            }
            // What was there before was made before, as the counters have it.
            sites::allocated(moved, size, size.saturating_sub(layout.size()));
        }
        moved
    }
}

fn note_allocation(pointer: *mut u8, bytes: usize) {
    if !pointer.is_null() {
        allocated(bytes);
        sites::allocated(pointer, bytes, bytes);
    }
}
