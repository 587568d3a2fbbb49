//! Rules that compare a run with a stored one, and criterion's rule on times that were taken in turn.

use cargo_infergate::receipt::{BlockCase, Share};
use infergate_core::stats::{clopper_pearson, mean, median, quantile, sample_std};

use crate::{LEAST_GATES, Line, OUTER, SEED, SLOWDOWNS, floats, smallest, with_interval};

/// Defaults of criterion, but for the resamples.
const CRITERION_SIGNIFICANCE: f64 = 0.05;
const CRITERION_NOISE: f64 = 0.01;
const CRITERION_RESAMPLES: usize = 1_000;

/// What one live gate leaves for a comparison over time.
pub struct Gate {
    pub rows: Vec<Vec<BlockCase>>,
    pub iterations: Vec<(Vec<f64>, Vec<f64>)>,
}

/// What a stored rule called, by comparison, then case.
type Answers = Vec<Vec<bool>>;

/// Compares head of the second gate, stretched by a factor, with base of the first, once or more.
type StoredRule = dyn Fn(&Gate, &Gate, f64) -> Option<Answers>;

pub fn stored(rule: &'static str, gates: &[Gate], cases: usize, calls: &StoredRule) -> Line {
    let over_time = |stretch: f64| -> Vec<([usize; 2], Answers)> {
        let pairs = (0..gates.len()).flat_map(|later| (0..later).map(move |earlier| [earlier, later]));
        pairs.filter_map(|pair| Some((pair, calls(&gates[pair[0]], &gates[pair[1]], stretch)?))).collect()
    };
    let share = |answers: &[([usize; 2], Answers)], hit: &dyn Fn(&[bool]) -> bool| {
        let of = |answers: &[Vec<bool>]| answers.iter().filter(|a| hit(a)).count() as f64 / answers.len() as f64;
        let sound = answers.iter().filter(|(_, answers)| !answers.is_empty());
        over_gates(gates.len(), &sound.map(|(pair, answers)| (*pair, of(answers))).collect::<Vec<_>>())
    };
    let found = |slowdown: f64| {
        let answers = over_time(1.0 + slowdown);
        smallest((0..cases).map(|case| share(&answers, &|answer| answer[case])))
    };
    let false_alarms = share(&over_time(1.0), &|answer| answer.contains(&true));
    Line { rule, false_alarms, found: SLOWDOWNS.map(found).to_vec() }
}

/// The mean over pairs of gates. The interval resamples gates, since pairs that share one are not independent.
fn over_gates(gates: usize, shares: &[([usize; 2], f64)]) -> Option<Share> {
    let weighted = |drawn: &[usize]| {
        let weight = |pair: &[usize; 2]| (drawn[pair[0]] * drawn[pair[1]]) as f64;
        let total: f64 = shares.iter().map(|(pair, _)| weight(pair)).sum();
        (total > 0.0).then(|| shares.iter().map(|(pair, share)| weight(pair) * share).sum::<f64>() / total)
    };
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut resampled = || {
        let mut drawn = vec![0; gates];
        (0..gates).for_each(|_| drawn[random.usize(..gates)] += 1);
        weighted(&drawn)
    };
    if gates < LEAST_GATES {
        return None;
    }
    let outer: Vec<f64> = (0..OUTER).filter_map(|_| resampled()).collect();
    with_interval(weighted(&vec![1; gates])?, &outer, gates)
}

pub fn stored_median(stored: &Gate, current: &Gate, stretch: f64, limit: f64) -> Option<Answers> {
    let medians = |rows: &[Vec<BlockCase>], of: &dyn Fn(&BlockCase) -> Option<f64>| -> Option<Vec<Vec<f64>>> {
        rows.iter().map(|row| row.iter().map(of).collect()).collect()
    };
    let was = medians(&stored.rows, &|block| median(&floats(&block.base_ns)))?;
    let is = medians(&current.rows, &|block| median(&floats(&block.head_ns)))?;
    let compare =
        |was: &[f64], is: &[f64]| was.iter().zip(is).map(|(was, is)| stretch * is > (1.0 + limit) * was).collect();
    Some(was.iter().flat_map(|was| is.iter().map(|is| compare(was, is))).collect())
}

pub fn criterion(stored: &Gate, current: &Gate, stretch: f64) -> Option<Answers> {
    let cases = stored.iterations.iter().zip(&current.iterations);
    let called = cases.map(|((was, _), (_, is))| {
        let stretched: Vec<f64> = is.iter().map(|ns| stretch * ns).collect();
        criterion_calls(was, &stretched)
    });
    Some(vec![called.collect::<Option<_>>()?])
}

/// criterion's rule on base and head of one gate, whose iterations were taken in turn.
pub fn interleaved(rule: &'static str, gates: &[Gate], cases: usize) -> Line {
    let calls = |gate: &Gate, case: usize, stretch: f64| {
        let (base, head) = &gate.iterations[case];
        criterion_calls(base, &head.iter().map(|ns| stretch * ns).collect::<Vec<f64>>())
    };
    let share = |hits: &[bool]| {
        let (hit, all) = (hits.iter().filter(|hit| **hit).count() as u64, hits.len() as u64);
        let (low, high) = clopper_pearson(hit, all, 0.95)?;
        Some(Share { share: hit as f64 / all as f64, low, high })
    };
    let of_case = |case: usize, stretch: f64| {
        share(&gates.iter().map(|gate| calls(gate, case, stretch)).collect::<Option<Vec<bool>>>()?)
    };
    let any = |gate: &Gate| (0..cases).map(|case| calls(gate, case, 1.0)).collect::<Option<Vec<bool>>>();
    let called: Option<Vec<bool>> = gates.iter().map(|gate| any(gate).map(|calls| calls.contains(&true))).collect();
    let found = |slowdown: &f64| smallest((0..cases).map(|case| of_case(case, 1.0 + slowdown)));
    Line { rule, false_alarms: called.and_then(|called| share(&called)), found: SLOWDOWNS.iter().map(found).collect() }
}

/// Whether criterion calls the times `is` regressed against `was`. `None` below two times of each.
fn criterion_calls(was: &[f64], is: &[f64]) -> Option<bool> {
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut draw = |from: &[f64], n: usize| -> Vec<f64> { (0..n).map(|_| from[random.usize(..from.len())]).collect() };
    let t = welch_t(is, was)?;
    let mut change = || Some(mean(&draw(is, is.len()))? / mean(&draw(was, was.len()))? - 1.0);
    let changes: Vec<f64> = (0..CRITERION_RESAMPLES).map(|_| change()).collect::<Option<_>>()?;
    if quantile(&changes, 0.025)? <= CRITERION_NOISE {
        return Some(false);
    }
    let together = [is, was].concat();
    let mut null = || welch_t(&draw(&together, is.len()), &draw(&together, was.len()));
    let null: Vec<f64> = (0..CRITERION_RESAMPLES).filter_map(|_| null()).filter(|t| t.is_finite()).collect();
    let below = null.iter().filter(|drawn| **drawn < t).count();
    let p = 2.0 * below.min(null.len() - below) as f64 / null.len() as f64;
    Some(p < CRITERION_SIGNIFICANCE)
}

fn welch_t(a: &[f64], b: &[f64]) -> Option<f64> {
    let squared_error = |values: &[f64]| Some(sample_std(values)?.powi(2) / values.len() as f64);
    Some((mean(a)? - mean(b)?) / (squared_error(a)? + squared_error(b)?).sqrt())
}
