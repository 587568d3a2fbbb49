//! The looks: after every block, and what settles a case.

use super::evidence::{Bet, LEVEL, PASS_LEVEL, fewest_blocks, in_suite};
use super::mean::{MEAN_WEIGHT, MEDIAN_WEIGHT};
use super::series::{CaseState, MAX_BLOCKS, Series};
use super::test::Test;
use infergate_receipts::Outcome;

/// The fewest blocks after which a case can pass: 6.
pub fn fewest_to_pass() -> usize {
    fewest_blocks(1.0 / PASS_LEVEL)
}

/// The fewest blocks after which a single slow case of a suite of `cases`, each with a test of its means, can be called: 10 of
/// five.
pub fn fewest_to_fail(cases: usize) -> usize {
    fewest_blocks(cases.max(1) as f64 * (MEDIAN_WEIGHT + MEAN_WEIGHT) / MEDIAN_WEIGHT / LEVEL)
}

/// Replays the looks over a suite whose cases were fixed before the first block. The answer has the order of `suite`.
///
/// - *Regressed*: the [evidence](super::Bet) of "slower" reached 1 / [`LEVEL`] in the suite, at this or an earlier look, the
///   estimate is at or above the limit, and head is shown to be slower at each placement of what changed. *Improved* is the mirror
///   image, but for placements.
/// - *Within limit*: the evidence of "below the limit" reached 1 / [`PASS_LEVEL`]. A case that also looks improved stays
///   open, since more blocks may say so.
/// - *Layout*: it would have regressed, but is not shown to be slower at each placement, and at one of them the limit is excluded.
/// - Where the blocks vary too much for the limit, and after the last block, *within limit* also needs no more than that the interval
///   ends below `widest` and the estimate lies below the limit.
/// - After the last of 40 blocks: *unstable* when the interval is wider than twice the limit, else *inconclusive*.
///
/// A case is measured until its median and its mean are both settled, or its median regressed.
///
/// Other runs measure `elsewhere` further cases of the suite. Nothing is known of them here, so they count as cases without any
/// evidence: what is settled so is settled with them, too.
pub fn case_states(suite: &[Series], elsewhere: usize) -> Vec<CaseState> {
    let of_case = |case: Case| {
        let mean = case.mean.as_ref().map(|mean| Box::new(mean.state()));
        CaseState { mean, ..case.median.state() }
    };
    replay(suite, elsewhere).into_iter().map(of_case).collect()
}

/// How each case ends, its median and its mean together: what a simulation of many suites asks for.
pub fn outcomes(suite: &[Series], elsewhere: usize) -> Vec<Option<Outcome>> {
    replay(suite, elsewhere).iter().map(|case| Some(case.settled()?.0)).collect()
}

/// The outcome of each case and the blocks it took, without the numbers of [`case_states`].
pub fn settled(suite: &[Series]) -> Vec<Option<(Outcome, usize)>> {
    replay(suite, 0).iter().map(Case::settled).collect()
}

/// Whether `first` regresses in a suite whose other cases, so many, are all like `other`. It takes the time of two: cases that are alike have
/// the same evidence at each look, and the smallest mean over groups holds all of them or none.
pub fn is_called_beside(first: &Series, other: &Series, others: usize) -> bool {
    let (suite, times) = ([first.clone(), other.clone()], [1.0, others as f64]);
    let with = if others == 0 { 1 } else { 2 };
    let mut cases = replay_times(&suite[..with], &times[..with], 0);
    // A mean can be called although its median is open to the end.
    cases.iter_mut().take(1).filter(|_| first.has_ended()).for_each(Case::end);
    cases.first().and_then(Case::settled).is_some_and(|(outcome, _)| outcome == Outcome::Regressed)
}

fn replay(suite: &[Series], elsewhere: usize) -> Vec<Case<'_>> {
    let mut cases = replay_times(suite, &vec![1.0; suite.len()], elsewhere);
    cases.iter_mut().filter(|case| case.median.series.has_ended()).for_each(Case::end);
    cases
}

