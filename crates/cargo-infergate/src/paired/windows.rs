//! Windows of load on two servers in turn: base, head, head, base, or the other way round. While one server is loaded the other
//! one idles, and both get the same requests.

use std::collections::BTreeMap;

use infergate_core::case::Case;
use infergate_core::load::{LoadWindow, WindowPlan};
use infergate_core::worker::WorkerError;

use super::PairedRequest;
use super::process_pair::ProcessPair;
use crate::paired::load_window::{answers, bytes_per_token, window};
use infergate_core::stats::quantile;
use infergate_receipts::window::of_case_name;
use infergate_receipts::{BlockCase, BlockRecord, LoadCase, Metric, PairedCase, Side, WindowTimes};

/// Windows of each side in a block.
const WINDOWS: usize = 2;

/// How long users send requests in the first window of a level, which shows how long a request takes (ns).
const PROBE_NS: u64 = 1_000_000_000;

/// How long requests in flight at the end of that first window may take (ns): nothing is known of them yet.
const PROBE_END_NS: u64 = 300_000_000_000;
/// How long requests in flight at the end of a later window may take (ns), in addition to four times the time of a request.
const END_NS: f64 = 5e9;

/// The quantile of the first window's requests that is the time of a request.
const PROBE_QUANTILE: f64 = 0.9;
/// The shortest time of a request, and so of a ramp (ns).
const LEAST_REQUEST_NS: f64 = 1e6;

/// The shortest window (ns): what happens every ten seconds is in each. With windows of 8 s a quarter of the blocks missed a stall every
/// ten seconds, and it took up to 18 blocks to fail it (tests/rules/paired/under_load.rs).
const LEAST_NS: f64 = 10e9;
/// If requests of one side take more than this many times as long, a window may be as short as `SHORT_NS`.
const FAR_APART: f64 = 3.0;
/// The shortest window of two sides that are that far apart (ns).
const SHORT_NS: f64 = 2e9;

/// The fewest requests of each user in a window.
const LEAST_REQUESTS_EACH: f64 = 4.0;
/// The fewest requests of all users in a window: a P90 of fewer jumps.
const LEAST_REQUESTS: f64 = 40.0;
/// The longest window (ns): more blocks help more.
const MOST_NS: f64 = 60e9;

/// One of this many requests of a window has a prompt whose answer is known. A server that garbles a tenth of the answers shows it in most
/// blocks of 80 requests a side, and a cache for these prompts spares at most a sixteenth of their reading.
const REPEATS_EACH: u64 = 16;

/// The standard deviation that a block's difference is expected to have, as a fraction, until blocks show it.
const fn expected_std(metric: Metric) -> f64 {
    match metric {
        Metric::SystemToken => 0.02,
        Metric::LongestGap => 0.2,
        _ => 0.04,
    }
}

/// Measures with many users at once, not with single requests.
pub struct UnderLoad {
    pub users: u32,
    /// The length of a window, seconds; `None`: chosen in the pilot.
    pub window_s: Option<f64>,
}

impl UnderLoad {
    /// When things happen in a window, given the time of a request on each side, nanoseconds. The faster side decides, or windows of one
    /// that got much slower would take minutes; sides that far apart show it in short windows.
    fn times(&self, [base_ns, head_ns]: [f64; 2]) -> WindowTimes {
        let request_ns = base_ns.min(head_ns);
        let least_ns = if base_ns.max(head_ns) > FAR_APART * request_ns { SHORT_NS } else { LEAST_NS };
        let requests = LEAST_REQUESTS_EACH.max(LEAST_REQUESTS / f64::from(self.users));
        let chosen_ns = (requests * request_ns).clamp(least_ns, MOST_NS);
        let length_ns = self.window_s.map_or(chosen_ns, |seconds| seconds * 1e9);
        // By then the first requests have ended, at different times, and the next ones are spread out.
        let from_ns = 1.5 * request_ns;
        let to_ns = from_ns + length_ns;
        WindowTimes {
            ramp_ns: request_ns as u64,
            from_ns: from_ns as u64,
            to_ns: to_ns as u64,
            stop_ns: (to_ns + 1.25 * request_ns) as u64,
            give_up_ns: (to_ns + 4.0 * base_ns.max(head_ns) + END_NS) as u64,
        }
    }
}

/// Plans a case that is measured under load; `known` are the windows of each scenario so far. Gives the time that this adds to a block,
/// nanoseconds; `None` for a case without load.
pub fn plan(
    pair: &mut ProcessPair,
    case: &mut PairedCase,
    request: &PairedRequest,
    known: &mut BTreeMap<String, WindowTimes>,
) -> Result<Option<f64>, WorkerError> {
    let Some(under_load) = &request.under_load else { return Ok(None) };
    let name = case.id.to_string();
    let Some((scenario, metric)) = of_case_name(&name, under_load.users) else { return Ok(None) };
    let (times, cost_ns) = match known.get(scenario) {
        // All metrics of a level come from the same windows.
        Some(times) => (*times, 0.0),
        None => {
            let request_ns = probe(pair, case.id, under_load, known.len() as u64)?;
            let times = under_load.times(request_ns);
            known.insert(scenario.to_owned(), times);
            // What is in flight when users stop takes as long as a request.
            let sides_ns = request_ns.map(|request_ns| times.stop_ns as f64 + request_ns);
            (times, WINDOWS as f64 * sides_ns.iter().sum::<f64>())
        }
    };
    // The longest gap of a block is the longer one of its two windows.
    case.pairs = if metric == Metric::LongestGap { 1 } else { WINDOWS };
    case.expected_std = Some(expected_std(metric));
    case.load = Some(LoadCase { scenario: scenario.to_owned(), users: under_load.users, metric, times });
    request.limits.set_of(case);
    Ok(Some(cost_ns))
}

