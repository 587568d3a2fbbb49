//! Head's harness over base's sources: where base has no bench target yet, or one without infergate, head's bench files and
//! development dependencies are laid over base's checkout, so that the very change that adds them can be gated.
//!
//! Base keeps its own sources, dependencies and Cargo.lock. Packages that only the harness needs are added to it. A package
//! that base has may come in no other version and with no other numeric feature: what head upgrades would hide in base. A
//! package of the repository is taken from base's checkout, and never from the working tree.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use toml::{Table, Value as Toml};

use super::features::Features;
use super::lock_file::{field, packages};
use super::package::Package;
use super::{checkout_folder, features, lock_file, workspace};
use crate::wanted::{BenchTarget, MEMORY_TARGET};
use infergate_core::printable::first_of;
use infergate_core::text_file::read_text;
use infergate_core::worker::WorkerError;

mod manifest;

/// No manifest and no lock file is larger.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Files of a harness, and their bytes in all: more is no harness but somebody's data.
const MAX_FILES: usize = 1_000;
const MAX_BYTES: u64 = 64 << 20;

/// As many of them are named; the others are counted.
const NAMED: usize = 6;

/// Crates that compute, by the beginnings of their names: with another feature they compute otherwise.
const NUMERIC: [&str; 25] = [
    "accelerate",
    "blas",
    "burn",
    "candle",
    "cblas",
    "cubecl",
    "cudarc",
    "faer",
    "gemm",
    "ggml",
    "half",
    "intel-mkl",
    "llama",
    "matrixmultiply",
    "nalgebra",
    "ndarray",
    "openblas",
    "ort",
    "pulp",
    "rayon",
    "rten",
    "safetensors",
    "tch",
    "tract",
    "wide",
];

/// The two checkouts of a repository, by the folder of each.
#[derive(Debug, Clone, Copy)]
pub struct Checkouts<'a> {
    /// The working tree.
    pub head: &'a Path,
    /// What its harness is laid over.
    pub base: &'a Path,
}

impl Checkouts<'_> {
    /// Where a path of head lies in base; `None` where it is not of the repository.
    fn in_base(&self, of_head: &Path) -> Option<PathBuf> {
        let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Some(self.base.join(whole(of_head).strip_prefix(whole(self.head)).ok()?))
    }
}

/// Lays the harness of the package around `here` in head over the same package of base. Says what was done, for the verdict;
/// `None` where head has no such bench target either, and nothing was done.
///
/// # Errors
/// [`WorkerError::NotComparable`] where the harness would change what base is built from, or base lacks the package; a manifest
/// that cannot be read or written.
pub fn lay(target: &BenchTarget, checkouts: Checkouts, here: &Path) -> Result<Option<String>> {
    let Some(own) = workspace::of_bench(target, here)?.into_iter().next() else { return Ok(None) };
    let folder = own.manifest_path.parent().context("cargo does not say where the package is")?;
    let Some(base) = checkouts.in_base(folder).filter(|base| base.join("Cargo.toml").is_file()) else {
        let name = own.name;
        return not_comparable(format!("base has no package where head's {name} is, whose bench target it is"));
    };
    let before = features::of_all(&base)?;
    let were = [base.join("Cargo.toml"), lock_file::around(&base)?].map(|file| {
        let text = read_text(&file, MAX_FILE_BYTES).ok();
        (file, text)
    });
    let laid = put(target, &own, checkouts, (folder, &base), &before);
    if laid.is_err() {
        // The next bench target is laid over the same checkout, and would find what was refused there.
        for (file, text) in were.iter().filter_map(|(file, text)| Some((file, text.as_ref()?))) {
            checkout_folder::write(checkouts.base, file, text)?;
        }
    }
    laid.map(Some)
}

/// Lays the harness of head's package `own`, in the first of both folders, over the one in the second, whose packages have the features
/// `before`.
fn put(
    target: &BenchTarget,
    own: &Package,
    checkouts: Checkouts,
    (folder, base): (&Path, &Path),
    before: &Features,
) -> Result<String> {
    let all = bench_files(target, own, folder)?;
    let files = copy(&all, folder, base)?;
    let manifest = base.join("Cargo.toml");
    let mut table = table(&manifest)?;
    manifest::add_dependencies(&mut table, own, checkouts)?;
    manifest::add_targets(&mut table, target, own, (folder, &all))?;
    checkout_folder::write(checkouts.base, &manifest, &table.to_string())?;
    add_packages(&lock_file::around(folder)?, &lock_file::around(base)?, checkouts.base)?;
    let after = features::of_all(base).or_else(|error| match unlocked(&error) {
        Some(package) => not_comparable(format!(
            "head's harness needs another version of {package} than base's Cargo.lock has; upgrade it in a commit of its own, and compare with that"
        )),
        None => Err(error.context("base with head's harness")),
    })?;
    ensure_same(before, &after)?;
    let added = after.keys().filter(|package| !before.contains_key(*package)).count();
    let named = first_of(&files, NAMED, ", ");
    Ok(format!("head's harness was laid over it ({named}; {added} packages more)"))
}

