//! One side's bench target: builds it, and finds its executable in cargo's messages.

use std::env;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use infergate_core::relay::missing_file;
use infergate_core::worker::{Program, WorkerError};
use serde_json::Value;

use super::git::checked_out;
use super::keep_objects::keep_objects;
use super::relink::Linker;
use super::run_captured::{self, Echo};
use super::workspace::{BenchTarget, CRITERION, MEMORY_TARGET, Package, Workspace, is_infergate, is_plain};
use super::{bench_choice, cargo_settings, checkout_folder, output, toolchain};

/// What to build of both sides.
#[derive(Debug, Clone)]
pub struct BuildRequest {
    /// The bench target that is the worker.
    pub bench: BenchTarget,
    /// Folder that keeps the checkout and build of a base revision; `None`: in the user's cache.
    pub base_folder: Option<PathBuf>,
}

/// Where one side is built: the working tree or a checkout.
#[derive(Debug, Clone)]
pub struct Source {
    pub bench: BenchTarget,
    /// How messages name a checkout: `origin/main (1234567890)`; `None` for the working tree.
    pub name: Option<String>,
    /// The package's folder in it.
    pub folder: PathBuf,
    /// A checkout's own target folder; `None` for the working tree.
    pub target: Option<PathBuf>,
    /// Build with exactly what its Cargo.lock says, and fail if that does not fit its manifests.
    pub locked: bool,
    /// Another toolchain of rustup than its own.
    pub toolchain: Option<String>,
    /// Its commit, and whether it has files that no commit has.
    pub commit: (Option<String>, Option<bool>),
    pub workspace: Arc<Workspace>,
}

/// The worker that `given` names, or the bench target of the working tree, which is built. Only what was built here has a
/// commit: a file that was given may come from anywhere.
pub fn worker(request: &BuildRequest, given: Option<PathBuf>) -> Result<Program> {
    match given {
        Some(path) => Ok(Program::new(path)),
        None => Source::here(request)?.build_as(BuildOutput::Program),
    }
}

/// As [`worker`], for the bench target that counts its heap; `None` if there is none.
pub fn memory_worker(request: &BuildRequest, given: Option<PathBuf>) -> Result<Option<Program>> {
    match given {
        Some(path) => Ok(Some(Program::new(path))),
        None => Source::here(request)?.build_memory(),
    }
}

/// What a build keeps.
#[derive(Debug, Clone, Copy, PartialEq)]
enum BuildOutput {
    Program,
    /// Also what linking it again needs.
    Objects,
}

impl Source {
    /// The working tree.
    ///
    /// # Errors
    /// As [`Workspace::load`].
    pub fn here(request: &BuildRequest) -> Result<Self> {
        let folder = PathBuf::from(".");
        Ok(Self {
            bench: request.bench.clone(),
            name: None,
            target: None,
            locked: false,
            toolchain: None,
            commit: checked_out(&folder),
            workspace: Arc::new(Workspace::load(&folder)?),
            folder,
        })
    }

    /// Where cargo builds it.
    pub(super) fn target_folder(&self) -> &Path {
        self.target.as_ref().unwrap_or(&self.workspace.target_directory)
    }

    /// Folder for the wrapper of the compiler, and for what a link needs while it runs.
    pub(super) fn relink_folder(&self) -> PathBuf {
        self.target_folder().join("infergate/alike")
    }

    /// Its program, built so that it can be laid out in other ways.
    ///
    /// # Errors
    /// If it does not build, with the compiler's first error; [`WorkerError::NotComparable`] if a checkout has no such target.
    pub fn build(&self) -> Result<Program> {
        let built = self.build_as(BuildOutput::Objects)?;
        if self.linker(&built).is_ok() {
            return Ok(built);
        }
        // `cargo bench` built it, or a file of the linker's command is missing. A new build can have other bytes, so it comes before the
        // program is opened.
        checkout_folder::remove(&built.path)?;
        self.build_as(BuildOutput::Objects)
    }

    /// The linker command of `built`, which is of this source.
    ///
    /// # Errors
    /// As [`Linker::capture`].
    pub fn linker(&self, built: &Program) -> Result<Linker> {
        Linker::capture(&self.workspace.root, built)
    }

