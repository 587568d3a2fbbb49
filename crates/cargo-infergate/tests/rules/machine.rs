//! The machine's class, its probes, the doctor and the build's identity.

use std::fs;
use std::path::Path;
use std::process::Command;

use cargo_infergate::machine::{doctor, probes};
use infergate_core::build_info;
use infergate_core::engine::Device;
use infergate_core::machine;
use infergate_core::machine::cpu::{Cpu, class, parse_cpuinfo};
use infergate_receipts::Finding;
use infergate_receipts::Machine;

const AMD_MASKED: &str = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\n\
    model name\t: AMD EPYC\ncpu MHz\t\t: 2596.100\nflags\t\t: fpu vme hypervisor avx2\n\n\
    processor\t: 1\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n";
const INTEL: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n\
    model name\t: Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz\nstepping\t: 7\n";
const GRAVITON: &str = "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd evtstrm\nCPU implementer\t: 0x41\n\
    CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n";

fn class_of(arch: &str, text: &str, cores: usize) -> String {
    class("linux", arch, &parse_cpuinfo(text).expect("a processor"), cores)
}

#[test]
fn a_masked_brand_is_told_apart_by_family_and_model() {
    assert_eq!(class_of("x86_64", AMD_MASKED, 2), "linux-x86_64-authenticamd-amd-epyc-f26m2-2c");
    let other = AMD_MASKED.replace("model\t\t: 2", "model\t\t: 17");
    assert_ne!(class_of("x86_64", &other, 2), class_of("x86_64", AMD_MASKED, 2));
    assert_eq!(parse_cpuinfo(AMD_MASKED).unwrap().model_with_numbers(), "AMD EPYC (family 26, model 2)");
}

#[test]
fn clock_speed_and_trademarks_are_not_part_of_the_class() {
    let expected = "linux-x86_64-genuineintel-intel-xeon-platinum-8259cl-f6m85-4c";
    assert_eq!(class_of("x86_64", INTEL, 4), expected);
    assert_eq!(class_of("x86_64", &INTEL.replace("2.50GHz", "3.10GHz"), 4), expected);
}

#[test]
fn arm_is_named_by_implementer_and_part() {
    assert_eq!(class_of("aarch64", GRAVITON, 2), "linux-aarch64-arm-part-0xd0c-2c");
    let mixed = format!("{GRAVITON}\n{}", GRAVITON.replace("0xd0c", "0xd05"));
    assert_eq!(class_of("aarch64", &mixed, 8), "linux-aarch64-arm-part-0xd05-0xd0c-8c");
    assert_eq!(
        class_of("aarch64", &GRAVITON.replace("0x41", "0x99"), 2),
        "linux-aarch64-implementer-0x99-part-0xd0c-2c"
    );
}

#[test]
fn without_cpuinfo_the_brand_is_used() {
    assert_eq!(parse_cpuinfo(""), None);
    assert_eq!(parse_cpuinfo("nonsense\n: :\n"), None);
    assert_eq!(
        class("macos", "aarch64", &Cpu::from_brand("Apple", "Apple M3 Pro"), 11),
        "macos-aarch64-apple-apple-m3-pro-11c"
    );
    assert_eq!(class("windows", "x86_64", &Cpu::from_brand("", ""), 8), "windows-x86_64-unknown-unknown-8c");
}

#[test]
fn this_machine_is_described() {
    let here = machine::detect();
    assert!(here.logical_cores >= 1 && here.memory_bytes > Some(0));
    assert!(here.class.ends_with(&format!("-{}c", here.logical_cores)), "{}", here.class);
    assert!(here.class.starts_with(&format!("{}-{}-", here.os, here.arch)), "{}", here.class);
    assert_eq!(here, machine::detect());
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    assert!(here.libc.as_deref().is_some_and(|libc| libc.starts_with("glibc 2.")), "{:?}", here.libc);
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    assert!(here.instruction_set.is_some());
}

