//! `bisect`: the first commit that made a case slower, by the paired test against the good one.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::{Arg, ArgMatches, Command};

use super::git::{commit_of, git};
use super::paired_gate::{self, Asked};
use super::revision::{Slot, Tree, short};
use super::{flags, output, progress};
use crate::case::Case;
use crate::config::Config;
use crate::gate::paired::{PairedPolicy, judge};
use crate::paired::{Program, ensure_not};
use crate::receipt::{CaseVerdict, Channel, Outcome};
use crate::report::paired::{Found, Step, bisection};
use crate::worker::{Interrupted, NotComparable};

/// Its flags.
pub fn command() -> Command {
    let revision =
        |name: &'static str, help: &'static str| Arg::new(name).long(name).value_name("REV").required(true).help(help);
    Command::new("bisect")
        .about("Find the first commit that made a case slower, by the paired test")
        .arg(revision("good", "A revision that was fast enough"))
        .arg(revision("bad", "A later revision that is slower"))
        .arg(
            Arg::new("case")
                .long("case")
                .value_name("ID")
                .required(true)
                .help("The case to look at, for example decode/p128"),
        )
        .args(flags::measure_pairs().into_iter().filter(|arg| arg.get_id() != "cases"))
        .args(flags::one("base_folder"))
        .arg(paired_gate::budget().help("Measure each step for at most this long: 90s, 5m (builds not counted)"))
        .after_help(
            "Examples:\n  cargo xtask bisect --good v0.1.0 --bad HEAD --case decode/p128\n  \
             cargo xtask bisect --good HEAD~20 --bad HEAD --case prefill/p512 --threshold 1.05 --budget 5m",
        )
}

/// Builds, measures and halves until one commit is left.
pub fn run(matches: &ArgMatches) -> Result<i32> {
    let mut config = flags::config(matches)?;
    let text = |name: &str| matches.get_one::<String>(name).cloned().with_context(|| format!("--{name} is missing"));
    let case: Case = text("case")?.parse()?;
    config.cases = vec![case.to_string()];
    let budget = matches.get_one::<String>("budget").map(|text| paired_gate::duration(text)).transpose()?;
    let cancelled = progress::cancelled_by_ctrl_c()?;
    let (good, bad) = (text("good")?, text("bad")?);
    let base = Tree::checkout(&good, Slot::Base, &config)?;
    let mut tree = Tree::checkout(&bad, Slot::Step, &config)?;
    ensure!(base.commit != tree.commit, "--good and --bad are the same commit, {}; name two", short(&base.commit));
    let outcome = base.build(&config).and_then(|good| {
        let mut search = Search { config: &config, good, budget, cancelled: &cancelled, steps: Vec::new() };
        let found = search.run(&base.commit, &mut tree);
        Ok((search.steps, found?))
    });
    // The checkout is kept for the next time, and must not be in the middle of something then.
    let _ = git(tree.files(), &["bisect", "reset", "HEAD"]);
    ensure_not(&cancelled).map_err(|_| anyhow::anyhow!("interrupted; nothing was found yet"))?;
    match outcome {
        Ok((steps, found)) => {
            output::report(&bisection(&case, &steps, &found));
            Ok(match found {
                Found::Commit(_) => 0,
                _ => Outcome::Inconclusive.exit_code(),
            })
        }
        Err(error) if error.is::<NotComparable>() => {
            output::error(&error);
            Ok(Outcome::NotComparable.exit_code())
        }
        Err(error) => Err(error),
    }
}

struct Search<'a> {
    config: &'a Config,
    good: Program,
    budget: Option<Duration>,
    cancelled: &'a AtomicBool,
    steps: Vec<Step>,
}

impl Search<'_> {
    fn run(&mut self, good: &str, tree: &mut Tree) -> Result<Found> {
        let bad = tree.commit.clone();
        if self.step(tree)? != Some(true) {
            return Ok(Found::NotSlower);
        }
        let files = tree.files().to_owned();
        let mut said = git(&files, &["bisect", "start", &bad, good])?;
        loop {
            if let Some(found) = ended(&files, &said)? {
                return Ok(found);
            }
            ensure_not(self.cancelled)?;
            let next = commit_of(&files, "HEAD")?;
            tree.turn_to(&next)?;
            let word = match self.step(tree)? {
                Some(true) => "bad",
                Some(false) => "good",
                None => "skip",
            };
            // With only skipped commits left git says so, and that is its error.
            said = match git_words(&files, &["bisect", word]) {
                Ok(said) | Err(said) => said,
            };
        }
    }

    /// Whether the tree's commit is slower than the good one; `None` when it does not build or cannot be judged.
    fn step(&mut self, tree: &Tree) -> Result<Option<bool>> {
        let commit = line(tree)?;
        output::say(&format!("step {}: {commit}", self.steps.len() + 1));
        let built = tree.build(self.config);
        ensure_not(self.cancelled)?;
        let head = match built {
            Ok(head) => head,
            Err(error) => {
                self.steps.push(Step { commit, row: None, skipped: Some(format!("{error:#}")) });
                return Ok(None);
            }
        };
        let asked = Asked { budget: self.budget, allow_output_change: true, power: false };
        let request = paired_gate::request(self.config, self.good.clone(), head, &asked)?;
        let bar = progress::Line::new();
        let measured = paired_gate::measure(&request, self.config, false, &bar, self.cancelled);
        bar.finish();
        let (receipt, _) = match measured {
            Ok(measured) => measured,
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => {
                self.steps.push(Step { commit, row: None, skipped: Some(format!("{error:#}")) });
                return Ok(None);
            }
        };
        if receipt.partial {
            bail!(Interrupted::by_user());
        }
        let verdict = judge(&receipt, PairedPolicy { allow_output_change: true, ..PairedPolicy::default() });
        let row: Option<CaseVerdict> = verdict.cases.into_iter().find(|row| row.channel == Channel::Paired);
        let slower = match row.as_ref().map(|row| row.verdict) {
            Some(Outcome::Regressed) => Some(true),
            Some(Outcome::WithinLimit | Outcome::Improved) => Some(false),
            _ => None,
        };
        self.steps.push(Step { commit, row, skipped: None });
        Ok(slower)
    }
}

/// Commit and subject.
fn line(tree: &Tree) -> Result<String> {
    git(tree.files(), &["log", "-1", "--format=%h %s", &tree.commit])
}

fn git_words(files: &std::path::Path, arguments: &[&str]) -> Result<String, String> {
    let output = super::git::command(files, arguments).output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(said) } else { Err(said) }
}

/// What git's words mean, where they end the search.
fn ended(files: &std::path::Path, said: &str) -> Result<Option<Found>> {
    let subject = |commit: &str| git(files, &["log", "-1", "--format=%h %s", commit]);
    if let Some(commit) = said.lines().find_map(|line| line.strip_suffix(" is the first bad commit")) {
        return Ok(Some(Found::Commit(subject(commit)?)));
    }
    if said.contains("only 'skip'ped commits left") || said.contains("only skipped commits left") {
        let commits = said.lines().filter(|line| line.len() >= 40 && line.chars().all(|c| c.is_ascii_hexdigit()));
        return Ok(Some(Found::OneOf(commits.map(subject).collect::<Result<_>>()?)));
    }
    Ok(None)
}