/// Everything beside the bench targets' sources, below the package's folder. Of a bench target that lies among the package's own
/// sources its file alone: the others are what is compared.
fn bench_files(target: &BenchTarget, package: &Package, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = BTreeSet::new();
    for name in [target.target.as_str(), MEMORY_TARGET] {
        let Some(source) = package.bench(name).map(|bench| &bench.src_path) else { continue };
        let inside = source.starts_with(folder);
        ensure!(
            inside,
            "{}: lies outside its package, so base cannot get it; move it below the package",
            source.display()
        );
        match source.parent() {
            Some(beside) if beside != folder && !has_own_sources(package, folder, beside) => {
                collect(beside, &mut files)?
            }
            _ => drop(files.insert(source.clone())),
        }
    }
    let bytes = files.iter().filter_map(|file| fs::metadata(file).ok()).map(|file| file.len()).sum::<u64>();
    ensure!(
        files.len() <= MAX_FILES && bytes <= MAX_BYTES,
        "the folder of the bench targets holds {} files of {bytes} bytes, too many to lay over base; keep data elsewhere",
        files.len()
    );
    Ok(files.into_iter().collect())
}

/// Whether `beside` holds sources of the package's library or programs, or lies among them.
fn has_own_sources(package: &Package, folder: &Path, beside: &Path) -> bool {
    let kinds = ["bench", "test", "example"];
    let own = package.targets.iter().filter(|target| !kinds.iter().any(|kind| target.is(kind)));
    own.map(|target| &target.src_path).any(|source| {
        let around = source.parent().filter(|around| *around != folder);
        source.starts_with(beside) || around.is_some_and(|around| beside.starts_with(around))
    })
}

fn collect(folder: &Path, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    let cannot = || format!("{}: cannot be read", folder.display());
    for entry in fs::read_dir(folder).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        let kind = entry.file_type().with_context(cannot)?;
        if kind.is_dir() {
            collect(&entry.path(), files)?;
        } else if kind.is_file() {
            files.insert(entry.path());
        }
        ensure!(
            files.len() <= MAX_FILES,
            "{}: holds more than {MAX_FILES} files; keep data elsewhere",
            folder.display()
        );
    }
    Ok(())
}

/// Copies files from below `from` to the same places below `to`; gives their names there.
fn copy(files: &[PathBuf], from: &Path, to: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for file in files {
        let name = file.strip_prefix(from)?;
        let place = to.join(name);
        // A link among base's files would be followed out of the checkout.
        let linked = name.ancestors().any(|part| !part.as_os_str().is_empty() && to.join(part).is_symlink());
        ensure!(
            !linked,
            "base has a link where head's {} would lie; gate with --base-bin and --head-bin",
            name.display()
        );
        let copied = fs::create_dir_all(place.parent().unwrap_or(to)).and_then(|()| fs::copy(file, &place));
        copied.with_context(|| format!("{}: cannot be written", place.display()))?;
        names.push(name.to_string_lossy().into_owned());
    }
    Ok(names)
}

fn table(manifest: &Path) -> Result<Table> {
    let text = read_text(manifest, MAX_FILE_BYTES)?;
    text.parse().with_context(|| format!("{}: not TOML", manifest.display()))
}

/// The package of which cargo finds no version that everything fits which is locked.
fn unlocked(error: &anyhow::Error) -> Option<String> {
    let text = format!("{error:#}");
    let (_, package) = text.split_once("failed to select a version for")?;
    package.split('`').nth(1)?.split(' ').next().map(str::to_owned)
}

fn not_comparable<T>(why: String) -> Result<T> {
    Err(WorkerError::NotComparable(format!(
        "{why}; gate this change with --base-bin and --head-bin, or merge the harness first"
    ))
    .into())
}

/// Head's locked packages that the lock file `base` of the checkout `files` does not know. Cargo leaves out what nobody needs.
fn add_packages(head: &Path, base: &Path, files: &Path) -> Result<()> {
    if !head.is_file() || !base.is_file() {
        return Ok(());
    }
    // Of a git dependency base keeps the commit that it has: with two of them cargo would take either.
    let key = |package: &Toml| {
        let [name, version, source] =
            ["name", "version", "source"].map(|name| field(package, name).unwrap_or_default().to_owned());
        (name, version, source.split('#').next().unwrap_or_default().to_owned())
    };
    let mut lock = table(base)?;
    let known = packages(&lock);
    // A package of the repository has no source; base has its own.
    let is_missing =
        |package: &&Toml| package.get("source").is_some() && !known.iter().any(|known| key(known) == key(package));
    let of_head = table(head)?;
    let all = known.iter().chain(packages(&of_head).iter().filter(is_missing)).cloned().collect();
    lock.insert("package".into(), Toml::Array(all));
    checkout_folder::write(files, base, &lock.to_string())
}

fn ensure_same(before: &Features, after: &Features) -> Result<()> {
    for (package, features) in before {
        let Some(now) = after.get(package) else {
            return not_comparable(format!("head's harness would replace {package} of base by another version"));
        };
        let numeric = NUMERIC.iter().any(|name| package.starts_with(name));
        if let Some(feature) = now.difference(features).next().filter(|_| numeric) {
            return not_comparable(format!("head's harness would build {package} of base with the feature {feature}"));
        }
    }
    Ok(())
}
