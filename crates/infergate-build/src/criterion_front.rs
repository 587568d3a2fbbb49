//! Benches of plain criterion or divan, as they are: in a checkout of ours the dependency becomes infergate's front of that name,
//! so that the executable is a worker. Nothing in the repository itself is changed.
//!
//! A dependency is renamed in the manifests and not patched for all packages: infergate's front needs criterion itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml::{Table, Value as Toml};

use super::bench_choice::names_ours;
use super::swap::{dependency_sections, manifests, resolve, table, write};
use super::workspace::{self, Dependency, Package};
use super::{bench_target, toolchain};
use crate::wanted::BenchTarget;
use infergate_core::text_file::read_text;

/// The front's package.
pub const PACKAGE: &str = "infergate-criterion";
const DIVAN: &str = "infergate-divan";

/// What a front stands for: criterion and what takes its place elsewhere, and divan.
const FRONTS: [(&str, &str); 6] = [
    ("criterion", PACKAGE),
    (CODSPEED, PACKAGE),
    ("codspeed-criterion-compat-walltime", PACKAGE),
    ("divan", DIVAN),
    ("codspeed-divan-compat", DIVAN),
    ("codspeed-divan-compat-walltime", DIVAN),
];

const CODSPEED: &str = "codspeed-criterion-compat";

/// The front's feature that takes profilers of other versions of criterion, which a worker leaves alone anyway.
const ANY_PROFILER: &str = "any_profiler";

/// The front builds with Rust 1.85 and newer.
const OLDEST_RUST: u32 = 85;

/// Keys of a dependency that say where it comes from.
const PLACE: [&str; 9] = ["version", "path", "git", "branch", "tag", "rev", "registry", "registry-index", "package"];

/// No source file is larger.
const MAX_SOURCE_BYTES: u64 = 16 << 20;
/// Modules of a bench target that are looked at.
const MOST_MODULES: usize = 100;

/// Whether a package, as cargo describes it, takes criterion from where everybody does, or through a helper.
pub fn takes_criterion(package: &Package) -> bool {
    names(package).any(|name| front(name).is_some()) || !package.helpers.is_empty()
}

/// Finds the helpers of each package of a workspace: those with criterion for all who take them, and what has one of those. Helpers to
/// which a front was put are told apart: their benches need no other.
pub fn note_helpers(packages: &mut [Package]) {
    let plain = helpers(packages, |name| front(name).is_some());
    let all = helpers(packages, |name| front(name).is_some() || name == PACKAGE || name == DIVAN);
    for (package, (plain, all)) in packages.iter_mut().zip(plain.into_iter().zip(all)) {
        (package.helpers, package.front_helpers) = (plain, all);
    }
}

