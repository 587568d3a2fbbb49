//! Chooses the bench targets that a gate measures: those that are named, or all that may be criterion's or divan's by Cargo.toml. Whether a
//! target is a worker shows once it is built and started.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail, ensure};
use toml::Value as Toml;
use wildmatch::WildMatch;

use super::git::git;
use super::manifest;
use super::workspace::{Package, Workspace, is_infergate, is_plain};
use crate::workspace::{BenchTarget, MEMORY_TARGET};
use infergate_core::printable::first_of;
use infergate_core::worker::WorkerError;

/// The most names in a message.
const MOST_NAMES: usize = 12;

/// Why a bench target is skipped.
const NO_FRAMEWORK: &str = "its package depends on neither criterion nor divan";
const NO_MAIN: &str = "no 'harness = false' in Cargo.toml";
const OFF: &str = "'bench = false' in Cargo.toml, and not named with --bench-target";
const ENGINE_IS_ALONE: &str = "an engine's bench target is gated alone; name others with --bench-target";

/// Bench targets to gate.
#[derive(Default)]
pub struct Chosen {
    pub benches: Vec<BenchTarget>,
    /// The targets that were selected and cannot be gated: a line for each reason.
    pub skipped: Vec<String>,
    /// They are criterion's or divan's, so they know their cases themselves.
    pub are_criterion_or_divan: bool,
    /// The globs that selected them; empty for one that is gated alone.
    patterns: Vec<WildMatch>,
}

impl Chosen {
    /// A single target without a workspace.
    pub fn one(bench: BenchTarget) -> Self {
        Self { benches: vec![bench], ..Self::default() }
    }
}

/// A bench target.
struct Found {
    bench: BenchTarget,
    package: String,
    /// Why it is skipped.
    skipped: Option<&'static str>,
}

/// The bench targets to gate: the one that is named, or those that a list of names and globs names. If nobody named one: an engine's of the
/// usual name, else all. `workspace` is the one around the current folder.
///
/// # Errors
/// A name or glob that names none, with those there are and why others are skipped.
pub fn choose(target: &BenchTarget, workspace: &Workspace) -> Result<Chosen> {
    let packages = selected(target, workspace);
    let is_of_none = |feature: &&String| {
        !feature.contains('/') && !packages.iter().any(|package| package.features.contains_key(*feature))
    };
    if let Some(unknown) = target.features.iter().find(is_of_none).filter(|_| packages.len() > 1) {
        bail!("--bench-features: '{unknown}' is a feature of no package here");
    }
    let found = of_packages(target, &packages, workspace);
    if target.target.contains([',', '*', '?']) {
        return listed(&target.target, &found);
    }
    let named = workspace.with_bench(target);
    // A target of the usual name in a package that has criterion and no infergate is criterion's.
    let is_engines = |package: &&Package| {
        !depends_on_framework(package, workspace) || workspace.package_depends_on(package, &|name| name == "infergate")
    };
    let is_engine = named.iter().any(is_engines);
    // Where there is none base may have one. If it has none either, the error says so.
    if !(target.is_named || is_engine || found.is_empty()) {
        return listed("*", &found).map_err(|error| WorkerError::NotComparable(format!("{error:#}")).into());
    }
    let own = innermost(&named);
    let packages: Vec<&str> = named.iter().map(|package| package.name.as_str()).collect();
    ensure!(
        named.len() < 2 || own.is_some(),
        "bench target '{}' is one of several packages: {}; name one with --bench-package, or gate all with --bench-target '*'",
        target.target,
        first_of(&packages, MOST_NAMES, ", ")
    );
    // Cargo would build all of that name.
    let package = own.filter(|_| named.len() > 1).map(|own| own.name.clone()).or_else(|| target.package.clone());
    let mut chosen = Chosen::one(BenchTarget { package, ..target.clone() });
    if target.is_named {
        let lacks_main = |one: &Found| one.bench.target == target.target && one.skipped == Some(NO_MAIN);
        ensure!(!found.iter().any(lacks_main), "bench target '{}': {NO_MAIN}; add it to its [[bench]]", target.target);
        chosen.are_criterion_or_divan = !named.is_empty() && !is_engine;
    } else {
        let is_other = |one: &&Found| ![&target.target, MEMORY_TARGET].contains(&one.bench.target.as_str());
        let others = found.iter().filter(|one| one.skipped.is_none()).filter(is_other);
        chosen.skipped = lines(others.map(|one| (ENGINE_IS_ALONE, one)));
    }
    Ok(chosen)
}

