//! The bench target's executable, from cargo's own messages.

use std::env;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::cargo_words::Words;
use super::frameworks::uses_ours;
use super::package::{Package, Target};
use super::{asked, bench_names, cargo_settings, criterion_front, frameworks, output, progress, toolchain, workspace};
use crate::wanted::{BenchTarget, MEMORY_TARGET, Place};
use crate::watcher::watched;
use infergate_core::build_info;
use infergate_core::process::Group;
use infergate_core::relay::missing_file;
use infergate_core::text_file::read_text;
use infergate_core::worker::Program;
use infergate_core::worker::WorkerError;

/// No source file is larger.
const MAX_SOURCE_BYTES: u64 = 16 << 20;
/// No message of cargo's on what it built is longer.
const MAX_MESSAGE_BYTES: u64 = 1 << 20;

/// The worker that `given` names, or the bench target of the working tree, which is built. Only what was built here has a
/// commit: a file that was given may come from anywhere.
pub fn worker(target: &BenchTarget, given: Option<PathBuf>) -> Result<Program> {
    if let Some(path) = given {
        return Ok(Program::new(path, None, None));
    }
    Ok(build(target, &[])?.of_working_tree())
}

/// As [`worker`], for the bench target that counts its heap; `None` where there is none.
pub fn memory_worker(target: &BenchTarget, given: Option<PathBuf>) -> Result<Option<Program>> {
    match given {
        Some(_) => worker(target, given).map(Some),
        None => Ok(build_memory(target, None)?.map(Built::of_working_tree)),
    }
}

#[derive(Clone)]
pub struct Built {
    /// The executable.
    pub path: PathBuf,
    /// The folder of its package.
    pub package: Option<PathBuf>,
    /// Folders of libraries that build scripts made.
    pub libraries: Vec<PathBuf>,
    /// The programs of its package, which cargo builds with it.
    pub programs: Vec<PathBuf>,
    /// The variables that cargo's settings give it.
    pub variables: Vec<(OsString, OsString)>,
}

impl Built {
    /// With the commit that is checked out here.
    pub fn of_working_tree(self) -> Program {
        let (commit, dirty) = build_info::git(Path::new("."));
        self.program(commit, dirty)
    }

    pub fn program(self, commit: Option<String>, dirty: Option<bool>) -> Program {
        let Self { path, package, libraries, programs, variables } = self;
        Program { package, libraries, programs, variables, ..Program::new(path, commit, dirty) }
    }
}

/// Builds the bench target of the working tree and gives its executable; `last` are more arguments for the last call of the compiler. What
/// cargo says goes to stderr as it comes.
pub fn build(target: &BenchTarget, last: &[String]) -> Result<Built> {
    bench_names::ensure_there(target)?;
    ensure!(
        !criterion_front::is_plain(target, Path::new("."))?,
        "bench target '{}' uses criterion itself, which only gate --against and bisect can measure; for the other commands write \
         criterion = {{ package = \"{}\", ... }} into Cargo.toml",
        target.target,
        frameworks::PACKAGE
    );
    output::line(&format!("building bench target '{}' (some minutes the first time)", target.name()));
    let (executable, _) = run(target, None, last)?;
    executable.with_context(|| {
        format!(
            "bench target '{}': the build failed, cargo's words are above; mend it, or name another under [bench] in infergate.toml",
            target.target
        )
    })
}

/// Builds the bench target that counts its heap, of the working tree or of another checkout; `None` when there is none.
pub fn build_memory(target: &BenchTarget, place: Option<&Place>) -> Result<Option<Built>> {
    if !has_memory(target, place)? {
        return Ok(None);
    }
    let target = BenchTarget { target: MEMORY_TARGET.to_owned(), ..target.clone() };
    match place {
        Some(place) => build_at(&target, place, &[]).map(Some),
        None => build(&target, &[]).map(Some),
    }
}

/// Whether the package has the memory bench target, by cargo's own metadata.
fn has_memory(target: &BenchTarget, place: Option<&Place>) -> Result<bool> {
    let folder = place.map_or(Path::new("."), |place| place.folder.as_path());
    let packages = workspace::with_bench(MEMORY_TARGET, folder)?;
    Ok(packages.iter().any(|package| package.is_asked_for(target)))
}

/// How cargo is told of a package. Its name alone is not enough where a dependency has it too. Cargo before 1.77 wrote ids that
/// it did not take as an argument.
fn spec(Package { id, name, .. }: Package) -> String {
    if id.contains("://") && id.contains('#') && !id.contains(' ') { id } else { name }
}

/// Whether that checkout lacks the bench target. Where cargo cannot tell it does not: cargo says why when it builds.
pub fn is_missing(target: &BenchTarget, place: &Place) -> Result<bool> {
    let packages = workspace::packages(&place.folder)?;
    let has = |package: &Package| package.is_asked_for(target) && package.bench(&target.target).is_some();
    Ok(packages.is_some_and(|packages| !packages.iter().any(has)))
}

