//! Decides after each block whether a case has its outcome ("a look" = the test after a block).

use super::evidence::{Bet, PASS_LEVEL, SUITE_LEVEL, adjusted_evidence, fewest_blocks};
use super::mean::{MEAN_WEIGHT, MEDIAN_WEIGHT};
use super::sequential_test::Test;
use super::series::{CaseState, MAX_BLOCKS, Series};
use infergate_receipts::Outcome;

/// The fewest blocks after which a case can pass: 6.
pub fn fewest_to_pass() -> usize {
    fewest_blocks(1.0 / PASS_LEVEL)
}

/// The fewest blocks after which a single slow case of a suite of `cases`, each with a test of its means, can fail: 10 for five
/// cases.
pub fn fewest_to_fail(cases: usize) -> usize {
    fewest_blocks(cases.max(1) as f64 * (MEDIAN_WEIGHT + MEAN_WEIGHT) / MEDIAN_WEIGHT / SUITE_LEVEL)
}

/// Replays the looks over a suite whose cases were fixed before the first block. Results are in the order of `suite`.
///
/// - *Regressed*: the [evidence](super::Bet) of "slower" reached 1 / [`SUITE_LEVEL`] in the suite, at this or an earlier look, the
///   estimate is at or above the limit, and "within the limit" was not shown. Head must also be shown to be slower at each
///   placement, unless the change is 10 % or more, or is a stall of the mean.
/// - *Improved*: the evidence of "faster" reached 1 / [`SUITE_LEVEL`] in the suite, and the estimate is at or below minus the limit. A
///   mean must also be shown to be within the limit.
/// - *Within limit*: the evidence of "below the limit" reached 1 / [`PASS_LEVEL`]. A median that looks improved stays open,
///   since more blocks may show it.
/// - *Layout*: it would have regressed, but is not shown to be slower at each placement, and at one of them the limit is excluded.
/// - If the blocks vary too much for the limit and show no improvement, or after the last block, a weaker condition is enough for
///   *within limit*: the interval ends below `widest` and the estimate is below the limit.
/// - After the last of 40 blocks: *unstable* when the interval is wider than twice the limit, else *inconclusive*. A mean is never
///   *unstable*: if its interval is that wide and does not exclude "no slower", it is *advisory*.
///
/// A case is measured until its median and its mean are both settled, or its median regressed.
///
/// Other runs measure `elsewhere` further cases of the suite. They count as cases without evidence, so a case that is settled
/// here stays settled when their blocks are added.
pub fn case_states(suite: &[Series], elsewhere: usize) -> Vec<CaseState> {
    let of_case = |case: CaseTests| {
        let mean = case.mean.as_ref().map(|mean| Box::new(mean.state()));
        CaseState { mean, ..case.median.state() }
    };
    replay(suite, elsewhere).into_iter().map(of_case).collect()
}

/// The outcome of each case, from its median and its mean; `None` while it is open. Faster than [`case_states`].
pub fn outcomes(suite: &[Series], elsewhere: usize) -> Vec<Option<Outcome>> {
    replay(suite, elsewhere).iter().map(|case| Some(case.settled()?.0)).collect()
}

/// As [`outcomes`], with the number of blocks that each case took.
pub fn settled(suite: &[Series]) -> Vec<Option<(Outcome, usize)>> {
    replay(suite, 0).iter().map(CaseTests::settled).collect()
}

/// Whether `first` regresses in a suite with `others` further cases, each like `other`. Computes two cases only: identical cases
/// share one evidence value.
pub fn regresses_among(first: &Series, other: &Series, others: usize) -> bool {
    let (suite, copies) = ([first.clone(), other.clone()], [1.0, others as f64]);
    let with = if others == 0 { 1 } else { 2 };
    let mut cases = replay_looks(&suite[..with], &copies[..with], 0);
    // A mean can regress although its median is open to the end.
    cases.iter_mut().take(1).filter(|_| first.has_ended()).for_each(CaseTests::close);
    cases.first().and_then(CaseTests::settled).is_some_and(|(outcome, _)| outcome == Outcome::Regressed)
}

