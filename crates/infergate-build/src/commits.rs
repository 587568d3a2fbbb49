//! The commits between good ones and a bad one: which to try next, and which is left.
//!
//! The state is kept here and git is asked for lists of commits alone. `git bisect` would keep it too, but tells how it stands
//! in sentences, and those change from version to version.

use std::path::Path;

use anyhow::{Result, bail, ensure};

use super::git::git;

/// How one commit compares with the good revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    Good,
    Bad,
    /// It does not build, or cannot be judged.
    Skipped,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    Try(String),
    /// This is the first bad commit.
    First(String),
    /// The first bad commit is one of these; only the last was tried, the others were skipped.
    OneOf(Vec<String>),
}

/// The search under way. Every commit is tried at most once, so it ends.
pub struct Commits {
    bad: String,
    good: Vec<String>,
    skipped: Vec<String>,
    tried: Vec<String>,
    /// Commits skipped one after the other, up to now.
    skips_in_a_row: usize,
}

impl Commits {
    /// A search for what made `bad` slower than `good`, both full commit ids.
    pub fn between(good: &str, bad: &str) -> Self {
        let tried = vec![good.to_owned(), bad.to_owned()];
        Self { bad: bad.to_owned(), good: vec![good.to_owned()], skipped: Vec::new(), tried, skips_in_a_row: 0 }
    }

    pub fn note(&mut self, commit: &str, tried: Tried) {
        self.tried.push(commit.to_owned());
        self.skips_in_a_row = if tried == Tried::Skipped { self.skips_in_a_row + 1 } else { 0 };
        match tried {
            Tried::Good => self.good.push(commit.to_owned()),
            Tried::Bad => commit.clone_into(&mut self.bad),
            Tried::Skipped => self.skipped.push(commit.to_owned()),
        }
    }

    /// What to do next, by the history in `folder`: the commit that halves what is left.
    pub fn next(&self, folder: &Path) -> Result<Next> {
        let mut left = self.left(folder)?;
        // git counts the bad commit itself among those left.
        left.retain(|commit| *commit != self.bad);
        if left.is_empty() {
            return Ok(Next::First(self.bad.clone()));
        }
        let (skipped, open): (Vec<String>, Vec<String>) =
            left.into_iter().partition(|commit| self.skipped.contains(commit));
        // The neighbours of what does not build often do not build either: look further away from skip to skip.
        let away = self.skips_in_a_row.saturating_mul(self.skips_in_a_row).min(open.len() / 2);
        let Some(next) = open.get(away) else {
            return Ok(Next::OneOf(skipped.into_iter().chain([self.bad.clone()]).collect()));
        };
        ensure!(
            !self.is_tried(next),
            "git rev-list names {next} again, which was tried already; check the repository with `git fsck`"
        );
        Ok(Next::Try(next.clone()))
    }

    pub fn is_tried(&self, commit: &str) -> bool {
        self.tried.iter().any(|tried| tried == commit)
    }

    /// Where `commit` left the history of a good commit; nowhere where a good commit is its ancestor. `None` where it has no commit in
    /// common with any.
    pub fn forks(&self, folder: &Path, commit: &str) -> Option<Vec<String>> {
        let all = self.good.iter().filter_map(|good| merge_bases(folder, good, commit).ok());
        all.min_by_key(|forks| !forks.is_empty())
    }

    /// The commits that may be the first bad one, those that halve the rest best in front.
    pub fn left(&self, folder: &Path) -> Result<Vec<String>> {
        let mut arguments = vec!["rev-list", "--bisect-all", &self.bad, "--not"];
        arguments.extend(self.good.iter().map(String::as_str));
        let list = git(folder, &arguments)?;
        // "COMMIT (HEAD -> main, dist=3)"; only the commit is asked for.
        list.lines().map(|line| full_id(line.split_whitespace().next().unwrap_or_default())).collect()
    }
}

/// Where the histories of both part, when `good` is no ancestor of `bad`: commits that have to be good for the search to make
/// sense.
pub fn merge_bases(folder: &Path, good: &str, bad: &str) -> Result<Vec<String>> {
    // Without a common commit git says nothing and exits with 1.
    let Ok(list) = git(folder, &["merge-base", "--all", good, bad]) else {
        bail!("--good and --bad have no commit in common that git can find; name an ancestor of --bad as --good");
    };
    let bases = list.lines().map(full_id).collect::<Result<Vec<String>>>()?;
    ensure!(!bases.is_empty(), "--good and --bad have no commit in common; name an ancestor of --bad as --good");
    Ok(bases.into_iter().filter(|base| base != good).collect())
}

/// Nothing else than a commit id goes back to git as an argument.
fn full_id(text: &str) -> Result<String> {
    let text = text.trim();
    ensure!(
        text.len() >= 40 && text.chars().all(|c| c.is_ascii_hexdigit()),
        "git names '{}' where a commit was expected; is `git` another program here?",
        text.chars().filter(|c| !c.is_control()).take(60).collect::<String>()
    );
    Ok(text.to_owned())
}
