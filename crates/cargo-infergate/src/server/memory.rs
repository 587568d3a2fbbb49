//! Memory of a server and of all it started.

use std::collections::BTreeMap;

use infergate_core::memory::resident::of_process;
use infergate_core::receipt::MemorySample;

use infergate_build::watcher::parents;

/// The sum over all processes below `parent`, whatever group or session they made for themselves. A process whose own parent ended belongs
/// to the one that took it over, which is this program. A field is `None` if the system tells it of no process; a process that ends
/// meanwhile does not count.
pub fn of_started(parent: u32) -> MemorySample {
    let parents: BTreeMap<u32, u32> = parents().collect();
    let is_started = |process: u32| {
        let above = |process: &u32| parents.get(process).copied();
        // An id that is reused meanwhile could make a circle.
        std::iter::successors(above(&process), above).take(parents.len()).any(|above| above == parent)
    };
    let mut sum = MemorySample::default();
    for process in parents.keys().filter(|process| is_started(**process)) {
        add(&mut sum, &of_process(format!("/proc/{process}").as_ref()));
    }
    sum
}

fn add(sum: &mut MemorySample, one: &MemorySample) {
    let fields = [
        (&mut sum.rss_bytes, one.rss_bytes),
        (&mut sum.anonymous_bytes, one.anonymous_bytes),
        (&mut sum.mapped_bytes, one.mapped_bytes),
        (&mut sum.open_files, one.open_files),
        (&mut sum.threads, one.threads),
    ];
    for (sum, one) in fields {
        if let Some(one) = one {
            *sum = Some(sum.unwrap_or(0).saturating_add(one));
        }
    }
}
