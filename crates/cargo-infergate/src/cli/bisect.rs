//! `bisect`: the first commit, or the first version of a dependency, that made a case slower, by the paired test against the
//! good one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;

use super::explain::{self, Explaining};
use super::machine_lock::{self, Wait};
use super::{flags, measuring, outputs, paired_gate, preflight, same_code};
use crate::config::{self, Config};
use crate::paired::{PairedRequest, Program};
use infergate_build::checkout::{Checkout, Slot};
use infergate_build::edited::Edited;
use infergate_build::git::{git, short};
use infergate_build::sources::Sources;
use infergate_build::swap::{self, Swap};
use infergate_build::{output, progress};
use infergate_judge::paired::{Policy, judge_without_power};
use infergate_receipts::{
    BISECTION_SCHEMA, Bisection, BisectionEnd, BisectionStep, CodeRecord, Explained, Outcome, PairedReceipt, Subject,
    clause,
};
use infergate_report::paired::bisection;

/// Find the commit that made a case slower
#[derive(Args)]
#[command(args = flags::of_pairs().into_iter().filter(|arg| arg.get_id() != "cases"))]
#[command(after_help = "Examples:\n  cargo xtask bisect --good v0.1.0 --bad HEAD --case decode/p128\n  \
    cargo xtask bisect --swap candle-core --versions 0.10.0,0.10.1,0.10.2,0.11.0 --case decode/p128")]
pub struct Bisect {
    /// A revision that was fast enough
    #[arg(long, value_name = "REV", required_unless_present = "swap")]
    good: Option<String>,
    /// A later revision that is slower
    #[arg(long, value_name = "REV", required_unless_present = "swap")]
    bad: Option<String>,
    /// Search among versions of this dependency of HEAD, not among commits; several that have the same versions move together
    #[arg(long, value_name = "CRATE", requires = "versions", conflicts_with_all = ["good", "bad"])]
    swap: Vec<String>,
    /// Its versions from a fast one to a slow one
    #[arg(long, value_name = "V,V,V", requires = "swap", value_delimiter = ',')]
    versions: Vec<String>,
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
    #[arg(long, value_parser = config::duration)]
    budget: Option<Duration>,
}

/// Builds, measures and halves until one is left.
pub fn run(flags: &Bisect, mut config: Config) -> Result<i32> {
    let case = Subject::named(&flags.case)?.case().context("--case: name a case")?;
    config.measured.cases = vec![case.id()];
    preflight::check(&config)?;
    let _lock = machine_lock::take(&flags.wait)?;
    let build_request = &config.build_request();
    ensure!(flags.versions.len() != 1, "--versions: name at least two, from a fast one to a slow one");
    // Versions are swapped in HEAD.
    let base = Checkout::of(flags.good.as_deref().unwrap_or("HEAD"), Slot::Base, build_request)?;
    let checkout = Checkout::of(flags.bad.as_deref().unwrap_or("HEAD"), Slot::Step, build_request)?;
    let points = if flags.swap.is_empty() {
        commits(&checkout.files, &base.commit, &checkout.commit)?
    } else {
        versions(&flags.swap, &flags.versions, &checkout.commit)?
    };
    let mut search =
        Search { flags, config: &config, points, base, checkout, steps: Vec::new(), confirmed: None, explained: None };
    let end = match search.run() {
        Ok(end) => end,
        // It may have measured blocks.
        Err(error) if progress::is_cancelled() => return Err(error),
        Err(error) => return paired_gate::exit_code_of(error),
    };
    let code = if matches!(end, BisectionEnd::First { .. }) { 0 } else { Outcome::Inconclusive.exit_code() };
    let searched = if flags.swap.is_empty() { "commit" } else { "version" };
    let Search { steps, confirmed, explained, .. } = search;
    let found = Bisection { schema: BISECTION_SCHEMA, case: case.id(), searched, end, steps, confirmed, explained };
    output::print_verdict(&bisection(&found));
    outputs::json(flags.json.as_deref(), &found);
    Ok(code)
}

