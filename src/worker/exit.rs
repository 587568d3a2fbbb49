//! How a worker ended that should not have.

use std::process::{Child, ExitStatus};
use std::thread;
use std::time::Duration;

use super::WorkerError;

/// Why `child`, which closed its end, gives no more answers.
pub fn reason(name: &str, child: &mut Child) -> WorkerError {
    // It may have closed its end and live on; waiting for that one would take for ever.
    let ended = |child: &mut Child| !matches!(child.try_wait(), Ok(None));
    for _ in 0..20 {
        if ended(child) {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    if !ended(child) {
        return WorkerError::Died(format!("{name}: the worker closed its end without ending; answer every request"));
    }
    let how = match child.wait() {
        Ok(status) if interrupted(status) => return WorkerError::Interrupted(format!("{name}: interrupted")),
        Ok(status) if was_killed(status) => format!("{status}; if nobody killed it, the system was out of memory"),
        Ok(status) => status.to_string(),
        Err(_) => "unknown status".into(),
    };
    WorkerError::Died(format!("{name}: the worker ended early ({how}); its own words are above"))
}

/// Asks `child` to end, and waits a little: it has a process of its own to end first.
pub fn ask_to_end(child: &mut Child) {
    #[cfg(unix)]
    if let Ok(id) = i32::try_from(child.id()) {
        // SAFETY: takes no pointers; the process was not waited for, so its id is still its own.
        unsafe {
            libc::kill(id, libc::SIGTERM);
        }
        for _ in 0..200 {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
    #[cfg(not(unix))]
    let _ = child;
}

/// Whether a process ended because its user ended it.
#[cfg(unix)]
pub fn interrupted(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal().is_some_and(|signal| [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].contains(&signal))
}

#[cfg(unix)]
fn was_killed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal() == Some(libc::SIGKILL)
}

#[cfg(not(unix))]
fn was_killed(_status: ExitStatus) -> bool {
    false
}

/// Whether a process ended because its user ended it.
#[cfg(not(unix))]
pub fn interrupted(status: ExitStatus) -> bool {
    const STATUS_CONTROL_C_EXIT: u32 = 0xC000_013A;
    status.code() == Some(STATUS_CONTROL_C_EXIT.cast_signed())
}
