//! The first version of a dependency that made a case slower: HEAD with each version in turn.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::{ArgAction, Args};

use super::Search;
use crate::cli::output;
use crate::config::Config;
use crate::paired::ensure_not;
use infergate_build::commits::Tried;
use infergate_build::revision::{Slot, Tree};
use infergate_build::swap::{self, Swap};
use infergate_receipts::BisectionEnd;

/// What to search, where it is not commits.
#[derive(Args)]
#[group(skip)]
pub struct Versions {
    /// Search among versions of this dependency of HEAD, not among commits; several that have the same versions move together
    #[arg(long, value_name = "CRATE", requires = "versions", conflicts_with_all = ["good", "bad"])]
    swap: Vec<String>,
    /// Its versions from a fast one to a slow one
    #[arg(long, value_name = "V,V,V", requires = "swap", value_delimiter = ',', action = ArgAction::Set)]
    versions: Vec<String>,
}

impl Versions {
    /// Whether versions are to be searched.
    pub fn is_asked(&self) -> bool {
        !self.swap.is_empty()
    }

    /// Refuses fewer than two versions, and one that is there twice.
    pub fn check(&self) -> Result<()> {
        ensure!(self.versions.len() > 1, "--versions: name at least two, from a fast one to a slow one");
        let mut seen = BTreeSet::new();
        let twice = self.versions.iter().find(|version| !seen.insert(*version));
        twice.map_or(Ok(()), |twice| bail!("--versions: {twice} is there twice; leave one"))
    }

    fn swaps(&self, at: usize) -> Result<Vec<Swap>> {
        self.swap.iter().map(|name| Swap::parse(&format!("{name}={}", self.versions[at]))).collect()
    }

    fn label(&self, at: usize) -> String {
        format!("{} {}", self.swap.join(" and "), self.versions[at])
    }
}

/// Builds the first version, then halves until one is left.
pub fn run<'a>(
    options: &Versions,
    config: &'a Config,
    budget: Option<Duration>,
    explains: bool,
    cancelled: &'a AtomicBool,
) -> Result<(BisectionEnd, Search<'a>)> {
    let wanted = &config.wanted();
    let mut base = Tree::checkout("HEAD", Slot::Base, wanted)?;
    swap::apply(&options.swaps(0)?, &base, true)?;
    base.change = Some(options.label(0));
    output::line(&format!("good: {}", options.label(0)));
    let good = base.build(wanted, false)?;
    let mut tree = Tree::checkout("HEAD", Slot::Step, wanted)?;
    tree.take_packages(wanted, Some(&base));
    let mut search = Search::new(config, good, budget, explains, cancelled);
    let stand = |tree: &mut Tree, at: usize| -> Result<()> {
        let commit = tree.commit.clone();
        tree.turn_to(&commit, wanted)?;
        tree.change = Some(options.label(at));
        swap::apply(&options.swaps(at)?, tree, true)
    };
    let step = |search: &mut Search, tree: &mut Tree, at: usize| -> Result<Tried> {
        ensure_not(cancelled)?;
        match stand(tree, at) {
            Ok(()) => search.step_called(options.label(at), tree),
            Err(error) => {
                ensure_not(cancelled)?;
                Ok(search.skip(options.label(at), &error))
            }
        }
    };
    let (mut good, mut bad) = (0, options.versions.len() - 1);
    if step(&mut search, &mut tree, bad)? != Tried::Bad {
        return Ok((search.bad_is_not(), search));
    }
    let mut skipped = BTreeSet::new();
    let mut find = || -> Result<Option<BisectionEnd>> {
        while let Some(at) = halfway(good, bad, &skipped) {
            match step(&mut search, &mut tree, at)? {
                Tried::Good => good = at,
                Tried::Bad => bad = at,
                Tried::Skipped => drop(skipped.insert(at)),
            }
        }
        if good + 1 < bad {
            return Ok(None);
        }
        let stood = stand(&mut tree, bad).and_then(|()| stand(&mut base, good));
        search.confirm(options.label(bad), stood.map(|()| (&base, &tree))).map(Some)
    };
    let found = find();
    let names: Vec<String> = (good + 1..=bad).map(|at| options.label(at)).collect();
    let end = match found {
        Err(_) if ensure_not(cancelled).is_err() => BisectionEnd::CutShort { names },
        found => found?.unwrap_or(BisectionEnd::OneOf { names }),
    };
    Ok((end, search))
}

/// The place nearest the middle of what lies between that was not skipped.
fn halfway(good: usize, bad: usize, skipped: &BTreeSet<usize>) -> Option<usize> {
    let middle = good.midpoint(bad);
    (good + 1..bad).filter(|at| !skipped.contains(at)).min_by_key(|at| at.abs_diff(middle))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::halfway;

    #[test]
    fn every_place_between_is_tried_at_most_once() {
        assert_eq!(halfway(0, 1, &BTreeSet::new()), None);
        assert_eq!(halfway(0, 4, &BTreeSet::new()), Some(2));
        assert_eq!(halfway(0, 4, &BTreeSet::from([2])), Some(1));
        assert_eq!(halfway(0, 4, &BTreeSet::from([1, 2])), Some(3));
        assert_eq!(halfway(0, 4, &BTreeSet::from([1, 2, 3])), None);
    }
}
