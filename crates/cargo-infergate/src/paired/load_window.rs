//! A window of load on one server of a gate: which numbers it has, and how they follow from its requests. Pure.
//!
//! Users send requests from the begin of a ramp until some time after the window, so that every moment of the window is at full
//! load. A request counts by its start, because choosing by ends would drop long answers; those that already waited when the window
//! began count as well, because a queue that starves them shows in nothing else. A stream that begins and then hangs has no further
//! gap that ends, so what it has waited by the window's end counts, too.

use std::collections::{BTreeMap, BTreeSet};

use infergate_core::load::{FailureClass, RequestRecord, WindowPlan};
use infergate_core::sha256::{WORDS, words_of_hex};

use infergate_core::stats::quantile;
use infergate_receipts::{LoadCase, Side, WindowAnswers, WindowRecord, WindowTimes};

/// Bytes of text per token of base, by its whole answers; `None` if the size of one is not known. One side may report usage and the other
/// not, or send a token in other pieces: what both have is a text.
pub fn bytes_per_token<'a>(base: impl IntoIterator<Item = &'a RequestRecord>) -> Option<f64> {
    let (mut bytes, mut tokens) = (0, 0);
    for record in base.into_iter().filter(|record| record.failure.is_none()) {
        (bytes, tokens) = (bytes + record.text_bytes?, tokens + record.tokens());
    }
    (bytes > 0 && tokens > 0).then(|| bytes as f64 / tokens as f64)
}

/// Compares the answers of a window of `plan`. `known` are the words of the outputs of its first prompt and of those that it repeats; empty
/// if they are not compared. `other` are the requests of the other side's window with the same prompts.
pub fn answers(plan: WindowPlan, known: &[u32], own: &[RequestRecord], other: &[RequestRecord]) -> WindowAnswers {
    let whole = |record: &&RequestRecord| record.failure.is_none();
    let others: BTreeSet<u64> =
        other.iter().filter(whole).filter(|r| r.text_bytes.is_some()).map(|r| r.request).collect();
    let mut seen = WindowAnswers::default();
    for record in own.iter().filter(whole) {
        if let Some(bytes) = record.text_bytes.filter(|_| others.contains(&record.request)) {
            seen.compared += 1;
            seen.compared_bytes += bytes;
        }
        let known = plan.repeated(record.request).and_then(|at| known.chunks_exact(WORDS).nth(1 + at));
        if let Some((sha256, known)) = record.output_sha256.as_ref().zip(known) {
            seen.repeated += 1;
            seen.changed += u64::from(words_of_hex(sha256).as_deref() != Some(known));
        }
    }
    seen
}

