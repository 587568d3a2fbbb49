//! Servers that run already, `gate --base-url --head-url`: each was started once, and processes of one program can differ by
//! several percent. Every block uses the same processes, so a constant difference between two processes looks like a change: in a
//! simulation one pair is reported as slower in 20 % of gates if processes differ by 1 % (SD), and eight pairs in turn in 10 % at
//! 4 % (cargo-infergate's tests/simulations/servers.rs prints the table).
//!
//! So what blocks settle stands only if the pairs show it, too: each pair is one value, the mean of its blocks, and a t test over
//! the pairs has the same level. Fewer than [`LEAST_SERVERS`] could show no change of some percent; time is advisory then.

use super::paired::{PASS_LEVEL, SUITE_LEVEL, Series, interval};
use infergate_core::stats::{mean, sample_std, student_interval};
use infergate_receipts::{Evidence, Outcome, Reason, Statistic, VerdictRow};

/// The fewest servers of each side with which time is judged.
pub const LEAST_SERVERS: usize = 4;

/// The row of a time, one of `tests`, that blocks of `series` settled: unchanged if the pairs of `servers` show its outcome, too,
/// else advisory with the reason. `None`: servers are started for each block.
pub fn check_server_pairs(servers: Option<usize>, series: &Series, tests: usize, mut row: VerdictRow) -> VerdictRow {
    use Outcome::{Improved, Inconclusive, Regressed, Unstable, WithinLimit};
    let Some(servers) = servers else { return row };
    // A row of means rests on the means of the same blocks.
    let is_mean = row.time().is_some_and(|time| time.statistic == Statistic::Mean);
    let series = if is_mean { series.mean.as_deref().unwrap_or(series) } else { series };
    if !matches!(row.outcome, Regressed | Improved | WithinLimit | Unstable | Inconclusive) {
        return row;
    }
    if servers < LEAST_SERVERS {
        return advisory(row, Reason::FewServers { servers, needed: LEAST_SERVERS });
    }
    let blocks = row.time().and_then(|time| time.blocks).unwrap_or_default();
    let of_pair = |pair: usize| {
        let blocks = series.differences.get(..blocks)?.iter().skip(pair).step_by(servers);
        mean(&blocks.copied().collect::<Vec<f64>>())
    };
    let pairs: Vec<f64> = (0..servers.min(blocks)).filter_map(of_pair).collect();
    let (Some(centre), Some(std)) = (mean(&pairs), sample_std(&pairs)) else {
        return advisory(row, Reason::FewServers { servers: blocks.min(servers), needed: LEAST_SERVERS });
    };
    let level = SUITE_LEVEL / tests.max(1) as f64;
    let (of_suite, shown) = (student_interval(&pairs, level), student_interval(&pairs, PASS_LEVEL));
    let is_carried = match row.outcome {
        Regressed => centre >= series.limit && of_suite.is_some_and(|(low, _)| low > 0.0),
        Improved => centre <= -series.limit && of_suite.is_some_and(|(_, high)| high < 0.0),
        WithinLimit => shown.is_some_and(|(_, high)| high < series.limit),
        _ => true,
    };
    // An interval over blocks would not show how much the pairs differ.
    if let Evidence::Time(time) = &mut row.evidence {
        time.ratio = Some(centre.exp());
        time.head_ns = time.base_ns.map(|base_ns| base_ns * centre.exp());
        time.interval = shown.and_then(interval);
        time.smallest_slowdown = None;
    }
    let reason = Reason::ServersDiffer { servers: pairs.len(), std, limit: series.limit.exp() - 1.0 };
    if is_carried { row } else { advisory(row, reason) }
}

/// The row as advisory, without the numbers that rest on blocks alone.
fn advisory(mut row: VerdictRow, reason: Reason) -> VerdictRow {
    if let Evidence::Time(time) = &mut row.evidence {
        (time.threshold, time.smallest_slowdown, time.shown, time.p_adjusted) = (None, None, None, None);
        if matches!(reason, Reason::FewServers { .. }) {
            time.interval = None;
        }
    }
    VerdictRow { outcome: Outcome::Advisory, reasons: vec![reason], remedy: None, ..row }
}
