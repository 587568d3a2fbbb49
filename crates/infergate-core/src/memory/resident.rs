//! What the operating system says of a process's memory, open files and threads.

use std::fs;
use std::path::Path;

use crate::machine::system::kib_field;
use crate::receipt::MemorySample;

/// Where Linux describes this process.
pub const SELF: &str = "/proc/self";

/// What Linux says of the process that the folder `proc` describes, its heap left out; `None` where it says nothing. A process that
/// looks at itself has one more file open meanwhile.
pub fn of_process(proc: &Path) -> MemorySample {
    let rollup = fs::read_to_string(proc.join("smaps_rollup")).unwrap_or_default();
    let (rss_bytes, anonymous_bytes) = (kib_field(&rollup, "Rss:"), kib_field(&rollup, "Anonymous:"));
    MemorySample {
        rss_bytes: resident_set_bytes(proc, &rollup),
        anonymous_bytes,
        mapped_bytes: rss_bytes.zip(anonymous_bytes).map(|(all, anonymous)| all.saturating_sub(anonymous)),
        open_files: entries(&proc.join("fd")),
        threads: entries(&proc.join("task")),
        ..MemorySample::default()
    }
}

fn entries(folder: &Path) -> Option<u64> {
    Some(fs::read_dir(folder).ok()?.count() as u64)
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

/// The resident set, and what of it was moved to swap: a machine short of memory must not hide a leak. `status` is asked last: the
/// kernel sums it up now and then only.
fn resident_set_bytes(proc: &Path, rollup: &str) -> Option<u64> {
    let status = fs::read_to_string(proc.join("status")).unwrap_or_default();
    let swapped = kib_field(rollup, "Swap:").or_else(|| kib_field(&status, "VmSwap:"));
    let resident = kib_field(rollup, "Rss:").or_else(|| kib_field(&status, "VmRSS:"))?;
    Some(resident.saturating_add(swapped.unwrap_or(0)))
}

/// The largest resident set since the process began.
pub fn peak_rss_bytes(proc_self: &Path) -> Option<u64> {
    kib_field(&fs::read_to_string(proc_self.join("status")).ok()?, "VmHWM:")
}
