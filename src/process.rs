//! Starting this program again with an environment that must be set before it starts.

use std::env;
use std::process::Command;

use anyhow::{Context, Result};

/// Set in the second start, so that there is never a third.
const MARK: &str = "INFERGATE_ENV";

/// Returns if every variable in `wanted` is set; otherwise starts this program again with those that are not.
///
/// A variable that is set already is the user's choice and stays. Thread pools and the allocator read the environment
/// once, before `main` could change it. On unix the process is replaced; elsewhere its exit code is passed on.
///
/// # Errors
/// When the program cannot be started again.
pub fn ensure_environment(wanted: &[(String, String)]) -> Result<()> {
    let missing: Vec<_> = wanted.iter().filter(|(name, _)| env::var_os(name).is_none()).collect();
    if missing.is_empty() || env::var_os(MARK).is_some() {
        return Ok(());
    }
    let program = env::current_exe().context("cannot find this program to start it again with its environment")?;
    let mut command = Command::new(program);
    command.args(env::args_os().skip(1)).envs(missing.into_iter().map(|(k, v)| (k, v))).env(MARK, "1");
    replace(&mut command).context("cannot start this program again with its environment")
}

#[cfg(unix)]
fn replace(command: &mut Command) -> Result<()> {
    use std::os::unix::process::CommandExt;
    Err(command.exec().into())
}

#[cfg(not(unix))]
fn replace(command: &mut Command) -> Result<()> {
    std::process::exit(command.status()?.code().unwrap_or(1));
}
