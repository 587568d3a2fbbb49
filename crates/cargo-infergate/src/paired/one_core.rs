//! One core for both sides of a case that computes in one thread.
//!
//! The cores of a shared machine differ for seconds on end, since a neighbour's work can slow one of them by up to half. Two processes that
//! the system keeps on two cores then differ by as much; on one core both are slowed alike. Each block takes the next core.

/// The least share of a process's processor time that its first thread has if it computes alone: others wake up now and then.
const ONE_THREADS_SHARE: f64 = 0.98;
/// The least processor time that this is judged by (ns).
const LEAST_NS: u64 = 10_000;

/// The processor time of two processes so far, nanoseconds: of all threads, also those that ended, and of the first one. `None` if the
/// system does not tell.
pub struct CpuTimes([Option<(u64, u64)>; 2]);

impl CpuTimes {
    pub fn so_far(processes: [u32; 2]) -> Self {
        Self(processes.map(system::cpu_times_ns))
    }

    /// Whether in each process the first thread alone computed since `before`.
    pub fn is_one_thread_since(&self, before: &Self) -> bool {
        self.0.iter().zip(&before.0).all(|(now, before)| {
            let (Some((all, first)), Some((all_before, first_before))) = (now, before) else { return false };
            let (all, first) = (all.saturating_sub(*all_before), first.saturating_sub(*first_before));
            all >= LEAST_NS && first as f64 >= ONE_THREADS_SHARE * all as f64
        })
    }
}

pub use system::OneCore;

#[cfg(target_os = "linux")]
mod system {
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::time::clock_getcpuclockid;
    use nix::unistd::Pid;

    /// Processor time of all threads, and of the first, nanoseconds.
    pub fn cpu_times_ns(process: u32) -> Option<(u64, u64)> {
        let first = std::fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?;
        let all = std::time::Duration::from(clock_getcpuclockid(id(process)).and_then(|clock| clock.now()).ok()?);
        Some((u64::try_from(all.as_nanos()).ok()?, first.split(' ').next()?.parse().ok()?))
    }

    /// While this lives, the first threads of both processes stay on one core, and so do all threads of this process, which hands them
    /// their turns: a thread that wakes up on a neighbouring core would slow them, too.
    pub struct OneCore {
        threads: Vec<u32>,
        all: CpuSet,
    }

    impl OneCore {
        /// Takes the core of block `nth`, in turn of those that this thread may use. `None` if there is only one, or a process chose its
        /// cores.
        pub fn take(processes: [u32; 2], nth: usize) -> Option<Self> {
            let all = sched_getaffinity(Pid::from_raw(0)).ok()?;
            let cores: Vec<usize> = (0..CpuSet::count()).filter(|core| all.is_set(*core) == Ok(true)).collect();
            let chose_none = |thread: &u32| sched_getaffinity(id(*thread)) == Ok(all);
            if cores.len() < 2 || !processes.iter().all(chose_none) {
                return None;
            }
            let own = std::fs::read_dir("/proc/self/task")
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|thread| thread.file_name().to_str()?.parse().ok());
            let shared = Self { threads: processes.into_iter().chain(own).filter(chose_none).collect(), all };
            let mut one = CpuSet::new();
            one.set(cores[nth % cores.len()]).ok()?;
            shared.stay_on(&one);
            Some(shared)
        }

        /// Moves the threads to these cores. A thread that has ended is ignored: the next request to its worker fails.
        fn stay_on(&self, cores: &CpuSet) {
            for thread in &self.threads {
                let _ = sched_setaffinity(id(*thread), cores);
            }
        }
    }

    impl Drop for OneCore {
        fn drop(&mut self) {
            self.stay_on(&self.all);
        }
    }

    /// A process is its first thread.
    fn id(thread: u32) -> Pid {
        Pid::from_raw(thread.cast_signed())
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub fn cpu_times_ns(_process: u32) -> Option<(u64, u64)> {
        None
    }

    pub struct OneCore;

    impl OneCore {
        pub fn take(_processes: [u32; 2], _nth: usize) -> Option<Self> {
            None
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Child, Command, id};

    use nix::sched::{CpuSet, sched_getaffinity};
    use nix::unistd::Pid;

    use super::{CpuTimes, LEAST_NS, OneCore};

    /// One thread that computes until it is dropped.
    struct Busy(Child);

    impl Busy {
        fn start() -> Self {
            Self(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell"))
        }

        /// Lets it rest, as a worker does between requests: only then does the system know all of a thread's time.
        fn stop(&self) {
            let id = self.0.id().to_string();
            assert!(Command::new("sh").args(["-c", "kill -STOP $0", &id]).status().expect("a shell").success());
            while !std::fs::read_to_string(format!("/proc/{id}/stat")).expect("it lives").contains(") T ") {}
        }
    }

    impl Drop for Busy {
        fn drop(&mut self) {
            drop(self.0.kill());
            drop(self.0.wait());
        }
    }

    /// The processor times of both processes, once each spent enough to be judged.
    fn after_some_work(processes: [u32; 2], before: &CpuTimes) -> CpuTimes {
        loop {
            let now = CpuTimes::so_far(processes);
            let all = |times: &CpuTimes, at: usize| times.0[at].expect("Linux says it").0;
            if (0..2).all(|at| all(&now, at) > all(before, at) + 100 * LEAST_NS) {
                return now;
            }
        }
    }

    #[test]
    fn a_process_whose_first_thread_computes_alone_is_told_from_one_that_has_others() {
        let (one, other) = (Busy::start(), Busy::start());
        let (alone, own) = ([one.0.id(), other.0.id()], [id(); 2]);
        let (alone_before, own_before) = (CpuTimes::so_far(alone), CpuTimes::so_far(own));
        after_some_work(alone, &alone_before);
        [&one, &other].into_iter().for_each(Busy::stop);
        assert!(CpuTimes::so_far(alone).is_one_thread_since(&alone_before));
        // It computes while it looks.
        let second = std::thread::scope(|scope| scope.spawn(|| after_some_work(own, &own_before)).join());
        assert!(!second.expect("it looks on").is_one_thread_since(&own_before));
        assert!(!alone_before.is_one_thread_since(&alone_before), "nothing was computed");
    }

    #[test]
    fn both_share_a_core_until_it_is_given_back_and_the_next_block_takes_another() {
        let (one, other) = (Busy::start(), Busy::start());
        let cores = |process: &Busy| -> Vec<usize> {
            let set = sched_getaffinity(Pid::from_raw(process.0.id().cast_signed())).expect("its cores");
            (0..CpuSet::count()).filter(|core| set.is_set(*core) == Ok(true)).collect()
        };
        let all = cores(&one);
        for block in 0..2 * all.len() {
            let shared = OneCore::take([one.0.id(), other.0.id()], block);
            let expected = if all.len() > 1 { vec![all[block % all.len()]] } else { all.clone() };
            assert_eq!([cores(&one), cores(&other)], [expected.clone(), expected]);
            drop(shared);
            assert_eq!([cores(&one), cores(&other)], [all.clone(), all.clone()]);
        }
    }
}
