//! A process between this command and a program that may start others: all processes that the program started end with it, and all
//! of them end when this command does, even if it is killed.
//!
//! On Linux such a watcher gets a signal when its parent ends, and takes over every process below it that loses its own parent, whatever
//! group or session that one went to. Processes remain only if a program is killed together with its watcher. Elsewhere
//! there is no watcher: a program's starter ends its group, and a killed command leaves its children.

#[cfg(target_os = "linux")]
mod children;
#[cfg(target_os = "linux")]
mod linux;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use infergate_core::process::this_program;
use infergate_core::worker::Launcher;

#[cfg(target_os = "linux")]
pub use children::{end_children, take_over};
#[cfg(target_os = "linux")]
pub use linux::watch;

/// The hidden command that is a watcher.
pub const COMMAND: &str = "__watch";

/// This program with `arguments`, run in `folder` under a watcher.
pub fn launcher(arguments: Vec<OsString>, folder: PathBuf) -> Result<Launcher> {
    let program = this_program()?;
    let mut words: Vec<OsString> = vec![COMMAND.into(), "--".into(), program.clone().into()];
    words.extend(arguments);
    Ok(Launcher { program, arguments: words, folder })
}

/// `command` under a watcher, with its arguments, folder and environment; the caller sets its pipes. Unchanged if this program cannot be
/// found.
pub fn watched(command: Command) -> Command {
    let Ok(program) = this_program() else { return command };
    let mut watched = Command::new(program);
    watched.args([COMMAND, "--"]).arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        watched.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => watched.env(name, value),
            None => watched.env_remove(name),
        };
    }
    watched
}

/// All processes, each with its parent: the second field after the name, which may have spaces and brackets. None without a /proc.
pub fn parents() -> impl Iterator<Item = (u32, u32)> {
    std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|process| {
        let number: u32 = process.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(process.path().join("stat")).ok()?;
        let parent: u32 = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Some((number, parent))
    })
}

/// Removes this command's own variables from a program that it starts.
pub fn remove_own_variables(command: &mut Command) {
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("INFERGATE_")) {
        command.env_remove(name);
    }
}

/// Nothing to take over here.
#[cfg(not(target_os = "linux"))]
pub fn take_over() {}

/// Nothing was taken over here.
#[cfg(not(target_os = "linux"))]
pub fn end_children() -> Result<()> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub fn watch(words: &[OsString]) -> Result<i32> {
    use anyhow::Context as _;
    let (program, arguments) = words.split_first().context("the watcher was given no program")?;
    let status = Command::new(program)
        .args(arguments)
        .status()
        .with_context(|| format!("{}: cannot be started", program.display()))?;
    Ok(status.code().unwrap_or(2))
}
