//! Receipts of shards into the receipt of the whole load. Exact: every request is kept, and every number is derived from them
//! again. Pure.

use std::mem::take;

use anyhow::{Context as _, Result, bail, ensure};
use infergate_core::load::{Arrivals, RequestRecord, Stop, Window, unmark};

use crate::plan::shard::note;
use crate::receipt::{AuditRecord, LevelRecord, LoadReceipt, ReceiveRecord, ShardRecord};
use crate::summary::steady_window;
use crate::validity;

/// Puts receipts together, each given with the name of its file. Times of the result count from the earliest shard's clock.
pub fn merge(files: Vec<(String, LoadReceipt)>) -> Result<LoadReceipt> {
    ensure_one_run(&files)?;
    let mut parts: Vec<LoadReceipt> = files.into_iter().map(|(_, receipt)| receipt).collect();
    parts.sort_by_key(|part| shard(part).index);
    ensure_complete(&parts)?;
    let earliest_ns = parts.iter().map(|part| shard(part).clock_unix_ns).min().unwrap_or(0);
    for part in &mut parts {
        let offset_ns = shard(part).clock_unix_ns - earliest_ns;
        part.levels.iter_mut().for_each(|level| later(level, offset_ns));
    }
    let mut merged = head(&parts);
    let levels = common_levels(&parts);
    merged.notes.insert(0, format!("merged from {} shards of run {}", parts.len(), shard(&parts[0]).run));
    for levels in levels {
        let level = merge_level(&levels);
        if level.steady.is_none() && levels.into_iter().all(|level| steady_window(level).is_some()) {
            merged.invalid.push(format!(
                "{}: the shards have no steady time in common; start them together by --start-at and let them run longer",
                merged.level_name(&level)
            ));
        }
        merged.levels.push(level);
    }
    for reason in validity::reasons(&merged) {
        if !merged.invalid.contains(&reason) {
            merged.invalid.push(reason);
        }
    }
    Ok(merged)
}

/// Which shard a part is.
fn shard(part: &LoadReceipt) -> &ShardRecord {
    &part.shards[0]
}

/// Each is one shard, and all are of one run, by its name: a hash of everything that was asked for.
fn ensure_one_run(files: &[(String, LoadReceipt)]) -> Result<()> {
    for (place, receipt) in files {
        match receipt.shards.len() {
            0 => bail!("{place}: is no shard of a load; give receipts of runs with --shard"),
            1 => {}
            _ => bail!("{place}: was merged already; give the receipts of the shards themselves"),
        }
    }
    let (first_place, first) = files.first().context("there is no receipt to merge; give those of all shards")?;
    for (place, receipt) in files {
        ensure!(
            shard(receipt).run == shard(first).run,
            "{place}: is of another run than {first_place}; merge shards that had the same flags and the same --start-at"
        );
    }
    Ok(())
}

/// Refuses parts, in the order of their numbers, of which one is missing or there twice.
fn ensure_complete(parts: &[LoadReceipt]) -> Result<()> {
    let count = shard(&parts[0]).count;
    let given = parts.iter().map(|part| shard(part).index);
    let numbers: Vec<String> = given.clone().map(|index| (u64::from(index) + 1).to_string()).collect();
    ensure!(given.eq(0..count), "shards {} of {count} are given; give each of the {count} once", numbers.join(", "));
    Ok(())
}

/// Puts a level on a clock that started `offset_ns` earlier.
fn later(level: &mut LevelRecord, offset_ns: u64) {
    level.began_ns += offset_ns;
    level.steady = level.steady.map(|window| window.later(offset_ns));
    for record in &mut level.requests {
        *record = take(record).with_times(|ns| ns + offset_ns);
    }
}

