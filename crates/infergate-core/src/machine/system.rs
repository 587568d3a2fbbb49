//! What the operating system says where no file does: Linux has `/proc` for all of it, elsewhere sysinfo is asked.

#[cfg(target_os = "linux")]
pub use linux::{brand, installed_memory_bytes, resident_set_bytes};
#[cfg(not(target_os = "linux"))]
pub use others::{brand, installed_memory_bytes, resident_set_bytes};

/// `Name:   123 kB` in a file of /proc, as bytes.
pub fn kib_field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    use super::kib_field;

    /// Vendor and brand of the processor: `/proc/cpuinfo` has them, and nothing else knows more.
    pub fn brand() -> Option<(String, String)> {
        None
    }

    /// Installed memory, bytes.
    pub fn installed_memory_bytes() -> Option<u64> {
        kib_field(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")
    }

    /// This process's resident set, bytes: `/proc/self` has it, and nothing else knows more.
    pub fn resident_set_bytes() -> Option<u64> {
        None
    }
}

#[cfg(not(target_os = "linux"))]
mod others {
    use sysinfo::{CpuRefreshKind, Process, ProcessRefreshKind, ProcessesToUpdate, System};

    /// Vendor and brand of the processor.
    pub fn brand() -> Option<(String, String)> {
        let mut system = System::new();
        system.refresh_cpu_list(CpuRefreshKind::nothing());
        system.cpus().first().map(|cpu| (cpu.vendor_id().to_owned(), cpu.brand().to_owned()))
    }

    /// Installed memory, bytes.
    pub fn installed_memory_bytes() -> Option<u64> {
        let mut system = System::new();
        system.refresh_memory();
        Some(system.total_memory())
    }

    /// This process's resident set, without swap, bytes.
    pub fn resident_set_bytes() -> Option<u64> {
        let pid = sysinfo::get_current_pid().ok()?;
        // A new one each time: one that is kept grows with what it has seen.
        let mut system = System::new();
        let only_memory = ProcessRefreshKind::nothing().with_memory();
        system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, only_memory);
        system.process(pid).map(Process::memory).filter(|bytes| *bytes > 0)
    }
}
