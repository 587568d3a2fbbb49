//! What has to be true before a process starts, and that it ends.

mod group;
pub mod stack;
pub mod standard_streams;

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

pub use group::Group;

/// Set in a process that was started again, so that it never starts itself a third time.
const STARTED_AGAIN: &str = "INFERGATE_STARTED_AGAIN";

/// What both processes of a pair begin their random numbers with.
pub const RANDOM_SEED: &str = "INFERGATE_RANDOM_SEED";

/// Starts this program again with `wanted` added to its environment, unless all of it is set already. A variable that is
/// set, to whatever value, is the user's choice and stays.
///
/// Thread pools and the allocator read their variables once, at start; setting them in a running process is too late.
///
/// # Errors
/// When the program cannot be started again.
pub fn ensure_environment(wanted: &[(String, String)]) -> Result<()> {
    let missing: Vec<_> = wanted.iter().filter(|(name, _)| env::var_os(name).is_none()).collect();
    if missing.is_empty() || env::var_os(STARTED_AGAIN).is_some() {
        return Ok(());
    }
    let program = this_program()?;
    let mut command = Command::new(program);
    command.args(env::args_os().skip(1)).env(STARTED_AGAIN, "1");
    command.envs(missing.into_iter().map(|(name, value)| (name, value)));
    replace(command).context("cannot start this program again with its thread settings")
}

/// Where this program is.
///
/// # Errors
/// When the system does not say.
pub fn this_program() -> Result<PathBuf> {
    env::current_exe().context("cannot find this program to start it again")
}

/// From now on this process is ended with the one that started it, however that one ends: a worker that hangs would outlive a
/// killed gate. Linux only; elsewhere a worker ends at the end of its input, as one does whose parent was gone before this call.
pub fn end_with_parent() {
    #[cfg(target_os = "linux")]
    if !end_with(parent(), libc::SIGKILL) {
        std::process::exit(2);
    }
}

/// From now on a write beyond the limit on the length of files (`ulimit -f`) is an error, as on a full disk; by itself the system
/// would end this process. Programs that it starts are as ever.
pub fn outlive_file_limits() {
    #[cfg(unix)]
    {
        extern "C" fn nothing(_signal: libc::c_int) {}
        let handler: extern "C" fn(libc::c_int) = nothing;
        // SAFETY: a function that does nothing may run at any moment. A signal that were ignored would be so in other programs, too.
        unsafe {
            libc::signal(libc::SIGXFSZ, handler as *const () as libc::sighandler_t);
        }
    }
}

/// The process that started this one, or that took it over.
#[cfg(target_os = "linux")]
pub fn parent() -> i32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::getppid() }
}

/// Lets the system send `signal` to this process when `parent` ends; false where that one has ended already, of which nobody would
/// tell. It may be called between fork and exec.
#[cfg(target_os = "linux")]
#[must_use]
pub fn end_with(parent: i32, signal: i32) -> bool {
    // SAFETY: only sets a flag of this process; a kernel that does not know it returns an error, which changes nothing.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, signal);
    }
    self::parent() == parent
}

/// Processor time of all threads of this process since it began, nanoseconds; `None` where the system does not say.
#[cfg(unix)]
pub fn processor_ns() -> Option<u64> {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// What a clock of the system says, nanoseconds; `None` where it does not say.
#[cfg(unix)]
pub fn clock_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a value of the type the call fills in.
    let outcome = unsafe { libc::clock_gettime(clock, &mut time) };
    let (seconds, ns) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(ns).filter(|_| outcome == 0)
}

/// Processor time of all threads of this process since it began, nanoseconds; `None` where the system does not say.
#[cfg(not(unix))]
pub fn processor_ns() -> Option<u64> {
    None
}

#[cfg(unix)]
fn replace(mut command: Command) -> Result<()> {
    use std::os::unix::process::CommandExt;
    Err(command.exec().into())
}

#[cfg(not(unix))]
fn replace(mut command: Command) -> Result<()> {
    let status = command.status()?;
    std::process::exit(status.code().unwrap_or(2))
}
