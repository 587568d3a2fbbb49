//! The pages of memory that a program's file lies in.
//!
//! The system keeps a file in the same pages for as long as it is in use, and some pages are slower than others: their addresses fall
//! together in caches, or the host keeps them in smaller pieces. Two files of the same bytes ran up to 5 % apart, in every process. So base
//! and head take turns in the same two files, and what these cost cancels.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use infergate_core::worker::{Program, WorkerFile};

/// Two files that both sides are started from, each at a path next to its own builds.
#[derive(Debug, Clone)]
pub struct StartFiles {
    /// The file that base is started from.
    pub base: PathBuf,
    /// The file that head is started from.
    pub head: PathBuf,
}

impl StartFiles {
    /// `base` and `head` as they are started, each in the file that the other had the last time.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn next(&self, base: &WorkerFile, head: &WorkerFile) -> io::Result<(WorkerFile, WorkerFile)> {
        let between = self.head.with_extension("before");
        // The first time there is nothing to exchange; on two file systems it cannot be done.
        if self.head.exists() && fs::rename(&self.base, &between).is_ok() {
            fs::rename(&self.head, &self.base)?;
            fs::rename(&between, &self.head)?;
        }
        Ok((put(base, &self.base)?, put(head, &self.head)?))
    }
}

fn put(file: &WorkerFile, to: &Path) -> io::Result<WorkerFile> {
    let bytes = fs::read(file.path())?;
    // A file that a leftover process still runs is replaced.
    write(to, &bytes).or_else(|_| fs::remove_file(to).and_then(|()| write(to, &bytes)))?;
    fs::set_permissions(to, fs::metadata(file.path())?.permissions())?;
    Program { path: to.to_owned(), ..file.program().clone() }.open().map_err(io::Error::other)
}

/// Writes in place: a new file would get other pages.
fn write(to: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(to)?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn each_side_keeps_its_path_and_they_take_turns_in_two_files() {
        let place = tempfile::tempdir().expect("a folder");
        let path = |name: &str| place.path().join(name);
        fs::write(path("older"), "the older program").expect("a file");
        fs::write(path("newer"), "the newer one").expect("a file");
        let open = |name: &str| WorkerFile::open(&path(name)).expect("a program");
        let start_files = StartFiles { base: path("base"), head: path("head") };
        let next = || {
            let (base, head) = start_files.next(&open("older"), &open("newer")).expect("files");
            assert_eq!([base.sha256(), head.sha256()], [open("older").sha256(), open("newer").sha256()]);
            assert_eq!([base.path(), head.path()], [path("base"), path("head")]);
            [base, head].map(|file| fs::metadata(file.path()).expect("a file").ino())
        };
        let [first, second] = next();
        assert_eq!([next(), next()], [[second, first], [first, second]]);
    }
}
