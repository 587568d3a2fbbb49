//! What other rules would have said of the blocks that a calibration measured: false alarms and power, side by side.
//!
//! `cargo run --release --example side_by_side CALIBRATION`, a receipt of `cargo xtask calibrate`. It prints a markdown
//! table: for builds that do the same, the share of suites in which any case is called slower; for a slowdown of one
//! case, the share of runs that call it, for the case found least. Seeded: one receipt gives one table.
//!
//! - **This gate**: the figures of `calibrate`, the slowed case beside unchanged others. Interval: outer bootstrap of
//!   blocks.
//! - **criterion** 0.8 (`analysis/compare.rs`, `stats/mod.rs`, `stats/univariate/mixed.rs`, `report.rs`): slower is p <
//!   0.05, two-sided, in a bootstrap of Welch's t from both runs thrown together, and a 95 % percentile interval of
//!   mean / mean - 1 wholly above the noise threshold of 1 %. Here with 1000 resamples, the fewest it does not warn of,
//!   in place of 100 000.
//! - **Stored median**: the median of one process now is more than 5 or 10 % above that of one stored process.
//! - **perfgate** 0.18.1 (`domain/paired.rs`, `app/paired.rs`): `paired --fail-on-regression LIMIT` fails when the mean
//!   difference is more than LIMIT of base's median and more than 2 standard errors above zero (1.96 from 30 pairs on;
//!   the variance divides by n). LIMIT has no default: shown are this gate's own and the 5 % of `perfgate bisect`. By
//!   default it retries nothing, refuses no noise and takes 5 pairs without a warm-up; here it is given more, warm.
//!
//! # What each rule gets to see
//!
//! Only timed iterations count as time: loading and warming a process is free for every rule.
//!
//! *Paired* rules see base and head of the same blocks. perfgate has equal time: in each drawn suite a case gets as
//! many blocks as this gate took for it in a suite drawn likewise. It starts two processes for a pair, as a block does:
//! *a pair a block* is that, each process timed by the sum of its iterations. *A pair an iteration* counts all pairs of
//! iterations in those blocks, as if processes had no luck of their own. It is spared what it would meet in life: the
//! load within its times, whole milliseconds, base always first. A block's times are taken relative to base's in it,
//! since a suite drawn from several hours mixes speeds as no one run does.
//!
//! *Stored* rules see two times: base of a live gate is the stored run, head of a later gate is the run of now, for
//! every pair of gates; no draw is needed. A stored median sees one process of each, every block against every block.
//! criterion sees all iterations of base in the one and of head in the other, those that settled the case in each gate:
//! equal time again. It would time one process; these are several, so that the luck of one, which it takes for a
//! change, is averaged out. Interval: outer bootstrap of gates.
//!
//! Slowed heads are measured within one hour. Against stored runs they would show how fast that hour was; so stored
//! rules are given the later gate's head with every time stretched, which is what an injected slowdown does.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use cargo_infergate::gate::paired::{MAX_BLOCKS, Series, Share, block_difference, stand, summarise};
use cargo_infergate::receipt::{BlockCase, BlockRecord, Calibration, PairedCase, read};
use cargo_infergate::stats::{mean, median, quantile, sample_std};

const SEED: u64 = 1;
const SLOWDOWNS: [f64; 4] = [0.02, 0.03, 0.05, 0.10];

/// Suites drawn in all; outer resamples, and suites drawn within each.
const SUITES: usize = 2_000;
const OUTER: usize = 200;
const SUITES_WITHIN: usize = 200;

/// Suites replayed to learn how many blocks this gate takes.
const REPLAYED: usize = 400;

/// Fewer rows say nothing about a suite of up to [`MAX_BLOCKS`] (as in `calibrate`), fewer gates nothing about drift.
const LEAST_ROWS: usize = 12;
const LEAST_GATES: usize = 4;

/// Defaults of criterion, but for the resamples.
const CRITERION_SIGNIFICANCE: f64 = 0.05;
const CRITERION_NOISE: f64 = 0.01;
const CRITERION_RESAMPLES: usize = 1_000;

/// Default of `perfgate bisect`.
const PERFGATE_LIMIT: f64 = 0.05;

fn main() -> ExitCode {
    let path = std::env::args_os().nth(1).map(PathBuf::from).context("which calibration? name its file");
    match path.and_then(|path| report(&path)) {
        Ok(report) => {
            print!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(2)
        }
    }
}

