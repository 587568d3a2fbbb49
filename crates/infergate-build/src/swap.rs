//! `--swap CRATE=VERSION|PATH|URL`: another version of one dependency, in a checkout of its own.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use semver::{Version, VersionReq};
use toml::{Table, Value};

use super::git::git;
use super::lock_file::{field, packages};
use super::manifest::{dependency_sections, table};
use super::{asked, checkout_folder, lock_file, toolchain, workspace};
use infergate_core::text_file::read_text;

/// Times that crates are moved back; one can hold another.
const MOST_ROUNDS: usize = 10;

/// One dependency, and what comes in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    /// As `cargo update` takes it: `serde`, or `serde@1.0.200` where there are several.
    spec: String,
    to: To,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum To {
    Version(String),
    Path(PathBuf),
    Git(String),
}

impl Swap {
    /// From `CRATE=VERSION`, `CRATE=PATH` or `CRATE=URL`.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong =
            || format!("--swap '{text}': write CRATE=VERSION, CRATE=PATH or CRATE=URL, for example candle-core=0.11.1");
        let (spec, to) = text.split_once('=').with_context(wrong)?;
        let name_char = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '@', '.', '+'].contains(&c);
        ensure!(!spec.is_empty() && !spec.starts_with('-') && spec.chars().all(name_char) && !to.is_empty(), wrong());
        let to = if to.contains("://") {
            To::Git(to.to_owned())
        } else if to.starts_with(|c: char| c.is_ascii_digit()) && to.chars().all(name_char) {
            To::Version(to.to_owned())
        } else {
            let folder = std::path::absolute(to).with_context(wrong)?;
            ensure!(
                folder.join("Cargo.toml").is_file(),
                "--swap: {} holds no Cargo.toml; name the crate's folder",
                folder.display()
            );
            To::Path(folder)
        };
        Ok(Self { spec: spec.to_owned(), to })
    }

    fn name(&self) -> &str {
        self.spec.split('@').next().unwrap_or(&self.spec)
    }

    fn cannot(&self) -> String {
        format!("--swap {}", self.spec)
    }

    fn remedy(&self) -> String {
        format!("`cargo tree --invert {}` shows the version in use and who asks for it", self.name())
    }

    /// Makes the manifests ask for the version; `false` where none names the dependency.
    fn ask_all(&self, version: &str, folder: &Path, lock: &Path) -> Result<bool> {
        let mut found = false;
        for manifest in manifests(folder, lock)? {
            found |= self.ask_for(version, &manifest, folder)?;
        }
        Ok(found)
    }

    fn ask_for(&self, version: &str, manifest: &Path, folder: &Path) -> Result<bool> {
        let mut table = table(manifest)?;
        let mut found = false;
        for (name, value) in dependency_sections(&mut table).into_iter().flat_map(|section| section.iter_mut()) {
            let renamed = value.get("package").and_then(Value::as_str).map(str::to_owned);
            if renamed.as_deref().unwrap_or(name) != self.name() {
                continue;
            }
            let exactly = Value::from(format!("={version}"));
            match value {
                Value::String(_) => *value = exactly,
                Value::Table(dependency) if dependency.contains_key("workspace") => continue,
                Value::Table(dependency) => drop(dependency.insert("version".into(), exactly)),
                _ => continue,
            }
            found = true;
        }
        if found {
            write(folder, manifest, &table)?;
        }
        Ok(found)
    }

    fn patch(&self, folder: &Path, lock: &Path, key: &str, value: &str) -> Result<()> {
        let manifest = lock.with_file_name("Cargo.toml");
        let mut table = table(&manifest)?;
        let of = |table: &mut Table, name: &str| -> Result<Table> {
            match table.remove(name) {
                None => Ok(Table::new()),
                Some(Value::Table(found)) => Ok(found),
                Some(_) => bail!("Cargo.toml: {name} is no table"),
            }
        };
        let mut patch = of(&mut table, "patch")?;
        let mut registry = of(&mut patch, "crates-io")?;
        let source = Table::from_iter([(key.to_owned(), Value::from(value))]);
        registry.insert(self.name().to_owned(), Value::Table(source));
        patch.insert("crates-io".into(), Value::Table(registry));
        table.insert("patch".into(), Value::Table(patch));
        write(folder, &manifest, &table)?;
        // What is locked is kept otherwise.
        cargo(folder, &["update", "--package", &self.spec], TOGETHER).with_context(|| self.cannot())
    }
}

