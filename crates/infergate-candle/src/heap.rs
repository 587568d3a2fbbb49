//! Where weights and buffers live: glibc's heap, kept instead of given back, and in huge pages.

use anyhow::Result;

use crate::fits::Needs;

/// glibc's allocator keeps large buffers for the next operation. As it comes, each one is mapped from the kernel and given
/// back, and faults in page by page (some 30,000 faults for a prompt of 512); only the one main arena may grow beyond 64 MB.
///
/// `glibc.malloc.hugetlb=1` is not here: glibc 2.36 compares what it read from the kernel without ending it, so
/// about every second process goes without huge pages and decodes 6 % slower, by the luck of its stack.
pub(super) const ALLOCATOR: &str = "glibc.malloc.arena_max=1:\
                                    glibc.malloc.mmap_threshold=1099511627776:glibc.malloc.trim_threshold=1099511627776";

/// Buffers of a pass and the cache, beside weights that are held twice while they are put where they are used.
const BUFFERS_BYTES: usize = 256 << 20;

/// Refuses a `model` that does not fit the memory there is, then makes the heap ready for its weights.
///
/// # Errors
/// As [`Needs::ensure_fits_memory`].
pub(super) fn make_room(model: &str, needs: &Needs) -> Result<()> {
    needs.ensure_fits_memory(model)?;
    prefer_huge_pages(needs.weights);
    Ok(())
}

/// Lets the heap grow by what a model of `weight_bytes` needs to load and run, and asks the kernel for huge pages there: a
/// token reads every weight, and pages of 4 KiB cost more look-ups than the processor remembers. No memory is taken yet.
///
/// Nothing happens in a process that has huge pages switched off, with another allocator than glibc's or other settings than
/// [`ALLOCATOR`], or where the kernel has none: everything works, slower.
fn prefer_huge_pages(weight_bytes: u64) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if let Ok(weight_bytes) = usize::try_from(weight_bytes) {
        advise(weight_bytes.saturating_mul(2).saturating_add(BUFFERS_BYTES));
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = (weight_bytes, BUFFERS_BYTES);
}

/// Takes `bytes` from the end of the heap, advises their pages, and frees them: they stay the heap's end.
///
/// glibc's own functions are called, as an allocation counter must not see what the model did not ask for.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn advise(bytes: usize) {
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
