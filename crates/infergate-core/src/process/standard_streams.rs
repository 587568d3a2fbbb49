//! The pipes of a worker or a server, kept apart from what the engine prints and reads.

#[cfg(unix)]
use std::fs::File;
use std::io;

/// Where requests come from.
#[cfg(unix)]
pub type Requests = File;
/// Where answers go.
#[cfg(unix)]
pub type Answers = File;
/// Where requests come from.
#[cfg(not(unix))]
pub type Requests = io::Stdin;
/// Where answers go.
#[cfg(not(unix))]
pub type Answers = io::Stdout;

/// Takes the pipes on stdin and stdout. From then on what this process prints, an engine or a C library
/// included, goes to stderr, and what it reads from stdin is empty.
///
/// # Errors
/// When the descriptors cannot be duplicated.
#[cfg(unix)]
pub fn take() -> io::Result<(Requests, Answers)> {
    use std::os::fd::{AsFd, AsRawFd};

    let requests = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let answers = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let nothing = File::open("/dev/null")?;
    point(libc::STDOUT_FILENO, io::stderr().as_raw_fd())?;
    point(libc::STDIN_FILENO, nothing.as_raw_fd())?;
    Ok((requests, answers))
}

/// Puts the pipe of requests back to where a program that takes this one's place finds it.
///
/// # Errors
/// When the descriptor cannot be duplicated.
#[cfg(unix)]
pub fn put_back(requests: &Requests) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    point(libc::STDIN_FILENO, requests.as_raw_fd())
}

#[cfg(unix)]
fn point(descriptor: i32, to: i32) -> io::Result<()> {
    // SAFETY: both are open descriptors of this process, and nothing here owns the one that is replaced.
    if unsafe { libc::dup2(to, descriptor) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Elsewhere the engine must keep stdout free itself.
#[cfg(not(unix))]
pub fn take() -> io::Result<(Requests, Answers)> {
    Ok((io::stdin(), io::stdout()))
}
