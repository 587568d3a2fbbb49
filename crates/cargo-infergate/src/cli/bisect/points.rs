//! What a bisection searches: the commits of a branch, or the versions of a dependency.
//!
//! Commits are those of the branch itself: what came by a merge is found as that merge.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use infergate_build::checkout::{Checkout, short};
use infergate_build::git::git;
use infergate_build::swap::{self, Swap};

use crate::config::Config;

/// One commit, or one version of a dependency.
pub struct Point {
    /// Commit and subject, or the versions: how a person knows it.
    pub name: String,
    commit: String,
    /// The dependencies that have another version there.
    swaps: Vec<Swap>,
}

/// The commits of the branch that `bad` is on, behind the last one that `good` has, too; that one is the first of them.
pub fn commits(files: &Path, good: &str, bad: &str) -> Result<Vec<Point>> {
    ensure!(good != bad, "--good and --bad are the same commit, {}; name two", short(good));
    let fork = git(files, &["merge-base", good, bad])
        .context("--good and --bad have no commit in common; name an ancestor of --bad as --good")?;
    let not_good = format!("^{good}");
    let listed = git(files, &["log", "--first-parent", "--reverse", "--format=%H %h %s", bad, &not_good])?;
    let first = git(files, &["log", "-1", "--format=%H %h %s", &fork])?;
    let point = |line: &str| {
        let (commit, name) = line.split_once(' ')?;
        Some(Point { name: name.trim_end().to_owned(), commit: commit.to_owned(), swaps: Vec::new() })
    };
    let points: Vec<Point> = first.lines().chain(listed.lines()).filter_map(point).collect();
    ensure!(points.len() > 1, "--good has every commit of --bad; name an ancestor of --bad as --good");
    Ok(points)
}

/// HEAD, which is `commit`, with each version in turn.
pub fn versions(names: &[String], versions: &[String], commit: &str) -> Result<Vec<Point>> {
    let point = |version: &String| {
        let swaps = names.iter().map(|name| Swap::parse(&format!("{name}={version}"))).collect::<Result<_>>()?;
        Ok(Point { name: format!("{} {version}", names.join(" and ")), commit: commit.to_owned(), swaps })
    };
    versions.iter().map(point).collect()
}

/// Turns a checkout to a point.
pub fn stand(checkout: &mut Checkout, point: &Point, config: &Config) -> Result<()> {
    if checkout.commit != point.commit || !point.swaps.is_empty() {
        checkout.turn_to(&point.commit, &config.wanted())?;
    }
    if !point.swaps.is_empty() {
        checkout.change = Some(point.name.clone());
        swap::apply(&point.swaps, checkout, true)?;
    }
    Ok(())
}