/// The line that says what was measured, and the table.
fn report(path: &Path) -> Result<String> {
    let calibration = read::<Calibration>(path)?;
    let blocks = calibration.gates.iter().map(|gate| whole_rows(&gate.blocks, &calibration).len()).sum::<usize>();
    ensure!(
        blocks >= LEAST_ROWS,
        "{}: {blocks} blocks of the whole suite, and {LEAST_ROWS} are needed; calibrate more gates",
        path.display()
    );
    let (lines, taken) = lines(&calibration).context("a time that is no time; calibrate again")?;
    let head = format!(
        "{blocks} live blocks of the whole suite in {} gates and {} blocks with slowed heads, machine class {}. Until \
         a suite of builds that do the same is settled this gate takes {taken} blocks (median).\n",
        calibration.gates.len(),
        calibration.power.len(),
        calibration.machine.class,
    );
    Ok(format!("{head}\n{}", table(&lines)))
}

/// All lines, and the median number of blocks of this gate. `None` for times that are no times.
fn lines(calibration: &Calibration) -> Option<(Vec<Line>, f64)> {
    let suite: Vec<&PairedCase> = calibration.cases.iter().filter(|case| case.timed).collect();
    let gates: Vec<Gate> = calibration
        .gates
        .iter()
        .map(|gate| Gate { rows: whole_rows(&gate.blocks, calibration), iterations: pooled(&gate.blocks, &suite) })
        .collect();
    let rows = gates.iter().flat_map(|gate| gate.rows.clone()).collect();
    let limits: Vec<f64> = suite.iter().map(|case| case.threshold).collect();
    let unchanged = Blocks::new(rows, &limits, suite.len())?;
    let longest: Vec<f64> = unchanged.taken.iter().map(|suite| suite.iter().fold(0, |a, b| a.max(*b)) as f64).collect();
    // By slowdown, then case.
    let slowed =
        SLOWDOWNS.map(|slowdown| suite.iter().map(|case| slowed(calibration, case, slowdown, suite.len())).collect());
    let mut lines = vec![this_gate(calibration), stored("criterion 0.8, stored run", &gates, suite.len(), &criterion)];
    for (rule, limit) in [("stored median, +5 %", 0.05), ("stored median, +10 %", 0.10)] {
        let calls = move |was: &Gate, is: &Gate, stretch: f64| stored_median(was, is, stretch, limit);
        lines.push(stored(rule, &gates, suite.len(), &calls));
    }
    for (rule, pair, limit) in [
        ("perfgate paired, a pair a block, this gate's limits", Pair::Block, None),
        ("perfgate paired, a pair an iteration, this gate's limits", Pair::Iteration, None),
        ("perfgate paired, a pair a block, +5 %", Pair::Block, Some(PERFGATE_LIMIT)),
        ("perfgate paired, a pair an iteration, +5 %", Pair::Iteration, Some(PERFGATE_LIMIT)),
    ] {
        let share = |blocks: &Blocks| perfgate_share(blocks, pair, limit);
        let found = |cases: &Vec<Option<Blocks>>| smallest(cases.iter().map(|blocks| share(blocks.as_ref()?)));
        lines.push(Line { rule, false_alarms: share(&unchanged), found: slowed.iter().map(found).collect() });
    }
    Some((lines, median(&longest)?))
}

/// One rule. `None` where the receipt has too little.
struct Line {
    rule: &'static str,
    false_alarms: Option<Share>,
    /// In the order of [`SLOWDOWNS`].
    found: Vec<Option<Share>>,
}

fn table(lines: &[Line]) -> String {
    let found = SLOWDOWNS.map(|slowdown| format!("{:.0} % found", slowdown * 100.0)).join(" | ");
    let mut text = format!("| rule | A/A suites called | {found} |\n|---|{}\n", "---|".repeat(1 + SLOWDOWNS.len()));
    let cell = |share: &Option<Share>| match share {
        Some(Share { share, low, high }) => {
            format!("{:.1} % ({:.1} to {:.1})", share * 100.0, low * 100.0, high * 100.0)
        }
        None => "too little measured".into(),
    };
    for line in lines {
        let cells: Vec<String> = std::iter::once(&line.false_alarms).chain(&line.found).map(cell).collect();
        text += &format!("| {} | {} |\n", line.rule, cells.join(" | "));
    }
    text
}

/// The case found least; one that was not measured leaves it unknown.
fn smallest(shares: impl Iterator<Item = Option<Share>>) -> Option<Share> {
    let shares: Vec<Share> = shares.collect::<Option<_>>()?;
    shares.into_iter().min_by(|a, b| a.share.total_cmp(&b.share))
}

fn with_interval(share: f64, outer: &[f64]) -> Option<Share> {
    Some(Share { share, low: quantile(outer, 0.025)?, high: quantile(outer, 0.975)? })
}

