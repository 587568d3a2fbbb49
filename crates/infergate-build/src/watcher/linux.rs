//! The watcher itself.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context, Result};
use infergate_core::process::{end_with, parent};

use super::children::{ask_children, end_children, take_over};

/// The signals after which it ends everything.
const ENDING: [i32; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];

/// Runs the program `words` and ends as it ends. All that it started is ended then, or when this process gets a signal to end, or
/// when its parent has ended.
pub fn watch(words: &[OsString]) -> Result<i32> {
    let (program, arguments) = words.split_first().context("the watcher was given no program")?;
    let signals = set_of(&[&ENDING[..], &[libc::SIGCHLD]].concat());
    let mut before = signals;
    // SAFETY: the sets outlive the call. From now on the signals come one by one.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, &raw mut before) };
    take_over();
    // If the parent ended before this call, no signal will come.
    if !end_with(parent(), libc::SIGTERM) {
        return Ok(2);
    }
    let mut command = Command::new(program);
    command.args(arguments);
    let own = std::process::id().cast_signed();
    // SAFETY: between fork and exec it sets the new process's mask and a flag, and asks for a number.
    unsafe {
        command.pre_exec(move || {
            // A server has to receive signals to end.
            libc::sigprocmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
            if end_with(own, libc::SIGKILL) { Ok(()) } else { Err(std::io::ErrorKind::Interrupted.into()) }
        });
    }
    let child = command.spawn().with_context(|| format!("{}: cannot be started", program.display()))?;
    let child = child.id().cast_signed();
    leave_pipes();
    let ended = wait(child, &signals);
    if ended.is_err() {
        ask_children();
    }
    end_children()?;
    Ok(match ended {
        Ok(status) if !libc::WIFSIGNALED(status) => libc::WEXITSTATUS(status),
        Ok(status) => end_by(libc::WTERMSIG(status)),
        Err(signal) => end_by(signal),
    })
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: the set is written before it is used, and outlives the calls.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        set
    }
}

/// Closes the pipes here, so that the caller sees end-of-file.
fn leave_pipes() {
    let Ok(nothing) = File::options().read(true).write(true).open("/dev/null") else { return };
    for descriptor in [libc::STDIN_FILENO, libc::STDOUT_FILENO] {
        // SAFETY: both are open descriptors of this process, and nothing here uses the one that is replaced.
        unsafe {
            libc::dup2(nothing.as_raw_fd(), descriptor);
        }
    }
}

/// Waits until `child` has ended, and gives its status, or until this process gets a signal to end, which is the error. Other children,
/// which were taken over, are forgotten as they end.
fn wait(child: i32, signals: &libc::sigset_t) -> Result<i32, i32> {
    loop {
        // The program may have got the signal, too, and have ended first: the system gives the lowest of pending signals, and SIGCHLD is
        // the highest of these. It is also pending if a child ended before this.
        // SAFETY: the set was filled; no information about the signal is read.
        let signal = unsafe { libc::sigwaitinfo(signals, std::ptr::null_mut()) };
        if ENDING.contains(&signal) {
            return Err(signal);
        }
        loop {
            let mut status = 0;
            // SAFETY: the system writes one integer.
            match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } {
                found if found == child => return Ok(status),
                found if found <= 0 => break,
                _ => {}
            }
        }
    }
}

/// Sends the signal to this process itself, so that its parent sees how the program ended. Gives the exit code, if that does not end it.
fn end_by(signal: i32) -> i32 {
    let set = set_of(&[signal]);
    // SAFETY: flags and numbers alone; the set outlives the call. The program has left its own core file, if any.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        libc::signal(signal, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
    }
    128 + signal
}
