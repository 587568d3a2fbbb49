//! `bisect`: the first commit, or the first version of a dependency, that made a case slower, by the paired test against the
//! good one.

mod versions;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::{Arg, Args};

use super::commits::{self, Commits, Next, Tried};
use super::flags::{self, Keys, TakesKeys};
use super::git::git;
use super::outputs::{Files, Written};
use super::paired_gate::{self, Asked, Course};
use super::revision::{Slot, Tree, short};
use super::turn::{self, Wait};
use super::{early, explain, output, progress};
use crate::builds::edited::Edited;
use crate::config::Config;
use crate::gate::paired::{PairedPolicy, decide};
use crate::paired::{Program, ensure_not};
use crate::receipt::{
    BISECTION_SCHEMA, Bisection, BisectionEnd, BisectionStep, Explained, Outcome, PairedCase, Statistic, VerdictRow,
    clause,
};
use crate::report::paired::bisection;
use crate::why::Difference;
use infergate_core::case::{BenchName, Case};
use infergate_core::worker::WorkerError;
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
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    wait: Wait,
    /// Measure each step for at most this long: 90s, 5m (builds not counted)
    #[arg(long, value_name = "TIME")]
    budget: Option<String>,
    #[command(flatten)]
    keys: Keys<Self>,
}

impl TakesKeys for Bisect {
    fn keys() -> Vec<Arg> {
        let pairs = flags::measure_pairs().into_iter().filter(|arg| arg.get_id() != "cases");
        pairs.chain(flags::one("base_folder")).collect()
    }
}

