//! Where weights and buffers live: in memory that is free, in glibc's heap, which is kept instead of given back, and in huge pages.

use anyhow::{Result, ensure};
use sysinfo::System;

/// Caches and buffers take about this part of the weights.
const BESIDE_WEIGHTS: f64 = 0.1;

/// glibc's allocator keeps large buffers for the next operation. As it comes, each one is mapped from the kernel and given
/// back, and faults in page by page (some 30,000 faults for a prompt of 512); only the one main arena may grow beyond 64 MB.
///
/// `glibc.malloc.hugetlb=1` is not here: glibc 2.36 compares what it read from the kernel without ending it, so
/// about every second process goes without huge pages and decodes 6 % slower, by the luck of its stack.
pub const ALLOCATOR: &str = "glibc.malloc.arena_max=1:\
                                    glibc.malloc.mmap_threshold=1099511627776:glibc.malloc.trim_threshold=1099511627776";

/// Refuses a `model` whose weights, with what it computes in, do not fit the memory that is free now: later the system would end the
/// process without a word. Then makes the heap ready for them.
///
/// # Errors
/// As [`ensure_fits`].
pub fn make_room(model: &str, weight_bytes: u64) -> Result<()> {
    ensure_fits(model, (weight_bytes as f64 * (1.0 + BESIDE_WEIGHTS)) as u64)?;
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    prefer_huge_pages(weight_bytes);
    Ok(())
}

/// Refuses `what` if it takes more `bytes` than are free now. Where the system does not say, nothing is refused.
///
/// # Errors
/// Saying what is needed and what there is.
pub fn ensure_fits(what: &str, bytes: u64) -> Result<()> {
    let Some(free) = free_bytes() else { return Ok(()) };
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    ensure!(
        bytes <= free,
        "{what}: it takes {:.1} GiB of memory and {:.1} GiB are free; close programs, or choose a smaller model or dtype",
        gib(bytes),
        gib(free)
    );
    Ok(())
}

/// What can be had without swapping; in a container no more than its limit less what its programs hold.
fn free_bytes() -> Option<u64> {
    let mut system = System::new();
    system.refresh_memory();
    let all = Some(system.available_memory()).filter(|bytes| *bytes > 0)?;
    Some(system.cgroup_limits().map_or(all, |limits| all.min(limits.total_memory.saturating_sub(limits.rss))))
}

/// Lets the heap grow by what a model of `weight_bytes` needs to load and run, and asks the kernel for huge pages there: a
/// token reads every weight, and pages of 4 KiB cost more look-ups than the processor remembers. No memory is taken yet: its room is taken
/// from the end of the heap, its pages are advised, and it is freed, so that it stays the heap's end.
///
/// Nothing happens in a process that has huge pages switched off, with another allocator than glibc's or other settings than
/// [`ALLOCATOR`], or where the kernel has none: everything works, slower.
///
/// glibc's own functions are called, as an allocation counter must not see what the model did not ask for.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn prefer_huge_pages(weight_bytes: u64) {
    let Ok(weight_bytes) = usize::try_from(weight_bytes) else { return };
    // Weights are held twice while they are put where they are used; beside them buffers of a pass and the cache.
    let bytes = weight_bytes.saturating_mul(2).saturating_add(256 << 20);
    // SAFETY: the first call takes numbers only. The block is not touched, and freed once; the pages advised lie within it,
    // and the advice changes how the kernel backs them, not what they hold.
    unsafe {
        let switched_off = libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1;
        let page = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(0);
        if switched_off || page == 0 {
            return;
        }
        let block = libc::malloc(bytes);
        if block.is_null() {
            return;
        }
        let to_page = block.align_offset(page);
        libc::madvise(block.byte_add(to_page), (bytes - to_page) / page * page, libc::MADV_HUGEPAGE);
        libc::free(block);
    }
}
