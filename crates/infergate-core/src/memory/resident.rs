//! What the operating system says of a process's memory, open files and threads.

use std::fs;
use std::path::Path;

use crate::machine::system::kib_field;
use crate::receipt::MemorySample;

/// Where Linux describes this process.
pub const SELF: &str = "/proc/self";

/// What Linux says of the process that the folder `proc` describes, its heap left out; `None` where it says nothing. A process that
/// looks at itself has one more file open meanwhile.
///
/// To the resident set counts what of it was moved to swap: a machine short of memory must not hide a leak. `status` is asked last, since
/// the kernel sums it up now and then only.
pub fn of_process(proc: &Path) -> MemorySample {
    let read = |file| fs::read_to_string(proc.join(file)).unwrap_or_default();
    let entries = |folder| Some(fs::read_dir(proc.join(folder)).ok()?.count() as u64);
    let (rollup, status) = (read("smaps_rollup"), read("status"));
    let (resident, anonymous_bytes) = (kib_field(&rollup, "Rss:"), kib_field(&rollup, "Anonymous:"));
    let swapped = kib_field(&rollup, "Swap:").or_else(|| kib_field(&status, "VmSwap:"));
    MemorySample {
        rss_bytes: resident.or_else(|| kib_field(&status, "VmRSS:")).map(|bytes| bytes + swapped.unwrap_or(0)),
        anonymous_bytes,
        mapped_bytes: resident.zip(anonymous_bytes).map(|(all, anonymous)| all.saturating_sub(anonymous)),
        open_files: entries("fd"),
        threads: entries("task"),
        ..MemorySample::default()
    }
}

/// One sentence for each thing that is `None` in `sample`, or as the peak, and should not be.
pub fn missing(sample: &MemorySample, peak_rss_bytes: Option<u64>) -> Vec<String> {
    let wanted = [
        (sample.live_bytes, "the heap is not counted: the worker has no CountingAllocator"),
        (sample.rss_bytes, "the resident set is not known on this system"),
        (sample.anonymous_bytes, "shared and anonymous pages are not told apart: there is no /proc/self/smaps_rollup"),
        (peak_rss_bytes, "the peak of the resident set is not known: there is no /proc/self/status"),
    ];
    wanted.into_iter().filter(|(value, _)| value.is_none()).map(|(_, text)| text.to_owned()).collect()
}

/// The largest resident set since the process began.
pub fn peak_rss_bytes(proc_self: &Path) -> Option<u64> {
    kib_field(&fs::read_to_string(proc_self.join("status")).ok()?, "VmHWM:")
}
