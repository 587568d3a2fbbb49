//! A timer for each thread, also for those that start later; or one for all of them together, where threads end too soon to get one.

use std::collections::BTreeMap;
use std::fs;
use std::os::raw::c_int;
use std::ptr;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use infergate_core::worker::ProfileModule;

/// Between two looks for threads that are new.
const LOOK: Duration = Duration::from_millis(10);

/// Processor time between two interruptions, nanoseconds.
const EACH_NS: libc::c_long = 1_000_000;

/// Whose processor time the timers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Each thread's own: all threads are seen alike.
    EachThread,
    /// All threads' together: the kernel interrupts the one that runs. Of threads that run at one moment some are passed over.
    Process,
}

/// Timers run until this is stopped.
pub struct Timers {
    thread: Option<JoinHandle<Seen>>,
    stop: Sender<()>,
    before_ns: u64,
    of: Of,
}

/// Processor time, nanoseconds.
pub struct Spent {
    /// Of all threads, without the one that looks for new ones.
    pub all_ns: u64,
    /// Of those that had a timer of their own.
    pub timed_ns: u64,
}

struct Seen {
    timed_ns: u64,
    own_ns: u64,
}

impl Timers {
    /// Threads get `signal` as their processor time passes.
    ///
    /// # Errors
    /// A system that gives no timer for this thread.
    pub fn start(signal: c_int, of: Of) -> Result<Self> {
        let (stop, stopped) = channel();
        let (ready, is_ready) = channel();
        let thread = thread::Builder::new().name("infergate-profiler".into()).spawn(move || {
            // What comes for the whole process is for the threads that work.
            block(signal);
            let mut made = BTreeMap::new();
            let _ = ready.send(look(&mut made, (signal, of)));
            while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                let _ = look(&mut made, (signal, of));
            }
            made.values_mut().flatten().for_each(Timer::read);
            Seen {
                timed_ns: made.values().flatten().map(|timer| timer.last_ns - timer.first_ns).sum(),
                own_ns: processor_ns(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default(),
            }
        })?;
        let before_ns = processor_ns(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or_default();
        is_ready.recv().context("worker: the thread that looks at the others ended early")??;
        if of == Of::Process {
            interrupt_each(EACH_NS / 1_000);
        }
        Ok(Self { thread: Some(thread), stop, before_ns, of })
    }

    /// Processor time since the start.
    ///
    /// # Errors
    /// When the thread that looks for new ones panicked.
    pub fn stop(mut self) -> Result<Spent> {
        if self.of == Of::Process {
            interrupt_each(0);
        }
        let passed_ns = processor_ns(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or_default().saturating_sub(self.before_ns);
        let _ = self.stop.send(());
        let seen = self.thread.take().map(JoinHandle::join);
        let Seen { timed_ns, own_ns } = seen
            .and_then(Result::ok)
            .ok_or_else(|| anyhow!("worker: the thread that looks at the others ended early"))?;
        Ok(Spent { all_ns: passed_ns.saturating_sub(own_ns), timed_ns })
    }
}

/// A timer on one thread's processor time, and what its clock said first and last, nanoseconds.
struct Timer {
    timer: libc::timer_t,
    clock: libc::clockid_t,
    first_ns: u64,
    last_ns: u64,
}

impl Timer {
    /// Keeps what it was where the thread has ended.
    fn read(&mut self) {
        self.last_ns = processor_ns(self.clock).unwrap_or(self.last_ns);
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: made by `timer`, and deleted once.
        unsafe { libc::timer_delete(self.timer) };
    }
}

/// From now on this thread does not get `signal`.
fn block(signal: c_int) {
    // SAFETY: plain data that is filled in before it is handed over.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut());
    }
}

// The crate `libc` has it for Linux from 0.2.179 on, and many have locked an older one.
unsafe extern "C" {
    fn setitimer(which: c_int, new: *const libc::itimerval, old: *mut libc::itimerval) -> c_int;
}

/// `ITIMER_PROF` of setitimer(2).
const PROCESSOR_TIME: c_int = 2;

/// Interrupts the process each so many microseconds of its processor time, or as often as the kernel looks; 0 ends that.
fn interrupt_each(us: libc::c_long) {
    let each = libc::timeval { tv_sec: 0, tv_usec: us };
    let period = libc::itimerval { it_interval: each, it_value: each };
    // SAFETY: plain data.
    unsafe { setitimer(PROCESSOR_TIME, &raw const period, ptr::null_mut()) };
}

/// Makes a timer for each thread that has none. `None` is kept for one that ended meanwhile, and for the caller.
fn look(made: &mut BTreeMap<libc::pid_t, Option<Timer>>, (signal, of): (c_int, Of)) -> Result<()> {
    if of == Of::Process {
        return Ok(());
    }
    made.values_mut().flatten().for_each(Timer::read);
    // SAFETY: it takes nothing and cannot fail.
    let own = unsafe { libc::syscall(libc::SYS_gettid) } as libc::pid_t;
    let threads = fs::read_dir("/proc/self/task").context("worker: its threads cannot be listed")?;
    let names = threads.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<libc::pid_t>().ok());
    for thread in names {
        made.entry(thread).or_insert_with(|| if thread == own { None } else { timer(thread, signal) });
    }
    ensure!(made.values().any(Option::is_some), "worker: this system gives no timer for a thread's processor time");
    Ok(())
}

fn timer(thread: libc::pid_t, signal: c_int) -> Option<Timer> {
    // A thread's clock by its number, as pthread_getcpuclockid makes it: bits 0 and 1 say which clock, bit 2 that it is a thread's.
    let clock = (!thread << 3) | 4 | 2;
    let first_ns = processor_ns(clock)?;
    let each = libc::timespec { tv_sec: 0, tv_nsec: EACH_NS };
    let period = libc::itimerspec { it_interval: each, it_value: each };
    // SAFETY: plain data that is filled in before it is handed over.
    unsafe {
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = thread;
        let mut timer: libc::timer_t = ptr::null_mut();
        if libc::timer_create(clock, &raw mut event, &raw mut timer) != 0 {
            return None;
        }
        if libc::timer_settime(timer, 0, &raw const period, ptr::null_mut()) != 0 {
            libc::timer_delete(timer);
            return None;
        }
        Some(Timer { timer, clock, first_ns, last_ns: first_ns })
    }
}

/// A clock of processor time, nanoseconds; `None` for that of a thread that has ended.
fn processor_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes the time and nothing else.
    let answered = unsafe { libc::clock_gettime(clock, &raw mut now) };
    (answered == 0).then_some(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// The files that code was loaded from.
///
/// # Errors
/// When this process's memory cannot be listed.
pub fn modules() -> Result<Vec<ProfileModule>> {
    let maps = fs::read("/proc/self/maps").context("worker: what code it loaded cannot be read")?;
    Ok(String::from_utf8_lossy(&maps).lines().filter_map(module).collect())
}

/// `55d0-55e0 r-xp 00002000 08:01 42      /path`: one whose code can run.
fn module(line: &str) -> Option<ProfileModule> {
    let path = line.find('/').map(|at| line[at..].to_owned())?;
    let mut words = line.split_whitespace();
    let (range, rights, offset) = (words.next()?, words.next()?, words.next()?);
    let (from, to) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    rights.contains('x').then_some(ProfileModule {
        path,
        from: number(from)?,
        to: number(to)?,
        offset: number(offset)?,
    })
}
