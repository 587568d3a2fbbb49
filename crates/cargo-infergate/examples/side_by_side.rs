//! What other rules would have said of the blocks that a calibration measured: false alarms and power, side by side.
//!
//! `cargo run --release --example side_by_side CALIBRATION`, a receipt of `cargo xtask calibrate`. It prints a markdown
//! table: for builds that do the same, the share of suites in which any case is called slower; for a slowdown of one
//! case, the share of runs that call it, for the case found least. Seeded: one receipt gives one table.
//!
//! - **This gate**: its own looks over suites drawn from the blocks of builds that do the same.
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
//! *criterion, interleaved* sees base and head of one gate, whose iterations were taken in turn: most of what a paired gate
//! gains is in that design, and this line shows how much of it criterion's own rule would have. Interval: exact.
//!
//! A slowdown is put in by stretching every time of head, which is what an injected one does. No event at all has the exact
//! bound of as many gates, never an interval of no width.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use cargo_infergate::gate::paired::{MAX_BLOCKS, Series, block_difference, block_noise, settled};
use cargo_infergate::receipt::{BlockCase, BlockRecord, Calibration, Outcome, PairedCase, Share, read};
use cargo_infergate::stats::{clopper_pearson, mean, median, quantile, sample_std};

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
    let rows: Vec<Vec<Vec<BlockCase>>> = gates.iter().map(|gate| gate.rows.clone()).collect();
    let noise: Vec<Option<f64>> = block_noise(calibration).into_iter().map(|noise| noise.std).collect();
    let limits: Vec<(f64, Option<f64>)> = suite.iter().zip(noise).map(|(case, std)| (case.threshold, std)).collect();
    let unchanged = Blocks::new(&rows, &limits, suite.len())?;
    let longest: Vec<f64> = unchanged.taken.iter().map(|suite| suite.iter().fold(0, |a, b| a.max(*b)) as f64).collect();
    // By slowdown, then case.
    let slowed: Vec<Vec<Blocks>> = SLOWDOWNS
        .iter()
        .map(|slowdown| (0..suite.len()).map(|case| Blocks::slowed(&rows, case, &limits, *slowdown)).collect())
        .collect::<Option<_>>()?;
    let paired = |rule, share: &dyn Fn(&Blocks) -> Option<Share>| Line {
        rule,
        false_alarms: share(&unchanged),
        found: slowed.iter().map(|cases| smallest(cases.iter().map(share))).collect(),
    };
    let mut lines = vec![
        paired("this gate", &this_gate_share),
        stored("criterion 0.8, stored run", &gates, suite.len(), &criterion),
        interleaved("criterion 0.8, interleaved", &gates, suite.len()),
    ];
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
        lines.push(paired(rule, &|blocks| perfgate_share(blocks, pair, limit)));
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

