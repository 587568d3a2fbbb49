//! Windows of load on two servers in turn: base, head, head, base, or the other way round. While one server is loaded the other
//! one idles, and both are asked the same.

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

/// The first look at a level takes so long and what is in flight then.
const PROBE_NS: u64 = 1_000_000_000;

/// What is in flight at the end of the first look has so long to end in, nothing being known yet; at that of a window it has
/// four times what a request takes, and this.
const PROBE_END_NS: u64 = 300_000_000_000;
const END_NS: f64 = 5e9;

/// Most requests do not take longer; and a ramp is not shorter.
const PROBE_QUANTILE: f64 = 0.9;
const LEAST_REQUEST_NS: f64 = 1e6;

/// A window is so long at least: what happens each ten seconds is in each of them. With windows of 8 s a quarter of the blocks missed a
/// stall each ten seconds, and calling it took up to 18 blocks (tests/rules/paired/under_load.rs).
const LEAST_NS: f64 = 10e9;
/// Where requests of one side take so many times as long, a window can be so short.
const FAR_APART: f64 = 3.0;
const SHORT_NS: f64 = 2e9;

/// And holds so many times what a request takes, and so many requests: a P90 of fewer jumps.
const LEAST_REQUESTS_EACH: f64 = 4.0;
const LEAST_REQUESTS: f64 = 40.0;
/// No window is longer: more blocks help more.
const MOST_NS: f64 = 60e9;

/// Each so many-th request of a window has a prompt whose answer alone is known: a server that garbles a tenth of the answers shows it in
/// most blocks of 80 requests a side, and a cache for these prompts spares at most a sixteenth of their reading.
const REPEATS_EACH: u64 = 16;

/// What a block's difference is expected to vary by, until blocks say so.
const fn expected_std(metric: Metric) -> f64 {
    match metric {
        Metric::SystemToken => 0.02,
        Metric::LongestGap => 0.2,
        _ => 0.04,
    }
}

/// Many users at once in place of single requests.
pub struct UnderLoad {
    pub users: u32,
    /// How long a window is, seconds; `None`: chosen from the pilot.
    pub window_s: Option<f64>,
}

impl UnderLoad {
    /// When things happen in a window, of requests that take so long on each side, nanoseconds. The faster side decides, or
    /// windows of one that got much slower would take minutes; where the sides are that far apart short ones show it.
    fn times(&self, [base_ns, head_ns]: [f64; 2]) -> WindowTimes {
        let request_ns = base_ns.min(head_ns);
        let least_ns = if base_ns.max(head_ns) > FAR_APART * request_ns { SHORT_NS } else { LEAST_NS };
        let requests = LEAST_REQUESTS_EACH.max(LEAST_REQUESTS / f64::from(self.users));
        let chosen_ns = (requests * request_ns).clamp(least_ns, MOST_NS);
        let length_ns = self.window_s.map_or(chosen_ns, |seconds| seconds * 1e9);
        // The first requests end at different times then, and the next ones have found their places between them.
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
/// nanoseconds; `None` for another case.
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
        // All numbers of a level are of the same windows.
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
    // Of the longest gap the longer of both windows counts.
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

/// The cases of each level, which is one of each scenario.
pub fn by_level(cases: &[PairedCase]) -> Vec<Vec<&PairedCase>> {
    let mut levels: BTreeMap<&str, Vec<&PairedCase>> = BTreeMap::new();
    for case in cases {
        if let Some(load) = &case.load {
            levels.entry(&load.scenario).or_default().push(case);
        }
    }
    levels.into_values().collect()
}

/// No two windows of a run have the same; `level` counts them, `window` those of a level.
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

/// A window that gives no number, and why the first request failed, where one did.
fn no_number_error(side: Side, case: Case, seen: &LoadWindow) -> WorkerError {
    let failed: Vec<_> = seen.records.iter().filter_map(|record| record.failure.as_ref()).collect();
    let why = match failed[..] {
        [first, ..] => format!("{} of {} requests failed: {}", failed.len(), seen.records.len(), first.detail),
        [] => "no request got its tokens one by one; ask for more, or raise server.window_s".into(),
    };
    WorkerError::Refused(format!("{}: {case}: a window of load gives no number: {why}", side.name()))
}