/// Those of each package, by which packages are criterion.
fn helpers(packages: &[Package], is_criterion: impl Fn(&str) -> bool) -> Vec<BTreeSet<String>> {
    let mut helpers: BTreeSet<String> = BTreeSet::new();
    let is_helper = |helpers: &BTreeSet<String>, one: &Dependency| one.path.is_some() && helpers.contains(&one.name);
    loop {
        let gives = |one: &Dependency| one.kind.is_none() && (is_criterion(&one.name) || is_helper(&helpers, one));
        let is_new = |package: &&Package| !helpers.contains(&package.name) && package.dependencies.iter().any(gives);
        let new: Vec<String> = packages.iter().filter(is_new).map(|package| package.name.clone()).collect();
        if new.is_empty() {
            break;
        }
        helpers.extend(new);
    }
    let of_package = |package: &Package| {
        let taken = package.dependencies.iter().filter(|one| is_helper(&helpers, one));
        let taken = taken.map(|one| one.rename.as_ref().unwrap_or(&one.name));
        let own = package.targets.iter().find(|target| target.is("lib")).map(|library| &library.name);
        let all = taken.chain(own.filter(|_| helpers.contains(&package.name)));
        all.map(|name| name.replace('-', "_")).collect()
    };
    packages.iter().map(of_package).collect()
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

/// The text of a package's bench target: of its first file, and, where that names neither criterion nor divan, of the modules beside it.
pub fn source(package: &Package, bench: &str) -> Option<String> {
    let path = &package.bench(bench)?.src_path;
    let mut text = read_text(path, MAX_SOURCE_BYTES).ok()?;
    if names_ours(&text) {
        return Some(text);
    }
    let module = |line: &str| {
        Some(line.trim().trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';')?.trim().to_owned())
    };
    let modules: Vec<String> = text.lines().filter_map(module).take(MOST_MODULES).collect();
    let folder = path.parent().unwrap_or(Path::new(""));
    for name in modules {
        let places = [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")];
        let its = places.iter().find_map(|place| read_text(place, MAX_SOURCE_BYTES).ok());
        text.extend(its.map(|its| format!("\n{its}")));
    }
    Some(text)
}

/// Whether the benches of a package name CodSpeed's criterion and never criterion itself.
pub fn is_of_codspeed(package: &Package) -> bool {
    let text: String = package.benches().filter_map(|bench| source(package, &bench.name)).collect();
    let rest = text.replace("codspeed_criterion_compat", "");
    rest != text && !["criterion::", "crate criterion"].iter().any(|name| rest.contains(name))
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
        // What cargo takes for the repository's users. The criterion that other packages take, such as a profiler, has to be the front's.
        workspace::all_dependencies(folder)?;
    }
    let paths = manifests(folder, &lock)?;
    let packages = workspace::packages(folder)?.unwrap_or_default();
    let tables = paths.iter().map(|manifest| table(manifest)).collect::<Result<Vec<_>>>()?;
    let shared = tables.iter().find_map(|table| table.get("workspace")?.get("dependencies")?.as_table().cloned());
    let mut written = Vec::new();
    for (manifest, mut table) in paths.iter().zip(tables) {
        let before = table.clone();
        let own = packages.iter().find(|package| package.manifest_path == *manifest);
        rename(&mut table, shared.as_ref(), own.is_some_and(is_of_codspeed));
        if table != before {
            write(folder, manifest, &table)?;
            written.push((manifest, before));
        }
    }
    let resolved = resolve(folder, "").or_else(|error| {
        // The next bench target would be taken for one that has the front, and nobody would say why it does not build.
        written.iter().try_for_each(|(manifest, before)| write(folder, manifest, before))?;
        Err(error)
    });
    resolved.with_context(|| {
        let why = if toolchain::is_older_than(OLDEST_RUST, folder) {
            format!(", which needs Rust 1.{OLDEST_RUST} or newer")
        } else {
            String::new()
        };
        format!("criterion cannot be replaced by infergate's front{why}")
    })
}

fn package_of(name: &str, value: &Toml) -> String {
    value.get("package").and_then(Toml::as_str).unwrap_or(name).to_owned()
}

/// The front takes the place of what it stands for. `shared` are the dependencies that the workspace's root has for its members: there
/// all are replaced, since each member takes its own.
fn rename(manifest: &mut Table, shared: Option<&Table>, is_of_codspeed: bool) {
    let mut fronts = FRONTS;
    fronts.sort_by_key(|(name, _)| is_of_codspeed && *name != CODSPEED);
    let mut of_members = manifest.get_mut("workspace").and_then(|own| own.as_table_mut()?.remove("dependencies"));
    for (name, value) in of_members.iter_mut().filter_map(Toml::as_table_mut).flatten() {
        if let Some(front) = front(&package_of(name, value)) {
            *value = in_place(front, value);
        }
    }
    let mut sections = dependency_sections(manifest);
    let inherited = |name: &str, value: &Toml| shared?.get(name).filter(|_| value.get("workspace").is_some()).cloned();
    let package = |name: &str, value: &Toml| package_of(name, inherited(name, value).as_ref().unwrap_or(value));
    let all = sections.iter().flat_map(|section| section.iter());
    // A front that the repository has itself took the place of nothing.
    let counts = |name: &str, value: &Toml| {
        let front = [PACKAGE, DIVAN].into_iter().find(|front| package(name, value) == *front);
        front.is_none_or(|front| is_in_place(front, inherited(name, value).as_ref().unwrap_or(value)))
    };
    let own: BTreeSet<String> =
        all.filter(|(name, value)| counts(name, value)).map(|(name, value)| package(name, value)).collect();
    for (name, value) in sections.iter_mut().flat_map(|section| section.iter_mut()) {
        let package = package(name, value);
        let Some(front) = front(&package) else { continue };
        // Cargo takes no package under two names. Beside criterion itself stays what takes its place where a feature says so, and
        // beside CodSpeed's criterion itself where no bench names that. An earlier bench target can have brought the front.
        let mut before = fronts.iter().take_while(|(before, _)| *before != package);
        let is_second = own.contains(front) || before.any(|(other, of)| *of == front && own.contains(*other));
        match inherited(name, value) {
            Some(theirs) if is_second => *value = with_keys_of(value, theirs),
            None if !is_second => *value = in_place(front, value),
            _ => {}
        }
    }
    if let (Some(of_members), Some(workspace)) =
        (of_members, manifest.get_mut("workspace").and_then(Toml::as_table_mut))
    {
        workspace.insert("dependencies".into(), of_members);
    }
}

