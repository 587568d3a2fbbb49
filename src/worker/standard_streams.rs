//! The worker's pipes, kept apart from what the engine prints and reads.

use std::fs::File;
use std::io;

/// Takes the pipes on stdin and stdout for the protocol. From then on what this process prints, an engine or a C library
/// included, goes to stderr, and what it reads from stdin is empty.
///
/// # Errors
/// When the descriptors cannot be duplicated.
#[cfg(unix)]
pub fn take() -> io::Result<(File, File)> {
    use std::os::fd::{AsFd, AsRawFd};

    let requests = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let answers = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let nothing = File::open("/dev/null")?;
    point(libc::STDOUT_FILENO, io::stderr().as_raw_fd())?;
    point(libc::STDIN_FILENO, nothing.as_raw_fd())?;
    Ok((requests, answers))
}

#[cfg(unix)]
fn point(descriptor: i32, to: i32) -> io::Result<()> {
    // SAFETY: both are open descriptors of this process, and nothing here owns the one that is replaced.
    if unsafe { libc::dup2(to, descriptor) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Elsewhere the engine must keep stdout free itself.
#[cfg(not(unix))]
pub fn take() -> io::Result<(io::Stdin, io::Stdout)> {
    Ok((io::stdin(), io::stdout()))
}