/// Whether the working tree's bench target comes with infergate and that checkout's does not: it was criterion's, say, before
/// its one line was changed, and cannot be a worker. A package can have benches of both.
pub fn is_foreign(target: &BenchTarget, place: &Place) -> Result<bool> {
    let ours = |folder: &Path| -> Result<bool> {
        Ok(workspace::of_bench(target, folder)?.iter().any(frameworks::takes_infergate))
    };
    // A test before, and a bench of criterion's now; but one of an engine is a worker, whatever head's text speaks of.
    let is_engines = || Ok::<_, anyhow::Error>(source(target, &place.folder)?.contains("infergate"));
    if uses_criterion(target, Path::new("."))?
        && !uses_criterion(target, &place.folder)?
        && !(ours(&place.folder)? && is_engines()?)
    {
        return Ok(true);
    }
    if !ours(Path::new("."))? {
        return Ok(false);
    }
    let (was, is) = (source(target, &place.folder)?, source(target, Path::new("."))?);
    // By a line in Cargo.toml alone: the front makes a worker of base's own benches.
    if !is.contains("infergate") && criterion_front::is_plain(target, &place.folder)? {
        return Ok(false);
    }
    let turned = !was.contains("infergate") && was.contains("criterion") && is.contains("infergate");
    Ok(turned || !ours(&place.folder)?)
}

/// Whether it can be one of criterion's or divan's, with infergate's front or without.
fn uses_criterion(target: &BenchTarget, folder: &Path) -> Result<bool> {
    Ok(workspace::of_bench(target, folder)?.iter().any(|package| {
        let text = frameworks::source(package, &target.target).unwrap_or_default();
        let takes = frameworks::takes_criterion(package) || frameworks::takes_infergate(package);
        (takes || !package.front_helpers.is_empty()) && uses_ours(&text, &package.front_helpers)
    }))
}

/// The first file of a bench target; empty where it cannot be read.
fn source(target: &BenchTarget, folder: &Path) -> Result<String> {
    let packages = workspace::of_bench(target, folder)?;
    let bench = packages.iter().find_map(|package| package.bench(&target.target));
    Ok(bench.and_then(|bench| read_text(&bench.src_path, MAX_SOURCE_BYTES).ok()).unwrap_or_default())
}

/// Builds the bench target of another checkout, in that checkout's own target folder; `last` as in [`build`].
///
/// # Errors
/// When it does not build, with the compiler's first error; [`WorkerError::NotComparable`] when it has no such target.
pub fn build_at(target: &BenchTarget, place: &Place, last: &[String]) -> Result<Built> {
    output::line(&format!("building bench target '{}' of {} (some minutes the first time)", target.name(), place.name));
    let (executable, said) = run(target, Some(place), last)?;
    if let Some(executable) = executable {
        return Ok(executable);
    }
    if said.iter().any(|line| line.contains("no bench target named")) {
        return Err(bench_names::no_such_target(
            target,
            place,
            "compare with a revision that has one, or give --base-bin and --head-bin",
        )
        .into());
    }
    let hint = said.iter().find_map(|line| missing_file(line)).map(|hint| format!("; {hint}")).unwrap_or_default();
    bail!("{} does not build: {}; the compiler's last lines are above{hint}", place.name, first_error(&said))
}

/// As [`finish`]; of another checkout with the lines cargo said.
fn run(target: &BenchTarget, place: Option<&Place>, last: &[String]) -> Result<(Option<Built>, Vec<String>)> {
    finish(with_last(target, place, &[], last)?, target, true, &|| false)
}