/// The blocks in which every timed case was measured: later ones hold only what was too noisy to be settled before.
fn whole_rows(blocks: &[BlockRecord], calibration: &Calibration) -> Vec<Vec<BlockCase>> {
    let timed = || calibration.cases.iter().filter(|case| case.timed);
    let of = |block: &BlockRecord, case: &PairedCase| block.cases.iter().find(|found| found.id == case.id).cloned();
    let row = |block: &BlockRecord| timed().map(|case| of(block, case)).collect::<Option<Vec<_>>>();
    blocks.iter().filter_map(row).filter(|row| !row.is_empty()).collect()
}

/// (base, head) of all iterations of each case.
fn pooled(blocks: &[BlockRecord], suite: &[&PairedCase]) -> Vec<(Vec<f64>, Vec<f64>)> {
    let of = |case: &&PairedCase| {
        let blocks = || blocks.iter().flat_map(|block| &block.cases).filter(|block| block.id == case.id);
        let base = blocks().flat_map(|block| floats(&block.base_ns)).collect();
        (base, blocks().flat_map(|block| floats(&block.head_ns)).collect())
    };
    suite.iter().map(of).collect()
}

fn floats(times_ns: &[u64]) -> Vec<f64> {
    times_ns.iter().map(|ns| *ns as f64).collect()
}

fn this_gate(calibration: &Calibration) -> Line {
    let summary = summarise(calibration);
    let found = |slowdown: f64| {
        smallest(summary.found.iter().filter(|found| found.slowdown == slowdown).map(|found| found.called))
    };
    let false_alarms = summary.false_alarms.resampled.map(|resampled| resampled.regressed);
    Line { rule: "this gate", false_alarms, found: SLOWDOWNS.map(found).to_vec() }
}

/// What one live gate leaves for a comparison over time.
struct Gate {
    rows: Vec<Vec<BlockCase>>,
    iterations: Vec<(Vec<f64>, Vec<f64>)>,
}

/// What a stored rule called, by comparison, then case.
type Answers = Vec<Vec<bool>>;

/// Compares head of the second gate, stretched by a factor, with base of the first, once or more.
type StoredRule = dyn Fn(&Gate, &Gate, f64) -> Option<Answers>;

fn stored(rule: &'static str, gates: &[Gate], cases: usize, calls: &StoredRule) -> Line {
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
    with_interval(weighted(&vec![1; gates])?, &outer)
}

fn stored_median(stored: &Gate, current: &Gate, stretch: f64, limit: f64) -> Option<Answers> {
    let medians = |rows: &[Vec<BlockCase>], of: &dyn Fn(&BlockCase) -> Option<f64>| -> Option<Vec<Vec<f64>>> {
        rows.iter().map(|row| row.iter().map(of).collect()).collect()
    };
    let was = medians(&stored.rows, &|block| median(&floats(&block.base_ns)))?;
    let is = medians(&current.rows, &|block| median(&floats(&block.head_ns)))?;
    let compare =
        |was: &[f64], is: &[f64]| was.iter().zip(is).map(|(was, is)| stretch * is > (1.0 + limit) * was).collect();
    Some(was.iter().flat_map(|was| is.iter().map(|is| compare(was, is))).collect())
}

