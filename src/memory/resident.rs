//! What the operating system says of this process's memory.

use std::fs;
use std::path::Path;

#[cfg(feature = "bench")]
use super::allocator::heap;
#[cfg(feature = "bench")]
use crate::machine::system;
use crate::receipt::MemorySample;

/// Where Linux describes this process.
pub const SELF: &str = "/proc/self";

/// Everything that can be said now, freed memory returned to the system first. The heap is read before anything else: reading
/// the rest allocates. What the folder `proc_self` does not say is `None`.
#[cfg(feature = "bench")]
pub fn sample(proc_self: &Path) -> MemorySample {
    let heap = heap();
    return_freed_memory();
    MemorySample {
        live_bytes: heap.map(|heap| heap.live_bytes),
        live_blocks: heap.map(|heap| heap.live_blocks),
        rss_bytes: resident_set_bytes(proc_self).or_else(system::resident_set_bytes),
        ..of_process(proc_self)
    }
}

/// What Linux says of the process that the folder `proc` describes, its heap left out; `None` where it says nothing.
pub fn of_process(proc: &Path) -> MemorySample {
    let rollup = fs::read_to_string(proc.join("smaps_rollup")).unwrap_or_default();
    let (rss_bytes, anonymous_bytes) = (kib_field(&rollup, "Rss:"), kib_field(&rollup, "Anonymous:"));
    MemorySample {
        live_bytes: None,
        live_blocks: None,
        rss_bytes: resident_set_bytes(proc),
        pss_bytes: kib_field(&rollup, "Pss:"),
        anonymous_bytes,
        mapped_bytes: rss_bytes.zip(anonymous_bytes).map(|(all, anonymous)| all.saturating_sub(anonymous)),
    }
}

/// One sentence for each thing that is `None` in `sample`, or as the peak, and should not be.
pub fn missing(sample: &MemorySample, peak_rss_bytes: Option<u64>) -> Vec<String> {
    let mut missing = Vec::new();
    if sample.live_bytes.is_none() {
        missing.push("the heap is not counted: the worker has no CountingAllocator".to_owned());
    }
    if sample.rss_bytes.is_none() {
        missing.push("the resident set is not known on this system".to_owned());
    }
    if sample.pss_bytes.is_none() {
        missing.push("shared and anonymous pages are not told apart: there is no /proc/self/smaps_rollup".to_owned());
    }
    if peak_rss_bytes.is_none() {
        missing.push("the peak of the resident set is not known: there is no /proc/self/status".to_owned());
    }
    missing
}

/// The resident set, and what of it was moved to swap: a machine short of memory must not hide a leak.
fn resident_set_bytes(proc: &Path) -> Option<u64> {
    let status = fs::read_to_string(proc.join("status")).ok()?;
    Some(kib_field(&status, "VmRSS:")?.saturating_add(kib_field(&status, "VmSwap:").unwrap_or(0)))
}

/// The largest resident set since the process began.
pub fn peak_rss_bytes(proc_self: &Path) -> Option<u64> {
    kib_field(&fs::read_to_string(proc_self.join("status")).ok()?, "VmHWM:")
}

/// `Name:   123 kB` in a file of /proc, as bytes.
pub(crate) fn kib_field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Gives what was freed back to the system, which otherwise looks used.
#[cfg(feature = "bench")]
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
