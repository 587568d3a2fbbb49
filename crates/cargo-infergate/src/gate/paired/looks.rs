//! The looks: when the blocks so far are looked at, and what settles a case.

use crate::receipt::{Outcome, Shown};
use crate::stats::{
    hodges_lehmann, holm_adjusted, sample_std, signed_rank_lower_bound, signed_rank_p_above, signed_rank_p_below,
    signed_rank_upper_bound,
};

/// One look: after how many blocks, at what one-sided level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Blocks.
    pub blocks: usize,
    /// Level of this look, over the whole suite.
    pub level: f64,
}

/// Looks at which a case can be called regressed or improved. Their levels add up to 0.01.
pub const FAIL_LOOKS: [Look; 3] =
    [Look { blocks: 12, level: 0.003 }, Look { blocks: 18, level: 0.003 }, Look { blocks: 24, level: 0.004 }];

/// Level of each look at which a case can be called within its limit.
pub const PASS_BETA: f64 = 0.0125;

/// Blocks after which a case can be called within its limit.
pub const PASS_LOOKS: [usize; 4] = [8, 12, 18, 24];

/// No case is measured for longer.
pub const MAX_BLOCKS: usize = 24;

/// The blocks of one case.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// ln of the ratio from which on a slowdown fails: ln 1.02.
    pub limit: f64,
    /// d of each block, in the order they were measured. It ends where the case was settled.
    pub differences: Vec<f64>,
}

/// Where a case stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The verdict; `None` while more blocks may change it.
    pub outcome: Option<Outcome>,
    /// Blocks the numbers below rest on.
    pub blocks: usize,
    /// Hodges-Lehmann estimate of ln(head / base); `None` without blocks.
    pub theta: Option<f64>,
    /// One-sided lower bound of theta at [`PASS_BETA`]; `None` below the blocks it takes (7).
    pub low: Option<f64>,
    /// One-sided upper bound, likewise. Both together are an interval of 97.5 %.
    pub high: Option<f64>,
    /// Whether head was shown to be slower or faster at the suite's level, at whatever limit.
    pub shown: Option<Shown>,
    /// Holm's adjusted p of "slower" at the last fail look this case took part in; of "faster" where that was shown.
    pub p_adjusted: Option<f64>,
    /// Sample standard deviation of the blocks.
    pub block_std: Option<f64>,
}

/// Whether a fail look can reject anything in a suite of `tests` cases: n >= log2(tests / level). One that cannot is not
/// taken.
pub fn fail_look_counts(look: Look, tests: usize) -> bool {
    look.blocks as f64 >= (tests as f64 / look.level).log2()
}

/// What is known of a case while the looks are replayed.
#[derive(Debug, Clone, Default)]
struct Case {
    slower: bool,
    faster: bool,
    within: bool,
    settled: Option<(Outcome, usize)>,
    p_adjusted: Option<f64>,
    p_faster: Option<f64>,
}

impl Case {
    fn settle(&mut self, outcome: Outcome, blocks: usize) {
        self.settled.get_or_insert((outcome, blocks));
    }
}

/// Replays the looks over a suite whose cases were fixed before the first block. The answer has the order of `suite`.
///
/// - *Regressed*: the exact signed-rank test of "slower" is rejected by Holm over the suite, at this or an earlier fail
///   look, and the estimate is at or above the limit. *Improved* is the mirror image.
/// - *Within limit*: at a pass look the estimate's upper bound is below the limit. A case that also looks improved stays
///   open for the fail looks, which may say so.
/// - After the last look: *unstable* when the interval is wider than twice the limit, else *inconclusive*.
pub fn stand(suite: &[Series]) -> Vec<Standing> {
    suite.iter().zip(replay(suite)).map(|(series, case)| standing(series, case)).collect()
}

/// The outcomes of [`stand`] alone, without its numbers: what a simulation of many suites asks for.
pub fn outcomes(suite: &[Series]) -> Vec<Option<Outcome>> {
    replay(suite).into_iter().map(|case| case.settled.map(|(outcome, _)| outcome)).collect()
}

fn replay(suite: &[Series]) -> Vec<Case> {
    let mut cases = vec![Case::default(); suite.len()];
    let mut counts: Vec<usize> = PASS_LOOKS.into_iter().chain(FAIL_LOOKS.map(|look| look.blocks)).collect();
    counts.sort_unstable();
    counts.dedup();
    for blocks in counts {
        // A look is taken when every open case has its blocks; a run that was cut short ends before it.
        let open = |case: &Case| case.settled.is_none();
        if suite.iter().zip(&cases).any(|(series, case)| open(case) && series.differences.len() < blocks) {
            break;
        }
        if let Some(look) = FAIL_LOOKS.into_iter().find(|look| look.blocks == blocks)
            && fail_look_counts(look, suite.len())
        {
            fail_look(suite, &mut cases, look);
        }
        if PASS_LOOKS.contains(&blocks) {
            pass_look(suite, &mut cases, blocks);
        }
        if blocks == MAX_BLOCKS {
            last_look(suite, &mut cases);
        }
    }
    cases
}