/// The metrics of a window of `load` on this side's server, from `records`, whose times count from the begin of the load. Tokens are
/// counted by `bytes_per_token`, or by usage and pieces if it is `None`.
///
/// # Errors
/// Why the load was not full for all of it, in one sentence.
pub fn window(
    side: Side,
    load: &LoadCase,
    records: &[RequestRecord],
    bytes_per_token: Option<f64>,
) -> Result<WindowRecord, String> {
    let WindowTimes { from_ns, to_ns, .. } = load.times;
    if full_to_ns(load.users, records) < to_ns {
        return Err(format!(
            "{} users were not busy all through a window of {:.1} s; raise server.window_s",
            load.users,
            load.times.length_ns() as f64 / 1e9
        ));
    }
    let within = |ns: u64| from_ns < ns && ns <= to_ns;
    let is_its = |wait: &Wait| {
        if wait.began_ns < from_ns {
            wait.ended_ns > from_ns && wait.first_ns.is_none_or(|ns| ns > from_ns)
        } else {
            wait.began_ns < to_ns
        }
    };
    let all_the_time = |record: &RequestRecord| record.scheduled_ns <= from_ns && record.ended_ns >= to_ns;

    let mut failures = BTreeMap::new();
    for record in records {
        let Some(class) = record.failure.as_ref().map(|failure| failure.class) else { continue };
        // One that began late was given up on because others hang.
        if class != FailureClass::Cancelled || record.scheduled_ns < to_ns {
            *failures.entry(class).or_default() += 1;
        }
    }
    // A request without a token waits to the window's end at least.
    let ttft = |wait: &Wait| wait.first_ns.unwrap_or(wait.ended_ns.max(to_ns)).saturating_sub(wait.began_ns);
    let (mut gaps, mut longest) = (Vec::new(), BTreeMap::<u32, u64>::new());
    for record in records {
        let mut note = |ns: u64| {
            let known = longest.entry(record.user).or_default();
            *known = ns.max(*known);
        };
        for pair in record.chunk_ns.windows(2).filter(|pair| within(pair[1])) {
            let ns = pair[1].saturating_sub(pair[0]);
            gaps.push(ns as f64);
            note(ns);
        }
        // A gap that is still open is longer than this. It can only raise what a user saw, and is in no percentile of all gaps, where
        // usual ones that the window's end cuts would make it look shorter.
        if record.ended_ns > to_ns {
            record.chunk_ns.iter().rfind(|ns| **ns <= to_ns).into_iter().for_each(|last_ns| note(to_ns - last_ns));
        }
    }
    Ok(WindowRecord {
        side,
        scenario: load.scenario.clone(),
        users: load.users,
        length_ns: load.times.length_ns(),
        output_tokens: records.iter().map(|r| tokens_within(r, bytes_per_token, within)).sum::<f64>().round() as u64,
        issued: records.len() as u64,
        failures,
        starved: records.iter().filter(|r| all_the_time(r) && !r.chunk_ns.iter().any(|ns| within(*ns))).count() as u64,
        ttft_ns: waits(records).iter().filter(|wait| is_its(wait)).map(ttft).collect(),
        itl_p90_ns: quantile(&gaps, 0.9).map(|ns| ns.round() as u64),
        longest_gap_ns: longest.into_values().collect(),
        answers: WindowAnswers::default(),
    })
}

/// How long a user waited for a first token. A request that fails is sent again in a moment, so the wait continues with the next one:
/// else a server that refuses many would have no time to the first token.
struct Wait {
    began_ns: u64,
    /// `None` if none came.
    first_ns: Option<u64>,
    ended_ns: u64,
}

fn waits(records: &[RequestRecord]) -> Vec<Wait> {
    let mut of_users: BTreeMap<u32, Vec<&RequestRecord>> = BTreeMap::new();
    for record in records {
        of_users.entry(record.user).or_default().push(record);
    }
    let mut waits = Vec::new();
    for mut own in of_users.into_values() {
        own.sort_by_key(|record| record.scheduled_ns);
        let mut failed: Option<Wait> = None;
        for record in own {
            let began_ns = failed.take().map_or(record.scheduled_ns, |wait| wait.began_ns);
            let first_ns = record.chunk_ns.first().copied().filter(|_| record.failure.is_none());
            let wait = Wait { began_ns, first_ns, ended_ns: record.ended_ns };
            if record.failure.is_some() { failed = Some(wait) } else { waits.push(wait) }
        }
        waits.extend(failed);
    }
    waits
}

/// Until when every user had something in flight; 0 if there are fewer users.
fn full_to_ns(users: u32, records: &[RequestRecord]) -> u64 {
    let mut last: BTreeMap<u32, u64> = BTreeMap::new();
    for record in records {
        let known = last.entry(record.user).or_default();
        *known = record.ended_ns.max(*known);
    }
    if last.len() < users as usize { 0 } else { last.into_values().min().unwrap_or(0) }
}

/// Tokens of a request whose pieces came within the window. Pieces that do not say how many they hold have equal shares.
fn tokens_within(record: &RequestRecord, bytes_per_token: Option<f64>, within: impl Fn(u64) -> bool) -> f64 {
    let shares = || {
        let of_piece = |at: usize| record.chunk_tokens.get(at).map_or(1.0, |tokens| f64::from(*tokens));
        record.chunk_ns.iter().enumerate().map(move |(at, ns)| (*ns, of_piece(at)))
    };
    let all: f64 = shares().map(|(_, share)| share).sum();
    let by_text = bytes_per_token.zip(record.text_bytes).map(|(each, bytes)| bytes as f64 / each);
    let tokens = by_text.unwrap_or(match record.failure {
        None => record.tokens() as f64,
        Some(_) => all,
    });
    shares().filter(|(ns, _)| within(*ns)).map(|(_, share)| share * tokens / all).sum()
}
