//! What makes this machine noisy, and what to do about it.
//!
//! It only looks: nothing is changed, and nothing needs special rights. Linux tells most of it below `/proc` and `/sys`; a
//! file that is missing there makes a finding that says so.

mod cpu;
mod memory;

use std::path::Path;
use std::{fs, thread, time};

use infergate_receipts::Finding;

/// Longest piece of a file or variable that is repeated to the user.
const MAX_SHOWN_CHARS: usize = 120;

/// How long steal time is watched.
const STEAL_WINDOW: time::Duration = time::Duration::from_millis(500);

/// Looks at this machine: [`examine_at`] the root, and [`steal`] over half a second.
pub fn examine() -> Vec<Finding> {
    let stat = || fs::read_to_string("/proc/stat").unwrap_or_default();
    let before = stat();
    thread::sleep(STEAL_WINDOW);
    let mut findings = examine_at(Path::new("/"));
    findings.push(steal(&before, &stat()));
    findings
}

/// Looks at the `proc` and `sys` folders below `root`. Anything missing there is [unknown](Finding::unknown).
pub fn examine_at(root: &Path) -> Vec<Finding> {
    vec![
        cpu::governor(root),
        cpu::turbo(root),
        cpu::sibling_threads(root),
        cpu::load(root),
        cpu::quota(root),
        cpu::hypervisor(root),
        memory::free(root),
        memory::swap(root),
        memory::huge_pages(root),
    ]
}

/// Time the hypervisor gave to others between two readings of `/proc/stat`, as a share of all time.
pub fn steal(before: &str, after: &str) -> Finding {
    const SUBJECT: &str = "steal time";
    match cpu::stolen_share(before, after) {
        None => Finding::unknown(SUBJECT),
        Some(share) if share >= 0.01 => Finding::noisy(
            SUBJECT,
            format!("{:.1} %", share * 100.0),
            "the hypervisor runs others on these cores; measure at another hour or on a machine of your own",
        ),
        Some(share) => Finding::quiet(SUBJECT, format!("{:.1} %", share * 100.0)),
    }
}

/// The text of a file below `root`, trimmed; `None` when it is missing or empty.
fn read(root: &Path, path: &str) -> Option<String> {
    let text = fs::read_to_string(root.join(path)).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Foreign text on one short line without control characters.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_SHOWN_CHARS).collect()
}
