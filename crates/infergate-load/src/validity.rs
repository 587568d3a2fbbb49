//! Whether a run's numbers can be used. Pure.

use infergate_core::load::{RequestRecord, Window};
use infergate_core::metric::Metric;
use infergate_core::stats::quantile;

use crate::receipt::{AuditRecord, LevelRecord, LoadReceipt};
use crate::summary::token_counts::{TokenCounts, compare};
use crate::summary::values::Values;
use crate::summary::{LevelSummary, summarise, summarise_target};

/// The part of a measured gap that the client's own error may be.
const MAX_ERROR_SHARE: f64 = 0.10;
/// The part of a core that the client may use: beyond it, what waits is the client.
const MAX_CPU_SHARE: f64 = 0.90;
/// How far the number in flight may be from the number of users.
const MAX_LOAD_OFF: f64 = 0.02;
/// How far Little's law may be from being kept in an open loop.
const MAX_LITTLE_OFF: f64 = 0.05;
/// The part of answers whose tokens the server and the tokenizer may count differently: the tokens that a model chose for a text
/// are not always those that its tokenizer would choose.
const MAX_APART: f64 = 0.01;

/// Every reason why the numbers of `receipt` cannot be used, one sentence each.
pub fn reasons(receipt: &LoadReceipt) -> Vec<String> {
    let mut reasons = Vec::new();
    for audit in receipt.audits.iter().filter(|audit| audit.wrong_requests > 0) {
        reasons.push(format!(
            "{}: the client got {} of {} answers of the self-audit wrong; report this",
            audit.arrivals.name(),
            audit.wrong_requests,
            audit.requests
        ));
    }
    for level in &receipt.levels {
        let audit = receipt.audits.iter().find(|audit| audit.shard.is_none() && audit.arrivals == level.arrivals);
        let found = of_level(level, &summarise(level), audit);
        reasons.extend(found.into_iter().map(|reason| format!("{}: {reason}", receipt.level_name(level))));
    }
    reasons
}

fn of_level(level: &LevelRecord, summary: &LevelSummary, audit: Option<&AuditRecord>) -> Vec<String> {
    let mut reasons = Vec::new();
    if summary.completed == 0 && summary.ended() > 0 {
        reasons.push("no request completed; the failures are listed".into());
    }
    if let Some(why) = level.batch.as_ref().and_then(|batch| batch.cut_short.as_ref()) {
        reasons.push(format!("the engine was cut short: {why}"));
    }
    let many_targets = level.requests.iter().map(|record| record.target).max().unwrap_or(0);
    let gaps = (0..=many_targets)
        .filter_map(|target| middle_gap_ns(summarise_target(level, Some(target)).values(Metric::Itl)));
    // The fastest one is the one that takes the most care.
    let fastest_itl_ns = gaps.min_by(f64::total_cmp);
    let error = audit.and_then(|audit| audit.gap_error_ns.p99.or(audit.gap_error_ns.max));
    let delay = level.received.and_then(|received| received.delay_ns.p99);
    let errors = [
        (error, "the client is off by", "p99 of the self-audit"),
        (delay, "the client saw what had arrived late by up to", "p99"),
    ];
    for (error, what, of) in errors {
        if let (Some(error_ns), Some(itl_ns)) = (error, fastest_itl_ns)
            && error_ns > MAX_ERROR_SHARE * itl_ns
        {
            reasons.push(format!(
                "{what} {:.2} ms ({of}), which is above 10 % of the median gap of {:.2} ms; give the client an idle core, or fewer \
                 users",
                error_ns / 1e6,
                itl_ns / 1e6
            ));
        }
    }
    if let Some(share) = level.client_cpu_share().filter(|share| *share > MAX_CPU_SHARE) {
        reasons.push(format!(
            "the client used {:.0} % of its core, so requests waited for the client; give it fewer users",
            100.0 * share
        ));
    }
    reasons.extend(other_load(level, summary));
    let counts = compare(&level.requests);
    if let Some(TokenCounts { both, apart, most_apart, .. }) =
        counts.filter(|counts| counts.apart as f64 > MAX_APART * counts.both as f64)
    {
        reasons.push(format!(
            "the server's usage and the tokenizer are more than one token apart on {apart} of {both} answers, by up to \
             {most_apart}; name the server's own model by --tokenizer"
        ));
    }
    if let Some(ratio) = summary.little.filter(|ratio| (ratio - 1.0).abs() > MAX_LITTLE_OFF) {
        reasons.push(format!(
            "Little's law is missed by {:.0} %; the steady window was not steady",
            100.0 * (ratio - 1.0)
        ));
    }
    reasons
}

/// The median gap between pieces that did not come together, which is what a client can get wrong.
fn middle_gap_ns(gaps: &Values) -> Option<f64> {
    let middle_ns = gaps.at(0.5)?;
    let apart = || gaps.values.iter().copied().filter(|ns| *ns > 0.0).collect::<Vec<_>>();
    if middle_ns > 0.0 { Some(middle_ns) } else { quantile(&apart(), 0.5) }
}

/// Why the load was not what was asked for, where anything was measured.
fn other_load(level: &LevelRecord, summary: &LevelSummary) -> Option<String> {
    let window = summary.window.filter(|_| summary.started > 0)?;
    let Some(users) = summary.users else { return late_client(level, window) };
    // The server's own limit is a result, and the report says how many were in flight.
    let in_flight = summary.in_flight.filter(|_| summary.kept_out() == 0)?;
    let is_off = (in_flight / f64::from(users) - 1.0).abs() > MAX_LOAD_OFF;
    let why = if summary.failures.is_empty() {
        "answers are too short to keep the users busy"
    } else {
        "a user whose request fails at once waits before the next one"
    };
    let asked = level.arrivals.name();
    is_off.then(|| {
        format!("{in_flight:.2} requests were in flight in the mean while it was measured, not {asked}; {why}")
    })
}

/// Why the client did not keep the rate of an open loop. In a local engine requests wait for a slot, not for a client.
fn late_client(level: &LevelRecord, window: Window) -> Option<String> {
    let within = |ns: u64| (window.from_ns..window.to_ns).contains(&ns);
    let count = |time: fn(&RequestRecord) -> u64| level.requests.iter().filter(|record| within(time(record))).count();
    let (due, sent) = (count(|record| record.scheduled_ns), count(|record| record.sent_ns));
    let is_off = level.batch.is_none() && (due.abs_diff(sent) as f64) > 1.0 + MAX_LOAD_OFF * due as f64;
    is_off
        .then(|| format!("the client sent {sent} requests while {due} were due; give it an idle core, or a lower rate"))
}
