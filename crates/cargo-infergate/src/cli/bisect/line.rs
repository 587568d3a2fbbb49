//! What a search goes through: the commits of a branch, or the versions of a dependency, from a good one to a bad one.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use infergate_build::git::git;
use infergate_build::revision::short;
use infergate_build::swap::Swap;

pub struct Point {
    /// Commit and subject, or the versions: how a person knows it.
    pub name: String,
    pub commit: String,
    /// The dependencies that have another version there.
    pub swaps: Vec<Swap>,
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

/// The point to try next between a good and a bad one: that nearest the middle of those that were not skipped. The neighbours of what does
/// not build often do not build either, so the more were skipped, the further away it is.
pub fn halfway((good, bad): (usize, usize), skipped: &BTreeSet<usize>) -> Option<usize> {
    let middle = good.midpoint(bad);
    let mut open: Vec<usize> = (good + 1..bad).filter(|at| !skipped.contains(at)).collect();
    open.sort_by_key(|at| at.abs_diff(middle));
    let skips = skipped.range(good..bad).count();
    let away = skips.saturating_mul(skips).min(open.len() / 2);
    open.get(away).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::halfway;

    #[test]
    fn every_point_between_is_tried_at_most_once() {
        let next = |bad, skipped: &[usize]| halfway((0, bad), &skipped.iter().copied().collect::<BTreeSet<_>>());
        assert_eq!(next(1, &[]), None);
        assert_eq!(next(4, &[]), Some(2));
        assert!([1, 3].map(Some).contains(&next(4, &[2])));
        assert_eq!(next(4, &[1, 2]), Some(3));
        assert_eq!(next(4, &[1, 2, 3]), None);
        assert!(next(40, &[20, 21, 24]).is_some_and(|at| at.abs_diff(20) > 4), "further from what does not build");
    }
}