fn replay(suite: &[Series], elsewhere: usize) -> Vec<CaseTests<'_>> {
    let mut cases = replay_looks(suite, &vec![1.0; suite.len()], elsewhere);
    cases.iter_mut().filter(|case| case.median.series.has_ended()).for_each(CaseTests::close);
    cases
}

/// Replays the looks only: a test that the last block leaves open stays open. Each case counts `copies` times.
fn replay_looks<'a>(suite: &'a [Series], copies: &[f64], elsewhere: usize) -> Vec<CaseTests<'a>> {
    let mut cases: Vec<CaseTests> =
        suite.iter().zip(copies).map(|(series, copies)| CaseTests::new(series, *copies)).collect();
    for blocks in 1..=MAX_BLOCKS {
        // A run that was cut short lacks the blocks of later looks; shards of a suite end at different ones.
        let has_block = |at: &usize| suite[*at].differences.len() >= blocks;
        let open: Vec<usize> = (0..cases.len()).filter(|&at| cases[at].settled().is_none()).filter(has_block).collect();
        if open.is_empty() {
            break;
        }
        for &at in &open {
            cases[at].add_block(blocks);
        }
        // A settled test stays in the suite with the evidence that it had.
        let adjusted = |of: fn(&Test) -> f64| {
            let tests = || cases.iter().flat_map(CaseTests::tests);
            let unseen = (elsewhere > 0).then_some(elsewhere as f64 * (MEDIAN_WEIGHT + MEAN_WEIGHT));
            let evidence: Vec<f64> = tests().map(of).chain(unseen.map(|_| 0.0)).collect();
            let weights: Vec<f64> = tests().map(|test| test.weight).chain(unseen).collect();
            adjusted_evidence(&evidence, &weights)
        };
        let mut both = adjusted(|test| test.wealth_slower).into_iter().zip(adjusted(|test| test.wealth_faster));
        for (at, case) in cases.iter_mut().enumerate() {
            let is_open = open.contains(&at);
            case.tests_mut().zip(&mut both).for_each(|(test, both)| test.note_adjusted(both));
            if is_open {
                case.try_to_settle(blocks);
            }
        }
    }
    cases
}

/// A case while the looks are replayed.
#[derive(Debug)]
struct CaseTests<'a> {
    median: Test<'a>,
    mean: Option<Test<'a>>,
}

impl<'a> CaseTests<'a> {
    fn new(series: &'a Series, copies: f64) -> Self {
        let bet = |series: &Series| Bet::new(series.limit, series.expected_std);
        let of_mean = |mean| Test::new(mean, bet(mean).with_capped_scale(), bet(mean), MEAN_WEIGHT * copies);
        let mean = series.mean.as_deref().map(of_mean);
        Self { median: Test::new(series, bet(series), bet(series), MEDIAN_WEIGHT * copies), mean }
    }

    fn tests(&self) -> impl Iterator<Item = &Test<'a>> {
        std::iter::once(&self.median).chain(&self.mean)
    }

    fn tests_mut(&mut self) -> impl Iterator<Item = &mut Test<'a>> {
        std::iter::once(&mut self.median).chain(&mut self.mean)
    }

    /// Takes the last of `blocks` blocks into each test that is not settled.
    fn add_block(&mut self, blocks: usize) {
        self.tests_mut().filter(|test| test.settled.is_none()).for_each(|test| test.add_block(blocks));
    }

    fn try_to_settle(&mut self, blocks: usize) {
        self.median.try_to_settle(blocks, None);
        self.mean.iter_mut().for_each(|mean| mean.try_to_settle(blocks, Some(&self.median)));
    }

    /// Ends the tests that the last block left open.
    fn close(&mut self) {
        self.median.close(false);
        self.mean.iter_mut().for_each(|mean| mean.close(true));
    }

    /// The worse of both tests, once both are settled.
    fn settled(&self) -> Option<(Outcome, usize)> {
        let median = self.median.settled?;
        let Some(mean) = &self.mean else { return Some((median.outcome, median.blocks)) };
        let mean = mean.settled?;
        let is_worse = mean.outcome.severity() > median.outcome.severity();
        Some((if is_worse { mean.outcome } else { median.outcome }, median.blocks.max(mean.blocks)))
    }
}
