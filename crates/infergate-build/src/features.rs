//! Which features everything is built with that a bench target needs, by cargo's own tree. The same lock file can stand for
//! different kernels.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};

use super::{bench_target, run_captured, toolchain};
use crate::wanted::Place;
use crate::workspace::BenchTarget;
use infergate_core::printable::first_of;

/// As many packages are named; the others are counted.
const NAMED: usize = 8;

/// Features by package, each as cargo names it: `serde v1.0.0`. One from git has its commit behind that.
pub type Features = BTreeMap<String, BTreeSet<String>>;

/// Of everything that is built for the bench target.
pub fn of(target: &BenchTarget, place: &Place) -> Result<Features> {
    let mut cargo = toolchain::cargo_in(&place.folder);
    cargo.args(["tree", "--prefix", "none", "--no-dedupe", "--edges", "normal,build,dev", "--format", "{p}|{f}"]);
    bench_target::add_selection(&mut cargo, target, place);
    let stdout = run_captured::cargo(cargo, "").context("cargo tree")?;
    let mut packages = Features::new();
    for line in String::from_utf8_lossy(&stdout).lines() {
        let Some((package, features)) = line.split_once('|') else { continue };
        // The folder of a package is another one in each checkout.
        let commit = package.rsplit_once('#').filter(|(before, _)| before.contains("://"));
        let commit = commit.map(|(_, commit)| format!(" #{}", commit.trim_end_matches(')')));
        let package = package.split(' ').take(2).collect::<Vec<_>>().join(" ") + &commit.unwrap_or_default();
        let features = features.split(',').filter(|feature| !feature.is_empty()).map(str::to_owned);
        packages.entry(package).or_default().extend(features);
    }
    Ok(packages)
}

/// Packages that both are built with, in one version and with other features; `None` where there are none.
pub fn difference(base: &Features, head: &Features) -> Option<String> {
    let only = |features: &BTreeSet<String>, others: &BTreeSet<String>, side: &str| {
        let only: Vec<&str> = features.difference(others).map(String::as_str).collect();
        (!only.is_empty()).then(|| format!("{} in {side} only", only.join(", ")))
    };
    let different: Vec<String> = head
        .iter()
        .filter_map(|(package, now)| Some((package, base.get(package)?, now)))
        .filter(|(_, before, now)| before != now)
        .map(|(package, before, now)| {
            let both = [only(now, before, "head"), only(before, now, "base")];
            format!("{package} has {}", both.into_iter().flatten().collect::<Vec<_>>().join(" and "))
        })
        .collect();
    (!different.is_empty()).then(|| format!("features differ: {}", first_of(&different, NAMED, "; ")))
}
