//! Processor time of the thread that runs the client.

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

/// The system's monotonic clock, the same for all processes; `None` where there is no such clock.
#[cfg(unix)]
pub fn shared_clock_ns() -> Option<u64> {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// The system's monotonic clock, the same for all processes; `None` where there is no such clock.
#[cfg(not(unix))]
pub fn shared_clock_ns() -> Option<u64> {
    None
}

#[cfg(unix)]
fn clock_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a value of the type the call fills in.
    let outcome = unsafe { libc::clock_gettime(clock, &mut time) };
    if outcome != 0 {
        return None;
    }
    let (seconds, ns) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

/// Lets this process open as many connections as the system ever allows it: each user needs one. Where that is refused,
/// connections beyond the limit fail, and say so.
pub fn raise_connection_limit() {
    #[cfg(unix)]
    // SAFETY: both calls read or fill a value of this process's own.
    unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}
