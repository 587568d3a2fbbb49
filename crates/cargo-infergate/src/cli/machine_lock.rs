//! One measuring command at a time on a machine: two would measure each other, and one that builds disturbs one that measures.

use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use infergate_build::{output, progress};

/// Names another lock file, for the gate's own tests alone.
const OTHER_PLACE: &str = "INFERGATE_LOCK";

/// How often a busy lock is tried.
const POLL: Duration = Duration::from_millis(50);

/// Whether to wait for a turn.
#[derive(clap::Args)]
#[group(skip)]
pub struct Wait {
    /// Measure also while another infergate command measures on this machine
    #[arg(long)]
    no_wait: bool,
}

/// How a file is locked: alone, or shared.
type TryLock = fn(&File) -> Result<(), TryLockError>;

/// Waits until no other command measures on this machine, unless `--no-wait` was given. No other command measures while the file is open.
/// From now on Ctrl-C ends the run, and what was measured is kept.
pub fn take(wait: &Wait) -> Result<Option<File>> {
    take_by(wait, File::try_lock)
}

/// As [`take`]; commands that take it by [`File::try_lock_shared`] measure at the same time.
pub fn take_by(wait: &Wait, lock: TryLock) -> Result<Option<File>> {
    progress::handle_ctrl_c()?;
    if wait.no_wait {
        return Ok(None);
    }
    // The same for everybody on this machine, whatever a user's settings say.
    let place = std::env::var_os(OTHER_PLACE).map_or_else(|| "/tmp/infergate-measures.lock".into(), PathBuf::from);
    // Whoever may read it may lock it.
    let file = match File::open(&place).or_else(|_| File::options().append(true).create(true).open(&place)) {
        Ok(file) => file,
        Err(error) => {
            let text = "is no lock, and whether others measure here is not known";
            output::warn(&format!("{}: {text}", place.display()), &error.into());
            return Ok(None);
        }
    };
    let message = "waiting: another infergate command measures on this machine; --no-wait measures at the same time";
    wait_for(&file, lock, message)?;
    Ok(Some(file))
}

/// Locks `file` until it is closed. If another process has it, prints `message` once and waits. On a file system without locks it counts as
/// free.
pub fn wait_for(file: &File, lock: TryLock, message: &str) -> Result<()> {
    let mut is_announced = false;
    while matches!(lock(file), Err(TryLockError::WouldBlock)) {
        progress::ensure_not_cancelled()?;
        if !is_announced {
            output::status(message);
            is_announced = true;
        }
        thread::sleep(POLL);
    }
    Ok(())
}
