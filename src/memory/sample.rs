//! The heap and the resident set of this process.

use std::path::Path;

use super::allocator::heap;
use infergate_core::machine::system;
use infergate_core::memory::resident::of_process;
use infergate_core::receipt::MemorySample;

/// Everything that can be said now, freed memory returned to the system first. The heap is read before anything else: reading
/// the rest allocates. What the folder `proc_self` does not say is `None`.
pub fn sample(proc_self: &Path) -> MemorySample {
    let heap = heap();
    return_freed_memory();
    let seen = of_process(proc_self);
    MemorySample {
        live_bytes: heap.map(|heap| heap.live_bytes),
        live_blocks: heap.map(|heap| heap.live_blocks),
        rss_bytes: seen.rss_bytes.or_else(system::resident_set_bytes),
        ..seen
    }
}

/// Gives what was freed back to the system, which otherwise looks used.
fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes no pointers; glibc locks what it needs.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// From now on this process gets pages of 4 KiB only: steps of 2 MiB hide a leak. Linux only.
pub fn without_huge_pages() {
    #[cfg(target_os = "linux")]
    // SAFETY: only sets a flag of this process; a kernel that does not know it returns an error, which changes nothing.
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
}
