//! The bench target's executable, from cargo's own messages.

use std::env;
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::cargo_stderr::CargoStderr;
use super::workspace::{CRITERION, Package, Target, is_infergate, is_plain};
use super::{bench_choice, cargo_settings, output, progress, run_captured::run_captured, toolchain};
use crate::wanted::Place;
use crate::watcher::watched;
use crate::workspace::{BenchTarget, MEMORY_TARGET};
use infergate_core::process::Group;
use infergate_core::relay::missing_file;
use infergate_core::worker::Program;
use infergate_core::worker::WorkerError;

/// No message of cargo's on what it built is longer.
const MAX_MESSAGE_BYTES: u64 = 1 << 20;

/// The worker that `given` names, or the bench target of the working tree, which is built. Only what was built here has a
/// commit: a file that was given may come from anywhere.
pub fn worker(target: &BenchTarget, given: Option<PathBuf>) -> Result<Program> {
    match given {
        Some(path) => Ok(Program::new(path, None, None)),
        None => build(target, &Place::here()?, &[]),
    }
}

/// As [`worker`], for the bench target that counts its heap; `None` if there is none.
pub fn memory_worker(target: &BenchTarget, given: Option<PathBuf>) -> Result<Option<Program>> {
    match given {
        Some(_) => worker(target, given).map(Some),
        None => build_memory(target, &Place::here()?),
    }
}

/// Builds the bench target that counts its heap; `None` if there is none.
pub fn build_memory(target: &BenchTarget, place: &Place) -> Result<Option<Program>> {
    let target = BenchTarget { target: MEMORY_TARGET.to_owned(), ..target.clone() };
    (!place.workspace.with_bench(&target).is_empty()).then(|| build(&target, place, &[])).transpose()
}

/// Builds the bench target; `last` are more arguments for the last call of the compiler. Cargo's stderr is shown as it comes.
///
/// # Errors
/// If it does not build, with the compiler's first error; [`WorkerError::NotComparable`] if a checkout has no such target.
pub fn build(target: &BenchTarget, place: &Place, last: &[String]) -> Result<Program> {
    ensure_there(target, place)?;
    output::line(&format!("building bench target '{}'{} (some minutes the first time)", target.name(), place.of_it()));
    let (built, stderr) = finish(command(target, place, &[], last), target, true, &|| false)?;
    let hint = || stderr.iter().find_map(|line| missing_file(line)).map(|hint| format!("; {hint}")).unwrap_or_default();
    let (commit, dirty) = place.commit.clone();
    built.map(|built| Program { commit, dirty, ..built }).with_context(|| {
        format!(
            "{} does not build: {}; the compiler's last lines are above{}",
            place.name.clone().unwrap_or_else(|| format!("bench target '{}'", target.name())),
            first_error(&stderr),
            hint()
        )
    })
}

fn ensure_there(target: &BenchTarget, place: &Place) -> Result<()> {
    let is_missing = place.workspace.with_bench(target).is_empty();
    if let Some(name) = place.name.as_ref().filter(|_| is_missing) {
        let target = &target.target;
        return Err(WorkerError::NotComparable(format!(
            "{name} has no bench target '{target}'; compare with a revision that has one, or give --base-bin and --head-bin"
        ))
        .into());
    }
    ensure!(
        !is_missing,
        "there is no bench target '{}' here; {}",
        target.target,
        bench_choice::remedy(target, &place.workspace)
    );
    ensure!(
        place.name.is_some() || !needs_replacement(target, place),
        "bench target '{}' uses criterion itself, which only gate --against and bisect can measure; for the other commands write \
         criterion = {{ package = \"{CRITERION}\", ... }} into Cargo.toml",
        target.target
    );
    Ok(())
}

/// Whether a bench target can be no worker before criterion is replaced.
pub fn needs_replacement(target: &BenchTarget, place: &Place) -> bool {
    place.workspace.takes(target, &is_plain) && !place.workspace.takes(target, &is_infergate)
}

