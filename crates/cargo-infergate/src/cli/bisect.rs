//! `bisect`: the first commit, or the first version of a dependency, that made a case slower, by the paired test against the
//! good one.

mod confirm;
mod versions;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Error, Result, bail, ensure};
use clap::{Arg, Args};

use super::flags::{self, Keys, TakesKeys};
use super::outputs::{self, Written};
use super::paired_gate::{self, GateOptions};
use infergate_build::commits::{self, Commits, Next, Tried};
use infergate_build::git::{commit_of, git};
use infergate_build::revision::{Slot, Tree, short};

use super::machine_lock::{self, Wait};
use super::{output, preflight, progress};
use crate::config::Config;
use crate::paired::{Program, ensure_not};
use infergate_core::case::{BenchName, Case};
use infergate_core::worker::WorkerError;
use infergate_judge::paired::{Policy, decide};
use infergate_receipts::{
    BISECTION_SCHEMA, Bisection, BisectionEnd, BisectionStep, CodeRecord, Explained, Outcome, PairedReceipt,
    VerdictRow, clause,
};
use infergate_report::paired::bisection;
use versions::Versions;

/// Find the commit that made a case slower
#[derive(Args)]
#[command(after_help = "Examples:\n  cargo xtask bisect --good v0.1.0 --bad HEAD --case decode/p128\n  \
    cargo xtask bisect --good HEAD~20 --bad HEAD --case prefill/p512 --threshold 1.05 --budget 5m\n  \
    cargo xtask bisect --swap candle-core --versions 0.10.0,0.10.1,0.10.2,0.11.0 --case decode/p128")]
pub struct Bisect {
    /// A revision that was fast enough
    #[arg(long, value_name = "REV", required_unless_present = "swap")]
    good: Option<String>,
    /// A later revision that is slower
    #[arg(long, value_name = "REV", required_unless_present = "swap")]
    bad: Option<String>,
    #[command(flatten)]
    versions: Versions,
    /// Do not look for the functions that take the time of what is found
    #[arg(long)]
    no_explain: bool,
    /// The case to look at, decode/p128, or the name of a criterion bench, group/function/parameter
    #[arg(long, value_name = "ID")]
    case: String,
    /// Write what was found here; - is stdout, which then has nothing else
    #[arg(long)]
    json: Option<PathBuf>,
    #[command(flatten)]
    wait: Wait,
    /// Measure each step for at most this long: 90s, 5m (builds not counted)
    #[arg(long, value_name = "TIME", value_parser = super::gate_options::duration)]
    budget: Option<Duration>,
    #[command(flatten)]
    keys: Keys<Self>,
}

impl TakesKeys for Bisect {
    fn keys() -> Vec<Arg> {
        flags::measure_pairs().into_iter().filter(|arg| arg.get_id() != "cases").collect()
    }
}

/// Builds, measures and halves until one commit is left.
pub fn run(flags: &Bisect) -> Result<i32> {
    let cancelled = progress::cancelled_by_ctrl_c()?;
    let json = flags.json.as_deref();
    outputs::begin(&[], None, json)?;
    let mut config = flags.keys.config()?;
    let case = options(&flags.case)?;
    config.measured.cases = vec![case.id()];
    preflight::check(&config)?;
    preflight::calibrations(&config)?;
    let _lock = machine_lock::take(&flags.wait)?;
    if flags.versions.is_asked() {
        flags.versions.check()?;
        let outcome = versions::run(&flags.versions, &config, flags.budget, !flags.no_explain, &cancelled);
        return finish(json, &case, unless_found(outcome, &cancelled)?, "version");
    }
    let good = flags.good.as_deref().context("--good is missing")?;
    let bad = flags.bad.as_deref().context("--bad is missing")?;
    let wanted = &config.wanted();
    let mut base = Tree::checkout(good, Slot::Base, wanted)?;
    let mut tree = Tree::checkout(bad, Slot::Step, wanted)?;
    ensure!(base.commit != tree.commit, "--good and --bad are the same commit, {}; name two", short(&base.commit));
    let outcome = base.build(wanted, false).and_then(|good| {
        tree.take_packages(wanted, Some(&base));
        let mut search = Search::new(&config, good, flags.budget, !flags.no_explain, &cancelled);
        let found = search.run(&mut base, &mut tree);
        Ok((found?, search))
    });
    finish(json, &case, unless_found(outcome, &cancelled)?, "commit")
}

