//! Which bench targets a gate measures: those that are named, or all that it can.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use toml::{Table, Value as Toml};
use wildmatch::WildMatch;

use super::bench_names::packages_below;
use super::frameworks::{self, names_ours, source, takes_criterion, takes_infergate, uses_ours};
use super::package::Package;
use super::{git, manifest};
use crate::wanted::{BenchTarget, MEMORY_TARGET};
use infergate_core::printable::first_of;
use infergate_core::worker::WorkerError;

/// No file of a bench is larger.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Bench targets that a line names.
const MOST_NAMED: usize = 5;

/// A bench target, and what it lacks to be gated.
struct Found {
    bench: BenchTarget,
    lacks: Option<String>,
}

/// Bench targets to gate.
pub struct Chosen {
    pub benches: Vec<BenchTarget>,
    /// Those that are asked for and cannot be gated: a line for each thing that some lack.
    pub left: Vec<String>,
    /// They are of criterion or divan: what cases there are is theirs to say.
    pub are_criterions: bool,
}

impl Chosen {
    /// One alone, of which nothing else is known.
    pub fn one(bench: BenchTarget) -> Self {
        Self { benches: vec![bench], left: Vec::new(), are_criterions: false }
    }
}

/// The bench targets to gate: the one that is named, or those that a list of names and globs names. Where nobody named one: an engine's of
/// the usual name, else all that use criterion. `here` are the packages around `folder`.
///
/// # Errors
/// A name or glob that names none, with those there are and what each lacks.
pub fn benches(target: &BenchTarget, folder: &Path, here: &[Package]) -> Result<Chosen> {
    let is_list = target.target.contains([',', '*', '?']);
    let named = if is_list { Vec::new() } else { of_bench(target, here) };
    let is_one = !is_list && is_one(target, &named);
    if is_one && named.len() > 1 && target.package.is_none() && !named.iter().any(|package| package.is_around(folder)) {
        let packages: Vec<&str> = named.iter().map(|package| package.name.as_str()).collect();
        let shown = first_of(&packages, MOST_NAMED, ", ");
        bail!(
            "bench target '{}' is one of several packages: {shown}; name one with --bench-package, or gate all with --bench-target '*'",
            target.target
        );
    }
    // Cargo would build all of that name.
    let own = around(&named, folder).filter(|_| named.len() > 1).map(|own| own.name.clone());
    let one = BenchTarget { package: own.or_else(|| target.package.clone()), ..target.clone() };
    if is_one && target.is_named {
        let mut found = of_packages(target, &named, here).into_iter().filter(|one| one.bench.target == target.target);
        if let Some(why) = found.find_map(|one| one.lacks.filter(|why| why == NO_MAIN)) {
            bail!("bench target '{}' {why}; add it to its [[bench]]", target.target);
        }
        let are_criterions = !named.is_empty() && !has_engine(target, &named);
        return Ok(Chosen { are_criterions, ..Chosen::one(one) });
    }
    let mut found = found(target, &packages(target, folder, here), here)?;
    if is_one {
        let names = [target.target.as_str(), MEMORY_TARGET];
        found.retain(|one| one.lacks.is_none() && !names.contains(&one.bench.target.as_str()));
        found.iter_mut().for_each(|one| one.lacks = Some(BESIDE.to_owned()));
        return Ok(Chosen { left: left_out(&found.iter().collect::<Vec<_>>()), ..Chosen::one(one) });
    }
    if found.is_empty() && !is_list {
        // Base may have one. Where it has none either, the error says so.
        return Ok(Chosen::one(target.clone()));
    }
    let patterns = if is_list { target.target.as_str() } else { "*" };
    let (mut chosen, mut left): (Vec<BenchTarget>, Vec<&Found>) = (Vec::new(), Vec::new());
    for pattern in patterns.split(',').map(str::trim).filter(|pattern| !pattern.is_empty()) {
        let glob = WildMatch::new(pattern);
        let is_usable = |one: &&Found| match one.lacks.as_deref() {
            None => glob.matches(&one.bench.target),
            lacks => lacks == Some(OFF) && one.bench.target == pattern,
        };
        let mut named = found.iter().filter(is_usable).map(|one| &one.bench).peekable();
        if named.peek().is_none() {
            let why = none_of(pattern, is_list, &found);
            if is_list {
                bail!(why);
            }
            return Err(WorkerError::NotComparable(why).into());
        }
        for bench in named {
            if !chosen.contains(bench) {
                chosen.push(bench.clone());
            }
        }
        left.extend(found.iter().filter(|one| glob.matches(&one.bench.target)));
    }
    if chosen.is_empty() {
        bail!("--bench-target: names no bench target; give a name or a glob such as '*'");
    }
    left.retain(|one| !chosen.contains(&one.bench));
    Ok(Chosen { benches: chosen, left: left_out(&left), are_criterions: true })
}

