//! Processor time of the thread that runs the client.

use infergate_core::process::clock_ns;

/// Nanoseconds this thread has computed for since it began; `None` where the system does not say.
#[cfg(target_os = "linux")]
pub fn thread_cpu_ns() -> Option<u64> {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Nanoseconds this thread has computed for since it began; `None` where the system does not say.
#[cfg(not(target_os = "linux"))]
pub fn thread_cpu_ns() -> Option<u64> {
    None
}

/// The system's monotonic clock, the same for all processes.
pub fn shared_clock_ns() -> u64 {
    // Every Unix has it.
    clock_ns(libc::CLOCK_MONOTONIC).unwrap_or_default()
}

/// Lets this process open as many connections as the system ever allows it: each user needs one. Where that is refused,
/// connections beyond the limit fail, and say so.
pub fn raise_connection_limit() {
    // SAFETY: both calls read or fill a value of this process's own.
    unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}