/// The targets of `found` that a list of names and globs selects.
fn listed(patterns: &str, found: &[Found]) -> Result<Chosen> {
    let names: Vec<&str> = patterns.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    ensure!(!names.is_empty(), "--bench-target: names no bench target; give a name or a glob such as '*'");
    let patterns: Vec<WildMatch> = names.iter().map(|name| WildMatch::new(name)).collect();
    let is_usable =
        |one: &&Found| one.skipped.is_none_or(|why| why == OFF && names.contains(&one.bench.target.as_str()));
    for (name, glob) in names.iter().zip(&patterns) {
        let matching: Vec<&Found> = found.iter().filter(|one| glob.matches(&one.bench.target)).collect();
        ensure!(
            matching.iter().any(is_usable),
            "--bench-target: '{name}' names no bench target that can be gated; there are {}",
            shown(if matching.is_empty() { found.iter().collect() } else { matching })
        );
    }
    let matching = found.iter().filter(|one| patterns.iter().any(|glob| glob.matches(&one.bench.target)));
    let (usable, others): (Vec<&Found>, Vec<&Found>) = matching.partition(is_usable);
    let benches = usable.into_iter().map(|one| one.bench.clone()).collect();
    let skipped = lines(others.into_iter().filter_map(|one| Some((one.skipped?, one))));
    Ok(Chosen { benches, skipped, are_criterion_or_divan: true, patterns })
}

/// Selected bench targets that `base` has and `head`, the workspace here, lacks, each in a sentence.
pub fn removed_targets(chosen: &Chosen, target: &BenchTarget, base: &Workspace, head: &Workspace) -> Vec<String> {
    let packages = selected(target, head);
    let all = of_packages(target, &base.packages.iter().collect::<Vec<_>>(), base).into_iter().filter(|one| {
        let name = &one.bench.target;
        let is_removed = |own: &&Package| own.name == one.package && own.bench(name).is_none();
        let is_selected = chosen.patterns.iter().any(|glob| glob.matches(name));
        one.skipped.is_none() && is_selected && packages.iter().any(is_removed)
    });
    all.map(|one| format!("bench target '{}': not compared, only base has it", one.bench.name())).collect()
}

fn depends_on_framework(package: &Package, workspace: &Workspace) -> bool {
    workspace.package_depends_on(package, &|name| is_plain(name) || is_infergate(name))
}

/// `not gated: own, other: no 'harness = false' in Cargo.toml`.
fn lines<'f>(skipped: impl Iterator<Item = (&'static str, &'f Found)>) -> Vec<String> {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (why, one) in skipped {
        by_reason.entry(why).or_default().push(one.bench.name());
    }
    let line = |(why, names): (&str, Vec<String>)| format!("not gated: {}: {why}", first_of(&names, MOST_NAMES, ", "));
    by_reason.into_iter().map(line).collect()
}

/// `parse; own (no 'harness = false' in Cargo.toml)`: targets that can be gated come first.
fn shown(mut found: Vec<&Found>) -> String {
    found.sort_by_key(|one| one.skipped.is_some());
    let name = |one: &&Found| match one.skipped {
        Some(why) => format!("{} ({why})", one.bench.name()),
        None => one.bench.name(),
    };
    first_of(&found.iter().map(name).collect::<Vec<_>>(), MOST_NAMES, "; ")
}

