//! Files that exist to be locked. The folder around one may hold what somebody else put there.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Opens the file at `path`, or makes it where it is missing. What is in it stays.
///
/// # Errors
/// A link, which could lead to any file; a pipe, a folder or a device; what cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    if path.is_symlink() {
        return Err(io::Error::other("it is a link; remove it"));
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        // Where it became a link since, and so that no pipe is waited for.
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no regular file; remove it")) }
}
