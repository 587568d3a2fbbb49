//! Who else uses the processor, and how steady its clock is.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{Finding, read, shown};

/// Load above which something else is running: an idle machine shows less.
const IDLE_LOAD: f64 = 0.5;

pub(super) fn governor(root: &Path) -> Finding {
    const SUBJECT: &str = "frequency governor";
    let governors: BTreeSet<String> = entries(root, "sys/devices/system/cpu")
        .iter()
        .filter_map(|cpu| read(root, &format!("sys/devices/system/cpu/{cpu}/cpufreq/scaling_governor")))
        .map(|name| shown(&name))
        .collect();
    let found = governors.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    match found.as_str() {
        "" => Finding::unknown(SUBJECT),
        "performance" => Finding::quiet(SUBJECT, found),
        _ => Finding::noisy(SUBJECT, found, "fix the clock: `sudo cpupower frequency-set -g performance`"),
    }
}

pub(super) fn turbo(root: &Path) -> Finding {
    const SUBJECT: &str = "turbo";
    const INTEL: &str = "sys/devices/system/cpu/intel_pstate/no_turbo";
    const OTHERS: &str = "sys/devices/system/cpu/cpufreq/boost";
    let (on, path, off) = match (read(root, INTEL), read(root, OTHERS)) {
        (Some(no_turbo), _) => (no_turbo == "0", INTEL, 1),
        (None, Some(boost)) => (boost == "1", OTHERS, 0),
        (None, None) => return Finding::unknown(SUBJECT),
    };
    if on {
        Finding::noisy(SUBJECT, "on", format!("speed follows heat; switch it off: `echo {off} | sudo tee /{path}`"))
    } else {
        Finding::quiet(SUBJECT, "off")
    }
}

pub(super) fn sibling_threads(root: &Path) -> Finding {
    const SUBJECT: &str = "SMT siblings";
    const ADVICE: &str = "two threads share a core; use as many threads as there are cores, or switch siblings off: \
        `echo off | sudo tee /sys/devices/system/cpu/smt/control`";
    match read(root, "sys/devices/system/cpu/smt/active").as_deref() {
        None => Finding::unknown(SUBJECT),
        Some("1") => Finding::noisy(SUBJECT, "on", ADVICE),
        Some(_) => Finding::quiet(SUBJECT, "off"),
    }
}

pub(super) fn load(root: &Path) -> Finding {
    const SUBJECT: &str = "load average";
    let Some(load) = read(root, "proc/loadavg").and_then(|text| text.split(' ').next()?.parse::<f64>().ok()) else {
        return Finding::unknown(SUBJECT);
    };
    if load > IDLE_LOAD {
        Finding::noisy(SUBJECT, format!("{load:.2}"), "something else runs; stop it, or wait until it is done")
    } else {
        Finding::quiet(SUBJECT, format!("{load:.2}"))
    }
}

/// The tightest CPU limit, `cpu.max`, of this process's control group and of all above it.
pub(super) fn quota(root: &Path) -> Finding {
    const SUBJECT: &str = "CPU quota";
    let Some(groups) = read(root, "proc/self/cgroup") else { return Finding::unknown(SUBJECT) };
    let own = Path::new(groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or(""));
    let cores = |group: &Path| {
        let limit = read(root, &format!("sys/fs/cgroup/{}/cpu.max", group.display()))?;
        let (quota, period) = limit.split_once(' ')?;
        // `max` means no limit.
        Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
    };
    match own.ancestors().filter_map(cores).min_by(f64::total_cmp) {
        None => Finding::quiet(SUBJECT, "none"),
        Some(cores) => Finding::noisy(
            SUBJECT,
            format!("{cores:.2} cores"),
            "the kernel stops the process when its share of a period is used up; lift the limit, or use fewer threads",
        ),
    }
}

pub(super) fn hypervisor(root: &Path) -> Finding {
    const SUBJECT: &str = "virtual machine";
    const ADVICE: &str = "neighbours share its caches and memory; identical builds differ by tens of percent between \
        hours: gate small changes by comparing two revisions in one run";
    let Some(cpuinfo) = read(root, "proc/cpuinfo") else { return Finding::unknown(SUBJECT) };
    let flagged =
        cpuinfo.lines().any(|line| line.starts_with("flags") && line.split_whitespace().any(|f| f == "hypervisor"));
    let name = read(root, "sys/hypervisor/type").or_else(|| read(root, "sys/class/dmi/id/sys_vendor"));
    match (flagged, name) {
        (true, Some(name)) => Finding::noisy(SUBJECT, format!("yes ({})", shown(&name)), ADVICE),
        (true, None) => Finding::noisy(SUBJECT, "yes", ADVICE),
        (false, _) => Finding::quiet(SUBJECT, "not that it says"),
    }
}

/// Stolen time over all time between two texts of `/proc/stat`. `None` when they do not say or no time went by.
pub(super) fn stolen_share(before: &str, after: &str) -> Option<f64> {
    let (total_before, stolen_before) = total_and_stolen(before)?;
    let (total_after, stolen_after) = total_and_stolen(after)?;
    let (total, stolen) = (total_after.checked_sub(total_before)?, stolen_after.checked_sub(stolen_before)?);
    (total > 0).then(|| stolen as f64 / total as f64)
}

/// The first line: `cpu user nice system idle iowait irq softirq steal guest guest_nice`; guests are in user already.
fn total_and_stolen(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks = line.split_whitespace().take(8).map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
    let total = ticks.iter().try_fold(0_u64, |sum, ticks| sum.checked_add(*ticks))?;
    Some((total, *ticks.get(7)?))
}

fn entries(root: &Path, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