struct Search<'a> {
    flags: &'a Bisect,
    config: &'a Config,
    /// From the good one to the bad one.
    points: Vec<Point>,
    /// Where the good point is built, and in the end the point before the one that was found.
    base: Checkout,
    /// Where the others are built.
    checkout: Checkout,
    steps: Vec<BisectionStep>,
    /// How the point that was found compares with the one before it.
    confirmed: Option<BisectionStep>,
    explained: Option<Explained>,
}

impl Search<'_> {
    fn run(&mut self) -> Result<BisectionEnd> {
        let build_request = &self.config.build_request();
        output::status_escaped(&format!("good: {}", self.points[0].name));
        let good = build_at(&self.points[0], &mut self.base, self.config)?;
        if let Ok(step) = self.checkout.source(build_request) {
            self.base.share_built_packages(build_request, &step);
        }
        let last = self.points.len() - 1;
        if self.step(last, &good)? != Some(Outcome::Regressed) {
            let why = self.steps.last().and_then(|step| step.skipped.clone());
            return Ok(why.map_or(BisectionEnd::NotSlower, |why| BisectionEnd::NotJudged { why }));
        }
        let mut left = (0, last);
        match self.halve(&mut left, &good) {
            // The user ended it: the steps so far are printed.
            Err(_) if progress::is_cancelled() => Ok(BisectionEnd::CutShort { names: self.names(left) }),
            ended => ended,
        }
    }

    /// Halves what is `left` between a good and a bad one until they are neighbours, and compares these two.
    fn halve(&mut self, left: &mut (usize, usize), good: &Program) -> Result<BisectionEnd> {
        let mut skipped = BTreeSet::new();
        while let Some(at) = halfway(*left, &skipped) {
            match self.step(at, good)? {
                Some(Outcome::WithinLimit | Outcome::Improved) => left.0 = at,
                Some(Outcome::Regressed) => left.1 = at,
                // It does not build, or cannot be judged.
                _ => drop(skipped.insert(at)),
            }
        }
        if left.0 + 1 < left.1 {
            return Ok(BisectionEnd::OneOf { names: self.names(*left) });
        }
        self.confirm(*left)
    }

    fn names(&self, (good, bad): (usize, usize)) -> Vec<String> {
        self.points[good + 1..=bad].iter().map(|point| point.name.clone()).collect()
    }

    /// How a point compares with the good one; `None` if that is unknown.
    fn step(&mut self, at: usize, good: &Program) -> Result<Option<Outcome>> {
        let name = self.points[at].name.clone();
        output::status_escaped(&format!("step {}: {name}", self.steps.len() + 1));
        let measured = self.measure_step(at, good);
        progress::ensure_not_cancelled()?;
        let step = judged(name, &measured);
        let outcome = step.row.as_ref().map(|row| row.outcome);
        self.steps.push(step);
        Ok(outcome)
    }

    fn measure_step(&mut self, at: usize, good: &Program) -> Result<PairedReceipt> {
        let head = build_at(&self.points[at], &mut self.checkout, self.config)?;
        let request = self.request(good.clone(), head, None)?;
        let (receipt, _) = measuring::measure(&request, self.config, None, None, None)?;
        // A run that broke says nothing about this point.
        if let Some(why) = receipt.invalid.iter().chain(&receipt.broken).next() {
            bail!("{why}");
        }
        Ok(receipt)
    }

    /// Compares the point that was found with the one before it, and explains it if it is slower. Gives how the search ended.
    ///
    /// A step has one build a side, so code placement can mislead it, which more blocks do not average out. It is compared with the good
    /// point, so that small changes add up. The result is therefore confirmed with the gate's own rules: both sides laid out alike, and
    /// cases that run no changed code not timed.
    fn confirm(&mut self, (before, found): (usize, usize)) -> Result<BisectionEnd> {
        let name = self.points[found].name.clone();
        output::status_escaped(&format!("{name}, against the one before it"));
        let mut measured = self.measure_as_gate(before, found);
        progress::ensure_not_cancelled()?;
        self.explained = measured.as_mut().ok().and_then(|receipt| receipt.explained.pop());
        let step = self.confirmed.insert(judged(name.clone(), &measured));
        let is_slower = step.row.as_ref().is_some_and(|row| row.outcome == Outcome::Regressed);
        Ok(if is_slower { BisectionEnd::First { name } } else { BisectionEnd::Unconfirmed { name } })
    }

    fn measure_as_gate(&mut self, before: usize, found: usize) -> Result<PairedReceipt> {
        let base = build_at(&self.points[before], &mut self.base, self.config)?;
        let head = build_at(&self.points[found], &mut self.checkout, self.config)?;
        let (build_request, before, found) = (&self.config.build_request(), &self.base, &self.checkout);
        let sources = Sources { base: Some(before.source(build_request)?), head: Some(found.source(build_request)?) };
        let commit = (before.commit != found.commit).then_some(before.commit.as_str());
        let code_difference = same_code::of_checkouts((&base, &head), &sources, commit, &found.folder()?);
        let request = self.request(base, head, code_difference.code)?;
        let changed = code_difference.changed.as_ref();
        let (mut receipt, builds) = measuring::measure(&request, self.config, Some(&sources), changed, None)?;
        if !self.flags.no_explain {
            // A swapped dependency edits nothing.
            let edited = commit.and_then(|commit| Edited::between(&found.files, commit, Some(&found.commit)).ok());
            let explaining = Explaining { named: Vec::new(), edited };
            explain::attach(&mut receipt, &policy(), (&request, &builds), changed, &explaining);
        }
        Ok(receipt)
    }

    /// How two builds are measured.
    fn request(&self, base: Program, head: Program, code: Option<CodeRecord>) -> Result<PairedRequest> {
        Ok(PairedRequest {
            budget: self.flags.budget,
            allow_output_change: true,
            check_other_outputs: false,
            code,
            ..measuring::request(self.config, base, head)?
        })
    }
}