/// Puts all of them in place in the checkout around `folder`. Together, because crates can need each other's versions.
pub fn apply(swaps: &[Swap], folder: &Path) -> Result<()> {
    let (was, now) = put(swaps, folder)?;
    for swap in swaps {
        // Cargo notes a patch that nothing uses in the lock file, and says so in a warning alone.
        ensure!(
            locked(&was, swap.name()) != locked(&now, swap.name())
                && (is_unused(&was, swap.name()) || !is_unused(&now, swap.name())),
            "{}: nothing changes: it is no dependency here, or it is that already, or its version does not fit; {}",
            swap.cannot(),
            swap.remedy()
        );
    }
    Ok(())
}

/// As [`apply`], for versions that may be there already.
pub fn ensure(swaps: &[Swap], folder: &Path) -> Result<()> {
    let (_, now) = put(swaps, folder)?;
    for swap in swaps {
        let is_chosen = match &swap.to {
            To::Version(version) => is_locked(&now, swap.name(), version),
            To::Path(_) | To::Git(_) => !is_unused(&now, swap.name()),
        };
        ensure!(
            is_chosen,
            "{}: cargo does not choose that version: it is no dependency here, or the version does not fit; {}",
            swap.cannot(),
            swap.remedy()
        );
    }
    Ok(())
}

/// The lock file before and after.
fn put(swaps: &[Swap], folder: &Path) -> Result<(Table, Table)> {
    let lock = lock_file::around(folder)?;
    let was = if lock.is_file() { read(&lock)? } else { Table::new() };
    for swap in swaps {
        match &swap.to {
            To::Path(path) => swap.patch(folder, &lock, "path", &path.to_string_lossy())?,
            To::Git(url) => swap.patch(folder, &lock, "git", url)?,
            To::Version(_) => {}
        }
    }
    turn(swaps, folder, &lock)?;
    let all = || swaps.iter().map(Swap::cannot).collect::<Vec<_>>().join(" ");
    resolve(folder, TOGETHER).with_context(all)?;
    move_back(swaps, folder, &lock, &was)?;
    Ok((was, read(&lock)?))
}

/// What cargo moved with the swapped crates goes back as far as it fits: to a swapped version where the crate has it, else to the lowest
/// that is asked for.
fn move_back(swaps: &[Swap], folder: &Path, lock: &Path, was: &Table) -> Result<()> {
    let swapped = swaps.iter().filter_map(|swap| if let To::Version(to) = &swap.to { to.parse().ok() } else { None });
    let swapped: Vec<Version> = swapped.collect();
    for _ in 0..MOST_ROUNDS {
        let (now, asked) = (read(lock)?, workspace::all_dependencies(folder)?);
        let is_moved = |name: &str, version: &str| {
            let locked = locked(was, name);
            !locked.is_empty() && locked.iter().all(|package| field(package, "version") != Some(version))
        };
        let mut is_done = true;
        for package in packages(&now) {
            let (Some(name), Some(version)) = (field(package, "name"), field(package, "version")) else { continue };
            if !is_moved(name, version) || swaps.iter().any(|swap| swap.name() == name) {
                continue;
            }
            let Ok(is) = version.parse::<Version>() else { continue };
            // What a crate's own tests ask for binds nobody.
            let of = asked.iter().filter(|asked| asked.name == name && asked.kind.as_deref() != Some("dev"));
            let lowest = of.filter_map(|asked| lowest(&asked.req)).max();
            let package = format!("{name}@{version}");
            is_done &= !swapped.iter().cloned().chain(lowest).filter(|lower| *lower < is).any(|lower| {
                cargo(folder, &["update", "--package", &package, "--precise", &lower.to_string()], "").is_ok()
            });
        }
        if is_done {
            break;
        }
    }
    Ok(())
}

/// The lowest released version that somebody asks for so.
fn lowest(asked: &str) -> Option<Version> {
    let of = VersionReq::parse(asked).ok()?.comparators.into_iter();
    let of = of.filter(|part| !matches!(part.op, semver::Op::Less | semver::Op::LessEq));
    of.map(|part| Version::new(part.major, part.minor.unwrap_or(0), part.patch.unwrap_or(0))).max()
}

/// Empty where it is no lock file: cargo says why.
fn read(lock: &Path) -> Result<Table> {
    Ok(read_text(lock, lock_file::MAX_BYTES)?.parse().unwrap_or_default())
}

