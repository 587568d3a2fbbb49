//! `demo`: a tiny engine in a folder of its own, changed in ways whose verdicts are known. It shows that the gate works on
//! this machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use infergate_build::git::git;
use infergate_build::origin::{origin, own_source};
use infergate_build::run_captured::{self, Echo};
use infergate_build::watcher::remove_own_variables;
use infergate_build::{cargo_settings, checkout, lock_file, output, progress};
use infergate_core::process::this_program;
use infergate_receipts::{Outcome, Verdict, read, write_text};
use infergate_report::model::{Cell, Rows, Tone};
use infergate_report::terminal;
use infergate_report::units::MISSING;

/// One case, so that it takes few minutes.
const CASE: &str = "decode/p128";

/// A change of the engine, and the outcome that the gate has to give.
struct Change {
    name: &'static str,
    /// This text of the engine becomes that one.
    edit: (&'static str, &'static str),
    expected: Outcome,
}

static CHANGES: [Change; 5] = [
    Change { name: "a comment", edit: ("/// Speaks in bytes", "/// Says bytes"), expected: Outcome::Pass },
    Change {
        name: "10 % slower",
        edit: ("const ROUNDS: u64 = 20_000;", "const ROUNDS: u64 = 22_000;"),
        expected: Outcome::Regressed,
    },
    Change {
        name: "a leak of 4 KiB a run",
        edit: (
            "self.context.clear();",
            "self.context.clear();\n        std::mem::forget(black_box(vec![1_u8; 4096]));",
        ),
        expected: Outcome::Leak,
    },
    Change {
        name: "another output",
        edit: ("% 256;\n        self", "% 255;\n        self"),
        expected: Outcome::OutputChanged,
    },
    Change {
        name: "one more allocation a token",
        edit: ("work(ROUNDS);", "work(ROUNDS);\n        drop(black_box(vec![1_u8; 64]));"),
        expected: Outcome::CounterRegressed,
    },
];

/// Show the gate on a tiny engine
#[derive(Args)]
#[command(after_help = "Examples:\n  cargo xtask demo\n  cargo xtask demo --keep")]
pub struct Demo {
    /// Keep the engine's folder and say where it is, to try changes of your own
    #[arg(long)]
    keep: bool,
}

/// A change, and what the gate found.
struct ChangeResult {
    change: &'static Change,
    /// The expected outcome if a row of the verdict has it, else the verdict's; `None` if there is no verdict.
    found: Option<Outcome>,
    /// `None` if a signal ended the gate.
    exit_code: Option<i32>,
}

impl ChangeResult {
    fn is_right(&self) -> bool {
        let expected = self.change.expected;
        self.found == Some(expected) && self.exit_code == Some(expected.exit_code())
    }
}

/// Makes the engine, changes it, gates each change. Exit code 0 only if all came out right.
pub fn run(options: &Demo) -> Result<i32> {
    // Before there is a folder: it is removed when this function returns, and not when a signal ends the process.
    progress::handle_ctrl_c()?;
    let cache = checkout::cache()?;
    let mut folder = fs::create_dir_all(&cache)
        .and_then(|()| tempfile::Builder::new().prefix("infergate-demo-").tempdir_in(&cache))
        .with_context(|| format!("{}: cannot be written; set XDG_CACHE_HOME to another folder", cache.display()))?;
    cargo_settings::ensure_own(folder.path(), folder.path())?;
    folder.disable_cleanup(options.keep);
    let engine = folder.path().join("engine");
    let mut changes = Vec::new();
    let outcome = try_all(&engine, &mut changes);
    if options.keep {
        output::status_escaped(&format!("kept: {}", engine.display()));
    }
    if progress::is_cancelled() {
        // The last error came from the interruption.
        output::status(&format!("interrupted after {} of {} changes", changes.len(), CHANGES.len()));
        return Ok(Outcome::Partial.exit_code());
    }
    outcome?;
    output::print_verdict(&text(&changes));
    Ok(i32::from(!changes.iter().all(ChangeResult::is_right)))
}

