//! A worker that begins again: this program in place of itself, with what it was told so far. For set-up that works only once in a
//! process, such as a global logger's or a thread pool's.

use infergate_core::case::Case;

#[cfg(not(unix))]
pub use elsewhere::{Beginning, handed};
#[cfg(unix)]
pub use unix::{Beginning, handed};

/// What one process hands to the next: the request that waits, as it came; all benches; and what each prepared one returned.
pub type Handed = (String, Vec<Case>, Vec<(Case, Vec<u32>)>);

#[cfg(unix)]
mod unix {
    use std::convert::Infallible;
    use std::env;
    use std::ffi::OsString;
    use std::fs::{self, File, OpenOptions};
    use std::io::{self, BufReader, Seek, Write};
    use std::os::fd::{AsRawFd, FromRawFd, RawFd};
    use std::os::unix::fs::OpenOptionsExt;
    use std::os::unix::process::CommandExt;
    use std::path::{Path, PathBuf};
    use std::process::{self, Command};
    use std::time::{SystemTime, UNIX_EPOCH};

    use anyhow::{Context, Result, ensure};

    use super::Handed;
    use infergate_core::process::{standard_streams, this_program};

    /// This process's number, that of the file in which its program left what it knew when it ran before, and that of the pipe for
    /// answers: stdout stays what it became, so that what `main` prints before the benches goes to stderr again.
    const HANDED: &str = "INFERGATE_HANDED";

    /// What this process began with. Set-up can change each of these.
    pub struct Beginning {
        variables: Vec<(OsString, OsString)>,
        folder: PathBuf,
        temporary: PathBuf,
        requests: File,
        answers: File,
    }

    impl Beginning {
        /// Of this process, whose pipes were taken.
        pub fn of(requests: &File, answers: &File) -> Result<Self> {
            let variables = env::vars_os().filter(|(name, _)| name != HANDED).collect();
            let folder = env::current_dir().context("worker: the current folder cannot be found")?;
            let temporary = env::temp_dir();
            Ok(Self { variables, folder, temporary, requests: requests.try_clone()?, answers: answers.try_clone()? })
        }

        /// Starts this program anew in this process. What comes back is why it did not start.
        pub fn again(&self, handed: &Handed) -> anyhow::Error {
            let Err(error) = self.start(handed);
            error.context("worker: set-up next to the benches works only once, and this program cannot be restarted")
        }

        fn start(&self, handed: &Handed) -> Result<Infallible> {
            let file = self.nameless(&serde_json::to_vec(handed)?)?;
            standard_streams::put_back(&self.requests)?;
            outlive(&self.answers)?;
            let called = env::args_os().next().unwrap_or_default();
            // The very file that runs, also if there is another one of its name by now.
            let running = Path::new("/proc/self/exe");
            let mut command = if running.exists() { Command::new(running) } else { Command::new(this_program()?) };
            command.arg0(called).args(env::args_os().skip(1)).current_dir(&self.folder);
            command.env_clear().envs(self.variables.iter().map(|(name, value)| (name, value)));
            let numbers = format!("{}:{}:{}", process::id(), file.as_raw_fd(), self.answers.as_raw_fd());
            Err(command.env(HANDED, numbers).exec().into())
        }

        /// A file that only its number leads to, open for the program that takes this one's place.
        fn nameless(&self, bytes: &[u8]) -> Result<File> {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
            let path = self.temporary.join(format!("infergate-{}-{now}", process::id()));
            let opened = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
            let mut file = opened.with_context(|| format!("{}: cannot be made", path.display()))?;
            fs::remove_file(&path)?;
            file.write_all(bytes)?;
            file.rewind()?;
            outlive(&file)?;
            Ok(file)
        }
    }

    /// Leaves a file open for the program that takes this one's place.
    fn outlive(file: &File) -> Result<()> {
        // SAFETY: sets a flag of an open file of this process.
        ensure!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, 0) } >= 0, "{}", io::Error::last_os_error());
        Ok(())
    }

    /// What the process before this one left, if there was one, and where answers go.
    ///
    /// # Errors
    /// When the variable was set by somebody else.
    pub fn handed() -> Result<Option<(Handed, File)>> {
        let handed = env::var(HANDED).unwrap_or_default();
        let mut numbers = handed.split(':');
        if numbers.next() != Some(process::id().to_string().as_str()) {
            // Nothing, or what a program left that started this one.
            return Ok(None);
        }
        let is_open = |number: &RawFd| {
            // SAFETY: asks whether a descriptor is open.
            *number > libc::STDERR_FILENO && unsafe { libc::fcntl(*number, libc::F_GETFD) } >= 0
        };
        let mut next = || -> Result<File> {
            let number = numbers.next().and_then(|number| number.parse().ok()).filter(is_open);
            let number = number.with_context(|| format!("{HANDED} is no open file; unset it"))?;
            // SAFETY: it is open, was left open for this, and nothing of this process owns it.
            Ok(unsafe { File::from_raw_fd(number) })
        };
        let (file, answers) = (next()?, next()?);
        let handed = serde_json::from_reader(BufReader::new(file));
        let handed = handed.with_context(|| format!("{HANDED} is a file that no worker wrote; unset it"))?;
        // One of its own, which no program gets that a bench starts.
        Ok(Some((handed, answers.try_clone()?)))
    }
}

#[cfg(not(unix))]
mod elsewhere {
    use anyhow::{Result, anyhow};

    use super::Handed;
    use infergate_core::process::standard_streams::{Answers, Requests};

    pub struct Beginning;

    impl Beginning {
        #[allow(clippy::unnecessary_wraps)]
        pub fn of(_: &Requests, _: &Answers) -> Result<Self> {
            Ok(Self)
        }

        pub fn again(&self, _: &Handed) -> anyhow::Error {
            anyhow!("worker: set-up next to the benches works only once; let it work in every pass")
        }
    }

    pub fn handed() -> Result<Option<(Handed, Answers)>> {
        Ok(None)
    }
}