/// What cargo says of each package of the bench target, which is built already, with these arguments.
pub fn messages(target: &BenchTarget, place: Option<&Place>, last: &[String]) -> Result<Vec<Value>> {
    let said = asked::output(with_last(target, place, &[], last)?)?;
    Ok(said.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

/// The executable, `None` when the build failed, and the lines cargo said. Where `stop` says so before cargo ends, it is ended with
/// all that it started.
fn finish(
    mut cargo: Command,
    target: &BenchTarget,
    is_shown: bool,
    stop: &dyn Fn() -> bool,
) -> Result<(Option<Built>, Vec<String>)> {
    let variables = cargo_settings::variables(cargo.get_current_dir().unwrap_or(Path::new(".")));
    let mut cargo = Group::spawn(&mut cargo).context("cargo cannot be started; is it installed?")?;
    let (_, messages, words) = cargo.take_pipes();
    let (messages, name) = (messages.context("cargo gives no messages")?, target.target.clone());
    let words = words.map(|words| Words::of(words, is_shown));
    let built = thread::spawn(move || built(messages, &name));
    let status = progress::until_ended(&mut cargo, stop).context("cargo cannot be waited for")?;
    let built = built.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    let said = words.map(Words::all).unwrap_or_default();
    if progress::is_cancelled() {
        return Err(WorkerError::by_user().into());
    }
    if is_shown && output::is_quiet() && !status.success() {
        said.iter().for_each(|line| output::insist(line));
    }
    if status.success() && built.is_none() {
        bail!("bench target '{}': cargo built no executable of that name", target.target);
    }
    Ok((built.filter(|_| status.success()).map(|built| Built { variables, ..built }), said))
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
fn built(messages: impl Read, name: &str) -> Result<Option<Built>> {
    let (mut messages, mut line, mut executable) = (BufReader::new(messages), Vec::new(), None);
    let (mut libraries, mut programs) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        let read = messages.by_ref().take(MAX_MESSAGE_BYTES).read_until(b'\n', &mut line);
        if read.context("cargo's messages cannot be read")? == 0 {
            return Ok(executable.map(|built| Built { libraries, programs, ..built }));
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
            executable =
                Some(Built { path, package, libraries: Vec::new(), programs: Vec::new(), variables: Vec::new() });
        }
    }
}

/// Builds the bench target once more with more arguments for the last call of the compiler, which is all that is done again. Where
/// that fails, or `stop` says so before it ends: the compiler's first error.
pub fn build_beside(
    target: &BenchTarget,
    place: Option<&Place>,
    last: &[String],
    stop: &dyn Fn() -> bool,
) -> Result<Result<Built, String>> {
    let (built, said) = finish(with_last(target, place, &["--quiet"], last)?, target, false, stop)?;
    Ok(built.ok_or_else(|| first_error(&said)))
}

/// cargo, which builds the bench target, with more arguments for the last call of the compiler.
fn with_last(target: &BenchTarget, place: Option<&Place>, words: &[&str], last: &[String]) -> Result<Command> {
    if last.is_empty() {
        return command(target, place, &[&["bench", "--no-run"], words].concat());
    }
    let mut cargo = command(target, place, &[&["rustc"], words].concat())?;
    if target.profile.is_none() {
        cargo.args(["--profile", "bench"]);
    }
    cargo.arg("--").args(last);
    Ok(cargo)
}

fn first_error(said: &[String]) -> String {
    said.iter().find(|line| line.starts_with("error")).or(said.last()).map_or("no reason given", |line| line).to_owned()
}

/// Tells cargo in `folder` whose bench target it is, and with which features: those that are asked for and those that it does not build
/// without; of the package that was named, or the only one with such a bench target. Cargo resolves features for all packages it was asked for together, so a bench target is built with those of its own
/// package only where that alone is asked for.
pub fn add_selection(cargo: &mut Command, target: &BenchTarget, folder: &Path) -> Result<()> {
    let mut packages = workspace::of_bench(target, folder)?;
    let only = packages.pop().filter(|_| packages.is_empty());
    let bench = only.as_ref().and_then(|only| only.bench(&target.target));
    let mut features = target.features.clone();
    features.extend(bench.map(|bench| bench.required_features.clone()).unwrap_or_default());
    // A workspace of the old resolver, with a package at its root, would take all features for that package's.
    if let Some(only) = only.as_ref().filter(|_| !features.is_empty() || !target.default_features) {
        cargo.arg("--manifest-path").arg(&only.manifest_path);
    }
    if let Some(package) = only.map(spec).or_else(|| target.package.clone()) {
        cargo.args(["--package", &package]);
    }
    if !features.is_empty() {
        cargo.arg("--features").arg(features.join(","));
    }
    if !target.default_features {
        cargo.arg("--no-default-features");
    }
    Ok(())
}

fn command(target: &BenchTarget, place: Option<&Place>, verb: &[&str]) -> Result<Command> {
    let mut cargo = watched(match place {
        Some(Place { toolchain: Some(name), .. }) => toolchain::named(name),
        _ => toolchain::cargo(place.map(|place| place.folder.as_path())),
    });
    cargo.args(verb).args(["--message-format=json-render-diagnostics", "--bench", &target.target]);
    add_selection(&mut cargo, target, place.map_or(Path::new("."), |place| place.folder.as_path()))?;
    if let Some(profile) = &target.profile {
        cargo.args(["--profile", profile]);
    }
    // Variables cargo set for this process describe this process, and would make cargo build anew.
    for name in env::vars_os().map(|(name, _)| name) {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") || name == "OUT_DIR" {
            cargo.env_remove(name);
        }
    }
    if let Some(place) = place {
        cargo.current_dir(&place.folder).env("CARGO_TARGET_DIR", &place.target);
        cargo_settings::keep_build_folder(&mut cargo, &place.target, &place.target);
        if place.locked {
            cargo.arg("--locked");
        }
    }
    // What cargo shows holds what macros and build scripts write.
    let colour = std::io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none();
    cargo.args(["--color", if colour { "always" } else { "never" }]);
    cargo.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(cargo)
}
