//! What makes this machine noisy, and what to do about it.
//!
//! It only looks: nothing is changed, and nothing needs special rights. Linux tells most of it below `/proc` and `/sys`; a
//! file that is missing there makes a finding that says so.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, thread, time};

use infergate_core::printable::printable_within;
use infergate_receipts::Finding;

/// The most characters of a file that are shown to the user.
const MAX_SHOWN_CHARS: usize = 120;

/// How long steal time is measured.
const STEAL_WINDOW: time::Duration = time::Duration::from_millis(500);

/// Share of stolen time from which on it is noise.
const NOISY_STEAL: f64 = 0.01;

/// The load average above which something else is running: an idle machine shows less.
const IDLE_LOAD: f64 = 0.5;

/// Free memory that a small model, its cache and the probes' buffer fit into.
const ENOUGH_GIB: f64 = 2.0;

/// Whether it is noisy, and what was found; `None` if the system does not tell.
type Found = Option<(bool, String)>;

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
        finding("frequency governor", governor(root), "fix the clock: `sudo cpupower frequency-set -g performance`"),
        finding(
            "turbo",
            switch(root, "sys/devices/system/cpu/intel_pstate/no_turbo", "0")
                .or_else(|| switch(root, "sys/devices/system/cpu/cpufreq/boost", "1")),
            "speed follows heat; switch it off: `echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo`, or \
             `echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost`",
        ),
        finding(
            "SMT siblings",
            switch(root, "sys/devices/system/cpu/smt/active", "1"),
            "use as many threads as cores, or switch siblings off: \
             `echo off | sudo tee /sys/devices/system/cpu/smt/control`",
        ),
        finding("load average", load(root), "stop what else runs, or wait"),
        finding("CPU quota", quota(root), "lift the limit, or use fewer threads"),
        finding(
            "virtual machine",
            hypervisor(root),
            "neighbours share its caches, and times differ between hours: compare two revisions in one run",
        ),
        finding("free memory", free(root), "close what you do not need, or choose a smaller model"),
        finding("swap", swap(root), "free memory, then `sudo swapoff -a`"),
        huge_pages(root),
    ]
}

/// Time the hypervisor gave to others between two readings of `/proc/stat`, as a share of all time.
pub fn steal(before: &str, after: &str) -> Finding {
    let share = stolen_share(before, after).map(|share| (share >= NOISY_STEAL, format!("{:.1} %", share * 100.0)));
    finding("steal time", share, "measure at another hour, or on a machine of your own")
}

fn finding(subject: &str, found: Found, advice: &str) -> Finding {
    let Some((is_noisy, value)) = found else { return Finding::unknown(subject) };
    let value = printable_within(&value, MAX_SHOWN_CHARS);
    if is_noisy { Finding::noisy(subject, value, advice) } else { Finding::quiet(subject, value) }
}

fn governor(root: &Path) -> Found {
    let cpus = fs::read_dir(root.join("sys/devices/system/cpu")).into_iter().flatten().flatten();
    let of_cpu = |cpu: fs::DirEntry| read(&cpu.path(), "cpufreq/scaling_governor");
    let governors: BTreeSet<String> = cpus.filter_map(of_cpu).collect();
    let found = governors.into_iter().collect::<Vec<_>>().join(", ");
    (!found.is_empty()).then(|| (found != "performance", found))
}

/// A switch that is on if the file at `path` has the text `on`.
fn switch(root: &Path, path: &str, on: &str) -> Found {
    let is_on = read(root, path)? == on;
    Some((is_on, if is_on { "on" } else { "off" }.into()))
}

fn load(root: &Path) -> Found {
    let load: f64 = read(root, "proc/loadavg")?.split(' ').next()?.parse().ok()?;
    Some((load > IDLE_LOAD, format!("{load:.2}")))
}

/// The tightest CPU limit, `cpu.max`, of this process's control group and of all above it.
fn quota(root: &Path) -> Found {
    let groups = read(root, "proc/self/cgroup")?;
    let own = Path::new(groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or(""));
    let cores = |group: &Path| {
        let limit = read(root, &format!("sys/fs/cgroup/{}/cpu.max", group.display()))?;
        let (quota, period) = limit.split_once(' ')?;
        // `max` means no limit.
        Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
    };
    let tightest = own.ancestors().filter_map(cores).min_by(f64::total_cmp);
    Some(tightest.map_or((false, "none".into()), |cores| (true, format!("{cores:.2} cores"))))
}

fn hypervisor(root: &Path) -> Found {
    // One of the flags.
    if !read(root, "proc/cpuinfo")?.split_whitespace().any(|word| word == "hypervisor") {
        return Some((false, "not that it says".into()));
    }
    let name = read(root, "sys/hypervisor/type").or_else(|| read(root, "sys/class/dmi/id/sys_vendor"));
    Some((true, name.map_or("yes".into(), |name| format!("yes ({name})"))))
}

fn free(root: &Path) -> Found {
    let free = meminfo_gib(root, "MemAvailable")?;
    Some((free < ENOUGH_GIB, format!("{free:.1} GiB")))
}

fn swap(root: &Path) -> Found {
    let used = meminfo_gib(root, "SwapTotal")? - meminfo_gib(root, "SwapFree")?;
    Some((used > 0.0, format!("{used:.1} GiB used")))
}

fn huge_pages(root: &Path) -> Finding {
    let choices = read(root, "sys/kernel/mm/transparent_hugepage/enabled");
    // The choice in force is the one in brackets: `always [madvise] never`.
    let choice = choices.and_then(|choices| Some(choices.split(['[', ']']).nth(1)?.to_owned()));
    let is_never = choice.as_deref() == Some("never");
    let finding = finding("transparent huge pages", choice.map(|choice| (false, choice)), "");
    if !is_never {
        return finding;
    }
    finding.with_advice(
        "long prompts run slower without them: `echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled`",
    )
}

/// Stolen time over all time between two texts of `/proc/stat`. `None` when they do not say or no time went by.
fn stolen_share(before: &str, after: &str) -> Option<f64> {
    let (total_before, stolen_before) = total_and_stolen(before)?;
    let (total_after, stolen_after) = total_and_stolen(after)?;
    let total = total_after - total_before;
    (total > 0.0).then(|| (stolen_after - stolen_before) / total)
}

/// The first line: `cpu user nice system idle iowait irq softirq steal guest guest_nice`; guests are in user already.
fn total_and_stolen(stat: &str) -> Option<(f64, f64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks = line.split_whitespace().take(8).map(str::parse).collect::<Result<Vec<f64>, _>>().ok()?;
    Some((ticks.iter().sum(), *ticks.get(7)?))
}

/// A line of `/proc/meminfo`, `Name:  123 kB`, in GiB.
fn meminfo_gib(root: &Path, name: &str) -> Option<f64> {
    let text = read(root, "proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / f64::from(1 << 20))
}

/// The text of a file below `root`, trimmed; `None` when it is missing or empty.
fn read(root: &Path, path: &str) -> Option<String> {
    let text = fs::read_to_string(root.join(path)).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
