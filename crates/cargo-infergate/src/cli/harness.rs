//! Head's harness over base's sources: where base has no bench target yet, or one without infergate, head's bench files and
//! development dependencies are laid over base's checkout, so that the very change that adds them can be gated.
//!
//! Base keeps its own sources, dependencies and Cargo.lock. Packages that only the harness needs are added to it. A package
//! that base has may come in no other version and with no other numeric feature: what head upgrades would hide in base.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use toml::{Table, Value as Toml};

use super::features::Features;
use super::{bench_target, features};
use crate::config::BenchTarget;
use infergate::text_file::read_text;
use infergate::worker::WorkerError;

/// No manifest and no lock file is larger.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Files of a harness, and their bytes in all: more is no harness but somebody's data.
const MAX_FILES: usize = 1_000;
const MAX_BYTES: u64 = 64 << 20;

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

/// Lays the harness of the package in `head` over the one in `base`. Says what was done, for the verdict; `None` where head has
/// no such bench target either, and nothing was done.
///
/// # Errors
/// [`WorkerError::NotComparable`] where the harness would change what base is built from; a manifest that cannot be read or
/// written.
pub fn lay(target: &BenchTarget, head: &Path, base: &Path) -> Result<Option<String>> {
    let Some(own) = own_package(target, head)? else { return Ok(None) };
    let before = features::of_all(base)?;
    let folder = manifest_folder(&own)?;
    let files = copy(&bench_files(target, &own, &folder)?, &folder, base)?;
    let manifest = base.join("Cargo.toml");
    let mut table = table(&manifest)?;
    add_dependencies(&mut table, &own, base)?;
    add_targets(&mut table, target, &own, &folder)?;
    write(&manifest, &table.to_string())?;
    add_packages(&bench_target::lock_file(head)?, &bench_target::lock_file(base)?)?;
    let after = features::of_all(base).or_else(|error| match unlocked(&error) {
        Some(package) => not_comparable(format!(
            "head's harness needs another version of {package} than base's Cargo.lock has; upgrade it in a commit of its own, and compare with that"
        )),
        None => Err(error.context("base with head's harness")),
    })?;
    ensure_same(&before, &after)?;
    let added = after.keys().filter(|package| !before.contains_key(*package)).count();
    Ok(Some(format!("head's harness was laid over it ({}; {added} packages more)", files.join(", "))))
}

/// Head's package with the bench target, by cargo's metadata.
fn own_package(target: &BenchTarget, head: &Path) -> Result<Option<Value>> {
    let metadata = bench_target::metadata(head)?;
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    let wanted = |package: &Value| target.package.as_ref().is_none_or(|name| package["name"] == **name);
    Ok(packages.into_iter().find(|package| wanted(package) && bench(package, &target.target).is_some()))
}

fn bench<'p>(package: &'p Value, name: &str) -> Option<&'p Value> {
    let targets = package["targets"].as_array()?;
    targets.iter().find(|target| target["kind"][0] == "bench" && target["name"] == name)
}

fn manifest_folder(package: &Value) -> Result<PathBuf> {
    let manifest = package["manifest_path"].as_str().map(PathBuf::from);
    manifest.as_deref().and_then(Path::parent).map(Path::to_owned).context("cargo does not say where the package is")
}

/// Everything beside the bench targets' sources, below the package's folder.
fn bench_files(target: &BenchTarget, package: &Value, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = BTreeSet::new();
    for name in [&target.target, &target.memory_target] {
        let Some(source) = bench(package, name).and_then(|bench| bench["src_path"].as_str()).map(PathBuf::from) else {
            continue;
        };
        let inside = source.starts_with(folder);
        ensure!(
            inside,
            "{}: lies outside its package, so base cannot get it; move it below the package",
            source.display()
        );
        match source.parent() {
            Some(beside) if beside != folder => collect(beside, &mut files)?,
            _ => drop(files.insert(source)),
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

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("{}: cannot be written", path.display()))
}

/// Head's development dependencies that base does not have, as cargo understood them.
fn add_dependencies(manifest: &mut Table, own: &Value, base: &Path) -> Result<()> {
    let root = PathBuf::from(own["manifest_path"].as_str().unwrap_or_default());
    let all = own["dependencies"].as_array().cloned().unwrap_or_default();
    for dependency in all.iter().filter(|dependency| dependency["kind"] == "dev") {
        let name = dependency["rename"].as_str().or(dependency["name"].as_str()).unwrap_or_default().to_owned();
        let value = as_toml(dependency, root.parent().unwrap_or(&root), base)?;
        let section = match dependency["target"].as_str() {
            Some(platform) => entry(entry(manifest, "target")?, platform)?,
            None => &mut *manifest,
        };
        entry(section, "dev-dependencies")?.entry(name).or_insert(value);
    }
    Ok(())
}

fn entry<'t>(table: &'t mut Table, name: &str) -> Result<&'t mut Table> {
    let value = table.entry(name).or_insert_with(|| Toml::Table(Table::new()));
    value.as_table_mut().with_context(|| format!("base's Cargo.toml: {name} is no table"))
}

