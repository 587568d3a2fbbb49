//! What other rules would have said of the blocks that a calibration measured: false alarms and power, side by side.
//!
//! `cargo run --release --package cargo-infergate --example side_by_side CALIBRATION`, a receipt of `cargo xtask calibrate`. It prints a markdown
//! table: for builds that do the same, the share of suites in which any case is called slower; for a slowdown of one
//! case, the share of runs that call it, for the case found least. Seeded: one receipt gives one table.
//!
//! - **This gate**: its own looks, by median and mean, over suites drawn from the blocks of builds that do the same.
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

mod blocks;
mod perfgate;
mod stored;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use cargo_infergate::gate::paired::{block_noise, judged_cases};
use cargo_infergate::receipt::{BlockCase, BlockRecord, Calibration, MeanTest, PairedCase, Share, read};
use infergate_core::stats::{clopper_pearson, median, quantile};

use crate::blocks::{Blocks, Limit, this_gate_share};
use crate::perfgate::{Pair, perfgate_share};
use crate::stored::{Gate, criterion, interleaved, stored, stored_median};

const SEED: u64 = 1;
const SLOWDOWNS: [f64; 4] = [0.02, 0.03, 0.05, 0.10];

/// Suites drawn in all; outer resamples, and suites drawn within each.
const SUITES: usize = 2_000;
const OUTER: usize = 200;
const SUITES_WITHIN: usize = 200;

/// Fewer rows say nothing about a suite of up to [`MAX_BLOCKS`] (as in `calibrate`), fewer gates nothing about drift.
const LEAST_ROWS: usize = 12;
const LEAST_GATES: usize = 4;

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
        "{blocks} blocks of the whole suite in {} gates, and {} blocks with slowed heads, machine class {}. To decide a \
         suite of builds that do the same, this gate takes {taken} blocks (median). Shares in %, with 95 % intervals:\n",
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
    let judged = judged_cases(calibration);
    let limits = judged.iter().filter(|case| case.timed).zip(block_noise(calibration)).map(|(case, noise)| {
        let mean = MeanTest { expected_std: noise.mean_std, ..case.mean? };
        Some(Limit { ratio: case.threshold, std: noise.std, mean })
    });
    let limits: Vec<Limit> = limits.collect::<Option<_>>()?;
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
            format!("{:.1} ({:.1}–{:.1})", share * 100.0, low * 100.0, high * 100.0)
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