/// Builds, measures and halves until one commit is left.
pub fn run(flags: &Bisect) -> Result<i32> {
    let cancelled = progress::cancelled_by_ctrl_c()?;
    let json = flags.json.as_ref();
    Files { json, ..Files::default() }.begin()?;
    let mut config = flags.keys.config()?;
    let case = asked(&flags.case)?;
    config.measured.cases = vec![case.id()];
    let budget = flags.budget.as_deref().map(paired_gate::duration).transpose()?;
    early::check(&config)?;
    early::calibrations(&config)?;
    let _turn = turn::take(&flags.wait)?;
    if flags.versions.is_asked() {
        flags.versions.check()?;
        let outcome = versions::run(&flags.versions, &config, budget, !flags.no_explain, &cancelled);
        return finish(json, &case, unless_found(outcome, &cancelled)?, "version");
    }
    let good = flags.good.as_deref().context("--good is missing")?;
    let bad = flags.bad.as_deref().context("--bad is missing")?;
    let base = Tree::checkout(good, Slot::Base, &config)?;
    let mut tree = Tree::checkout(bad, Slot::Step, &config)?;
    ensure!(base.commit != tree.commit, "--good and --bad are the same commit, {}; name two", short(&base.commit));
    let outcome = base.build(&config).and_then(|good| {
        tree.take_packages(&config, Some(&base));
        let mut search = Search::new(&config, good, budget, !flags.no_explain, &cancelled);
        let found = search.run(&base.commit, &mut tree);
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
fn asked(text: &str) -> Result<Case> {
    let slip = ["prefill/", "decode/", "generate/"].iter().any(|phase| text.starts_with(phase));
    match text.parse() {
        Err(_) if !slip && text.contains('/') => Ok(Case::Bench(BenchName::new(text)?)),
        parsed => parsed,
    }
}

fn finish(
    json: Option<&PathBuf>,
    case: &Case,
    outcome: Result<(BisectionEnd, Search)>,
    searched: &'static str,
) -> Result<i32> {
    match outcome {
        Ok((end, Search { steps, explained, .. })) => {
            let code = match end {
                BisectionEnd::First { .. } => 0,
                _ => Outcome::Inconclusive.exit_code(),
            };
            let found = Bisection { schema: BISECTION_SCHEMA, case: case.id(), searched, end, steps, explained };
            output::decided(&bisection(&found));
            let mut written = Written::default();
            written.json(json.map(PathBuf::as_path), &found);
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
    /// What was slower, by its name: the case as it was measured, and how much slower.
    slow: BTreeMap<String, (PairedCase, Difference)>,
    /// The ratio from which on the first was slower.
    limit: Option<f64>,
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
        let (steps, slow) = (Vec::new(), BTreeMap::new());
        Self { config, good, budget, cancelled, steps, slow, limit: None, explains, explained: None }
    }

    /// Which functions take the time of what `name` is; the tree stands at it.
    fn explain(&mut self, name: &str, tree: &Tree) -> Result<()> {
        let Some((case, difference)) = self.slow.get(name).filter(|_| self.explains) else { return Ok(()) };
        output::line(&format!("where {name} takes its time"));
        let head = tree.build(self.config)?;
        let sides = (&self.good, &head);
        let before = format!("{}^", tree.commit);
        // A swapped dependency edits nothing.
        let edited = tree.change.is_none().then(|| Edited::between(tree.files(), &before, Some(&tree.commit)).ok());
        let (case, edited) = ((case, *difference), edited.flatten());
        self.explained = Some(explain::between(case, sides, self.config, edited.as_ref(), self.cancelled)?);
        Ok(())
    }

    /// Who ends it while it explains has what was found, and wants that.
    fn unless_interrupted(&self, explained: Result<()>) -> Result<()> {
        if ensure_not(self.cancelled).is_err() { Ok(()) } else { explained }
    }

    fn run(&mut self, good: &str, tree: &mut Tree) -> Result<BisectionEnd> {
        let bad = tree.commit.clone();
        if self.step(tree)? != Tried::Bad {
            return Ok(BisectionEnd::NotSlower);
        }
        let files = tree.files().to_owned();
        let mut commits = Commits::between(good, &bad);
        for base in commits::merge_bases(&files, good, &bad)? {
            let tried = self.try_at(tree, &base)?;
            ensure!(
                tried != Tried::Bad,
                "the histories of --good and --bad part at {}, which is slower already: --good made it faster later; \
                 name an ancestor of --bad as --good",
                short(&base)
            );
            commits.note(&base, tried);
        }
        loop {
            match commits.next(&files)? {
                Next::Try(commit) => {
                    let tried = self.try_at(tree, &commit)?;
                    commits.note(&commit, tried);
                }
                Next::First(commit) => {
                    let name = line(&files, &commit)?;
                    if self.explains {
                        let explained = tree.turn_to(&commit, self.config).and_then(|()| self.explain(&name, tree));
                        self.unless_interrupted(explained)?;
                    }
                    return Ok(BisectionEnd::First { name });
                }
                Next::OneOf(left) => {
                    let names = left.iter().map(|commit| line(&files, commit)).collect::<Result<_>>()?;
                    return Ok(BisectionEnd::OneOf { names });
                }
            }
        }
    }

    fn try_at(&mut self, tree: &mut Tree, commit: &str) -> Result<Tried> {
        ensure_not(self.cancelled)?;
        tree.turn_to(commit, self.config)?;
        self.step(tree)
    }

    /// How the tree's commit compares with the good one.
    fn step(&mut self, tree: &Tree) -> Result<Tried> {
        self.step_called(line(tree.files(), &tree.commit)?, tree)
    }

    /// How the tree compares with the good one; `name` is how a person knows it.
    fn step_called(&mut self, name: String, tree: &Tree) -> Result<Tried> {
        output::line(&format!("step {}: {name}", self.steps.len() + 1));
        let built = tree.build(self.config);
        ensure_not(self.cancelled)?;
        let head = match built {
            Ok(head) => head,
            Err(error) => {
                self.steps.push(BisectionStep { name, row: None, skipped: Some(clause(&error)) });
                return Ok(Tried::Skipped);
            }
        };
        let asked = Asked {
            shard: None,
            quick: false,
            explain: None,
            budget: self.budget,
            allow_output_change: true,
            power: false,
            memory: false,
            users: false,
            code: None,
            terms: None,
            notes: Vec::new(),
        };
        let mut request = paired_gate::request(self.config, self.good.clone(), head, None, &asked)?;
        // All are held to the limit of the first.
        request.threshold = request.threshold.or(self.limit);
        let bar = progress::Line::new();
        let measured =
            paired_gate::measure(&request, self.config, false, None, Course::default(), &bar, self.cancelled);
        bar.finish();
        let receipt = match measured {
            Ok(measured) => measured,
            Err(error) if matches!(WorkerError::find(&error), Some(WorkerError::Interrupted(_))) => return Err(error),
            Err(error) => {
                self.steps.push(BisectionStep { name, row: None, skipped: Some(clause(&error)) });
                return Ok(Tried::Skipped);
            }
        };
        if receipt.partial {
            bail!(WorkerError::by_user());
        }
        let verdict = decide(&receipt, &PairedPolicy { allow_output_change: true, ..PairedPolicy::default() });
        // Of median and mean the worse, the median where they are alike.
        let counted = verdict.rows.into_iter().filter(|row| row.time().is_some_and(|time| time.counted));
        let row: Option<VerdictRow> = counted.rev().max_by_key(|row| row.outcome.severity());
        let tried = match row.as_ref().map(|row| row.outcome) {
            Some(Outcome::Regressed) => Tried::Bad,
            Some(Outcome::WithinLimit | Outcome::Improved) => Tried::Good,
            _ => Tried::Skipped,
        };
        let median = |row: &&VerdictRow| row.time().is_some_and(|time| time.statistic == Statistic::Median);
        self.limit = self.limit.or_else(|| row.as_ref().filter(median)?.time()?.threshold);
        let ratio = row.as_ref().and_then(VerdictRow::time).and_then(|time| time.ratio);
        if let (Tried::Bad, Some(case), Some(ratio)) = (tried, receipt.cases.first(), ratio) {
            let difference = explain::difference(&receipt, case.id, ratio, true);
            self.slow.insert(name.clone(), (case.clone(), difference));
        }
        self.steps.push(BisectionStep { name, row, skipped: None });
        Ok(tried)
    }
}

/// Commit and subject.
fn line(files: &Path, commit: &str) -> Result<String> {
    git(files, &["log", "-1", "--format=%h %s", commit])
}
