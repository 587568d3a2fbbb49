//! Ends the processes below this one, even if those that started them have ended.

use std::fs::{read_dir, read_to_string};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::parents;

/// How long signalled processes may take to end. A process that the system itself holds up, in a broken disk say, ends later.
const LIMIT: Duration = Duration::from_secs(5);

/// From now on a process below this one that loses its parent becomes this one's child.
pub fn take_over() {
    // SAFETY: only sets a flag of this process; a kernel that does not know it returns an error, which changes nothing.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }
}

/// Sends SIGTERM to every child of this process, and waits a while. A server that is killed leaves processes that run elsewhere: a
/// container, say.
pub fn ask_children() {
    drop(signal_children(libc::SIGTERM, Duration::from_millis(20)));
}

/// Kills every child of this process, until there is none. No other thread of this process may wait for a child meanwhile: a signal must go
/// only to a child that nobody waited for.
pub fn end_children() -> Result<()> {
    let left = signal_children(libc::SIGKILL, Duration::from_millis(1));
    ensure!(left.is_empty(), "{} processes that were left behind do not end, the first is {}", left.len(), left[0]);
    Ok(())
}

/// Signals every child of this process, and those that become its children by that. Gives those that do not end. It checks again after
/// `pause`, and at once while there are new ones: each may start the next and end.
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
        // An id of an earlier round may be a new child's by now.
        signalled = children;
        if is_quiet {
            thread::sleep(pause);
        }
    }
    Vec::new()
}

/// Forgets children that have ended, and gives whether there are others.
fn has_children() -> bool {
    loop {
        // SAFETY: the status is not read.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } {
            0 => return true,
            -1 => return false,
            _ => {}
        }
    }
}

/// The children that the kernel lists for each thread: to look at all processes takes longer than a process needs to start the next one and
/// end.
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