fn criterion(stored: &Gate, current: &Gate, stretch: f64) -> Option<Answers> {
    let cases = stored.iterations.iter().zip(&current.iterations);
    let called = cases.map(|((was, _), (_, is))| {
        let stretched: Vec<f64> = is.iter().map(|ns| stretch * ns).collect();
        criterion_calls(was, &stretched)
    });
    Some(vec![called.collect::<Option<_>>()?])
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

/// Rows of blocks that a paired rule's suites are drawn from.
struct Blocks {
    rows: Vec<Vec<BlockCase>>,
    /// By case: the ratio from which on this gate calls a slowdown.
    limits: Vec<f64>,
    /// By replayed suite, then case: blocks this gate took.
    taken: Vec<Vec<usize>>,
}

impl Blocks {
    /// Fills the suite up to `tests` with unchanged cases, as where `calibrate` asks for power. `None` for times that are
    /// no times.
    fn new(rows: Vec<Vec<BlockCase>>, limits: &[f64], tests: usize) -> Option<Self> {
        let differences: Vec<Vec<f64>> =
            rows.iter().map(|row| row.iter().map(block_difference).collect()).collect::<Option<_>>()?;
        let mut random = fastrand::Rng::with_seed(SEED);
        let mut replay = || {
            let drawn: Vec<usize> = (0..MAX_BLOCKS).map(|_| random.usize(..rows.len())).collect();
            let series = |(at, limit): (usize, &f64)| Series {
                limit: limit.ln(),
                differences: drawn.iter().map(|&row| differences[row][at]).collect(),
            };
            let mut suite: Vec<Series> = limits.iter().enumerate().map(series).collect();
            suite.resize(tests, Series { limit: limits[0].ln(), differences: vec![0.0; MAX_BLOCKS] });
            stand(&suite).iter().map(|case| case.blocks).collect()
        };
        let taken = (0..REPLAYED).map(|_| replay()).collect();
        Some(Self { rows, limits: limits.to_vec(), taken })
    }
}

/// The blocks of one case under one slowdown. `None` below [`LEAST_ROWS`].
fn slowed(calibration: &Calibration, case: &PairedCase, slowdown: f64, tests: usize) -> Option<Blocks> {
    let blocks = calibration.power.iter().flat_map(|block| &block.cases).filter(|block| block.id == case.id);
    let slowed = blocks.flat_map(|block| &block.slowed).filter(|slowed| slowed.slowdown == slowdown);
    let rows: Vec<Vec<BlockCase>> =
        slowed.map(|slowed| vec![BlockCase::new(case.id, slowed.base_ns.clone(), slowed.head_ns.clone())]).collect();
    (rows.len() >= LEAST_ROWS).then(|| Blocks::new(rows, &[case.threshold], tests))?
}

/// What perfgate takes for a pair.
#[derive(Clone, Copy)]
enum Pair {
    Block,
    Iteration,
}

/// (base, head) of each pair in a block, relative to base's times in it.
fn pairs(block: &BlockCase, pair: Pair) -> Vec<(f64, f64)> {
    let (base, head) = (floats(&block.base_ns), floats(&block.head_ns));
    match (pair, mean(&base), mean(&head), median(&base)) {
        (Pair::Block, Some(base), Some(head), _) => vec![(1.0, head / base)],
        (Pair::Iteration, _, _, Some(unit)) => base.iter().zip(&head).map(|(b, h)| (b / unit, h / unit)).collect(),
        _ => Vec::new(),
    }
}

/// perfgate's change, the mean difference as a fraction of base's median, where it counts as significantly above zero.
fn perfgate_slower(pairs: &[(f64, f64)]) -> Option<f64> {
    let differences: Vec<f64> = pairs.iter().map(|(base, head)| head - base).collect();
    let (n, difference) = (pairs.len() as f64, mean(&differences)?);
    let variance = differences.iter().map(|d| (d - difference).powi(2)).sum::<f64>() / n;
    let errors = if pairs.len() >= 30 { 1.96 } else { 2.0 };
    let base: Vec<f64> = pairs.iter().map(|(base, _)| *base).collect();
    (difference > errors * (variance / n).sqrt()).then_some(difference / median(&base)?)
}

/// Share of suites in which any case is called; `limit` is perfgate's, or for each case this gate's own. Blocks and
/// their number are drawn apart, so that where this gate stopped selects nothing.
fn perfgate_share(blocks: &Blocks, pair: Pair, limit: Option<f64>) -> Option<Share> {
    let limits: Vec<f64> = blocks.limits.iter().map(|own| limit.unwrap_or(own - 1.0)).collect();
    let pool: Vec<Vec<Vec<(f64, f64)>>> =
        blocks.rows.iter().map(|row| row.iter().map(|block| pairs(block, pair)).collect()).collect();
    let mut random = fastrand::Rng::with_seed(SEED + 1);
    let mut share = |rows: &[usize], suites: usize| {
        let called = (0..suites).filter(|_| {
            let taken = &blocks.taken[random.usize(..blocks.taken.len())];
            let drawn: Vec<usize> = (0..MAX_BLOCKS).map(|_| rows[random.usize(..rows.len())]).collect();
            limits.iter().enumerate().any(|(case, limit)| {
                let pairs: Vec<_> = drawn[..taken[case]].iter().flat_map(|&row| pool[row][case].clone()).collect();
                perfgate_slower(&pairs).is_some_and(|change| change > *limit)
            })
        });
        called.count() as f64 / suites as f64
    };
    let all: Vec<usize> = (0..pool.len()).collect();
    let called = share(&all, SUITES);
    let mut outer_random = fastrand::Rng::with_seed(SEED + 2);
    let mut resampled = || all.iter().map(|_| outer_random.usize(..all.len())).collect::<Vec<usize>>();
    let outer: Vec<f64> = (0..OUTER).map(|_| share(&resampled(), SUITES_WITHIN)).collect();
    with_interval(called, &outer)
}
