//! A timer for each thread, also for those that start later.

mod records;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::ptr;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use infergate_core::process::{clock_ns, processor_ns};
use infergate_core::worker::{Profile, ProfileModule};

use records::{Records, SIGNAL};

/// Between two looks for threads that are new.
const LOOK: Duration = Duration::from_millis(10);

/// Processor time between two interruptions, nanoseconds.
const EACH_NS: libc::c_long = 1_000_000;

/// Does `work`, which gives what [`Profile::samples_ns`] holds, and writes to `file` where threads were meanwhile.
///
/// # Errors
/// Those of `work`; a system that cannot, a signal that is used already, a file that cannot be written.
pub fn profile(file: &Path, work: &mut dyn FnMut() -> Result<Vec<Vec<u64>>>) -> Result<Profile> {
    let records = Records::begin()?;
    let timers = Timers::start()?;
    let done = work();
    let processor_ns = timers.stop()?;
    let samples_ns = done?;
    let (timed, untimed) = records.end(file)?;
    Ok(Profile { samples_ns, processor_ns, timed, untimed, modules: modules()? })
}

/// Timers run until this is stopped.
struct Timers {
    /// Gives the processor time of its own.
    thread: JoinHandle<u64>,
    stop: Sender<()>,
    before_ns: u64,
}

impl Timers {
    /// Threads get [`SIGNAL`] as their processor time passes.
    ///
    /// # Errors
    /// A system that gives no timer for this thread.
    fn start() -> Result<Self> {
        let (stop, stopped) = channel();
        let (ready, is_ready) = channel();
        let thread = thread::Builder::new().name("infergate-profiler".into()).spawn(move || {
            let mut made = BTreeMap::new();
            let _ = ready.send(look(&mut made));
            while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                let _ = look(&mut made);
            }
            clock_ns(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default()
        })?;
        let before_ns = processor_ns().unwrap_or_default();
        is_ready.recv().context("worker: the thread that looks at the others ended early")??;
        Ok(Self { thread, stop, before_ns })
    }

    /// Processor time of all threads since the start, without the one that looks for new ones, nanoseconds.
    ///
    /// # Errors
    /// When that thread panicked.
    fn stop(self) -> Result<u64> {
        let passed_ns = processor_ns().unwrap_or_default().saturating_sub(self.before_ns);
        let _ = self.stop.send(());
        let own_ns = self.thread.join().ok().context("worker: the thread that looks at the others ended early")?;
        Ok(passed_ns.saturating_sub(own_ns))
    }
}

/// A timer on one thread's processor time.
struct Timer(libc::timer_t);

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: made by `timer`, and deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Makes a timer for each thread that has none. `None` is kept for one that ended meanwhile, and for the caller.
fn look(made: &mut BTreeMap<libc::pid_t, Option<Timer>>) -> Result<()> {
    // SAFETY: it takes nothing and cannot fail.
    let own = unsafe { libc::syscall(libc::SYS_gettid) } as libc::pid_t;
    let threads = fs::read_dir("/proc/self/task").context("worker: its threads cannot be listed")?;
    let names = threads.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<libc::pid_t>().ok());
    for thread in names {
        made.entry(thread).or_insert_with(|| if thread == own { None } else { timer(thread) });
    }
    ensure!(made.values().any(Option::is_some), "worker: this system gives no timer for a thread's processor time");
    Ok(())
}

fn timer(thread: libc::pid_t) -> Option<Timer> {
    // A thread's clock by its number, as pthread_getcpuclockid makes it: bits 0 and 1 say which clock, bit 2 that it is a thread's.
    let clock = (!thread << 3) | 4 | 2;
    let each = libc::timespec { tv_sec: 0, tv_nsec: EACH_NS };
    let period = libc::itimerspec { it_interval: each, it_value: each };
    // SAFETY: plain data that is filled in before it is handed over.
    unsafe {
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = SIGNAL;
        event.sigev_notify_thread_id = thread;
        let mut timer: libc::timer_t = ptr::null_mut();
        if libc::timer_create(clock, &raw mut event, &raw mut timer) != 0 {
            return None;
        }
        if libc::timer_settime(timer, 0, &raw const period, ptr::null_mut()) != 0 {
            libc::timer_delete(timer);
            return None;
        }
        Some(Timer(timer))
    }
}

/// The files that code was loaded from.
///
/// # Errors
/// When this process's memory cannot be listed.
fn modules() -> Result<Vec<ProfileModule>> {
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