/// Whether the bench target that `packages` have is gated alone: it is named, or an engine's own of the usual name.
fn is_one(target: &BenchTarget, packages: &[&Package]) -> bool {
    target.is_named || has_engine(target, packages)
}

/// Whether the bench target that `packages` have is an engine's own.
fn has_engine(target: &BenchTarget, packages: &[&Package]) -> bool {
    packages.iter().any(|package| {
        let text = source(package, &target.target).unwrap_or_default();
        let is_ours = takes_criterion(package) || takes_infergate(package);
        !(is_ours && uses_ours(&text, &package.helpers))
            || text.contains("infergate") && !text.contains("infergate::criterion")
    })
}

/// `not gated: own, other: each uses neither criterion nor divan`.
fn left_out(left: &[&Found]) -> Vec<String> {
    let mut by_lack: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for one in left {
        by_lack.entry(one.lacks.as_deref().unwrap_or_default()).or_default().insert(one.bench.name());
    }
    let line = |(lacks, names): (&str, BTreeSet<String>)| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let each = if names.len() == 1 { "it" } else { "each" };
        format!("not gated: {}: {each} {lacks}", first_of(&names, MOST_NAMED, ", "))
    };
    by_lack.into_iter().map(line).collect()
}

/// Refuses a folder without a package, whose repository may have some further below.
pub fn ensure_in_package(folder: &Path) -> Result<()> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    if folder.ancestors().any(|above| above.join("Cargo.toml").is_file()) {
        return Ok(());
    }
    let below = packages_below(&folder);
    let below: Vec<&str> = below.iter().map(String::as_str).collect();
    let there = if below.is_empty() { String::new() } else { format!(": {}", first_of(&below, MOST_NAMED, ", ")) };
    bail!("there is no Cargo.toml in this folder or above it; go to the folder of a package{there}")
}

fn none_of(pattern: &str, is_list: bool, found: &[Found]) -> String {
    let usable = words(found.iter().filter(|one| one.lacks.is_none()));
    let lacking = words(found.iter().filter(|one| one.lacks.is_some()));
    let is_asked = |one: &&Found| one.lacks.is_some() && WildMatch::new(pattern).matches(&one.bench.target);
    let named = if is_list { words(found.iter().filter(is_asked)) } else { String::new() };
    let there = match (usable.is_empty(), lacking.is_empty()) {
        _ if !named.is_empty() => format!("there is {named}"),
        (false, _) => format!("there are {usable}"),
        (true, false) => format!("there is {lacking}"),
        (true, true) => "there is none here".to_owned(),
    };
    let asked = if is_list { format!("--bench-target: '{pattern}' names") } else { "there is".to_owned() };
    format!("{asked} no bench target that can be gated; {there}")
}

/// `parse, which has no 'harness = false' in Cargo.toml; own, which uses neither criterion nor divan`.
fn words<'f>(found: impl Iterator<Item = &'f Found>) -> String {
    let said: Vec<String> = found
        .map(|Found { bench, lacks }| {
            lacks.as_ref().map_or_else(|| bench.name(), |lacks| format!("{}, which {lacks}", bench.name()))
        })
        .collect();
    let shown = said.len().min(MOST_NAMED);
    let more = if said.len() > shown { format!("; and {} more", said.len() - shown) } else { String::new() };
    let gap = if said.iter().any(|said| said.contains(',')) { "; " } else { ", " };
    format!("{}{more}", said[..shown].join(gap))
}