/// The merged receipt without its levels.
fn head(parts: &[LoadReceipt]) -> LoadReceipt {
    let first = &parts[0];
    let mut merged = LoadReceipt {
        created: parts.iter().map(|part| &part.created).min().unwrap_or(&first.created).clone(),
        partial: parts.iter().any(|part| part.partial),
        invalid: Vec::new(),
        notes: Vec::new(),
        audits: Vec::new(),
        levels: Vec::new(),
        shards: parts.iter().map(|part| shard(part).clone()).collect(),
        ..first.clone()
    };
    for part in parts {
        let shard = shard(part);
        let own = note(shard);
        for text in part.notes.iter().filter(|text| **text != own) {
            if !merged.notes.contains(text) {
                merged.notes.push(text.clone());
            }
        }
        merged.invalid.extend(part.invalid.iter().map(|reason| format!("{}: {reason}", shard.name())));
        let whose = |audit: &AuditRecord| AuditRecord { shard: Some(shard.index), ..audit.clone() };
        merged.audits.extend(part.audits.iter().map(whose));
    }
    merged
}

/// The levels that every shard ran, until one left a level out, because the one before it got no answer.
fn common_levels(parts: &[LoadReceipt]) -> Vec<Vec<&LevelRecord>> {
    let load = |level: &LevelRecord| (level.scenario, level.whole);
    let of_all = |index: usize| {
        let levels = parts.iter().map(|part| part.levels.get(index)).collect::<Option<Vec<&LevelRecord>>>()?;
        levels.iter().all(|level| load(level) == load(levels[0])).then_some(levels)
    };
    (0..).map_while(of_all).collect()
}

/// One level of all shards. What counts no more, because another shard was not at load then, has no mark.
fn merge_level(levels: &[&LevelRecord]) -> LevelRecord {
    let first = levels[0];
    let mut requests: Vec<RequestRecord> = levels.iter().flat_map(|level| level.requests.iter().cloned()).collect();
    requests.sort_by_key(|record| record.request);
    let began_ns = levels.iter().map(|level| level.began_ns).min().unwrap_or(0);
    let ended_ns = levels.iter().map(|level| level.began_ns + level.wall_ns).max().unwrap_or(0);
    let cpu: Option<Vec<u64>> = levels.iter().map(|level| level.client_cpu_ns).collect();
    let mut merged = LevelRecord {
        scenario: first.scenario,
        arrivals: first.whole.unwrap_or(first.arrivals),
        whole: None,
        stop: levels.iter().map(|level| level.stop).reduce(whole_stop).unwrap_or(first.stop),
        warm_up_requests: match first.arrivals {
            Arrivals::Closed { .. } => first.warm_up_requests,
            Arrivals::Open { .. } => levels.iter().map(|level| level.warm_up_requests).sum(),
        },
        ramp_ns: first.ramp_ns,
        steady: common_window(levels),
        began_ns,
        wall_ns: ended_ns - began_ns,
        client_cpu_ns: cpu.and_then(|cpu| cpu.into_iter().max()),
        received: levels
            .iter()
            .filter_map(|level| level.received)
            .max_by(|one, other| worst(one).total_cmp(&worst(other))),
        requests,
        batch: None,
    };
    let from_ns = merged.steady.map_or(u64::MAX, |window| window.from_ns);
    for record in &mut merged.requests {
        record.measured &= record.scheduled_ns >= from_ns;
    }
    unmark(&mut merged.requests, merged.steady);
    merged
}

/// The delay that a client is judged by.
fn worst(received: &ReceiveRecord) -> f64 {
    received.delay_ns.p99.or(received.delay_ns.max).unwrap_or(0.0)
}

/// The rule that the shards' own rules are parts of.
fn whole_stop(one: Stop, other: Stop) -> Stop {
    match (one, other) {
        (Stop::Requests { count }, Stop::Requests { count: more }) => Stop::Requests { count: count + more },
        (Stop::Duration { ns }, Stop::Duration { ns: other_ns }) => Stop::Duration { ns: ns.min(other_ns) },
        (one, _) => one,
    }
}

/// The time in which every shard was at load; `None` where there is none.
fn common_window(levels: &[&LevelRecord]) -> Option<Window> {
    let windows = levels.iter().map(|level| steady_window(level)).collect::<Option<Vec<Window>>>()?;
    let from_ns = windows.iter().map(|window| window.from_ns).max()?;
    let to_ns = windows.iter().map(|window| window.to_ns).min()?;
    (from_ns < to_ns).then_some(Window { from_ns, to_ns })
}
