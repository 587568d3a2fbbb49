//! Runs every transcript of tests/transcripts. README.md says how to read, write and refresh them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use libtest_mimic::{Arguments, Failed, Trial};
use regex::Regex;
use snapbox::{Assert, Data, Redactions};
use tempfile::TempDir;

#[path = "../../../tests/support/mod.rs"]
mod support;

/// What differs between two runs or two machines, and the placeholder that stands for it.
const PLACEHOLDERS: &[(&str, &str)] = &[
    ("[COMMIT]", r"\b[0-9a-f]{40}\b"),
    ("[CLASS]", r"\b(linux|macos)-(x86_64|aarch64)-[a-z0-9-]+"),
    ("[HASH]", r"\binference-(?<redacted>[0-9a-f]{16})\b"),
    ("[TIME]", r"\btarget\(s\) in (?<redacted>\S+)"),
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let entries = fs::read_dir(folder()).expect("the transcripts");
    let mut transcripts: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    transcripts.retain(|path| path.extension().is_some_and(|ending| ending == "md") && !path.ends_with("README.md"));
    transcripts.sort();
    // Shells, paths and signals are those of Unix.
    let trials = transcripts.into_iter().map(|path| {
        let name = path.file_stem().expect("a file").to_string_lossy().into_owned();
        Trial::test(name, move || check(&path)).with_ignored_flag(cfg!(not(unix)))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/transcripts")
}

/// Runs the commands of a transcript and compares what they print with what it has.
fn check(transcript: &Path) -> Result<(), Failed> {
    let place = Place::new()?;
    let played = play(&fs::read_to_string(transcript)?, &place)?;
    let mut redactions = Redactions::new();
    redactions.insert("[DIR]", place.folder.path().canonicalize()?.to_string_lossy().into_owned())?;
    let caches = format!("{}/infergate/[^/ ]+", regex::escape(&place.bin.path().join("cache").to_string_lossy()));
    redactions.insert("[CACHE]", Regex::new(&caches)?)?;
    for (placeholder, pattern) in PLACEHOLDERS {
        redactions.insert(placeholder, Regex::new(pattern).expect("a pattern"))?;
    }
    let assert = Assert::new().action_env("TRANSCRIPTS").redact_with(redactions).normalize_paths(false);
    assert.try_eq(Some(&"now"), played.into(), Data::read_from(transcript, None))?;
    Ok(())
}

/// The transcript with what its commands print now.
fn play(transcript: &str, place: &Place) -> Result<String, Failed> {
    let mut played = String::new();
    let mut lines = transcript.lines();
    while let Some(line) = lines.next() {
        writeln!(played, "{line}")?;
        if line == "<!-- setup" {
            let script: Vec<&str> = lines.by_ref().take_while(|line| *line != "-->").collect();
            let script = script.join("\n");
            let done = place.run(&format!("set -e\n{script}"))?;
            if !done.status.success() {
                return Err(format!("the setup failed: {}", String::from_utf8_lossy(&done.stdout)).into());
            }
            writeln!(played, "{script}\n-->")?;
        } else if let Some(fence) = line.strip_suffix("console").filter(|fence| fence.starts_with("```")) {
            let block = lines.by_ref().take_while(|line| *line != fence);
            for command in block.filter(|line| line.starts_with("$ ")) {
                let done = place.run(&command[2..])?;
                write!(played, "{command}\n{}", String::from_utf8_lossy(&done.stdout))?;
                match done.status.code() {
                    Some(0) => {}
                    Some(code) => writeln!(played, "exit code: {code}")?,
                    None => writeln!(played, "{}", done.status)?,
                }
            }
            writeln!(played, "{fence}")?;
        }
    }
    Ok(played)
}

/// A folder for the files of one transcript, and the programs that it starts.
struct Place {
    folder: TempDir,
    /// `cargo-infergate`, and the lock that its commands take.
    bin: TempDir,
}

impl Place {
    fn new() -> Result<Self, Failed> {
        let place = Self { folder: tempfile::tempdir()?, bin: tempfile::tempdir()? };
        let command = place.bin.path().join("cargo-infergate");
        #[cfg(unix)]
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_cargo-infergate"), command)?;
        #[cfg(not(unix))]
        fs::copy(env!("CARGO_BIN_EXE_cargo-infergate"), command)?;
        // The search for infergate.toml ends here.
        fs::create_dir(place.folder.path().join(".git"))?;
        Ok(place)
    }

    /// Runs `script`; stderr comes with stdout, in the order in which they are written.
    fn run(&self, script: &str) -> Result<Output, Failed> {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec 2>&1\n{script}")]).current_dir(self.folder.path());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            let is_set_by_cargo = name.starts_with("CARGO") && name != "CARGO_HOME";
            if is_set_by_cargo || name.starts_with("INFERGATE_") || name.starts_with("GIT_") {
                shell.env_remove(&*name);
            }
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [self.bin.path().to_owned()].into_iter().chain(std::env::split_paths(&path));
        shell.env("PATH", std::env::join_paths(folders)?);
        // Scripted engines take no real time, and wait for nobody else on this machine.
        shell.env("INFERGATE_VIRTUAL_CLOCK", "1").env("INFERGATE_LOCK", self.bin.path().join("lock"));
        shell.env("CARGO_NET_OFFLINE", "true").env("XDG_CACHE_HOME", self.bin.path().join("cache"));
        for program in ["fake_engine", "leaky_engine", "criterion_benches", "serve", "fake_load"] {
            shell.env(program.to_uppercase(), support::example(program));
        }
        shell.env("FILES", folder().join("files")).env("GOLDEN", folder().join("../golden"));
        shell.env(
            "WORKER_WITHOUT_DEPENDENCIES",
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/worker_without_dependencies.rs"),
        );
        // Fixed dates make fixed commits.
        shell.env("GIT_CONFIG_GLOBAL", folder().join("files/gitconfig"));
        shell.env("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z").env("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z");
        Ok(shell.output()?)
    }
}