/// A search looks at times: outputs may change from commit to commit.
fn policy() -> Policy {
    Policy { allow_output_change: true, ..Policy::default() }
}

/// The measurement as a step: the worse row of median and mean, the median if they are alike.
fn judged(name: String, measured: &Result<PairedReceipt>) -> BisectionStep {
    let row = |receipt| {
        let rows = judge_without_power(receipt, &policy()).rows.into_iter();
        let counted = rows.filter(|row| row.time().is_some_and(|time| time.counted));
        counted.rev().max_by_key(|row| row.outcome.severity())
    };
    BisectionStep { name, row: measured.as_ref().ok().and_then(row), skipped: measured.as_ref().err().map(clause) }
}

/// The point to try next between a good and a bad one: of those that were not skipped, the one nearest the middle. Neighbours of a point
/// that does not build often do not build either, so the more were skipped, the further from the middle it is.
fn halfway((good, bad): (usize, usize), skipped: &BTreeSet<usize>) -> Option<usize> {
    let middle = good.midpoint(bad);
    let mut open: Vec<usize> = (good + 1..bad).filter(|at| !skipped.contains(at)).collect();
    open.sort_by_key(|at| at.abs_diff(middle));
    let skips = skipped.range(good..bad).count();
    let away = (skips * skips).min(open.len() / 2);
    open.get(away).copied()
}

/// One commit, or one version of a dependency.
struct Point {
    /// Commit and subject, or the versions.
    name: String,
    commit: String,
    /// The dependencies that have another version there.
    swaps: Vec<Swap>,
}

/// The last commit of `bad`'s branch that `good` has, too, and all after it. Only commits of the branch itself: one that came by a merge is
/// found as that merge.
fn commits(files: &Path, good: &str, bad: &str) -> Result<Vec<Point>> {
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
fn versions(names: &[String], versions: &[String], commit: &str) -> Result<Vec<Point>> {
    let point = |version: &String| {
        let swaps = names.iter().map(|name| Swap::parse(&format!("{name}={version}"))).collect::<Result<_>>()?;
        Ok(Point { name: format!("{} {version}", names.join(" and ")), commit: commit.to_owned(), swaps })
    };
    versions.iter().map(point).collect()
}

/// Turns `checkout` to a point, and builds it there.
fn build_at(point: &Point, checkout: &mut Checkout, config: &Config) -> Result<Program> {
    let build_request = &config.build_request();
    if checkout.commit != point.commit || !point.swaps.is_empty() {
        checkout.turn_to(&point.commit, build_request)?;
    }
    if !point.swaps.is_empty() {
        checkout.change = Some(point.name.clone());
        swap::apply(&point.swaps, checkout, true)?;
    }
    checkout.build(build_request, false)
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