#[test]
fn probes_are_positive_numbers_and_need_a_thread() {
    let probes = probes::run(1).unwrap();
    for rate in [probes.memory_read_bytes_per_s, probes.fma_flops_per_s] {
        assert!(rate.is_finite() && rate > 0.0, "{probes:?}");
    }
    assert!(probes::run(0).is_err());
}

/// A file tree with the given files, `path -> text`.
fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn finding(files: &[(&str, &str)], subject: &str) -> Finding {
    let root = tree(files);
    let findings = doctor::examine_at(root.path());
    findings.into_iter().find(|finding| finding.subject == subject).expect("a finding of that subject")
}

#[track_caller]
fn assert_finding(files: &[(&str, &str)], subject: &str, found: &str, noisy: bool) {
    let finding = finding(files, subject);
    assert_eq!((finding.found.as_str(), finding.noisy), (found, noisy), "{finding:?}");
    assert!(!noisy || finding.advice.is_some(), "a noisy finding says what to do: {finding:?}");
}

#[test]
fn nothing_readable_is_said_and_not_called_noisy() {
    let findings = doctor::examine_at(Path::new("/nonexistent/infergate"));
    assert!(findings.iter().all(|finding| !finding.noisy), "{findings:?}");
    assert!(findings.iter().filter(|finding| finding.found == Finding::NOT_READABLE).count() >= 8, "{findings:?}");
}

#[test]
fn clock_and_siblings() {
    let governor = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    let other = "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor";
    assert_finding(
        &[(governor, "performance\n"), (other, "performance\n")],
        "frequency governor",
        "performance",
        false,
    );
    let mixed = [(governor, "performance\n"), (other, "powersave\n")];
    assert_finding(&mixed, "frequency governor", "performance, powersave", true);
    assert_finding(&[("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n")], "turbo", "on", true);
    assert_finding(&[("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n")], "turbo", "off", false);
    assert_finding(&[("sys/devices/system/cpu/cpufreq/boost", "1\n")], "turbo", "on", true);
    assert_finding(&[("sys/devices/system/cpu/smt/active", "0\n")], "SMT siblings", "off", false);
}

#[test]
fn other_users_of_the_processor() {
    assert_finding(&[("proc/loadavg", "0.08 0.10 0.09 1/100 4\n")], "load average", "0.08", false);
    assert_finding(&[("proc/loadavg", "3.50 0.10 0.09 1/100 4\n")], "load average", "3.50", true);
    assert_finding(&[("proc/loadavg", "rubbish\n")], "load average", Finding::NOT_READABLE, false);
    assert_finding(&[("proc/cpuinfo", AMD_MASKED)], "virtual machine", "yes", true);
    assert_finding(
        &[("proc/cpuinfo", AMD_MASKED), ("sys/class/dmi/id/sys_vendor", "QEMU\n")],
        "virtual machine",
        "yes (QEMU)",
        true,
    );
    assert_finding(&[("proc/cpuinfo", INTEL)], "virtual machine", "not that it says", false);
}

#[test]
fn the_tightest_quota_on_the_way_up_counts() {
    let own = ("proc/self/cgroup", "0::/work/job\n");
    assert_finding(&[own], "CPU quota", "none", false);
    assert_finding(&[own, ("sys/fs/cgroup/work/job/cpu.max", "max 100000\n")], "CPU quota", "none", false);
    let above = ("sys/fs/cgroup/work/cpu.max", "150000 100000\n");
    assert_finding(&[own, above, ("sys/fs/cgroup/work/job/cpu.max", "max 100000\n")], "CPU quota", "1.50 cores", true);
}