/// Refuses what was interrupted before it found anything.
fn unless_found<T>(outcome: Result<T>, cancelled: &AtomicBool) -> Result<Result<T>> {
    let is_interrupted = outcome.is_err() && ensure_not(cancelled).is_err();
    ensure!(!is_interrupted, "interrupted; nothing was found yet");
    Ok(outcome)
}

/// A case of ours, or else a criterion bench. What begins like a case of ours and is none is a slip; a bench of such a name
/// is `bench:NAME`.
fn options(text: &str) -> Result<Case> {
    let slip = ["prefill/", "decode/", "generate/"].iter().any(|phase| text.starts_with(phase));
    match text.parse() {
        Err(_) if !slip && text.contains('/') => Ok(Case::Bench(BenchName::new(text)?)),
        parsed => parsed,
    }
}

fn finish(
    json: Option<&Path>,
    case: &Case,
    outcome: Result<(BisectionEnd, Search)>,
    searched: &'static str,
) -> Result<i32> {
    match outcome {
        Ok((end, Search { steps, confirmed, explained, .. })) => {
            let code = match end {
                BisectionEnd::First { .. } => 0,
                BisectionEnd::CutShort { .. } => Outcome::Partial.exit_code(),
                _ => Outcome::Inconclusive.exit_code(),
            };
            let schema = BISECTION_SCHEMA;
            let found = Bisection { schema, case: case.id(), searched, end, steps, confirmed, explained };
            output::print_verdict(&bisection(&found));
            let mut written = Written::default();
            written.json(json, &found);
            Ok(written.code(code))
        }
        Err(error) if matches!(WorkerError::find(&error), Some(WorkerError::NotComparable(_))) => {
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
    steps: Vec<BisectionStep>,
    /// Commits at which branches left that were found to be slower already.
    slower_forks: BTreeSet<String>,
    /// How what is found compares with the one before it.
    confirmed: Option<BisectionStep>,
    /// Whether what is found is explained.
    explains: bool,
    explained: Option<Explained>,
}

impl<'a> Search<'a> {
    fn new(
        config: &'a Config,
        good: Program,
        budget: Option<Duration>,
        explains: bool,
        cancelled: &'a AtomicBool,
    ) -> Self {
        let (steps, slower_forks) = (Vec::new(), BTreeSet::new());
        let (confirmed, explained) = (None, None);
        Self { config, good, budget, cancelled, steps, slower_forks, confirmed, explains, explained }
    }

    fn run(&mut self, base: &mut Tree, tree: &mut Tree) -> Result<BisectionEnd> {
        let (good, bad) = (base.commit.clone(), tree.commit.clone());
        if self.step(tree)? != Tried::Bad {
            return Ok(self.bad_is_not());
        }
        let mut commits = Commits::between(&good, &bad);
        match self.among(&mut commits, base, tree) {
            // Hours of steps are not lost.
            Err(_) if ensure_not(self.cancelled).is_err() => {
                let names = lines(tree.files(), &commits.left(tree.files())?)?;
                Ok(BisectionEnd::CutShort { names })
            }
            ended => ended,
        }
    }

    /// How a search ends that began with a step which did not show that the bad one is slower.
    fn bad_is_not(&self) -> BisectionEnd {
        let why = self.steps.last().and_then(|step| step.skipped.clone());
        why.map_or(BisectionEnd::NotSlower, |why| BisectionEnd::NotJudged { why })
    }

    /// Halves until one is left, and compares that one with the one before it.
    fn among(&mut self, commits: &mut Commits, base: &mut Tree, tree: &mut Tree) -> Result<BisectionEnd> {
        let wanted = &self.config.wanted();
        let (files, good, bad) = (tree.files().to_owned(), base.commit.clone(), tree.commit.clone());
        for fork in commits::merge_bases(&files, &good, &bad)? {
            let tried = self.try_at(tree, &fork)?;
            ensure!(
                tried != Tried::Bad,
                "the histories of --good and --bad part at {}, which is slower already: --good made it faster later; \
                 name an ancestor of --bad as --good",
                short(&fork)
            );
            commits.note(&fork, tried);
        }
        loop {
            match commits.next(&files)? {
                Next::Try(commit) => {
                    let mut tried = self.try_at(tree, &commit)?;
                    if tried == Tried::Bad && !self.may_be_at_fault(commits, tree, &commit)? {
                        tried = Tried::Skipped;
                    }
                    commits.note(&commit, tried);
                }
                Next::First(commit) => {
                    let stood = commit_of(&files, &format!("{commit}^"))
                        .and_then(|before| base.turn_to(&before, wanted))
                        .and_then(|()| tree.turn_to(&commit, wanted));
                    let name = line(&files, &commit)?;
                    return self.confirm(name, stood.map(|()| (&*base, &*tree)));
                }
                Next::OneOf(left) => return Ok(BisectionEnd::OneOf { names: lines(&files, &left)? }),
            }
        }
    }

    /// Whether a slower commit may be at fault. A side branch can be older than what made the good one fast: it is slower without being
    /// at fault, so where it left is tried, too. What cannot be judged there takes no blame away.
    fn may_be_at_fault(&mut self, commits: &mut Commits, tree: &mut Tree, commit: &str) -> Result<bool> {
        let Some(forks) = commits.forks(tree.files(), commit) else { return Ok(false) };
        for fork in forks {
            if !commits.is_tried(&fork) {
                let tried = self.try_at(tree, &fork)?;
                // An ancestor of a good one is never what is looked for.
                commits.note(&fork, if tried == Tried::Bad { Tried::Skipped } else { tried });
                if tried == Tried::Bad {
                    self.slower_forks.insert(fork.clone());
                }
            }
            if self.slower_forks.contains(&fork) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn try_at(&mut self, tree: &mut Tree, commit: &str) -> Result<Tried> {
        let wanted = &self.config.wanted();
        ensure_not(self.cancelled)?;
        if let Err(error) = tree.turn_to(commit, wanted) {
            ensure_not(self.cancelled)?;
            return Ok(self.skip(line(tree.files(), commit)?, &error));
        }
        self.step(tree)
    }

    /// How the tree's commit compares with the good one.
    fn step(&mut self, tree: &Tree) -> Result<Tried> {
        self.step_called(line(tree.files(), &tree.commit)?, tree)
    }

    fn skip(&mut self, name: String, error: &Error) -> Tried {
        self.steps.push(BisectionStep { name, row: None, skipped: Some(clause(error)) });
        Tried::Skipped
    }

    /// How the tree compares with the good one; `name` is how a person knows it.
    fn step_called(&mut self, name: String, tree: &Tree) -> Result<Tried> {
        let wanted = &self.config.wanted();
        output::line(&format!("step {}: {name}", self.steps.len() + 1));
        let built = tree.build(wanted, false);
        ensure_not(self.cancelled)?;
        let head = match built {
            Ok(head) => head,
            Err(error) => return Ok(self.skip(name, &error)),
        };
        let request = paired_gate::request(self.config, self.good.clone(), head, &self.options(None))?;
        let bar = progress::Line::default();
        let measured = paired_gate::measure(&request, self.config, None, None, None, &bar, self.cancelled);
        bar.finish();
        let receipt = match measured {
            Ok(measured) => measured,
            Err(error) if matches!(WorkerError::find(&error), Some(WorkerError::Interrupted(_))) => return Err(error),
            Err(error) => return Ok(self.skip(name, &error)),
        };
        if receipt.partial {
            bail!(WorkerError::by_user());
        }
        // Of a run that broke nothing is known.
        if let Some(why) = receipt.invalid.iter().chain(&receipt.broken).next() {
            return Ok(self.skip(name, &Error::msg(why.clone())));
        }
        let row = judged(&receipt);
        let tried = match row.as_ref().map(|row| row.outcome) {
            Some(Outcome::Regressed) => Tried::Bad,
            Some(Outcome::WithinLimit | Outcome::Improved) => Tried::Good,
            _ => Tried::Skipped,
        };
        self.steps.push(BisectionStep { name, row, skipped: None });
        Ok(tried)
    }

    /// How two builds are measured.
    fn options(&self, code: Option<CodeRecord>) -> GateOptions {
        GateOptions { budget: self.budget, allow_output_change: true, code, ..GateOptions::default() }
    }
}

/// A search looks at times: outputs may change from commit to commit.
fn policy() -> Policy {
    Policy { allow_output_change: true, ..Policy::default() }
}

/// Of median and mean the worse, the median where they are alike.
fn judged(receipt: &PairedReceipt) -> Option<VerdictRow> {
    let rows = decide(receipt, &policy()).rows.into_iter();
    let counted = rows.filter(|row| row.time().is_some_and(|time| time.counted));
    counted.rev().max_by_key(|row| row.outcome.severity())
}

/// Commit and subject.
fn line(files: &Path, commit: &str) -> Result<String> {
    git(files, &["log", "-1", "--format=%h %s", commit])
}

fn lines(files: &Path, commits: &[String]) -> Result<Vec<String>> {
    commits.iter().map(|commit| line(files, commit)).collect()
}
