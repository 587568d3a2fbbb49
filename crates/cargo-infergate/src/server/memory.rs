//! Memory of a server and of all it started.

use std::fs;
use std::path::Path;

use infergate_core::memory::resident::of_process;
use infergate_core::receipt::MemorySample;

/// The sum over the processes of a process group. `None` where the system does not say it of any; a process that ends
/// meanwhile is left out.
pub fn of_group(group: u32) -> MemorySample {
    let mut sum = MemorySample::default();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let path = process.path();
        if group_of(&path) == Some(group) {
            add(&mut sum, &of_process(&path));
        }
    }
    sum
}

/// The third field behind the name, which may hold spaces and brackets.
fn group_of(process: &Path) -> Option<u32> {
    process.file_name()?.to_str()?.parse::<u32>().ok()?;
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse().ok()
}

fn add(sum: &mut MemorySample, one: &MemorySample) {
    let fields = [
        (&mut sum.rss_bytes, one.rss_bytes),
        (&mut sum.pss_bytes, one.pss_bytes),
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