    /// Builds the bench target that counts its heap; `None` if there is none.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_memory(&self) -> Result<Option<Program>> {
        let memory = self.memory();
        (!memory.packages().is_empty()).then(|| memory.build()).transpose()
    }

    /// The bench target that counts its heap, whether there is one or not.
    pub fn memory(&self) -> Self {
        let bench = BenchTarget { target: MEMORY_TARGET.to_owned(), together: Vec::new(), ..self.bench.clone() };
        Self { bench, ..self.clone() }
    }

    /// Builds it. Cargo's stderr is shown as it comes.
    fn build_as(&self, kept: BuildOutput) -> Result<Program> {
        self.ensure_there()?;
        let target = format!("bench target '{}'", self.bench.name());
        let others = self.together();
        let all = match others[..] {
            [] => target.clone(),
            _ => format!("bench targets '{}', '{}'", self.bench.name(), others.join("', '")),
        };
        let of_it = self.name.as_ref().map(|name| format!(" of {name}")).unwrap_or_default();
        output::status_escaped(&format!("building {all}{of_it} (some minutes the first time)"));
        let (built, stderr) = self.call_cargo(kept, Echo::Stderr)?;
        if let Some(built) = built {
            let (commit, dirty) = self.commit.clone();
            return Ok(Program { commit, dirty, ..built });
        }
        let (what, error) = (self.name.as_ref().unwrap_or(&target), first_error(&stderr));
        let hint = stderr.lines().find_map(missing_file).map(|hint| format!("; {hint}")).unwrap_or_default();
        bail!("{what} does not build: {error}; the compiler's last lines are above{hint}")
    }

    /// Other targets built in the same cargo call: of the same package, with the same required features.
    fn together(&self) -> Vec<&str> {
        let [only] = self.packages()[..] else { return Vec::new() };
        let features = |name: &str| only.bench(name).map(|bench| &bench.required_features);
        let own = features(&self.bench.target);
        self.bench.together.iter().map(String::as_str).filter(|other| features(other) == own).collect()
    }

    /// The packages that may have it.
    fn packages(&self) -> Vec<&Package> {
        self.workspace.with_bench(&self.bench)
    }

    fn ensure_there(&self) -> Result<()> {
        let target = &self.bench.target;
        match (&self.name, self.packages().is_empty()) {
            (Some(name), true) => bail!(WorkerError::NotComparable(format!(
                "{name} has no bench target '{target}'; compare with a revision that has one, or give --base-bin and --head-bin"
            ))),
            (None, true) => {
                let remedy = bench_choice::remedy(&self.bench, &self.workspace);
                bail!("there is no bench target '{target}' here; {remedy}")
            }
            (None, false) if self.needs_replacement() => bail!(
                "bench target '{target}' uses criterion itself, which only gate --against and bisect measure; for the others write \
                 criterion = {{ package = \"{CRITERION}\", ... }} into Cargo.toml"
            ),
            _ => Ok(()),
        }
    }

    /// Whether criterion has to be replaced before it can be a worker.
    pub fn needs_replacement(&self) -> bool {
        self.workspace.depends_on(&self.bench, &is_plain) && !self.workspace.depends_on(&self.bench, &is_infergate)
    }

    /// Cargo's messages about all packages of this build, which is up to date.
    ///
    /// # Errors
    /// If cargo does not start.
    pub fn messages(&self) -> Result<Vec<Value>> {
        Ok(parsed(&run_captured::run(self.command(&[], BuildOutput::Objects)?, Echo::Nothing)?.stdout))
    }

    /// Builds it again, without keeping its objects. If that fails: the compiler's first error.
    pub fn rebuild(&self) -> Result<Result<Program, String>> {
        let (built, stderr) = self.call_cargo(BuildOutput::Program, Echo::Nothing)?;
        Ok(built.ok_or_else(|| first_error(&stderr)))
    }

    /// The executable, `None` if the build failed, and cargo's stderr. If another target of the same call fails, this one is built alone.
    fn call_cargo(&self, kept: BuildOutput, echo: Echo) -> Result<(Option<Program>, String)> {
        let together = self.together();
        if !together.is_empty()
            && let (Some(built), stderr) = self.finish(&together, kept, echo)?
        {
            return Ok((Some(built), stderr));
        }
        self.finish(&[], kept, echo)
    }

    fn finish(&self, together: &[&str], kept: BuildOutput, echo: Echo) -> Result<(Option<Program>, String)> {
        let variables = cargo_settings::variables(&self.folder);
        let output = run_captured::run(self.command(together, kept)?, echo)?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            return Ok((None, stderr));
        }
        let target = &self.bench.target;
        let built = built(&parsed(&output.stdout), target)
            .with_context(|| format!("bench target '{target}': cargo built no executable of that name"))?;
        Ok((Some(Program { features: self.bench.cargo_features().join(" "), variables, ..built }), stderr))
    }

    /// The cargo call that builds it and `together`.
    fn command(&self, together: &[&str], kept: BuildOutput) -> Result<Command> {
        let Self { bench, target, .. } = self;
        let mut cargo = match &self.toolchain {
            Some(name) => toolchain::named(name),
            None => toolchain::cargo(target.as_ref().map(|_| self.folder.as_path())),
        };
        cargo.args(["bench", "--no-run", "--message-format=json-render-diagnostics"]);
        cargo.args([bench.target.as_str()].iter().chain(together).flat_map(|target| ["--bench", target]));
        self.add_selection(&mut cargo);
        cargo.args(bench.profile.iter().flat_map(|profile| ["--profile", profile]));
        // Variables that cargo set for this process describe this process, and would make cargo build again.
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") || name == "OUT_DIR" {
                cargo.env_remove(name);
            }
        }
        if let Some(target) = target {
            cargo.current_dir(&self.folder).env("CARGO_TARGET_DIR", target);
            cargo_settings::keep_build_folder(&mut cargo, target, target);
        }
        if self.locked {
            cargo.arg("--locked");
        }
        // Cargo's output has that of macros and build scripts, too.
        let colour = std::io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none();
        cargo.args(["--color", if colour { "always" } else { "never" }]);
        if kept == BuildOutput::Objects {
            keep_objects(&mut cargo, &self.relink_folder(), &self.folder)?;
        }
        Ok(cargo)
    }

    /// Tells cargo the bench target's package and features: those that were requested and those that the target requires. Cargo resolves
    /// features for all packages of one call together, so a bench target gets its own package's features only if that package alone is
    /// named.
    fn add_selection(&self, cargo: &mut Command) {
        let packages = self.packages();
        let only = if let [only] = packages[..] { Some(only) } else { None };
        let bench = only.and_then(|only| only.bench(&self.bench.target));
        let required = bench.into_iter().flat_map(|bench| &bench.required_features);
        let mut features = self.bench.cargo_features();
        features.extend(required.map(|feature| format!("--features={feature}")));
        // A workspace of the old resolver, with a package at its root, would take all features for that package's.
        if let Some(only) = only.filter(|_| !features.is_empty()) {
            cargo.arg("--manifest-path").arg(&only.manifest_path);
        }
        if let Some(package) = only.map(|only| &*only.id).or(self.bench.package.as_deref()) {
            cargo.args(["--package", package]);
        }
        cargo.args(features);
    }
}

