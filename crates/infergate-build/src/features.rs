//! Which features everything is built with that a bench target needs, by cargo's own tree. The same lock file can stand for
//! different kernels.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::{asked, bench_target, toolchain};
use crate::wanted::BenchTarget;
use infergate_core::printable::first_of;

/// As many packages are named; the others are counted.
const NAMED: usize = 8;

/// Features by package, each as cargo names it: `serde v1.0.0`. One from git has its commit behind that.
pub type Features = BTreeMap<String, BTreeSet<String>>;

/// Of everything that is built for the bench target in `folder`.
pub fn of(target: &BenchTarget, folder: &Path) -> Result<Features> {
    let mut cargo = tree(folder);
    bench_target::add_selection(&mut cargo, target, folder)?;
    listed(cargo)
}

/// Of everything that is built in `folder`.
pub fn of_all(folder: &Path) -> Result<Features> {
    listed(tree(folder))
}

fn tree(folder: &Path) -> Command {
    let mut cargo = toolchain::cargo_in(folder);
    cargo.args(["tree", "--prefix", "none", "--no-dedupe", "--edges", "normal,build,dev", "--format", "{p}|{f}"]);
    cargo
}

fn listed(cargo: Command) -> Result<Features> {
    let output = asked::output(cargo)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let why = said.lines().find(|line| line.starts_with("error")).unwrap_or("no reason given");
        bail!("cargo tree: {why}");
    }
    let mut packages = Features::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
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