#[test]
fn memory_findings() {
    let meminfo = |available: u64, total: u64, free: u64| {
        format!("MemTotal: 9 kB\nMemAvailable: {available} kB\nSwapTotal: {total} kB\nSwapFree: {free} kB\n")
    };
    let (roomy, tight) = (meminfo(8 << 20, 0, 0), meminfo(1 << 20, 4 << 20, 3 << 20));
    assert_finding(&[("proc/meminfo", &roomy)], "free memory", "8.0 GiB", false);
    assert_finding(&[("proc/meminfo", &roomy)], "swap", "0.0 GiB used", false);
    assert_finding(&[("proc/meminfo", &tight)], "free memory", "1.0 GiB", true);
    assert_finding(&[("proc/meminfo", &tight)], "swap", "1.0 GiB used", true);
    let huge = "sys/kernel/mm/transparent_hugepage/enabled";
    assert_finding(&[(huge, "always [madvise] never\n")], "transparent huge pages", "madvise", false);
    assert!(finding(&[(huge, "always madvise [never]\n")], "transparent huge pages").advice.is_some());
}

#[test]
fn steal_is_a_share_of_the_time_between_two_readings() {
    let before = "cpu  100 0 100 800 0 0 0 10 0 0\ncpu0 1 2 3\n";
    let after = "cpu  150 0 150 890 0 0 0 20 0 0\ncpu0 1 2 3\n";
    let stolen = doctor::steal(before, after);
    assert_eq!((stolen.found.as_str(), stolen.noisy), ("5.0 %", true));
    let later = "cpu  150 0 150 890 0 0 0 10 0 0\n";
    assert_eq!((doctor::steal(before, later).found.as_str(), doctor::steal(before, later).noisy), ("0.0 %", false));
    for (first, second) in [("", ""), (before, before), (after, before), ("cpu  x\n", after)] {
        assert_eq!(doctor::steal(first, second).found, Finding::NOT_READABLE);
    }
}

#[test]
fn the_build_says_what_made_it() {
    let build = build_info::build();
    assert!(build.rustc.starts_with("rustc 1."), "{}", build.rustc);
    assert!(build.target.contains(std::env::consts::ARCH), "{}", build.target);
    assert!(build.opt_level.parse::<u8>().is_ok(), "{}", build.opt_level);
    if let Some(home) = std::env::var("HOME").ok().filter(|home| home.len() > 1) {
        assert!(!build.flags.contains(&home), "{}", build.flags);
    }
}

#[test]
fn the_commit_comes_from_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        let mut git = Command::new("git");
        git.arg("-C").arg(folder.path()).args(identity).args(arguments);
        // Neither the user's settings nor the repository of a hook that runs this.
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
        let status = git.env_remove("GIT_INDEX_FILE").output().unwrap();
        assert!(status.status.success(), "{status:?}");
    };
    assert_eq!(build_info::git(folder.path()), (None, None));
    git(&["init", "--quiet"]);
    fs::write(folder.path().join("a"), "1").unwrap();
    git(&["add", "a"]);
    git(&["commit", "--quiet", "-m", "one"]);
    let (commit, dirty) = build_info::git(folder.path());
    assert_eq!((commit.map(|hash| hash.len()), dirty), (Some(40), Some(false)));
    fs::write(folder.path().join("untracked"), "1").unwrap();
    assert_eq!(build_info::git(folder.path()).1, Some(false));
    fs::write(folder.path().join("a"), "2").unwrap();
    assert_eq!(build_info::git(folder.path()).1, Some(true));
    assert_eq!(build_info::git(&folder.path().join("missing")), (None, None));
}

#[test]
fn a_device_an_engine_reports_is_part_of_the_class() {
    let device = |name: &str| Device { kind: "cuda".into(), name: name.into(), memory_bytes: Some(1 << 37) };
    let plain = Machine { class: "linux-x86_64-2c".into(), ..Machine::default() };
    assert_eq!(plain.clone().with_devices(Vec::new()), plain);
    let one = plain.clone().with_devices(vec![device("NVIDIA H200")]);
    assert_eq!((one.class.as_str(), one.devices.len()), ("linux-x86_64-2c-cuda-nvidia-h200", 1));
    let two = plain.with_devices(vec![device("NVIDIA H200"), device("NVIDIA H200")]);
    assert_eq!(two.class, "linux-x86_64-2c-cuda-nvidia-h200-x2");
}