/// Bench targets that the revision `base` has, that are asked for and that head lacks, each in a sentence. Nothing where one is gated alone.
pub fn gone(target: &BenchTarget, base: &str, folder: &Path, here: &[Package]) -> Result<Vec<String>> {
    let is_list = target.target.contains([',', '*', '?']);
    if !is_list && is_one(target, &of_bench(target, here)) {
        return Ok(Vec::new());
    }
    let asked: Vec<WildMatch> = if is_list {
        target.target.split(',').map(|pattern| WildMatch::new(pattern.trim())).collect()
    } else {
        vec![WildMatch::new("*")]
    };
    let (Ok(root), Ok(base)) = (git::git(folder, &["rev-parse", "--show-toplevel"]), git::commit_of(folder, base))
    else {
        return Ok(Vec::new());
    };
    let kept = packages(target, folder, here);
    let found = found(target, &kept, here)?;
    let text_of = |path: &Path| {
        let path = path.to_str()?;
        git::file_of(folder, &base, path, MAX_FILE_BYTES).ok().flatten()
    };
    let table_of = |path: &Path| text_of(path)?.parse::<Table>().ok();
    let helpers: BTreeSet<String> = here.iter().flat_map(|package| package.helpers.clone()).collect();
    let own =
        |package: &Package| Some((package.name.clone(), package.manifest_path.strip_prefix(&root).ok()?.to_owned()));
    let packages: Vec<(String, PathBuf)> = kept.iter().copied().filter_map(own).collect();
    let only = kept.first().map(|package| package.name.clone()).unwrap_or_default();
    let (mut said, is_one) = (Vec::new(), packages.len() == 1);
    for (package, manifest) in packages {
        let below = manifest.parent().unwrap_or(Path::new(""));
        let Some(was) = table_of(&manifest) else { continue };
        for (name, path) in with_main(&was) {
            let is_gated =
                |bench: &BenchTarget| bench.target == name && *bench.package.as_ref().unwrap_or(&only) == package;
            let in_folder = || text_of(&below.join(format!("benches/{name}/main.rs")));
            let used = || text_of(&below.join(&path)).or_else(in_folder).is_some_and(|text| uses_ours(&text, &helpers));
            let is_there = found.iter().any(|one| is_gated(&one.bench));
            if is_there || !asked.iter().any(|glob| glob.matches(&name)) || !used() {
                continue;
            }
            let name = if is_one { name } else { format!("{package}/{name}") };
            said.push(format!("bench target '{name}': not compared, head has none of this name any more"));
        }
    }
    Ok(said)
}

/// All bench targets of these packages.
fn found(target: &BenchTarget, packages: &[&Package], here: &[Package]) -> Result<Vec<Found>> {
    let is_of_none = |feature: &&String| {
        !feature.contains('/') && !packages.iter().any(|package| package.features.contains_key(*feature))
    };
    if let Some(unknown) = target.features.iter().find(is_of_none).filter(|_| packages.len() > 1) {
        bail!("--bench-features: '{unknown}' is a feature of no package here");
    }
    Ok(of_packages(target, packages, here))
}

/// The packages `here` that have the bench target.
fn of_bench<'p>(target: &BenchTarget, here: &'p [Package]) -> Vec<&'p Package> {
    here.iter().filter(|package| package.bench(&target.target).is_some() && package.is_asked_for(target)).collect()
}

/// The package that is asked for, else the one around this folder, else the workspace's. A root package is none that was meant where it
/// has no bench that can be gated, or where a list or glob was asked for.
fn packages<'p>(target: &BenchTarget, folder: &Path, here: &'p [Package]) -> Vec<&'p Package> {
    let packages: Vec<&Package> = here.iter().filter(|package| package.is_asked_for(target)).collect();
    let own = around(&packages, folder).filter(|_| target.package.is_none());
    let is_meant = |own: &&Package| of_packages(target, &[*own], here).iter().any(|one| one.lacks.is_none());
    let is_list = target.target.contains([',', '*', '?']);
    let has_below = |own: &Package| packages.iter().any(|it| it.name != own.name && own.is_around(&it.manifest_path));
    own.filter(is_meant).filter(|own| !is_list || !has_below(own)).map_or_else(|| packages.clone(), |own| vec![own])
}

/// The package around `folder`. Below a root package lie others.
fn around<'p>(packages: &[&'p Package], folder: &Path) -> Option<&'p Package> {
    let around = packages.iter().filter(|package| package.is_around(folder));
    around.max_by_key(|package| package.manifest_path.components().count()).copied()
}

