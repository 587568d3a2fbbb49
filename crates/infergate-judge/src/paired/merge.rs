//! Joins runs that measured shards of one suite, to be judged as one.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use infergate_core::memory::leak::{asked, growth_bytes};
use infergate_core::printable::first_of;
use infergate_core::worker::WorkerError;

use crate::COUNTER_TOLERANCE;
use crate::exact::holds_more;
use crate::memory;
use infergate_receipts::{CodeRecord, Counter, Format as _, MemoryRecord, Note, PairedCase, PairedReceipt, SuiteShard};

/// Missing shards that an error names.
const MOST_NAMED: usize = 10;

/// All shards of a suite, from several machines.
///
/// # Errors
/// A shard is missing, given twice, or of another comparison.
pub fn merge(mut shards: Vec<PairedReceipt>) -> Result<PairedReceipt> {
    let number = |receipt: &PairedReceipt| receipt.share.map_or(0, |shard| shard.number);
    shards.sort_by_key(number);
    let have: Vec<usize> = shards.iter().map(number).collect();
    if let ([_], [0]) = (&shards[..], &have[..]) {
        return join(shards);
    }
    let first = shards.first().context("there is no receipt to judge")?;
    let Some(SuiteShard { of, .. }) = first.share else {
        bail!("a receipt of a whole suite is judged alone; give one receipt, or the shards of one gate");
    };
    for (shard, two) in shards[1..].iter().zip(have.windows(2)) {
        let its = number(shard);
        ensure!(two[0] != two[1], "shard {its} of {of} is given twice; give each once");
        ensure_alike(first, shard).with_context(|| format!("shard {its} of {of}"))?;
    }
    let missing: Vec<String> = (1..=of).filter(|one| !have.contains(one)).map(|one| one.to_string()).collect();
    ensure!(
        missing.is_empty(),
        "of {of} shards these are missing: {}; give the receipts of all",
        first_of(&missing, MOST_NAMED, ", ")
    );
    // Every shard has the functions of a single program; of several programs a shard may be the only one that has some.
    let is_one_program = !(first.head.engine.is_of_benches() && first.head.engine.model.contains(','));
    let functions: fn(usize, usize) -> usize = if is_one_program { usize::max } else { usize::saturating_add };
    let merged = PairedReceipt { share: None, ..joined(shards, functions)? };
    if merged.cases.is_empty() && merged.broken.is_empty() && !merged.partial {
        let text = "no shard has a bench that base has, too; compare with a revision that has one of them";
        return Err(WorkerError::NotComparable(text.into()).into());
    }
    merged.check()?;
    Ok(merged)
}

/// Runs of several programs as one receipt. It has all their blocks in turn, each of which compares two sides of one program.
///
/// # Errors
/// The same case in two runs; no run at all.
pub fn join(runs: Vec<PairedReceipt>) -> Result<PairedReceipt> {
    joined(runs, usize::saturating_add)
}

/// As [`join`]; `functions` adds up the changed functions of two runs.
fn joined(runs: Vec<PairedReceipt>, functions: fn(usize, usize) -> usize) -> Result<PairedReceipt> {
    let of_several = (runs.len() > 1).then(|| worst_held(&runs));
    let is_uncounted = |run: &PairedReceipt| run.base.counted.is_empty() && !run.head.counted.is_empty();
    let uncounted = runs.iter().any(is_uncounted);
    let mut runs = runs.into_iter();
    let mut joined = runs.next().context("there is no receipt to judge")?;
    let mut machines = vec![joined.machine.class.clone()];
    for run in runs {
        if !machines.contains(&run.machine.class) {
            machines.push(run.machine.class.clone());
        }
        add(&mut joined, run, functions)?;
    }
    if let Some(held) = of_several {
        [joined.base.held, joined.head.held] = held;
    }
    // Base has another run's counts then, so the judge would not note that this run's are missing.
    if uncounted && !joined.base.counted.is_empty() && !joined.notes.contains(&Note::BaseNotCounted) {
        joined.notes.push(Note::BaseNotCounted);
    }
    if machines.len() > 1 {
        let text = format!("measured on machines of {} kinds: {}", machines.len(), machines.join(", "));
        joined.notes.push(Note::from(text));
    }
    Ok(joined)
}

/// Refuses a shard of another comparison.
fn ensure_alike(first: &PairedReceipt, shard: &PairedReceipt) -> Result<()> {
    let commits = |receipt: &PairedReceipt| {
        [&receipt.base, &receipt.head].map(|side| (side.build.commit.clone(), side.build.dirty, side.tool.clone()))
    };
    let suite = |receipt: &PairedReceipt| receipt.share.map(|shard| (shard.of, shard.suite_cases));
    let alike = [
        ("commits", commits(first) == commits(shard)),
        ("versions of infergate", first.tool == shard.tool),
        ("suites, or numbers of shards", suite(first) == suite(shard)),
        ("models, or bench targets", first.head.engine.model == shard.head.engine.model),
        ("settings", first.terms == shard.terms),
        ("features", first.built_with.features == shard.built_with.features),
        ("profiles", first.built_with.profile == shard.built_with.profile),
        ("numbers of threads", first.threads == shard.threads),
        ("seeds", seed(first) == seed(shard)),
        ("servers", first.servers == shard.servers),
    ];
    match alike.into_iter().find(|(_, is_alike)| !is_alike) {
        Some((what, _)) => bail!("is of other {what} than the first; give the receipts of one gate"),
        None => Ok(()),
    }
}

