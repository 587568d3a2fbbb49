//! One core for both sides of a case that computes in one thread.
//!
//! The cores of a shared machine differ for seconds on end, since a neighbour beside one of them slows it by up to half. Two processes that
//! the system keeps on two cores then differ by as much; on one core both meet the same. Each block takes the next core.

/// So much of the processor time of a process is its first thread's where only that computes: others wake up now and then.
#[cfg(target_os = "linux")]
const ONE_THREADS_SHARE: f64 = 0.98;

/// Less processor time says nothing.
#[cfg(target_os = "linux")]
const LEAST_NS: u64 = 10_000;

/// The processor time of two processes so far, nanoseconds: of all threads, also those that ended, and of the first one. `None` where the
/// system does not say.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "no system but Linux says it"))]
pub struct Spent([Option<(u64, u64)>; 2]);

impl Spent {
    pub fn so_far(processes: [u32; 2]) -> Self {
        Self(processes.map(system::spent_ns))
    }
}

#[cfg(target_os = "linux")]
impl Spent {
    /// Whether in each process one thread alone computed from `before` on.
    pub fn is_one_thread_since(&self, before: &Self) -> bool {
        self.0.iter().zip(&before.0).all(|(now, before)| {
            let (Some((all, first)), Some((all_before, first_before))) = (now, before) else { return false };
            let (all, first) = (all.saturating_sub(*all_before), first.saturating_sub(*first_before));
            all >= LEAST_NS && first as f64 >= ONE_THREADS_SHARE * all as f64
        })
    }
}

#[cfg(not(target_os = "linux"))]
impl Spent {
    pub fn is_one_thread_since(&self, _before: &Self) -> bool {
        false
    }
}

/// While this lives, the first threads of both processes stay on one core, and so do all of this process, which hands them their turns: what
/// wakes up beside them slows them, too.
pub struct Shared(#[cfg(target_os = "linux")] Vec<(u32, libc::cpu_set_t)>);

#[cfg(target_os = "linux")]
impl Shared {
    /// On the core whose turn it is in block `nth`, of those that this thread may use. Where a process chose cores itself, all keep theirs.
    pub fn core(processes: [u32; 2], nth: usize) -> Self {
        let Some(all) = system::cores(0) else { return Self(Vec::new()) };
        // SAFETY: the macro's function reads a bit of a set that lives here.
        let is_in = |core: &usize| unsafe { libc::CPU_ISSET(*core, &all) };
        let cores: Vec<usize> = (0..libc::CPU_SETSIZE as usize).filter(is_in).collect();
        let chose_none = |process: &u32| system::cores(*process) == Some(all);
        if cores.len() < 2 || !processes.iter().all(chose_none) {
            return Self(Vec::new());
        }
        let threads: Vec<u32> = processes.into_iter().chain(system::own_threads()).filter(chose_none).collect();
        threads.iter().for_each(|thread| system::stay(*thread, &system::only(cores[nth % cores.len()])));
        Self(threads.into_iter().map(|thread| (thread, all)).collect())
    }
}

#[cfg(target_os = "linux")]
impl Drop for Shared {
    fn drop(&mut self) {
        self.0.iter().for_each(|(thread, cores)| system::stay(*thread, cores));
    }
}

#[cfg(not(target_os = "linux"))]
impl Shared {
    pub fn core(_processes: [u32; 2], _nth: usize) -> Self {
        Self()
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::mem::{size_of, zeroed};

    /// Of all threads, and of the first.
    pub fn spent_ns(process: u32) -> Option<(u64, u64)> {
        let first = std::fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?;
        let first_ns = first.split(' ').next()?.parse().ok()?;
        let id = libc::pid_t::try_from(process).ok()?;
        // SAFETY: integers and a structure of integers that live here; the system writes into them and keeps nothing.
        let time = unsafe {
            let (mut clock, mut time): (libc::clockid_t, libc::timespec) = zeroed();
            let is_known = libc::clock_getcpuclockid(id, &raw mut clock) == 0;
            (is_known && libc::clock_gettime(clock, &raw mut time) == 0).then_some(time)
        }?;
        let (whole_s, rest_ns) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
        Some((whole_s * 1_000_000_000 + rest_ns, first_ns))
    }

    /// The threads of this process.
    pub fn own_threads() -> Vec<u32> {
        let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
    }

    /// Those that a thread may run on; a process is its first thread, and 0 the one that asks.
    pub fn cores(thread: u32) -> Option<libc::cpu_set_t> {
        let id = libc::pid_t::try_from(thread).ok()?;
        // SAFETY: a set of bits that lives here; the system writes into it and keeps nothing.
        unsafe {
            let mut cores: libc::cpu_set_t = zeroed();
            (libc::sched_getaffinity(id, size_of::<libc::cpu_set_t>(), &raw mut cores) == 0).then_some(cores)
        }
    }

    pub fn only(core: usize) -> libc::cpu_set_t {
        // SAFETY: zero is a value of a set of bits, and the macro's function writes into it alone.
        unsafe {
            let mut cores: libc::cpu_set_t = zeroed();
            libc::CPU_SET(core, &mut cores);
            cores
        }
    }

    /// One that has ended stays nowhere, and its next answer says so.
    pub fn stay(thread: u32, cores: &libc::cpu_set_t) {
        if let Ok(id) = libc::pid_t::try_from(thread) {
            // SAFETY: the set is read during the call alone.
            unsafe {
                libc::sched_setaffinity(id, size_of::<libc::cpu_set_t>(), cores);
            }
        }
    }
}