/// Cargo's messages. Lines that are not JSON are skipped: macros print between cargo's messages.
fn parsed(stdout: &[u8]) -> Vec<Value> {
    stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// The executable of the bench target `name`, from cargo's messages.
fn built(messages: &[Value], name: &str) -> Option<Program> {
    let path = |value: &Value| value.as_str().map(PathBuf::from);
    let (mut libraries, mut programs, mut executable) = (Vec::new(), Vec::new(), None);
    for message in messages {
        libraries.extend(own_folders(message));
        let Some(built) = path(&message["executable"]) else { continue };
        let target = &message["target"];
        if target["kind"][0] == "bin" {
            programs.push(built);
        } else if target["kind"][0] == "bench" && target["name"] == name {
            let package = path(&message["manifest_path"]).and_then(|path| Some(path.parent()?.to_owned()));
            executable = Some(Program { package, ..Program::new(built) });
        }
    }
    executable.map(|built| Program { libraries, programs, ..built })
}

/// Folders of libraries that a build script names below cargo's target folder: cargo lets a bench find these, and no others.
fn own_folders(script: &Value) -> impl Iterator<Item = PathBuf> {
    let all = script["out_dir"].as_str().and_then(|out| Path::new(out).ancestors().nth(3));
    let paths = script["linked_paths"].as_array().into_iter().flatten().filter_map(Value::as_str);
    // `native=/folder`, or the folder alone.
    let folders = paths.map(|path| PathBuf::from(path.split_once('=').map_or(path, |(_, folder)| folder)));
    folders.filter(move |folder| all.is_some_and(|all| folder.starts_with(all)))
}

fn first_error(stderr: &str) -> String {
    let first = stderr.lines().find(|line| line.starts_with("error")).or(stderr.lines().last());
    first.unwrap_or("no reason given").to_owned()
}
