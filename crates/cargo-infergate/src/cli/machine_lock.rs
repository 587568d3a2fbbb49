//! One measuring command at a time on a machine: two would measure each other, and one that builds disturbs one that measures.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use infergate_core::worker::WorkerError;

use super::{output, progress};

/// Where the lock lies: the same place for everybody on this machine, whatever a user's settings say.
#[cfg(unix)]
const PLACE: &str = "/tmp/infergate-measures.lock";

/// Names another place, for the gate's own tests alone.
const OTHER_PLACE: &str = "INFERGATE_LOCK";

const LOOK: Duration = Duration::from_millis(50);

/// Whether to wait for a turn.
#[derive(clap::Args)]
#[group(skip)]
pub struct Wait {
    /// Measure also while another infergate command measures on this machine
    #[arg(long)]
    no_wait: bool,
}

/// While this lives no other command measures here, but for those that may measure beside it.
pub struct MachineLock(Option<File>);

/// Waits until no other command measures on this machine, unless `--no-wait` was given.
pub fn take(wait: &Wait) -> Result<MachineLock> {
    lock(wait, Kind::Alone)
}

/// As [`take`], for the parts of one load, which measure side by side.
pub fn share(wait: &Wait) -> Result<MachineLock> {
    lock(wait, Kind::Shared)
}

/// Who else may have a lock.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Nobody.
    Alone,
    /// Others that share it.
    Shared,
}

/// Locks `file` until it is closed. Where another process has it, says `message` once and waits. A file system without locks counts as free.
pub fn wait_for(file: &File, kind: Kind, message: &str) -> Result<()> {
    let mut is_announced = false;
    loop {
        let locked = match kind {
            Kind::Alone => file.try_lock(),
            Kind::Shared => file.try_lock_shared(),
        };
        if !matches!(locked, Err(TryLockError::WouldBlock)) {
            return Ok(());
        }
        if progress::is_cancelled() {
            return Err(WorkerError::by_user().into());
        }
        if !is_announced {
            output::say(message);
            is_announced = true;
        }
        thread::sleep(LOOK);
    }
}

fn lock(wait: &Wait, kind: Kind) -> Result<MachineLock> {
    // Whoever ended the run before anything was measured is not to wait for it.
    if progress::is_cancelled() {
        return Err(WorkerError::by_user().into());
    }
    if wait.no_wait {
        return Ok(MachineLock(None));
    }
    let place = place();
    let file = match open(&place) {
        Ok(file) => file,
        Err(error) => {
            let text = "is no lock, and whether others measure here is not known";
            output::say_why(&format!("{}: {text}", place.display()), &error.into());
            return Ok(MachineLock(None));
        }
    };
    let message = "waiting: another infergate command measures on this machine; --no-wait measures at the same time";
    wait_for(&file, kind, message)?;
    Ok(MachineLock(Some(file)))
}

impl Drop for MachineLock {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            let _ = file.unlock();
        }
    }
}

fn place() -> PathBuf {
    #[cfg(unix)]
    let usual = || PathBuf::from(PLACE);
    #[cfg(not(unix))]
    let usual = || std::env::temp_dir().join("infergate-measures.lock");
    std::env::var_os(OTHER_PLACE).map_or_else(usual, PathBuf::from)
}

/// The file, made where it is missing. Whoever may read it may lock it.
fn open(place: &Path) -> std::io::Result<File> {
    match File::options().write(true).create_new(true).open(place) {
        Ok(file) => share_with_all(&file)?,
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        Err(_) => {}
    }
    File::open(place)
}

/// The umask may say that only this user reads it.
#[cfg(unix)]
fn share_with_all(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn share_with_all(_: &File) -> std::io::Result<()> {
    Ok(())
}