/// `here` are all that cargo could mean by a name.
fn of_packages(target: &BenchTarget, packages: &[&Package], here: &[Package]) -> Vec<Found> {
    let is_one_of_several = packages.len() > 1;
    let of_package = |package: &Package| -> Vec<Found> {
        let manifest = manifest::table(&package.manifest_path).unwrap_or_default();
        let own: BTreeSet<String> = with_main(&manifest).into_iter().map(|(name, _)| name).collect();
        // Cargo takes every file beside them for one; what others include has no main.
        let has_some = |text: String| text.contains("main") || text.contains(RUSTCS);
        let is_one = |name: &str| own.contains(name) || source(package, name).is_some_and(has_some);
        let found = package.benches().filter(|built| is_one(&built.name)).map(|built| {
            let name = built.name.clone();
            let text = source(package, &name).unwrap_or_default();
            let is_ours = takes_criterion(package) || takes_infergate(package);
            let lacks = if text.contains(RUSTCS) && !names_ours(&text) {
                Some("is of rustc's own #[bench], neither criterion's nor divan's".to_owned())
            } else if !(is_ours && uses_ours(&text, &package.helpers) || names_ours(&text)) {
                Some("uses neither criterion nor divan (an engine's own is named with --bench-target)".to_owned())
            } else if !is_ours {
                Some("takes criterion from another package, not from a dependency of its own".to_owned())
            } else if is_of_codspeed(package, &text) && !frameworks::is_of_codspeed(package) {
                Some(
                    "uses codspeed-criterion-compat beside criterion, and one Cargo.toml can have one of both replaced"
                        .to_owned(),
                )
            } else if is_off(&manifest, &name) {
                Some(OFF.to_owned())
            } else {
                (!own.contains(&name)).then(|| NO_MAIN.to_owned())
            };
            let is_named = is_one_of_several || here.iter().filter(|other| other.bench(&name).is_some()).count() > 1;
            let of = if is_named { Some(package.name.clone()) } else { target.package.clone() };
            // Cargo refuses those that the package does not have.
            let is_known = |feature: &&String| {
                !is_one_of_several || feature.contains('/') || package.features.contains_key(*feature)
            };
            let features = target.features.iter().filter(is_known).cloned().collect();
            Found { bench: BenchTarget { package: of, target: name, features, ..target.clone() }, lacks }
        });
        found.collect()
    };
    packages.iter().copied().flat_map(of_package).collect()
}

/// What one of rustc's own benches has in its text.
const RUSTCS: &str = "#[bench]";
/// What one lacks whose `main` cargo does not call.
const NO_MAIN: &str = "has no 'harness = false' in Cargo.toml";
/// What one beside an engine's lacks.
const BESIDE: &str = "is not named with --bench-target, and an engine's is gated alone";
/// What one that is named does not lack.
const OFF: &str = "has 'bench = false' in Cargo.toml and is not named with --bench-target";

/// Whether a bench takes CodSpeed's criterion always, in a package that takes criterion's own, too.
fn is_of_codspeed(package: &Package, text: &str) -> bool {
    let takes = |name: &str| package.dependencies.iter().any(|one| one.name == name && one.target.is_none());
    takes("criterion")
        && takes("codspeed-criterion-compat")
        && text.contains("codspeed_criterion_compat")
        && !text.contains("cfg(")
}

/// Whether `cargo bench` leaves a bench target out that is not named.
fn is_off(manifest: &Table, name: &str) -> bool {
    let mut benches = manifest.get("bench").and_then(Toml::as_array).into_iter().flatten();
    let own = benches.find(|bench| bench.get("name").and_then(Toml::as_str) == Some(name));
    own.is_some_and(|own| own.get("bench").and_then(Toml::as_bool) == Some(false))
}

/// The bench targets with a `main` of their own, and their files. Of others cargo makes tests, and does not say so.
pub fn with_main(manifest: &Table) -> Vec<(String, String)> {
    let benches = manifest.get("bench").and_then(Toml::as_array).into_iter().flatten();
    let own = benches.filter(|bench| bench.get("harness").and_then(Toml::as_bool) == Some(false));
    let named = |bench: &Toml| {
        let name = bench.get("name")?.as_str()?.to_owned();
        let path = bench.get("path").and_then(Toml::as_str).map_or_else(|| format!("benches/{name}.rs"), str::to_owned);
        Some((name, path))
    };
    own.filter_map(named).collect()
}