fn text(changes: &[ChangeResult]) -> String {
    let table = Rows::of("demo", "", changes)
        .titled_words("is_right", "", |result| {
            let (mark, tone) = if result.is_right() { ("right", Tone::Good) } else { ("wrong", Tone::Bad) };
            Cell::text(mark).toned(tone)
        })
        .words("change", |result| result.change.name)
        .titled_words("expected", "the gate has to say", |result| result.change.expected.words())
        .titled_words("found", "it said", |result| result.found.map_or_else(|| MISSING.into(), Outcome::words))
        .table();
    let right = changes.iter().filter(|result| result.is_right()).count();
    format!("\n{}\n{right} of {} came out right\n", terminal::table(&table), changes.len())
}

/// Makes the engine and gates each change; `changes` holds what was tried.
fn try_all(engine: &Path, changes: &mut Vec<ChangeResult>) -> Result<()> {
    create_repository(engine)?;
    output::status("the first gate builds infergate and criterion: some minutes");
    for (at, change) in CHANGES.iter().enumerate() {
        output::status(&format!("demo {} of {}: {}", at + 1, CHANGES.len(), change.name));
        changes.push(gate_change(change, engine)?);
    }
    Ok(())
}

/// A repository with the engine in it, at its first commit.
fn create_repository(engine: &Path) -> Result<()> {
    let write = |name: &str, text: &str| write_text(&engine.join(name), text);
    let own = origin()?.dependency();
    write("Cargo.toml", &include_str!("../../templates/demo/manifest.toml").replace("OWN", &own))?;
    write("src/lib.rs", ENGINE)?;
    write("benches/inference.rs", include_str!("../../templates/demo/inference.rs"))?;
    write("benches/memory.rs", include_str!("../../templates/demo/memory.rs"))?;
    write(".gitignore", "/target\n")?;
    if let Some(own) = own_source() {
        // The versions that were downloaded to build this command; cargo drops what is not needed.
        let lock = fs::read_to_string(own.join("Cargo.lock")).unwrap_or_default();
        write("Cargo.lock", &lock)?;
    }
    lock_file::resolve(engine).context("the demo's dependencies cannot be found")?;
    git(engine, &["init", "--quiet", "--template="])?;
    for (key, value) in SETTINGS {
        git(engine, &["config", key, value])?;
    }
    commit(engine, "the engine")?;
    git(engine, &["branch", "base"])?;
    Ok(())
}

/// Settings that override the user's own of git: who commits and signs, which files are ignored, how lines end. They are in the
/// repository's configuration, so that they hold for the gate's checkout, too.
const SETTINGS: [(&str, &str); 6] = [
    ("user.name", "infergate"),
    ("user.email", "demo@localhost"),
    ("commit.gpgSign", "false"),
    ("core.excludesFile", "/dev/null"),
    ("core.attributesFile", "/dev/null"),
    ("core.autocrlf", "false"),
];

const ENGINE: &str = include_str!("../../templates/demo/engine.rs");

fn commit(engine: &Path, message: &str) -> Result<()> {
    git(engine, &["add", "--all"])?;
    git(engine, &["commit", "--quiet", "--message", message]).map(drop)
}

/// Commits the change on top of base and gates it, by this same command.
fn gate_change(change: &'static Change, engine: &Path) -> Result<ChangeResult> {
    git(engine, &["reset", "--quiet", "--hard", "base"])?;
    let (before, after) = change.edit;
    write_text(&engine.join("src/lib.rs"), &ENGINE.replace(before, after))?;
    commit(engine, change.name)?;
    let json = engine.with_file_name("verdict.json");
    let mut gate = Command::new(this_program()?);
    gate.args(["gate", "--against", "base", "--cases", CASE, "--base-folder", "../base", "--json"]).arg(&json);
    gate.current_dir(engine).env_remove("CARGO_TARGET_DIR");
    remove_own_variables(&mut gate);
    let gate = run_captured::run(gate, Echo::Stderr)?;
    let exit_code = gate.status.code();
    ensure!(exit_code != Some(Outcome::Failed.exit_code()), "{}: the gate failed; its output is above", change.name);
    let found = read::<Verdict>(&json).ok().map(|verdict| {
        let is_named = verdict.rows.iter().any(|row| row.outcome == change.expected);
        if is_named { change.expected } else { verdict.verdict }
    });
    let result = ChangeResult { change, found, exit_code };
    if !result.is_right() {
        output::report(&String::from_utf8_lossy(&gate.stdout));
    }
    Ok(result)
}