fn fail_look(suite: &[Series], cases: &mut [Case], look: Look) {
    let passed = |case: &Case| case.settled.is_some();
    let slower =
        family(suite, cases, look, |case| case.slower, |case| passed(case) || case.within, signed_rank_p_above);
    let faster = family(suite, cases, look, |case| case.faster, passed, signed_rank_p_below);
    for (at, p) in slower {
        if cases[at].settled.is_none() {
            cases[at].p_adjusted = Some(p);
        }
        cases[at].slower |= p <= look.level;
    }
    for (at, p) in faster {
        if cases[at].settled.is_none() {
            cases[at].p_faster = Some(p);
        }
        cases[at].faster |= p <= look.level;
    }
    for (series, case) in suite.iter().zip(cases) {
        let Some(theta) = series.differences.get(..look.blocks).and_then(hodges_lehmann) else { continue };
        if case.slower && !case.within && theta >= series.limit {
            case.settle(Outcome::Regressed, look.blocks);
        } else if case.faster && theta <= -series.limit {
            case.settle(Outcome::Improved, look.blocks);
        }
    }
}

/// Adjusted p values by case: Holm over the cases not `rejected` before, of which the `passed` ones count as p = 1.
fn family(
    suite: &[Series],
    cases: &[Case],
    look: Look,
    rejected: impl Fn(&Case) -> bool,
    passed: impl Fn(&Case) -> bool,
    p: impl Fn(&[f64]) -> Option<f64>,
) -> Vec<(usize, f64)> {
    let members: Vec<usize> = (0..cases.len()).filter(|&at| !rejected(&cases[at])).collect();
    let p_of = |at: usize| match suite[at].differences.get(..look.blocks) {
        Some(seen) if !passed(&cases[at]) => p(seen).unwrap_or(1.0),
        _ => 1.0,
    };
    let p_values: Vec<f64> = members.iter().map(|&at| p_of(at)).collect();
    members.into_iter().zip(holm_adjusted(&p_values).unwrap_or_default()).collect()
}

fn pass_look(suite: &[Series], cases: &mut [Case], blocks: usize) {
    for (series, case) in suite.iter().zip(cases) {
        let Some(seen) = series.differences.get(..blocks).filter(|_| case.settled.is_none()) else { continue };
        // The bound lies below the limit exactly when this test rejects "at or above the limit".
        let shifted: Vec<f64> = seen.iter().map(|d| d - series.limit).collect();
        case.within |= signed_rank_p_below(&shifted).is_some_and(|p| p <= PASS_BETA);
        let looks_improved = hodges_lehmann(seen).is_some_and(|theta| theta <= -series.limit);
        if case.within && (!looks_improved || blocks == MAX_BLOCKS) {
            case.settle(Outcome::WithinLimit, blocks);
        }
    }
}

fn last_look(suite: &[Series], cases: &mut [Case]) {
    for (series, case) in suite.iter().zip(cases).filter(|(_, case)| case.settled.is_none()) {
        let seen = &series.differences[..MAX_BLOCKS];
        let bounds = (signed_rank_lower_bound(seen, PASS_BETA), signed_rank_upper_bound(seen, PASS_BETA));
        let wide = match bounds {
            (Some(low), Some(high)) => (high - low) / 2.0 > series.limit,
            _ => true,
        };
        case.settle(if wide { Outcome::Unstable } else { Outcome::Inconclusive }, MAX_BLOCKS);
    }
}

fn standing(series: &Series, case: Case) -> Standing {
    let blocks = case.settled.map_or(series.differences.len(), |(_, blocks)| blocks).min(series.differences.len());
    let seen = &series.differences[..blocks];
    let shown = match (case.slower, case.faster) {
        (true, _) => Some(Shown::Slower),
        (false, true) => Some(Shown::Faster),
        (false, false) => None,
    };
    Standing {
        outcome: case.settled.map(|(outcome, _)| outcome),
        shown,
        blocks,
        theta: hodges_lehmann(seen),
        low: signed_rank_lower_bound(seen, PASS_BETA),
        high: signed_rank_upper_bound(seen, PASS_BETA),
        p_adjusted: if shown == Some(Shown::Faster) { case.p_faster } else { case.p_adjusted },
        block_std: sample_std(seen),
    }
}
