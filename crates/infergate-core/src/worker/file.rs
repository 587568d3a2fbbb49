//! The worker's file, which must stay the same from the first process to the last.

use std::borrow::Cow;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use anyhow::anyhow;

use super::WorkerError;
use crate::receipt::Build;
use crate::sha256;

/// The variable by which cargo tells a bench target where its package is.
pub const PACKAGE_FOLDER: &str = "CARGO_MANIFEST_DIR";

/// The variable by which the system finds libraries.
const LIBRARIES: &str = if cfg!(target_os = "macos") { "DYLD_FALLBACK_LIBRARY_PATH" } else { "LD_LIBRARY_PATH" };

/// A bench binary by its bytes. It is measured where it lies, because an engine may find its libraries beside it and a
/// profiler its symbols; so it is looked at again around each start.
#[derive(Debug, Clone)]
pub struct WorkerFile {
    program: Program,
    sha256: String,
    stamp: Stamp,
}

/// A worker to start.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// The bench binary, or another program that `launcher` measures.
    pub path: PathBuf,
    /// The commit it was built from, where that is known.
    pub commit: Option<String>,
    /// Whether the tree it was built from had changes.
    pub dirty: Option<bool>,
    /// What cargo was told of features, as in [`Build`].
    pub features: String,
    /// What measures it, where it does not speak the protocol itself.
    pub launcher: Option<Launcher>,
    /// The folder of the package whose bench target it is, where it was built here.
    pub package: Option<PathBuf>,
    /// Folders of libraries that build scripts of its dependencies made, which it needs to start.
    pub libraries: Vec<PathBuf>,
    /// The programs of its package, which were built with it and which it may start.
    pub programs: Vec<PathBuf>,
    /// Variables that it is started with, as cargo's settings have them.
    pub variables: Vec<(OsString, OsString)>,
    /// What asks each of the servers that run already, which blocks take in turn; the first is `launcher`. Empty where each
    /// block starts a process.
    pub servers: Vec<Launcher>,
    /// What this side puts in front of the names of its benches, where several bench targets are gated together: `parse/`.
    pub bench_prefix: Option<String>,
    /// Set once a process of it did not end soon after its input had ended: no further one is given the time.
    pub lingers: Arc<AtomicBool>,
}

impl Program {
    /// A bench binary of which nothing else is known.
    pub fn new(path: PathBuf) -> Self {
        Self { path, ..Self::default() }
    }

    /// What messages call it. They end up in receipts, so that it is no path.
    pub fn name(&self) -> Cow<'_, str> {
        self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy()
    }

    /// Gives `command` the variables, and lets it find the libraries, as `cargo bench` does.
    fn furnish(&self, command: &mut Command) {
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if self.libraries.is_empty() {
            return;
        }
        let set = self.variables.iter().find(|(name, _)| name == LIBRARIES).map(|(_, value)| value.clone());
        let given = set.or_else(|| env::var_os(LIBRARIES)).unwrap_or_default();
        let folders = self.libraries.iter().cloned().chain(env::split_paths(&given));
        // A folder with a colon in its name is one that cargo cannot name either.
        if let Ok(folders) = env::join_paths(folders) {
            command.env(LIBRARIES, folders);
        }
    }

    /// Reads the file once, for its SHA-256.
    ///
    /// # Errors
    /// When it cannot be read or is no regular file.
    pub fn open(&self) -> Result<WorkerFile, WorkerError> {
        let (sha256, stamp) = read(&self.path).map_err(|error| {
            let name = self.path.display();
            WorkerError::Unusable(format!(
                "{name}: the worker cannot be started; build it with `cargo bench --no-run` ({error})"
            ))
        })?;
        Ok(WorkerFile { program: self.clone(), sha256, stamp })
    }
}

/// How a program that does not speak the protocol is measured: by another one that does, and starts it.
#[derive(Debug, Clone, PartialEq)]
pub struct Launcher {
    /// The one that speaks.
    pub program: PathBuf,
    /// What it is told.
    pub arguments: Vec<OsString>,
    /// The folder that both run in.
    pub folder: PathBuf,
}

/// What tells without reading it that a file was not written since.
#[derive(Debug, Clone, PartialEq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Device, inode, and the time of the last change of any kind, which nobody can set back.
    #[cfg(unix)]
    unix: (u64, u64, i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt;
        Self {
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            unix: (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl WorkerFile {
    /// Opens a bench binary of which nothing else is known.
    ///
    /// # Errors
    /// As [`Program::open`].
    pub fn open(path: &Path) -> Result<Self, WorkerError> {
        Program::new(path.to_owned()).open()
    }

    /// The same file, measured by `launcher`.
    #[must_use]
    pub fn behind(self, launcher: Launcher) -> Self {
        Self { program: Program { launcher: Some(launcher), ..self.program }, ..self }
    }

    /// The same file, started with one variable more.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: String) -> Self {
        self.program.variables.push((name.into(), value.into()));
        self
    }

    /// What it was opened as.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Fills in what a worker cannot know of its own build.
    pub(super) fn complete(&self, build: &mut Build) {
        (build.commit, build.dirty) = (self.program.commit.clone(), self.program.dirty);
        build.features.clone_from(&self.program.features);
        build.worker_sha256 = Some(self.sha256.clone());
    }

    /// The process to start.
    pub(super) fn command(&self) -> Command {
        let mut command;
        if let Some(Launcher { program, arguments, folder }) = &self.program.launcher {
            command = Command::new(program);
            command.args(arguments).current_dir(folder);
        } else {
            // A bare name would be looked for on the PATH, and another program measured than the one that was read.
            command = Command::new(std::path::absolute(self.path()).unwrap_or_else(|_| self.path().to_owned()));
            // As `cargo bench` starts it: what it reads lies in its package, and each side has its own. A variable that is inherited
            // is of the package that this process was run from.
            match &self.program.package {
                Some(folder) => command.env(PACKAGE_FOLDER, folder).current_dir(folder),
                None => command.env_remove(PACKAGE_FOLDER),
            };
        }
        self.program.furnish(&mut command);
        command
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.program.path
    }

    /// SHA-256 of its bytes, hex.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Refuses a file whose bytes are others than when it was opened.
    ///
    /// # Errors
    /// When it was rebuilt, or cannot be read any more.
    pub fn ensure_unchanged(&self) -> Result<(), WorkerError> {
        if fs::metadata(self.path()).is_ok_and(|metadata| Stamp::of(&metadata) == self.stamp) {
            return Ok(());
        }
        match read(self.path()) {
            Ok((sha256, _)) if sha256 == self.sha256 => Ok(()),
            _ => Err(WorkerError::Failed(anyhow!(
                "{}: was rebuilt or removed while it was measured; measure again and do not build into its folder meanwhile",
                self.program.name()
            ))),
        }
    }
}

fn read(path: &Path) -> io::Result<(String, Stamp)> {
    // Before it is opened: opening a named pipe waits for ever.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let file = File::open(path)?;
    // The stamp is older than the bytes that are hashed, so the next look sees a write in between.
    let stamp = Stamp::of(&file.metadata()?);
    Ok((sha256::of_reader(file)?, stamp))
}
