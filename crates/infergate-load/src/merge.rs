//! Receipts of shards into the receipt of the whole load. Exact: every request is kept, and every number is derived from them
//! again. Pure.

use anyhow::{Context as _, Result, bail, ensure};
use infergate_core::load::{Arrivals, RequestRecord, Stop, Window, unmark};

use crate::plan::shard::note;
use crate::receipt::{AuditRecord, LevelRecord, LoadReceipt, ReceiveRecord, ShardRecord};
use crate::summary::{repeats, steady_window};
use crate::validity;

/// One receipt that is to be merged.
struct Part {
    /// How the file is named.
    place: String,
    receipt: LoadReceipt,
    /// What makes its times those of the merged receipt.
    offset_ns: u64,
}

/// Puts receipts together, each given with the name of its file. Times of the result count from the earliest shard's clock.
pub fn merge(files: Vec<(String, LoadReceipt)>) -> Result<LoadReceipt> {
    let mut parts = files.into_iter().map(|(place, receipt)| Part::of(place, receipt)).collect::<Result<Vec<_>>>()?;
    ensure_one_run(&parts)?;
    parts.sort_by_key(|part| part.shard().index);
    ensure_complete(&parts)?;
    let earliest_ns = parts.iter().map(|part| part.shard().clock_unix_ns).min().unwrap_or(0);
    for part in &mut parts {
        part.offset_ns = part.shard().clock_unix_ns - earliest_ns;
    }
    let count = parts.iter().map(|part| part.receipt.levels.len()).min().unwrap_or(0);
    let mut merged = head(&parts);
    for index in 0..count {
        let level = merge_level(&parts, index);
        if level.steady.is_none() && parts.iter().all(|part| steady_window(&part.receipt.levels[index]).is_some()) {
            merged.invalid.push(format!(
                "{}: the shards have no steady time in common; start them together by --start-at and let them run longer",
                merged.level_name(&level)
            ));
        }
        merged.levels.push(level);
    }
    merged.notes.insert(0, alignment(&parts, count));
    merged.notes.extend(repeats::warnings(&merged));
    for reason in validity::reasons(&merged) {
        if !merged.invalid.contains(&reason) {
            merged.invalid.push(reason);
        }
    }
    Ok(merged)
}

impl Part {
    fn of(place: String, receipt: LoadReceipt) -> Result<Self> {
        match receipt.shards.len() {
            0 => bail!("{place}: is no shard of a load; give receipts of runs with --shard"),
            1 => Ok(Self { place, receipt, offset_ns: 0 }),
            _ => bail!("{place}: was merged already; give the receipts of the shards themselves"),
        }
    }

    fn shard(&self) -> &ShardRecord {
        &self.receipt.shards[0]
    }
}

/// By the name of the run, a hash of everything that was asked for.
fn ensure_one_run(parts: &[Part]) -> Result<()> {
    let first = parts.first().context("there is no receipt to merge; give those of all shards")?;
    for part in parts {
        ensure!(
            part.shard().run == first.shard().run,
            "{}: is of another run than {}; merge shards that had the same flags and the same --start-at",
            part.place,
            first.place
        );
    }
    Ok(())
}

/// Of parts in the order of their numbers.
fn ensure_complete(parts: &[Part]) -> Result<()> {
    let count = parts[0].shard().count;
    let given = parts.iter().map(|part| part.shard().index);
    let numbers: Vec<String> = given.clone().map(|index| (u64::from(index) + 1).to_string()).collect();
    ensure!(given.eq(0..count), "shards {} of {count} are given; give each of the {count} once", numbers.join(", "));
    Ok(())
}

/// The merged receipt without its levels.
fn head(parts: &[Part]) -> LoadReceipt {
    let first = &parts[0].receipt;
    let mut merged = LoadReceipt {
        created: parts.iter().map(|part| &part.receipt.created).min().unwrap_or(&first.created).clone(),
        partial: parts.iter().any(|part| part.receipt.partial),
        invalid: Vec::new(),
        notes: Vec::new(),
        audits: Vec::new(),
        levels: Vec::new(),
        shards: parts.iter().map(|part| part.shard().clone()).collect(),
        ..first.clone()
    };
    for part in parts {
        let (receipt, shard) = (&part.receipt, part.shard());
        // What is said of the whole is said again.
        let own = [vec![note(shard)], repeats::warnings(receipt)].concat();
        for text in receipt.notes.iter().filter(|text| !own.contains(text)) {
            if !merged.notes.contains(text) {
                merged.notes.push(text.clone());
            }
        }
        let mut reasons = receipt.invalid.clone();
        reasons.extend(validity::reasons(receipt).into_iter().filter(|reason| !receipt.invalid.contains(reason)));
        merged.invalid.extend(reasons.into_iter().map(|reason| format!("{}: {reason}", shard.name())));
        let whose = |audit: &AuditRecord| AuditRecord { shard: Some(shard.index), ..audit.clone() };
        merged.audits.extend(receipt.audits.iter().map(whose));
    }
    merged
}

