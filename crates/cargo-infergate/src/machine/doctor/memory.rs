//! Memory: how much is free, and how the kernel hands it out.

use std::path::Path;

use super::{Finding, read, shown};

/// A small model, its cache and the probes' buffer fit into this.
const ENOUGH_BYTES: u64 = 2 << 30;

pub(super) fn free(root: &Path) -> Finding {
    const SUBJECT: &str = "free memory";
    let Some(bytes) = meminfo_bytes(root, "MemAvailable") else { return Finding::unknown(SUBJECT) };
    if bytes < ENOUGH_BYTES {
        Finding::noisy(SUBJECT, gib(bytes), "close what you do not need, or choose a smaller model")
    } else {
        Finding::quiet(SUBJECT, gib(bytes))
    }
}

pub(super) fn swap(root: &Path) -> Finding {
    const SUBJECT: &str = "swap";
    let (Some(total), Some(free)) = (meminfo_bytes(root, "SwapTotal"), meminfo_bytes(root, "SwapFree")) else {
        return Finding::unknown(SUBJECT);
    };
    match total.saturating_sub(free) {
        0 if total == 0 => Finding::quiet(SUBJECT, "none"),
        0 => Finding::quiet(SUBJECT, format!("{}, unused", gib(total))),
        used => Finding::noisy(
            SUBJECT,
            format!("{} used", gib(used)),
            "weights that were swapped out come back slowly; free memory, then `sudo swapoff -a`",
        ),
    }
}

pub(super) fn huge_pages(root: &Path) -> Finding {
    const SUBJECT: &str = "transparent huge pages";
    let Some(text) = read(root, "sys/kernel/mm/transparent_hugepage/enabled") else { return Finding::unknown(SUBJECT) };
    // The choice in force is the one in brackets: `always [madvise] never`.
    let choice =
        text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text.as_str(), |(choice, _)| choice);
    let finding = Finding::quiet(SUBJECT, shown(choice));
    match choice {
        "never" => finding.with_advice(
            "long prompts run slower without them: `echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled`",
        ),
        _ => finding,
    }
}

/// A line of `/proc/meminfo`, `Name:  123 kB`, in bytes.
fn meminfo_bytes(root: &Path, name: &str) -> Option<u64> {
    let text = read(root, "proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}