/// The seed; `None` for servers, since each run draws its own.
fn seed(receipt: &PairedReceipt) -> Option<u64> {
    (receipt.head.engine.name != "server").then_some(receipt.seed)
}

/// What the model of base and of head holds, by name. Shards run other cases and hold other amounts, so both sides are of one shard.
/// Takes the shard whose head holds most more than its base; failing or missing values first.
fn worst_held(shards: &[PairedReceipt]) -> [BTreeMap<String, Counter>; 2] {
    let rise = |name: &String, (was, is): (Counter, Option<Counter>)| {
        let Some(is) = is else { return (true, f64::INFINITY) };
        let [base, head] = [was, is].map(|counter| BTreeMap::from([(name.clone(), counter)]));
        (holds_more(&base, &head, COUNTER_TOLERANCE), is.min as f64 / was.max.max(1) as f64)
    };
    let mut worst: BTreeMap<String, (Counter, Option<Counter>)> = BTreeMap::new();
    for shard in shards {
        for (name, was) in &shard.base.held {
            let both = (*was, shard.head.held.get(name).copied());
            let known = worst.entry(name.clone()).or_insert(both);
            if rise(name, both) > rise(name, *known) {
                *known = both;
            }
        }
    }
    let base = worst.iter().map(|(name, (was, _))| (name.clone(), *was)).collect();
    [base, worst.into_iter().filter_map(|(name, (_, is))| Some((name, is?))).collect()]
}

/// Adds a shard to those merged so far.
fn add(merged: &mut PairedReceipt, shard: PairedReceipt, functions: fn(usize, usize) -> usize) -> Result<()> {
    for (ours, its) in [(&mut merged.base, shard.base), (&mut merged.head, shard.head)] {
        ours.counted.extend(its.counted);
        let new: Vec<_> = its.unmatched.into_iter().filter(|bench| !ours.unmatched.contains(bench)).collect();
        ours.unmatched.extend(new);
    }
    if let Some(case) = shard.cases.iter().find(|case| merged.cases.iter().any(|ours| ours.id == case.id)) {
        bail!("{} is in two shards; give the receipts of one gate", case.id);
    }
    // Bench targets can be of several packages.
    if merged.built_with.package != shard.built_with.package {
        merged.built_with.package = None;
    }
    let code = merge_code((&merged.cases, merged.code.take()), (&shard.cases, shard.code), functions);
    merged.code = code;
    // If one shard was timed as it was linked, not all are laid out alike.
    match (&mut merged.alike, shard.alike) {
        (Some(ours), Some(its)) => ours.extend(its),
        (ours, _) => *ours = None,
    }
    merged.blocks.extend(shard.blocks);
    merged.cases.extend(shard.cases);
    merged.other_lengths.extend(shard.other_lengths);
    merged.took.add(shard.took);
    merged.partial |= shard.partial;
    merged.out_of_time |= shard.out_of_time;
    merged.invalid.extend(shard.invalid);
    merged.broken.extend(shard.broken);
    for note in shard.notes {
        if !merged.notes.contains(&note) {
            merged.notes.push(note);
        }
    }
    merged.explained.extend(shard.explained);
    merged.allocated.extend(shard.allocated);
    merged.memory = worse_memory(merged.memory.take(), shard.memory);
    Ok(())
}

/// The worse memory record: a shard that finds no leak does not undo a leak that another one found.
fn worse_memory(ours: Option<MemoryRecord>, its: Option<MemoryRecord>) -> Option<MemoryRecord> {
    let (Some(ours), Some(its)) = (&ours, &its) else { return ours.or(its) };
    // If both are judged alike, the one that grew more.
    let badness = |record: &MemoryRecord| {
        let rows = memory::judge(record);
        let severity = rows.iter().map(|row| row.outcome.severity()).max();
        (severity, growth_bytes(asked(record, &record.runs.rss_bytes)))
    };
    Some(if badness(its) > badness(ours) { its.clone() } else { ours.clone() })
}

/// How the machine code of two runs' programs differs. Changes in one bench target, or unknown ones, do not concern another's cases.
fn merge_code(
    ours: (&[PairedCase], Option<CodeRecord>),
    its: (&[PairedCase], Option<CodeRecord>),
    functions: fn(usize, usize) -> usize,
) -> Option<CodeRecord> {
    if ours.1.is_none() && its.1.is_none() {
        return None;
    }
    let [mut ours, its] = [ours, its].map(|(cases, code)| {
        let mut code = code.unwrap_or(CodeRecord { same: false, changed: None, ..CodeRecord::same() });
        if code.same {
            code.same_cases = cases.iter().map(|case| case.id).collect();
        }
        code.runs.iter_mut().for_each(|runs| runs.changed = runs.changed.or(code.changed));
        code
    });
    ours.same &= its.same;
    ours.same_cases.extend(its.same_cases);
    ours.changed = ours.changed.zip(its.changed).map(|(ours, its)| functions(ours, its));
    ours.runs.extend(its.runs);
    ours.named.extend(its.named);
    ours.named.sort();
    ours.named.dedup();
    Some(ours)
}