/// How long a request of base and of head takes while all users are there, nanoseconds.
fn probe(pair: &mut ProcessPair, case: Case, under_load: &UnderLoad, level: u64) -> Result<[f64; 2], WorkerError> {
    let short_ns = under_load.window_s.map_or(PROBE_NS, |seconds| ((seconds * 1e9) as u64).min(PROBE_NS));
    let (users, number) = (under_load.users, prompt_number(level, 0));
    let plan = WindowPlan {
        users,
        ramp_ns: 0,
        length_ns: short_ns,
        give_up_ns: short_ns + PROBE_END_NS,
        number,
        repeats_each: 0,
    };
    let mut of_side = |side| {
        let seen = ask(pair, side, case, plan)?;
        let completed = seen.records.iter().filter(|record| record.failure.is_none());
        let took: Vec<f64> =
            completed.map(|record| record.ended_ns.saturating_sub(record.scheduled_ns) as f64).collect();
        quantile(&took, PROBE_QUANTILE)
            .map(|ns| ns.max(LEAST_REQUEST_NS))
            .ok_or_else(|| no_number_error(side, case, &seen))
    };
    Ok([of_side(Side::Base)?, of_side(Side::Head)?])
}

/// Measures the windows of a level, its `cases`, and adds them to `block`, which is number `done` from 0.
pub fn measure(
    pair: &mut ProcessPair,
    cases: &[&PairedCase],
    level: u64,
    done: usize,
    block: &mut BlockRecord,
) -> Result<(), WorkerError> {
    let Some((first, load)) = cases.first().and_then(|case| Some((case, case.load.as_ref()?))) else { return Ok(()) };
    let (one, other) = (block.ran_first, block.ran_first.other());
    let order = [one, other, other, one];
    let plan = |at: usize| WindowPlan {
        users: load.users,
        ramp_ns: load.times.ramp_ns,
        length_ns: load.times.stop_ns,
        give_up_ns: load.times.give_up_ns,
        // Both sides of a pair read the same prompts.
        number: prompt_number(level, 1 + (done * WINDOWS + at / 2) as u64),
        repeats_each: REPEATS_EACH,
    };
    let windows = order.iter().enumerate().map(|(at, side)| ask(pair, *side, first.id, plan(at)));
    let seen: Vec<LoadWindow> = windows.collect::<Result<_, _>>()?;
    let of_base = order.iter().zip(&seen).filter(|(side, _)| **side == Side::Base);
    let bytes_per_token = bytes_per_token(of_base.flat_map(|(_, seen)| &seen.records));
    for (at, side) in order.into_iter().enumerate() {
        let refused = |why: String| WorkerError::Refused(format!("{}: {why}", side.name()));
        let mut record = window(side, load, &seen[at].records, bytes_per_token).map_err(refused)?;
        for case in cases {
            record.value_ns(case.metric()).ok_or_else(|| no_number_error(side, case.id, &seen[at]))?;
        }
        record.answers = answers(plan(at), &first.output(side).ids, &seen[at].records, &seen[at ^ 1].records);
        block.windows.push(record);
    }
    for (case, load) in cases.iter().filter_map(|case| Some((case, case.load.as_ref()?))) {
        let times_ns = |side| load.times_ns(side, &block.windows).unwrap_or_default();
        block.cases.push(BlockCase::new(case.id, times_ns(Side::Base), times_ns(Side::Head)));
    }
    Ok(())
}

/// The cases of each scenario, which are measured in the same windows.
pub fn by_level(cases: &[PairedCase]) -> Vec<Vec<&PairedCase>> {
    let mut levels: BTreeMap<&str, Vec<&PairedCase>> = BTreeMap::new();
    for case in cases {
        if let Some(load) = &case.load {
            levels.entry(&load.scenario).or_default().push(case);
        }
    }
    levels.into_values().collect()
}

/// The number of a window's prompts, which no other window of the run has. `level` counts levels, `window` the windows of a level.
fn prompt_number(level: u64, window: u64) -> u64 {
    (level << 20) + window
}

fn ask(pair: &mut ProcessPair, side: Side, case: Case, plan: WindowPlan) -> Result<LoadWindow, WorkerError> {
    let seen = pair.client(side).window(case, plan).map_err(|error| error.of(side.name()))?;
    if !seen.full {
        return Ok(seen);
    }
    let text = "a window has more output than can be kept; take fewer users, or a lower server.window_s";
    Err(WorkerError::Refused(format!("{}: {text}", side.name())))
}

/// The error of a window that gives no number, with the reason why its first failed request failed.
fn no_number_error(side: Side, case: Case, seen: &LoadWindow) -> WorkerError {
    let failed: Vec<_> = seen.records.iter().filter_map(|record| record.failure.as_ref()).collect();
    let why = match failed[..] {
        [first, ..] => format!("{} of {} requests failed: {}", failed.len(), seen.records.len(), first.detail),
        [] => "no request got its tokens one by one; ask for more, or raise server.window_s".into(),
    };
    WorkerError::Refused(format!("{}: {case}: a window of load gives no number: {why}", side.name()))
}
