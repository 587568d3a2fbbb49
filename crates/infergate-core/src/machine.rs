//! The machine: which one it is, as far as that decides how fast it can be.

pub mod cpu;
pub mod system;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::thread;

use crate::engine::Device;
use crate::receipt::Machine;
use cpu::Cpu;

/// Whether a connection to `host` stays on this machine: what is sent there is read by nobody on the way.
pub fn is_this_machine(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase();
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback() || address.is_unspecified(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Looks at the machine this process runs on. Host name, clock speed and kernel build stay out of it.
pub fn detect() -> Machine {
    // Linux tells more in `/proc/cpuinfo` than the brand; elsewhere the brand is all there is.
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu::parse_cpuinfo(&text).unwrap_or_else(|| {
        let (vendor, brand) = system::brand().unwrap_or_default();
        Cpu::from_brand(&vendor, &brand)
    });
    let logical_cores = thread::available_parallelism().map_or(1, usize::from);
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    Machine {
        class: cpu::class(os, arch, &cpu, logical_cores),
        os: os.to_owned(),
        arch: arch.to_owned(),
        cpu_model: cpu.model_with_numbers(),
        logical_cores,
        memory_bytes: system::installed_memory_bytes(),
        libc: libc_version(),
        instruction_set: instruction_set().map(str::to_owned),
        devices: Vec::new(),
    }
}

impl Machine {
    /// This machine as an engine uses it that computes on `devices`: each becomes a word of the class, as `cuda-nvidia-h200`,
    /// and several of one kind a number behind it, `-x8`. Without devices nothing changes.
    #[must_use]
    pub fn with_devices(mut self, devices: Vec<Device>) -> Self {
        let mut counted: BTreeMap<String, usize> = BTreeMap::new();
        for device in &devices {
            *counted.entry(cpu::word(&format!("{} {}", device.kind, device.name))).or_default() += 1;
        }
        for (word, count) in counted {
            self.class += &format!("-{word}");
            if count > 1 {
                self.class += &format!("-x{count}");
            }
        }
        self.devices.extend(devices);
        self
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn libc_version() -> Option<String> {
    // SAFETY: glibc returns a pointer to a constant, zero-terminated string.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    Some(format!("glibc {}", version.to_string_lossy()))
}

#[cfg(all(target_os = "linux", target_env = "musl"))]
fn libc_version() -> Option<String> {
    // musl is linked in and does not say its version.
    Some("musl".to_owned())
}

#[cfg(not(target_os = "linux"))]
fn libc_version() -> Option<String> {
    // The C library comes with the operating system there, and so does its version.
    sysinfo::System::os_version().map(|version| format!("{} {version}", std::env::consts::OS))
}

/// The widest vector extension this processor has and the operating system lets us use.
#[cfg(target_arch = "x86_64")]
fn instruction_set() -> Option<&'static str> {
    if std::arch::is_x86_feature_detected!("avx512f") {
        Some("avx512")
    } else if std::arch::is_x86_feature_detected!("avx2") {
        Some("avx2")
    } else if std::arch::is_x86_feature_detected!("avx") {
        Some("avx")
    } else {
        Some("sse2")
    }
}

/// The widest vector extension this processor has and the operating system lets us use.
#[cfg(target_arch = "aarch64")]
fn instruction_set() -> Option<&'static str> {
    if std::arch::is_aarch64_feature_detected!("sve2") {
        Some("sve2")
    } else if std::arch::is_aarch64_feature_detected!("sve") {
        Some("sve")
    } else {
        Some("neon")
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn instruction_set() -> Option<&'static str> {
    None
}