/// Cargo's messages on each package of the bench target, which is built already with these arguments.
pub fn messages(target: &BenchTarget, place: &Place, last: &[String]) -> Result<Vec<Value>> {
    let stdout = run_captured(command(target, place, &[], last))?.stdout;
    Ok(stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

/// Builds the bench target once more with more arguments for the last call of the compiler, which is all that is done again. If that
/// fails, or `stop` says so before it ends: the compiler's first error.
pub fn rebuild(
    target: &BenchTarget,
    place: &Place,
    last: &[String],
    stop: &dyn Fn() -> bool,
) -> Result<Result<Program, String>> {
    let (built, stderr) = finish(command(target, place, &["--quiet"], last), target, false, stop)?;
    Ok(built.ok_or_else(|| first_error(&stderr)))
}

/// The executable, `None` if the build failed, and the lines of cargo's stderr. If `stop` says so before cargo ends, it is ended with
/// all that it started.
fn finish(
    mut cargo: Command,
    target: &BenchTarget,
    is_shown: bool,
    stop: &dyn Fn() -> bool,
) -> Result<(Option<Program>, Vec<String>)> {
    let variables = cargo_settings::variables(cargo.get_current_dir().unwrap_or(Path::new(".")));
    let mut cargo = Group::spawn(&mut cargo).context("cargo cannot be started; is it installed?")?;
    let (_, messages, stderr) = cargo.take_pipes();
    let (messages, name) = (messages.context("cargo gives no messages")?, target.target.clone());
    let stderr = stderr.map(|stderr| CargoStderr::read(stderr, is_shown));
    let built = thread::spawn(move || built(messages, &name));
    let status = progress::until_ended(&mut cargo, stop).context("cargo cannot be waited for")?;
    let built = built.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    let stderr = stderr.map(CargoStderr::lines).unwrap_or_default();
    if progress::is_cancelled() {
        return Err(WorkerError::by_user().into());
    }
    if is_shown && output::is_quiet() && !status.success() {
        stderr.iter().for_each(|line| output::eprint_always(line));
    }
    if status.success() && built.is_none() {
        bail!("bench target '{}': cargo built no executable of that name", target.target);
    }
    Ok((built.filter(|_| status.success()).map(|built| Program { variables, ..built }), stderr))
}

/// What is needed of a message of cargo's that something was built.
#[derive(Deserialize)]
struct Artifact {
    reason: String,
    target: Target,
    manifest_path: Option<PathBuf>,
    executable: Option<PathBuf>,
}

/// The same of one that a build script ran.
#[derive(Deserialize)]
struct BuildScript {
    linked_paths: Vec<String>,
    out_dir: PathBuf,
}

impl BuildScript {
    /// Folders of libraries within what cargo builds: those it lets a bench find, and no others.
    fn own_folders(self) -> impl Iterator<Item = PathBuf> {
        let all = self.out_dir.ancestors().nth(3).map(Path::to_owned);
        // `native=/folder`, or the folder alone.
        let folder = |path: String| PathBuf::from(path.split_once('=').map_or(path.as_str(), |(_, folder)| folder));
        self.linked_paths
            .into_iter()
            .map(folder)
            .filter(move |folder| all.as_ref().is_some_and(|all| folder.starts_with(all)))
    }
}

/// The executable of the bench target `name`, from cargo's messages. Among them macros write what they want: a line that is no
/// message is passed over, and a longer one than any message comes in pieces that are none.
fn built(messages: impl Read, name: &str) -> Result<Option<Program>> {
    let (mut messages, mut line, mut executable) = (BufReader::new(messages), Vec::new(), None);
    let (mut libraries, mut programs) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        let read = messages.by_ref().take(MAX_MESSAGE_BYTES).read_until(b'\n', &mut line);
        if read.context("cargo's messages cannot be read")? == 0 {
            return Ok(executable.map(|built| Program { libraries, programs, ..built }));
        }
        if let Ok(script) = serde_json::from_slice::<BuildScript>(&line) {
            libraries.extend(script.own_folders());
        }
        let Ok(built) = serde_json::from_slice::<Artifact>(&line) else { continue };
        let Some(path) = built.executable.filter(|_| built.reason == "compiler-artifact") else { continue };
        if built.target.is("bin") {
            programs.push(path);
        } else if built.target.name == name && built.target.is("bench") {
            let package = built.manifest_path.as_deref().and_then(Path::parent).map(Path::to_owned);
            executable = Some(Program { package, ..Program::new(path, None, None) });
        }
    }
}

fn first_error(stderr: &[String]) -> String {
    let first = stderr.iter().find(|line| line.starts_with("error")).or(stderr.last());
    first.map_or("no reason given", |line| line).to_owned()
}

/// Tells cargo whose bench target it is, and with which features: those that are wanted and those that it does not build without. Cargo
/// resolves features for all packages of one call together, so a bench target is built with those of its own package only if that alone is
/// named.
pub fn add_selection(cargo: &mut Command, target: &BenchTarget, place: &Place) {
    let packages = place.workspace.with_bench(target);
    let only = if let [only] = packages[..] { Some(only) } else { None };
    let bench = only.and_then(|only| only.bench(&target.target));
    let required = bench.into_iter().flat_map(|bench| &bench.required_features);
    let features: Vec<&str> = target.features.iter().chain(required).map(String::as_str).collect();
    // A workspace of the old resolver, with a package at its root, would take all features for that package's.
    if let Some(only) = only.filter(|_| !features.is_empty() || !target.default_features) {
        cargo.arg("--manifest-path").arg(&only.manifest_path);
    }
    if let Some(package) = only.map(Package::spec).or(target.package.as_deref()) {
        cargo.args(["--package", package]);
    }
    if !features.is_empty() {
        cargo.arg("--features").arg(features.join(","));
    }
    if !target.default_features {
        cargo.arg("--no-default-features");
    }
}

/// cargo, which builds the bench target, with more arguments for the last call of the compiler.
fn command(target: &BenchTarget, place: &Place, more: &[&str], last: &[String]) -> Command {
    let mut cargo = watched(match (&place.toolchain, &place.target) {
        (Some(name), _) => toolchain::named(name),
        (None, target) => toolchain::cargo(target.as_ref().map(|_| place.folder.as_path())),
    });
    cargo.args(if last.is_empty() { &["bench", "--no-run"][..] } else { &["rustc"] }).args(more);
    cargo.args(["--message-format=json-render-diagnostics", "--bench", &target.target]);
    add_selection(&mut cargo, target, place);
    let profile = target.profile.as_deref().or((!last.is_empty()).then_some("bench"));
    cargo.args(profile.into_iter().flat_map(|profile| ["--profile", profile]));
    // Variables cargo set for this process describe this process, and would make cargo build anew.
    for name in env::vars_os().map(|(name, _)| name) {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") || name == "OUT_DIR" {
            cargo.env_remove(name);
        }
    }
    if let Some(target) = &place.target {
        cargo.current_dir(&place.folder).env("CARGO_TARGET_DIR", target);
        cargo_settings::keep_build_folder(&mut cargo, target, target);
    }
    if place.locked {
        cargo.arg("--locked");
    }
    // What cargo shows holds what macros and build scripts write.
    let colour = std::io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none();
    cargo.args(["--color", if colour { "always" } else { "never" }]);
    if !last.is_empty() {
        cargo.arg("--").args(last);
    }
    cargo.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    cargo
}