fn as_toml(dependency: &Value, head: &Path, base: &Path) -> Result<Toml> {
    let mut table = Table::new();
    let mut put = |key: &str, text: &str| drop(table.insert(key.to_owned(), Toml::from(text)));
    let name = dependency["name"].as_str().unwrap_or_default();
    match dependency["req"].as_str() {
        Some("*") | None => {}
        Some(version) => put("version", version),
    }
    if dependency["rename"].is_string() {
        put("package", name);
    }
    if let Some(path) = dependency["path"].as_str().map(Path::new) {
        // A package of the repository itself is what is compared: base's own, or none.
        let in_base = path.strip_prefix(head).ok().map(|below| base.join(below));
        match in_base {
            Some(place) if place.is_dir() => put("path", &place.to_string_lossy()),
            Some(_) => not_comparable(format!(
                "head's harness needs the package {name} of this repository, and base has none"
            ))?,
            None => put("path", &path.to_string_lossy()),
        }
    } else if let Some(git) = dependency["source"].as_str().and_then(|source| source.strip_prefix("git+")) {
        let (url, query) = git.split_once('?').unwrap_or((git, ""));
        put("git", url.split('#').next().unwrap_or(url));
        if let Some((key @ ("branch" | "tag" | "rev"), value)) =
            query.split('#').next().and_then(|query| query.split_once('='))
        {
            put(key, value);
        }
    }
    if dependency["uses_default_features"] == false {
        table.insert("default-features".into(), Toml::Boolean(false));
    }
    let features: Vec<Toml> = dependency["features"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|name| Some(Toml::from(name.as_str()?)))
        .collect();
    if !features.is_empty() {
        table.insert("features".into(), Toml::Array(features));
    }
    Ok(Toml::Table(table))
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

fn add_targets(manifest: &mut Table, target: &BenchTarget, own: &Value, folder: &Path) -> Result<()> {
    let benches = manifest.entry("bench").or_insert_with(|| Toml::Array(Vec::new()));
    let benches = benches.as_array_mut().context("base's Cargo.toml: bench is no list of targets")?;
    for name in [&target.target, &target.memory_target] {
        let Some(source) = bench(own, name).and_then(|bench| bench["src_path"].as_str()) else { continue };
        let path = Path::new(source).strip_prefix(folder)?.to_string_lossy().into_owned();
        benches.retain(|known| known.get("name").and_then(Toml::as_str) != Some(name));
        let mut bench = Table::new();
        bench.insert("name".into(), Toml::from(name.as_str()));
        bench.insert("path".into(), Toml::from(path));
        bench.insert("harness".into(), Toml::Boolean(false));
        benches.push(Toml::Table(bench));
    }
    Ok(())
}

/// Head's locked packages that base's lock file does not know. Cargo leaves out what nobody needs.
fn add_packages(head: &Path, base: &Path) -> Result<()> {
    if !head.is_file() || !base.is_file() {
        return Ok(());
    }
    let packages = |table: &Table| table.get("package").and_then(Toml::as_array).cloned().unwrap_or_default();
    let key = |package: &Toml| ["name", "version", "source"].map(|field| package.get(field).cloned());
    let mut lock = table(base)?;
    let mut all = packages(&lock);
    // A package of the repository has no source; base has its own.
    let missing: Vec<Toml> = packages(&table(head)?)
        .into_iter()
        .filter(|package| package.get("source").is_some() && !all.iter().any(|known| key(known) == key(package)))
        .collect();
    all.extend(missing);
    lock.insert("package".into(), Toml::Array(all));
    write(base, &lock.to_string())
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