/// To a version within what the manifests ask for; else they are made to ask for it. One that no manifest names is tried
/// again when the others are asked for.
fn turn(swaps: &[Swap], folder: &Path, lock: &Path) -> Result<()> {
    let mut open: Vec<(&Swap, &String)> = Vec::new();
    open.extend(swaps.iter().filter_map(|swap| match &swap.to {
        To::Version(version) => Some((swap, version)),
        _ => None,
    }));
    loop {
        let mut unnamed = Vec::new();
        for &(swap, version) in &open {
            let update = ["update", "--package", &swap.spec, "--precise", version];
            // Of vendored packages cargo takes no version by this command, and says nothing.
            let turned = cargo(folder, &update, TOGETHER).is_ok() && is_locked(&read(lock)?, swap.name(), version);
            if !turned && !swap.ask_all(version, folder, lock)? {
                unnamed.push((swap, version));
            }
        }
        match unnamed.first() {
            None => return Ok(()),
            Some((swap, _)) if unnamed.len() == open.len() => {
                bail!("{}: no manifest of this repository names it; name a direct dependency", swap.cannot())
            }
            Some(_) => open = unnamed,
        }
    }
}

fn is_locked(lock: &Table, name: &str, version: &str) -> bool {
    // What is behind a plus, as in 2.0.16+zstd.1.5.7, need not be asked for.
    let is_it =
        |locked: &str| locked.strip_prefix(version).is_some_and(|rest| rest.is_empty() || rest.starts_with('+'));
    locked(lock, name).iter().any(|package| field(package, "version").is_some_and(is_it))
}

/// All that a lock file says of the packages of this name.
fn locked<'l>(lock: &'l Table, name: &str) -> Vec<&'l Value> {
    packages(lock).iter().filter(|package| field(package, "name") == Some(name)).collect()
}

/// Whether a lock file says that nothing uses the patch of this name. Others may stand there from before.
fn is_unused(lock: &Table, name: &str) -> bool {
    let unused = lock.get("patch").and_then(|patch| patch.get("unused")).and_then(Value::as_array);
    unused.is_some_and(|unused| unused.iter().any(|patch| field(patch, "name") == Some(name)))
}

/// The manifests of all packages in the workspace around `folder`, and its root's.
pub fn manifests(folder: &Path, lock: &Path) -> Result<Vec<PathBuf>> {
    let packages = workspace::packages(folder)?.unwrap_or_default();
    let mut all: Vec<PathBuf> = packages.into_iter().map(|package| package.manifest_path).collect();
    let root = lock.with_file_name("Cargo.toml");
    if !all.contains(&root) {
        all.push(root);
    }
    Ok(all)
}

/// Writes a manifest of the checkout around `folder`.
pub fn write(folder: &Path, manifest: &Path, table: &Table) -> Result<()> {
    let files = git(folder, &["rev-parse", "--show-toplevel"])?;
    checkout_folder::write(Path::new(&files), manifest, &table.to_string())
}

/// Lets cargo write Cargo.lock as the manifests ask for it; what fits them already stays as it is. What is new there, this compiler can
/// build. `hint` stands behind a conflict of versions.
pub fn resolve(folder: &Path, hint: &str) -> Result<()> {
    cargo(folder, &["metadata", "--format-version", "1"], hint)
}

const TOGETHER: &str = "; crates that need each other's versions are swapped together, with a --swap each";

/// cargo's first error, and what caused it, where it fails.
fn cargo(folder: &Path, arguments: &[&str], hint: &str) -> Result<()> {
    let mut cargo = toolchain::cargo_in(folder);
    cargo.args(arguments).env("CARGO_RESOLVER_INCOMPATIBLE_RUST_VERSIONS", "fallback");
    let output = asked::output(cargo)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let Some(error) = said.lines().find_map(|line| line.strip_prefix("error: ")) else { bail!("cargo gave no reason") };
    // Of a package of the repository cargo names the folder.
    let others = |line: &&str| !line.contains('(');
    match said.lines().filter_map(|line| line.split("required by package ").nth(1)).find(others) {
        Some(package) => bail!("{} It is required by {package}{hint}", error.trim_end()),
        None => {
            let cause = said
                .rsplit_once("Caused by:")
                .and_then(|(_, cause)| cause.lines().map(str::trim).find(|line| !line.is_empty()));
            bail!("{error}{}", cause.map_or_else(String::new, |cause| format!(" ({cause})")))
        }
    }
}
