//! A folder of its own for each test, and the command line in it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command as Process, Stdio};

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use infergate_receipts::{PairedReceipt, read};
use tempfile::TempDir;

use crate::support;

/// Quick, and enough for every rule: two cases, two processes.
pub const QUICK: &[&str] = &["--runs=2", "--seconds-per-case=0", "--threads=1", "--cases=prefill/p8,decode/p8"];

/// A repository without anything in it.
pub struct Sandbox {
    folder: TempDir,
    /// Beside it.
    lock: TempDir,
}

impl Sandbox {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join(".git")).expect("the search for infergate.toml ends here");
        Self { folder, lock: tempfile::tempdir().expect("a temporary folder") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What stands for the machine's lock here.
    pub fn lock(&self) -> PathBuf {
        self.lock.path().join("lock")
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("below the sandbox")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    }

    /// The same as a program.
    #[cfg(unix)]
    pub fn program(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;

        let path = self.write(name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its own file");
        path
    }

    /// A PATH on which the programs of that folder come first.
    #[cfg(unix)]
    pub fn on_path(&self, folder: &str) -> String {
        format!("{}:{}", self.path(folder).display(), std::env::var("PATH").expect("a path"))
    }

    /// `cargo infergate ARGUMENTS`.
    pub fn run(&self, arguments: &[&str]) -> Assert {
        ran(self.process(arguments))
    }

    /// `cargo infergate COMMAND` on the fake engine `model`, quickly.
    pub fn measuring(&self, command: &str, model: &str, arguments: &[&str]) -> Process {
        let worker = support::example("fake_engine");
        let mut process = self.process(&[command, "--model", model]);
        process.arg("--worker").arg(worker).args(QUICK).args(arguments);
        process
    }

    pub fn process(&self, arguments: &[&str]) -> Process {
        let mut process = Process::new(env!("CARGO_BIN_EXE_cargo-infergate"));
        process.current_dir(self.folder.path()).arg("infergate").args(arguments);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("INFERGATE_")) {
            process.env_remove(name);
        }
        process.env_remove("CARGO_TARGET_DIR");
        // Engines of these tests take no time.
        process.env("INFERGATE_VIRTUAL_CLOCK", "1");
        // They wait for nobody else on this machine.
        process.env("INFERGATE_LOCK", self.lock());
        process
    }

    /// What a paired gate kept with `--out=paired.json`.
    pub fn receipt(&self) -> PairedReceipt {
        read(&self.path("paired.json")).expect("a receipt")
    }

    /// Every file, by its path below the sandbox.
    pub fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut waiting = vec![self.folder.path().to_owned()];
        while let Some(folder) = waiting.pop() {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    waiting.push(path);
                } else {
                    found.push(self.relative(&path));
                }
            }
        }
        found.sort();
        found
    }

    fn relative(&self, path: &Path) -> String {
        path.strip_prefix(self.folder.path()).expect("below the sandbox").to_string_lossy().replace('\\', "/")
    }
}

/// What became of it.
pub fn ran(process: Process) -> Assert {
    Command::from_std(process).assert()
}

/// What a command said on stdout.
pub fn stdout(assert: &Assert) -> String {
    String::from_utf8_lossy(&assert.get_output().stdout).into_owned()
}

/// What a command said on stderr.
pub fn stderr(assert: &Assert) -> String {
    String::from_utf8_lossy(&assert.get_output().stderr).into_owned()
}

/// The last line of a report: the decision.
pub fn decision(assert: &Assert) -> String {
    stdout(assert).lines().last().unwrap_or_default().to_owned()
}

/// The one line of an error, which must be the last that was said and have nothing on stdout beside it.
#[track_caller]
pub fn error(assert: Assert) -> String {
    let assert = assert.code(2).stdout("");
    let said = stderr(&assert);
    let line = said.lines().last().unwrap_or_default().to_owned();
    assert!(line.starts_with("error: "), "{said}");
    assert_eq!(said.matches("error: ").count(), 1, "{said}");
    assert!(!line.ends_with('.') && !line.contains('\u{1b}'), "{line}");
    line
}

/// Starts a command and reads what it says until it says `moment`.
pub fn until(mut command: Process, moment: &str) -> (Child, BufReader<ChildStderr>, String) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("starts");
    let mut words = BufReader::new(child.stderr.take().expect("piped"));
    let mut said = String::new();
    while !said.contains(moment) {
        assert!(words.read_line(&mut said).expect("readable") > 0, "it ended early: {said}");
    }
    (child, words, said)
}