/// One level of all shards. What counts no more, because another shard was not at load then, has no mark.
fn merge_level(parts: &[Part], index: usize) -> LevelRecord {
    let first = &parts[0].receipt.levels[index];
    let levels = || parts.iter().map(|part| (part, &part.receipt.levels[index]));
    let mut requests: Vec<RequestRecord> = levels()
        .flat_map(|(part, level)| {
            level.requests.iter().map(|record| record.clone().with_times(|ns| ns.saturating_add(part.offset_ns)))
        })
        .collect();
    requests.sort_by_key(|record| record.request);
    let begins_ns = levels().map(|(part, level)| level.began_ns.saturating_add(part.offset_ns));
    let ends_ns = begins_ns.clone().zip(levels()).map(|(began_ns, (_, level))| began_ns.saturating_add(level.wall_ns));
    let began_ns = begins_ns.min().unwrap_or(0);
    let cpu: Option<Vec<u64>> = levels().map(|(_, level)| level.client_cpu_ns).collect();
    let mut merged = LevelRecord {
        scenario: first.scenario,
        arrivals: first.whole.unwrap_or(first.arrivals),
        whole: None,
        stop: levels().map(|(_, level)| level.stop).reduce(whole_stop).unwrap_or(first.stop),
        warm_up_requests: match first.arrivals {
            Arrivals::Closed { .. } => first.warm_up_requests,
            Arrivals::Open { .. } => levels().map(|(_, level)| level.warm_up_requests).fold(0, u64::saturating_add),
        },
        ramp_ns: first.ramp_ns,
        steady: None,
        began_ns,
        wall_ns: ends_ns.max().unwrap_or(0).saturating_sub(began_ns),
        client_cpu_ns: cpu.and_then(|cpu| cpu.into_iter().max()),
        received: levels()
            .filter_map(|(_, level)| level.received)
            .max_by(|one, other| worst(one).total_cmp(&worst(other))),
        requests,
        batch: None,
    };
    merged.steady = common_window(parts, index);
    let window = steady_window(&merged);
    let from_ns = window.map_or(u64::MAX, |window| window.from_ns);
    for record in &mut merged.requests {
        record.measured &= record.scheduled_ns >= from_ns;
    }
    unmark(&mut merged.requests, window);
    merged
}

/// The delay that a client is judged by.
fn worst(received: &ReceiveRecord) -> f64 {
    received.delay_ns.p99.or(received.delay_ns.max).unwrap_or(0.0)
}

/// The rule that the shards' own rules are parts of.
fn whole_stop(one: Stop, other: Stop) -> Stop {
    match (one, other) {
        (Stop::Requests { count }, Stop::Requests { count: more }) => {
            Stop::Requests { count: count.saturating_add(more) }
        }
        (Stop::Duration { ns }, Stop::Duration { ns: other_ns }) => Stop::Duration { ns: ns.min(other_ns) },
        (one, _) => one,
    }
}

/// The time in which every shard was at load, on the merged clock; `None` where there is none.
fn common_window(parts: &[Part], index: usize) -> Option<Window> {
    let window = |part: &Part| Some(steady_window(&part.receipt.levels[index])?.later(part.offset_ns));
    let windows = parts.iter().map(window).collect::<Option<Vec<Window>>>()?;
    let from_ns = windows.iter().map(|window| window.from_ns).max()?;
    let to_ns = windows.iter().map(|window| window.to_ns).min()?;
    (from_ns < to_ns).then_some(Window { from_ns, to_ns })
}

/// How well the shards began together.
fn alignment(parts: &[Part], levels: usize) -> String {
    let apart = (0..levels).map(|index| {
        let begins = parts.iter().map(|part| part.receipt.levels[index].began_ns.saturating_add(part.offset_ns));
        begins.clone().max().unwrap_or(0) - begins.min().unwrap_or(0)
    });
    format!(
        "merged from {} shards of run {}, which began within {:.1} ms of each other",
        parts.len(),
        parts[0].shard().run,
        apart.max().unwrap_or(0) as f64 / 1e6
    )
}
