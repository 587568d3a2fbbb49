//! What makes this machine noisy, and what to do about it.
//!
//! It only looks: nothing is changed, and nothing needs special rights. Linux tells most of it below `/proc` and `/sys`; a
//! file that is missing there makes a finding that says so.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, thread, time};

use infergate_receipts::Finding;

/// Longest piece of a file that is repeated to the user.
const MAX_SHOWN_CHARS: usize = 120;

/// How long steal time is watched.
const STEAL_WINDOW: time::Duration = time::Duration::from_millis(500);

/// Share of stolen time from which on it is noise.
const NOISY_STEAL: f64 = 0.01;

/// Load above which something else is running: an idle machine shows less.
const IDLE_LOAD: f64 = 0.5;

/// A small model, its cache and the probes' buffer fit into this.
const ENOUGH_BYTES: u64 = 2 << 30;

/// Whether it is noisy, and what was found; `None` where the system does not say.
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
            turbo(root),
            "speed follows heat; switch it off: `echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo`, or \
             where that is missing `echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost`",
        ),
        finding(
            "SMT siblings",
            sibling_threads(root),
            "two threads share a core; use as many threads as there are cores, or switch siblings off: \
             `echo off | sudo tee /sys/devices/system/cpu/smt/control`",
        ),
        finding("load average", load(root), "something else runs; stop it, or wait until it is done"),
        finding(
            "CPU quota",
            quota(root),
            "the kernel stops the process when its share of a period is used up; lift the limit, or use fewer threads",
        ),
        finding(
            "virtual machine",
            hypervisor(root),
            "neighbours share its caches and memory; identical builds differ by tens of percent between hours: gate \
             small changes by comparing two revisions in one run",
        ),
        finding("free memory", free(root), "close what you do not need, or choose a smaller model"),
        finding(
            "swap",
            swap(root),
            "weights that were swapped out come back slowly; free memory, then `sudo swapoff -a`",
        ),
        huge_pages(root),
    ]
}

/// Time the hypervisor gave to others between two readings of `/proc/stat`, as a share of all time.
pub fn steal(before: &str, after: &str) -> Finding {
    let share = stolen_share(before, after).map(|share| (share >= NOISY_STEAL, format!("{:.1} %", share * 100.0)));
    finding(
        "steal time",
        share,
        "the hypervisor runs others on these cores; measure at another hour or on a machine of your own",
    )
}

fn finding(subject: &'static str, found: Found, advice: &str) -> Finding {
    match found {
        None => Finding::unknown(subject),
        Some((true, value)) => Finding::noisy(subject, value, advice),
        Some((false, value)) => Finding::quiet(subject, value),
    }
}

fn governor(root: &Path) -> Found {
    let cpus = fs::read_dir(root.join("sys/devices/system/cpu")).into_iter().flatten().flatten();
    let of_cpu = |cpu: fs::DirEntry| read(&cpu.path(), "cpufreq/scaling_governor").map(|name| shown(&name));
    let governors: BTreeSet<String> = cpus.filter_map(of_cpu).collect();
    let found = governors.into_iter().collect::<Vec<_>>().join(", ");
    (!found.is_empty()).then(|| (found != "performance", found))
}

fn turbo(root: &Path) -> Found {
    let no_turbo = read(root, "sys/devices/system/cpu/intel_pstate/no_turbo").map(|no_turbo| no_turbo == "0");
    let boost = || read(root, "sys/devices/system/cpu/cpufreq/boost").map(|boost| boost == "1");
    no_turbo.or_else(boost).map(on_or_off)
}

fn sibling_threads(root: &Path) -> Found {
    Some(on_or_off(read(root, "sys/devices/system/cpu/smt/active")? == "1"))
}

fn on_or_off(is_on: bool) -> (bool, String) {
    (is_on, if is_on { "on" } else { "off" }.into())
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
    let cpuinfo = read(root, "proc/cpuinfo")?;
    let is_flagged =
        cpuinfo.lines().any(|line| line.starts_with("flags") && line.split_whitespace().any(|f| f == "hypervisor"));
    let name = read(root, "sys/hypervisor/type").or_else(|| read(root, "sys/class/dmi/id/sys_vendor"));
    let value = match (is_flagged, name) {
        (true, Some(name)) => format!("yes ({})", shown(&name)),
        (true, None) => "yes".into(),
        (false, _) => "not that it says".into(),
    };
    Some((is_flagged, value))
}

fn free(root: &Path) -> Found {
    let bytes = meminfo_bytes(root, "MemAvailable")?;
    Some((bytes < ENOUGH_BYTES, gib(bytes)))
}

fn swap(root: &Path) -> Found {
    let (total, free) = (meminfo_bytes(root, "SwapTotal")?, meminfo_bytes(root, "SwapFree")?);
    Some(match total.saturating_sub(free) {
        0 if total == 0 => (false, "none".into()),
        0 => (false, format!("{}, unused", gib(total))),
        used => (true, format!("{} used", gib(used))),
    })
}

fn huge_pages(root: &Path) -> Finding {
    const SUBJECT: &str = "transparent huge pages";
    let Some(text) = read(root, "sys/kernel/mm/transparent_hugepage/enabled") else { return Finding::unknown(SUBJECT) };
    // The choice in force is the one in brackets: `always [madvise] never`.
    let choice = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(&*text, |(choice, _)| choice);
    let finding = Finding::quiet(SUBJECT, shown(choice));
    match choice {
        "never" => finding.with_advice(
            "long prompts run slower without them: `echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled`",
        ),
        _ => finding,
    }
}

/// Stolen time over all time between two texts of `/proc/stat`. `None` when they do not say or no time went by.
fn stolen_share(before: &str, after: &str) -> Option<f64> {
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

/// A line of `/proc/meminfo`, `Name:  123 kB`, in bytes.
fn meminfo_bytes(root: &Path, name: &str) -> Option<u64> {
    let text = read(root, "proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
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