/// Each case counts as many times as `times` says. What the last block leaves open is left so.
fn replay_times<'a>(suite: &'a [Series], times: &[f64], elsewhere: usize) -> Vec<Case<'a>> {
    let mut cases: Vec<Case> = suite.iter().zip(times).map(|(series, times)| Case::new(series, *times)).collect();
    for blocks in 1..=MAX_BLOCKS {
        // A run that was cut short ends before the look whose block it lacks; shares of a suite end at different ones.
        let has_block = |at: &usize| suite[*at].differences.len() >= blocks;
        let open: Vec<usize> = (0..cases.len()).filter(|&at| cases[at].settled().is_none()).filter(has_block).collect();
        if open.is_empty() {
            break;
        }
        for &at in &open {
            cases[at].take(blocks);
        }
        // What was settled before stays in the suite with what it had.
        let worth = |of: fn(&Test) -> f64| {
            let tests = || cases.iter().flat_map(Case::tests);
            let unseen = (elsewhere > 0).then_some(elsewhere as f64 * (MEDIAN_WEIGHT + MEAN_WEIGHT));
            let evidence: Vec<f64> = tests().map(of).chain(unseen.map(|_| 0.0)).collect();
            let weights: Vec<f64> = tests().map(|test| test.weight).chain(unseen).collect();
            in_suite(&evidence, &weights)
        };
        let (above, below) = (worth(|test| test.above), worth(|test| test.below));
        let mut worth = above.into_iter().zip(below);
        for (at, case) in cases.iter_mut().enumerate() {
            let is_open = open.contains(&at);
            case.tests_mut().zip(&mut worth).for_each(|(test, worth)| test.note(worth));
            if is_open {
                case.settle(blocks);
            }
        }
    }
    cases
}

/// A case while the looks are replayed.
#[derive(Debug)]
struct Case<'a> {
    median: Test<'a>,
    mean: Option<Test<'a>>,
}

impl<'a> Case<'a> {
    fn new(series: &'a Series, times: f64) -> Self {
        let bet = |series: &Series| Bet::new(series.limit, series.expected_std);
        let of_mean = |mean| Test::new(mean, bet(mean).gentle(), bet(mean), MEAN_WEIGHT * times);
        let mean = series.mean.as_deref().map(of_mean);
        Self { median: Test::new(series, bet(series), bet(series), MEDIAN_WEIGHT * times), mean }
    }

    fn tests(&self) -> impl Iterator<Item = &Test<'a>> {
        std::iter::once(&self.median).chain(&self.mean)
    }

    fn tests_mut(&mut self) -> impl Iterator<Item = &mut Test<'a>> {
        std::iter::once(&mut self.median).chain(&mut self.mean)
    }

    /// The block of this number, for whatever is not settled.
    fn take(&mut self, blocks: usize) {
        self.tests_mut().filter(|test| test.settled.is_none()).for_each(|test| test.take(blocks));
    }

    fn settle(&mut self, blocks: usize) {
        self.median.settle(blocks, None);
        self.mean.iter_mut().for_each(|mean| mean.settle(blocks, Some(&self.median)));
    }

    /// What the last block left open.
    fn end(&mut self) {
        self.median.end(false);
        self.mean.iter_mut().for_each(|mean| mean.end(true));
    }

    /// The worse of both, once nothing is open; what decides nothing is left out.
    fn settled(&self) -> Option<(Outcome, usize)> {
        let median = self.median.settled?;
        let Some(mean) = &self.mean else { return Some((median.outcome, median.blocks)) };
        let mean = mean.settled?;
        let is_worse = mean.outcome.severity() > median.outcome.severity();
        Some((if is_worse { mean.outcome } else { median.outcome }, median.blocks.max(mean.blocks)))
    }
}