/// A member's dependency with what it inherited written out.
fn with_keys_of(own: &Toml, theirs: Toml) -> Toml {
    let mut keys = match theirs {
        Toml::Table(keys) => keys,
        version => Table::from_iter([("version".to_owned(), version)]),
    };
    let own = own.as_table().into_iter().flatten().filter(|(key, _)| *key != "workspace");
    keys.extend(own.map(|(key, value)| (key.clone(), value.clone())));
    Toml::Table(keys)
}

/// A dependency of which the front takes the place.
fn in_place(front: &str, value: &Toml) -> Toml {
    let mut dependency = value.as_table().cloned().unwrap_or_default();
    PLACE.iter().for_each(|key| drop(dependency.remove(*key)));
    dependency.insert("package".into(), Toml::from(front));
    dependency.extend(place(front).into_iter().map(|(key, value)| (key.to_owned(), Toml::from(value))));
    if front == PACKAGE {
        let features = dependency.entry("features").or_insert_with(|| Toml::Array(Vec::new()));
        if let Some(features) = features.as_array_mut() {
            features.push(Toml::from(ANY_PROFILER));
        }
    }
    Toml::Table(dependency)
}

/// Where the front comes from. Of a command that came as a file alone: of the commit that it was built from, or of its release.
fn place(front: &str) -> Vec<(&'static str, String)> {
    match (own_folder(front), option_env!("INFERGATE_COMMIT")) {
        (Some(folder), _) => vec![("path", folder.to_string_lossy().into_owned())],
        (None, Some(commit)) => vec![("git", env!("CARGO_PKG_REPOSITORY").to_owned()), ("rev", commit.to_owned())],
        (None, None) => vec![("version", concat!("=", env!("CARGO_PKG_VERSION")).to_owned())],
    }
}

/// Whether a dependency on the front is one that took something's place.
fn is_in_place(front: &str, value: &Toml) -> bool {
    place(front).iter().all(|(key, text)| value.get(key).and_then(Toml::as_str) == Some(text.as_str()))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What each name is afterwards, of a manifest that is renamed as often as it has bench targets.
    fn renamed(dependencies: &str, times: usize) -> Vec<(String, String)> {
        let mut manifest: Table = format!("[dev-dependencies]\n{dependencies}").parse().expect("TOML");
        (0..times).for_each(|_| rename(&mut manifest, None, false));
        let sections = dependency_sections(&mut manifest);
        let all = sections.iter().flat_map(|section| section.iter());
        all.map(|(name, value)| (name.clone(), package_of(name, value))).collect()
    }

    #[test]
    fn a_front_of_the_repository_itself_keeps_none_from_its_place() {
        let named = |name: &str, package: &str| (name.to_owned(), package.to_owned());
        for times in [1, 2] {
            let own = renamed("criterion = '0.5'\ninfergate-criterion = { version = '0.0.1' }\n", times);
            assert_eq!(own, [named("criterion", PACKAGE), named(PACKAGE, PACKAGE)]);
        }
    }
}
