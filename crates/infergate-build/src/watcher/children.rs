//! The processes below this one, whatever became of those that started them.

use std::fs::{read_dir, read_to_string};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::parents;

/// So long it may take. A process that the system itself holds up, in a broken disk say, ends later.
const LIMIT: Duration = Duration::from_secs(5);

/// From now on a process below this one that loses its parent becomes this one's child.
pub fn take_over() {
    // SAFETY: only sets a flag of this process; a kernel that does not know it returns an error, which changes nothing.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }
}

/// Asks every child of this process to end, and waits a while. A server that is killed leaves what it started elsewhere: a container, say.
pub fn ask_children() {
    drop(signal_children(libc::SIGTERM, Duration::from_millis(20)));
}

/// Ends every child of this process, until there is none. No other thread of this process may wait for a child meanwhile: a signal goes
/// only to one that nobody waited for.
pub fn end_children() -> Result<()> {
    let left = signal_children(libc::SIGKILL, Duration::from_millis(1));
    ensure!(left.is_empty(), "{} processes that were left behind do not end, the first is {}", left.len(), left[0]);
    Ok(())
}

/// Signals every child of this process, and those that become its children by that. Gives those that do not end; it is looked so often,
/// and at once while there are new ones: each may start the next and end.
fn signal_children(signal: i32, pause: Duration) -> Vec<i32> {
    let begun = Instant::now();
    let mut signalled = Vec::new();
    while has_children() {
        let children = children();
        if begun.elapsed() > LIMIT {
            return children;
        }
        let mut is_quiet = true;
        for child in children.iter().filter(|child| !signalled.contains(*child)) {
            // SAFETY: takes no pointers; it was not waited for, so the number is still its own.
            unsafe {
                libc::kill(*child, signal);
            }
            is_quiet = false;
        }
        // A number of an earlier look may be a new child's by now.
        signalled = children;
        if is_quiet {
            thread::sleep(pause);
        }
    }
    Vec::new()
}

/// Forgets those that have ended, and says whether there are others.
fn has_children() -> bool {
    loop {
        // SAFETY: the status is not asked for.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } {
            0 => return true,
            -1 => return false,
            _ => {}
        }
    }
}

/// Those that the kernel lists for each thread: looking at all processes takes longer than a process needs to start the next one and end.
fn children() -> Vec<i32> {
    let threads = read_dir("/proc/self/task").into_iter().flatten().flatten();
    let listed: Result<String, _> = threads.map(|thread| read_to_string(thread.path().join("children"))).collect();
    if let Ok(listed) = listed {
        return listed.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    }
    // Not every kernel lists them.
    let own = std::process::id();
    parents().filter(|(_, parent)| *parent == own).map(|(number, _)| number.cast_signed()).collect()
}