/// The package that is named, else the one around the current folder, else all of the workspace. The root package is skipped if it has no
/// bench, or if a list or glob names benches.
fn selected<'w>(target: &BenchTarget, workspace: &'w Workspace) -> Vec<&'w Package> {
    let packages: Vec<&Package> = workspace.packages.iter().filter(|package| package.is_selected_by(target)).collect();
    let is_list = target.target.contains([',', '*', '?']);
    let is_meant = |own: &&Package| {
        let has_below = packages.iter().any(|it| it.name != own.name && own.is_around(&it.manifest_path));
        let has_some = || of_packages(target, &[*own], workspace).iter().any(|one| one.skipped.is_none());
        !(is_list && has_below) && has_some()
    };
    innermost(&packages).filter(is_meant).map_or_else(|| packages.clone(), |own| vec![own])
}

/// The innermost package around the current folder: a root package has others below it.
fn innermost<'p>(packages: &[&'p Package]) -> Option<&'p Package> {
    let around = packages.iter().filter(|package| package.is_around(Path::new(".")));
    around.max_by_key(|package| package.manifest_path.components().count()).copied()
}

/// The bench targets of these packages. The package is added if several have that name, here or in the whole `workspace`: cargo could take
/// any.
fn of_packages(target: &BenchTarget, packages: &[&Package], workspace: &Workspace) -> Vec<Found> {
    let is_one_of_several = packages.len() > 1;
    let of_package = |package: &Package| -> Vec<Found> {
        let manifest = manifest::table(&package.manifest_path).unwrap_or_default();
        let depends_on_framework = depends_on_framework(package, workspace);
        let is_off = |name: &str, key: &str| {
            let mut benches = manifest.get("bench").and_then(Toml::as_array).into_iter().flatten();
            let own = benches.find(|bench| bench.get("name").and_then(Toml::as_str) == Some(name));
            own.and_then(|own| own.get(key)?.as_bool()) == Some(false)
        };
        let found = package.benches().map(|built| {
            let name = built.name.clone();
            let skipped = if !depends_on_framework {
                Some(NO_FRAMEWORK)
            } else if is_off(&name, "bench") {
                Some(OFF)
            } else {
                (!is_off(&name, "harness")).then_some(NO_MAIN)
            };
            let of_name = workspace.packages.iter().filter(|other| other.bench(&name).is_some());
            let is_named = is_one_of_several || of_name.count() > 1;
            let of = if is_named { Some(package.name.clone()) } else { target.package.clone() };
            // Cargo refuses features that the package does not have.
            let is_known = |feature: &&String| {
                !is_one_of_several || feature.contains('/') || package.features.contains_key(*feature)
            };
            let features = target.features.iter().filter(is_known).cloned().collect();
            let bench = BenchTarget { package: of, target: name, features, ..target.clone() };
            Found { bench, package: package.name.clone(), skipped }
        });
        found.collect()
    };
    packages.iter().copied().flat_map(of_package).collect()
}

/// What to do about a bench target that the working tree lacks.
pub fn remedy(target: &BenchTarget, here: &Workspace) -> String {
    let selected = here.packages.iter().filter(|package| package.is_selected_by(target));
    let names: Vec<&str> = selected.flat_map(Package::benches).map(|bench| bench.name.as_str()).collect();
    if !names.is_empty() {
        return format!("name one with --bench-target: {}", first_of(&names, MOST_NAMES, ", "));
    }
    // Packages that git knows below this folder: no workspace here need have them.
    let listed = git(Path::new("."), &["ls-files", "--", "*/Cargo.toml"]).unwrap_or_default();
    let below: Vec<&str> = listed.lines().filter_map(|line| line.strip_suffix("/Cargo.toml")).collect();
    let below = if below.is_empty() { String::new() } else { format!(": {}", first_of(&below, MOST_NAMES, ", ")) };
    format!("there are no benches here; add one with `init`, or go to another package{below}")
}
