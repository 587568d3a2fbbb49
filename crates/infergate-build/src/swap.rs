//! `--swap CRATE=VERSION|PATH|URL`: another version of one dependency, in a checkout of its own.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use semver::{Version, VersionReq};
use toml::{Table, Value};

use super::checkout_folder;
use super::lock_file::{cargo, field, packages, read, resolve};
use super::manifest::{self, dependency_sections, table};
use super::revision::Tree;
use super::workspace::Workspace;

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

    /// Makes the manifests require the version; `false` if none names the dependency.
    fn require(&self, version: &str, tree: &Tree) -> Result<bool> {
        let mut is_named = false;
        for manifest in tree.workspace()?.manifests() {
            let mut table = table(&manifest)?;
            let before = table.clone();
            for (name, value) in dependency_sections(&mut table).into_iter().flat_map(|section| section.iter_mut()) {
                if value.get("package").and_then(Value::as_str).unwrap_or(name) != self.name() {
                    continue;
                }
                let exactly = Value::from(format!("={version}"));
                match value {
                    Value::String(_) => *value = exactly,
                    Value::Table(dependency) if !dependency.contains_key("workspace") => {
                        drop(dependency.insert("version".into(), exactly));
                    }
                    _ => continue,
                }
                is_named = true;
            }
            if table != before {
                checkout_folder::write(&tree.files, &manifest, &table.to_string())?;
            }
        }
        Ok(is_named)
    }

    fn patch(&self, tree: &Tree, key: &str, value: &str) -> Result<()> {
        let manifest = tree.workspace()?.manifest();
        let mut table = table(&manifest)?;
        let source = Table::from_iter([(key.to_owned(), Value::from(value))]);
        manifest::entry(manifest::entry(&mut table, "patch")?, "crates-io")?
            .insert(self.name().to_owned(), source.into());
        checkout_folder::write(&tree.files, &manifest, &table.to_string())?;
        // What is locked is kept otherwise.
        cargo(&tree.folder()?, &["update", "--package", &self.spec], TOGETHER).with_context(|| self.cannot())
    }
}

/// Puts all of them in place in a checkout. Together, because crates can need each other's versions. `may_be_there`: one that is there already
/// is no mistake.
///
/// # Errors
/// What no manifest names, or cargo does not choose.
pub fn apply(swaps: &[Swap], tree: &Tree, may_be_there: bool) -> Result<()> {
    let (was, now) = put(swaps, tree)?;
    for swap in swaps {
        let name = swap.name();
        let is_chosen = match &swap.to {
            To::Version(version) => is_locked(&now, name, version),
            // Cargo notes a patch that nothing uses in the lock file, and says so in a warning alone.
            To::Path(_) | To::Git(_) => !is_unused(&now, name),
        };
        ensure!(
            is_chosen && (may_be_there || locked(&was, name) != locked(&now, name)),
            "{}: nothing changes: it is no dependency here, or it is that already, or its version does not fit; \
             `cargo tree --invert {name}` shows the version in use and who asks for it",
            swap.cannot(),
        );
    }
    Ok(())
}

/// The lock file before and after.
fn put(swaps: &[Swap], tree: &Tree) -> Result<(Table, Table)> {
    let (folder, lock) = (tree.folder()?, tree.workspace()?.lock_file());
    let was = if lock.is_file() { read(&lock)? } else { Table::new() };
    for swap in swaps {
        match &swap.to {
            To::Path(path) => swap.patch(tree, "path", &path.to_string_lossy())?,
            To::Git(url) => swap.patch(tree, "git", url)?,
            To::Version(_) => {}
        }
    }
    turn(swaps, tree, &folder, &lock)?;
    let all = || swaps.iter().map(Swap::cannot).collect::<Vec<_>>().join(" ");
    resolve(&folder, TOGETHER).with_context(all)?;
    move_back(swaps, &folder, &lock, &was)?;
    Ok((was, read(&lock)?))
}

/// What cargo moved with the swapped crates goes back as far as it fits: to a swapped version where the crate has it, else to the lowest
/// that is asked for.
fn move_back(swaps: &[Swap], folder: &Path, lock: &Path, was: &Table) -> Result<()> {
    let swapped = swaps.iter().filter_map(|swap| if let To::Version(to) = &swap.to { to.parse().ok() } else { None });
    let swapped: Vec<Version> = swapped.collect();
    for _ in 0..MOST_ROUNDS {
        let (now, all) = (read(lock)?, Workspace::load_with_dependencies(folder)?);
        let required = || all.packages.iter().flat_map(|package| &package.dependencies);
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
            // What a crate's own tests require binds nobody.
            let of = required().filter(|required| required.name == name && required.kind.as_deref() != Some("dev"));
            let lowest = of.filter_map(|required| lowest(&required.req)).max();
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

/// The lowest released version that fits a requirement.
fn lowest(required: &str) -> Option<Version> {
    let of = VersionReq::parse(required).ok()?.comparators.into_iter();
    let of = of.filter(|part| !matches!(part.op, semver::Op::Less | semver::Op::LessEq));
    of.map(|part| Version::new(part.major, part.minor.unwrap_or(0), part.patch.unwrap_or(0))).max()
}

/// To a version within what the manifests ask for; else they are made to ask for it. One that no manifest names is tried
/// again when the others are asked for.
fn turn(swaps: &[Swap], tree: &Tree, folder: &Path, lock: &Path) -> Result<()> {
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
            if !turned && !swap.require(version, tree)? {
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

const TOGETHER: &str = "; crates that need each other's versions are swapped together, with a --swap each";