/// The ends are those of the outer bootstrap; where it never saw anything else, the exact ones of as many `gates` that all
/// agree.
fn with_interval(share: f64, outer: &[f64], gates: usize) -> Option<Share> {
    let (low, high) = (quantile(outer, 0.025)?, quantile(outer, 0.975)?);
    if low < high || (share > 0.0 && share < 1.0) {
        return Some(Share { share, low, high });
    }
    let (low, high) = clopper_pearson(if share > 0.0 { gates as u64 } else { 0 }, gates as u64, 0.95)?;
    Some(Share { share, low, high })
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

/// The share of drawn suites in which this gate calls any of the blocks' cases.
fn this_gate_share(blocks: &Blocks) -> Option<Share> {
    let mut random = fastrand::Rng::with_seed(SEED + 3);
    blocks.share(|rows, suites| {
        let called = (0..suites).filter(|_| {
            blocks.replay(rows, &mut random).iter().flatten().any(|(outcome, _)| *outcome == Outcome::Regressed)
        });
        called.count() as f64 / suites as f64
    })
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
    with_interval(weighted(&vec![1; gates])?, &outer, gates)
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

/// criterion's rule on base and head of one gate, whose iterations were taken in turn.
fn interleaved(rule: &'static str, gates: &[Gate], cases: usize) -> Line {
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

/// Rows of blocks that a paired rule's suites are drawn from.
struct Blocks {
    rows: Vec<Vec<BlockCase>>,
    /// d of each row, by case.
    differences: Vec<Vec<f64>>,
    /// By gate: its rows.
    gates: Vec<Vec<usize>>,
    /// By case: the ratio from which on this gate calls a slowdown, and the noise it expects.
    limits: Vec<(f64, Option<f64>)>,
    /// Cases of the suite; those beyond `limits` are unchanged and quiet.
    tests: usize,
    /// By replayed suite, then case: blocks this gate took.
    taken: Vec<Vec<usize>>,
}

impl Blocks {
    /// `None` for times that are no times.
    fn new(gates: &[Vec<Vec<BlockCase>>], limits: &[(f64, Option<f64>)], tests: usize) -> Option<Self> {
        let rows: Vec<Vec<BlockCase>> = gates.iter().flatten().cloned().collect();
        let differences =
            rows.iter().map(|row| row.iter().map(block_difference).collect()).collect::<Option<Vec<Vec<f64>>>>()?;
        let mut at = 0..rows.len();
        let gates: Vec<Vec<usize>> = gates.iter().map(|gate| at.by_ref().take(gate.len()).collect()).collect();
        let mut blocks = Self { rows, differences, gates, limits: limits.to_vec(), tests, taken: Vec::new() };
        let (all, mut random) = ((0..blocks.rows.len()).collect::<Vec<usize>>(), fastrand::Rng::with_seed(SEED));
        let mut took = || {
            let ended = blocks.replay(&all, &mut random);
            ended.iter().map(|case| case.map_or(MAX_BLOCKS, |(_, blocks)| blocks)).collect()
        };
        let taken = (0..REPLAYED).map(|_| took()).collect();
        blocks.taken = taken;
        Some(blocks)
    }

    /// One case alone, each time of head stretched.
    fn slowed(
        gates: &[Vec<Vec<BlockCase>>],
        case: usize,
        limits: &[(f64, Option<f64>)],
        slowdown: f64,
    ) -> Option<Self> {
        let stretched = |row: &Vec<BlockCase>| {
            let mut block = row[case].clone();
            block.head_ns.iter_mut().for_each(|ns| *ns = (*ns as f64 * (1.0 + slowdown)).round() as u64);
            vec![block]
        };
        let gates: Vec<Vec<Vec<BlockCase>>> = gates.iter().map(|gate| gate.iter().map(stretched).collect()).collect();
        Self::new(&gates, &limits[case..=case], limits.len())
    }

    /// How this gate ends a suite drawn from `rows`.
    fn replay(&self, rows: &[usize], random: &mut fastrand::Rng) -> Vec<Option<(Outcome, usize)>> {
        let drawn: Vec<usize> = (0..MAX_BLOCKS).map(|_| rows[random.usize(..rows.len())]).collect();
        let series = |(at, (limit, expected_std)): (usize, &(f64, Option<f64>))| Series {
            limit: limit.ln(),
            expected_std: *expected_std,
            differences: drawn.iter().map(|&row| self.differences[row][at]).collect(),
        };
        let mut suite: Vec<Series> = self.limits.iter().enumerate().map(series).collect();
        let quiet = Series { limit: self.limits[0].0.ln(), expected_std: None, differences: vec![0.0; MAX_BLOCKS] };
        suite.resize(self.tests, quiet);
        settled(&suite).into_iter().take(self.limits.len()).collect()
    }

    /// What `share_of` finds in suites drawn from some rows; the interval redraws whole gates.
    fn share(&self, mut share_of: impl FnMut(&[usize], usize) -> f64) -> Option<Share> {
        let all: Vec<usize> = (0..self.rows.len()).collect();
        let found = share_of(&all, SUITES);
        let mut random = fastrand::Rng::with_seed(SEED + 2);
        let mut redrawn = || -> Vec<usize> {
            self.gates.iter().flat_map(|_| self.gates[random.usize(..self.gates.len())].clone()).collect()
        };
        let outer: Vec<f64> = (0..OUTER).map(|_| share_of(&redrawn(), SUITES_WITHIN)).collect();
        with_interval(found, &outer, self.gates.len())
    }
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
    let limits: Vec<f64> = blocks.limits.iter().map(|(own, _)| limit.unwrap_or(own - 1.0)).collect();
    let pool: Vec<Vec<Vec<(f64, f64)>>> =
        blocks.rows.iter().map(|row| row.iter().map(|block| pairs(block, pair)).collect()).collect();
    let mut random = fastrand::Rng::with_seed(SEED + 1);
    blocks.share(|rows, suites| {
        let called = (0..suites).filter(|_| {
            let taken = &blocks.taken[random.usize(..blocks.taken.len())];
            let drawn: Vec<usize> = (0..MAX_BLOCKS).map(|_| rows[random.usize(..rows.len())]).collect();
            limits.iter().enumerate().any(|(case, limit)| {
                let pairs: Vec<_> = drawn[..taken[case]].iter().flat_map(|&row| pool[row][case].clone()).collect();
                perfgate_slower(&pairs).is_some_and(|change| change > *limit)
            })
        });
        called.count() as f64 / suites as f64
    })
}
