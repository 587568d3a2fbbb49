//! Benches of plain criterion or divan, as they are: in a checkout of ours the dependency becomes infergate's front of that name,
//! so that the executable is a worker. Nothing in the repository itself is changed.
//!
//! A dependency is renamed in the manifests and not patched for all packages: infergate's front needs criterion itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml::{Table, Value as Toml};

use super::swap::{dependency_sections, manifests, resolve, table, write};
use super::workspace::{self, Package};
use super::{bench_target, cargo_settings, toolchain};
use crate::config::BenchTarget;
use infergate_core::text_file::read_text;

/// The front's package.
pub const PACKAGE: &str = "infergate-criterion";
const DIVAN: &str = "infergate-divan";

/// What a front stands for: criterion and what takes its place elsewhere, and divan.
const FRONTS: [(&str, &str); 5] = [
    ("criterion", PACKAGE),
    ("codspeed-criterion-compat", PACKAGE),
    ("criterion2", PACKAGE),
    ("divan", DIVAN),
    ("codspeed-divan-compat", DIVAN),
];

/// The front builds with Rust 1.85 and newer.
const OLDEST_RUST: u32 = 85;

/// Keys of a dependency that say where it comes from.
const PLACE: [&str; 9] = ["version", "path", "git", "branch", "tag", "rev", "registry", "registry-index", "package"];

/// No source file is larger.
const MAX_SOURCE_BYTES: u64 = 16 << 20;

/// Whether a package, as cargo describes it, takes criterion from where everybody does.
pub fn takes_criterion(package: &Package) -> bool {
    names(package).any(|name| front(name).is_some())
}

/// Whether it takes it from infergate, or is infergate.
pub fn takes_infergate(package: &Package) -> bool {
    let is_own = |name: &str| name == "infergate" || name == PACKAGE || name == DIVAN;
    is_own(&package.name) || names(package).any(is_own)
}

/// The front that takes the place of a package.
fn front(package: &str) -> Option<&'static str> {
    FRONTS.into_iter().find(|(name, _)| *name == package).map(|(_, front)| front)
}

fn names(package: &Package) -> impl Iterator<Item = &str> {
    package.dependencies.iter().map(|one| one.name.as_str())
}

/// Whether the bench target in `folder` is one of plain criterion: it cannot be a worker before it has the front.
///
/// # Errors
/// When cargo does not start.
pub fn is_plain(target: &BenchTarget, folder: &Path) -> Result<bool> {
    let packages = workspace::of_bench(target, folder)?;
    Ok(packages.iter().any(|package| {
        let names_infergate = || source(package, &target.target).is_some_and(|text| text.contains("infergate"));
        takes_criterion(package) && !(takes_infergate(package) && names_infergate())
    }))
}

/// The text of a package's bench target.
pub fn source(package: &Package, bench: &str) -> Option<String> {
    read_text(&package.bench(bench)?.src_path, MAX_SOURCE_BYTES).ok()
}

/// The feature of a bench target's dependency that counts its heap. `None` where it takes criterion from somewhere else than the front.
///
/// # Errors
/// When cargo does not start.
pub fn counting(target: &BenchTarget, folder: &Path) -> Result<Option<String>> {
    let packages = workspace::of_bench(target, folder)?;
    let mut dependencies = packages.iter().flat_map(|package| &package.dependencies);
    let front = dependencies.find(|dependency| dependency.name == PACKAGE);
    let name = front.map(|front| front.rename.as_ref().unwrap_or(&front.name));
    Ok(name.map(|name| format!("{name}/counting")))
}

/// Puts the front into the checkout around `folder`, in every manifest of its workspace. All other versions stay as its Cargo.lock
/// has them.
///
/// # Errors
/// A manifest that cannot be read or written; what cargo cannot resolve.
pub fn put(folder: &Path) -> Result<()> {
    let lock = bench_target::lock_file(folder)?;
    if !lock.is_file() {
        // The criterion that other packages take, such as a profiler, has to be the front's.
        resolve(folder, "")?;
    }
    for manifest in manifests(folder, &lock)? {
        let mut manifest_table = table(&manifest)?;
        if rename(&mut manifest_table) {
            write(folder, &manifest, &manifest_table)?;
        }
    }
    resolve(folder, "").with_context(|| {
        let why = if toolchain::is_older_than(OLDEST_RUST, folder) {
            format!(", which needs Rust 1.{OLDEST_RUST} or newer")
        } else if let Some(vendored) = cargo_settings::vendored(folder) {
            format!(
                ", which is not in '{vendored}': have {PACKAGE} in Cargo.toml in its place, and run cargo vendor again"
            )
        } else {
            String::new()
        };
        format!("criterion cannot be replaced by infergate's front{why}")
    })
}

/// Whether there was something to rename.
fn rename(manifest: &mut Table) -> bool {
    let mut found = false;
    let mut sections = dependency_sections(manifest);
    let package_of = |name: &str, value: &Toml| value.get("package").and_then(Toml::as_str).unwrap_or(name).to_owned();
    let all = sections.iter().flat_map(|section| section.iter());
    let own: BTreeSet<String> = all.map(|(name, value)| package_of(name, value)).collect();
    for (name, value) in sections.iter_mut().flat_map(|section| section.iter_mut()) {
        let package = package_of(name, value);
        let is_inherited = value.get("workspace").is_some();
        let Some(front) = front(&package).filter(|_| !is_inherited) else { continue };
        // Cargo takes no package under two names. Beside criterion itself stays what takes its place where a feature says so.
        if FRONTS
            .iter()
            .take_while(|(before, _)| *before != package)
            .any(|(other, of)| *of == front && own.contains(*other))
        {
            continue;
        }
        let mut dependency = value.as_table().cloned().unwrap_or_default();
        PLACE.iter().for_each(|key| drop(dependency.remove(*key)));
        dependency.insert("package".into(), Toml::from(front));
        // Of a command that came as a file alone: of the commit that it was built from, or of its release.
        let place = match (own_folder(front), option_env!("INFERGATE_COMMIT")) {
            (Some(folder), _) => vec![("path", folder.to_string_lossy().into_owned())],
            (None, Some(commit)) => vec![("git", env!("CARGO_PKG_REPOSITORY").to_owned()), ("rev", commit.to_owned())],
            (None, None) => vec![("version", concat!("=", env!("CARGO_PKG_VERSION")).to_owned())],
        };
        dependency.extend(place.into_iter().map(|(key, value)| (key.to_owned(), Toml::from(value))));
        *value = Toml::Table(dependency);
        found = true;
    }
    found
}

/// The front among the sources that this command was built from, where they are still there.
fn own_folder(front: &str) -> Option<PathBuf> {
    own_source().map(|root| root.join("crates").join(front)).filter(|folder| folder.join("Cargo.toml").is_file())
}

/// The folder of infergate's sources that this command was built from, where it is still there.
pub fn own_source() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?.parent()?;
    let manifest = fs::read_to_string(root.join("Cargo.toml")).ok()?;
    manifest.contains("name = \"infergate\"").then(|| root.to_owned())
}
