//! How a worker ended that should not have.

use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::WorkerError;
use crate::process::Group;
use crate::relay::Relay;

/// Why `process`, which ended or closed its end, gives no more answers. It is over then, with its group, and all it wrote into `words`
/// is shown.
pub fn reason(name: &str, process: &mut Group, words: Option<&Relay>, cancelled: &AtomicBool) -> WorkerError {
    // It may have closed its end and live on; waiting for that one would take for ever.
    process.wait_for(Duration::from_secs(2));
    let heard = || words.inspect(|words| words.finish());
    if !process.has_ended() {
        heard();
        return WorkerError::Unusable(format!(
            "{name}: the worker closed its end without ending; answer every request"
        ));
    }
    let ended = process.end();
    let hint = heard().and_then(Relay::hint).map(|hint| format!("; {hint}")).unwrap_or_default();
    let how = match ended {
        Ok(status) if status.success() => {
            return WorkerError::Unusable(format!(
                "{name}: the program ended before it answered (exit status: 0); main has to be criterion_main! or to end with \
                 final_summary(), and nothing in it may end the process"
            ));
        }
        Ok(status) if interrupted(status) && is_set_soon(cancelled) => {
            return WorkerError::Interrupted(format!("{name}: interrupted"));
        }
        Ok(status) => ending(status),
        Err(_) => "unknown status".into(),
    };
    WorkerError::Unusable(format!("{name}: the worker ended early ({how}); its output is above{hint}"))
}

/// Whether the user wants an end. Where all processes of a command are sent the signal, this one may hear of it last.
fn is_set_soon(cancelled: &AtomicBool) -> bool {
    (0..5).any(|look| {
        if look > 0 {
            thread::sleep(Duration::from_millis(100));
        }
        cancelled.load(Ordering::Relaxed)
    })
}

/// How a process ended that should not have, in words: `exit status: 1`.
pub fn ending(status: ExitStatus) -> String {
    if was_killed(status) {
        format!("{status}; if nobody killed it, the system was out of memory")
    } else {
        status.to_string()
    }
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
    status.code() == Some(STATUS_CONTROL_C_EXIT as i32)
}
