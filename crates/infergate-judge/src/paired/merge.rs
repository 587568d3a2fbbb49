//! Joins runs that measured shards of one suite, to be judged as one.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use infergate_core::memory::leak::{asked, growth_bytes};
use infergate_core::printable::first_of;
use infergate_core::worker::WorkerError;

use crate::COUNTER_TOLERANCE;
use crate::exact::holds_more;
use crate::memory;
use infergate_receipts::{
    CodeRecord, Counter, Format as _, MemoryRecord, Note, PairedCase, PairedReceipt, ShareRecord,
};

/// Missing shards that an error names.
const MOST_NAMED: usize = 10;

/// All shards of a suite, from several machines.
///
/// # Errors
/// A shard that is missing, there twice, or of another comparison.
pub fn merge(mut shares: Vec<PairedReceipt>) -> Result<PairedReceipt> {
    let number = |receipt: &PairedReceipt| receipt.share.map_or(0, |share| share.number);
    shares.sort_by_key(number);
    let have: Vec<usize> = shares.iter().map(number).collect();
    if let ([_], [0]) = (&shares[..], &have[..]) {
        return join(shares);
    }
    let first = shares.first().context("there is no receipt to judge")?;
    let Some(ShareRecord { of, .. }) = first.share else {
        bail!("a receipt of a whole suite is judged alone; give one receipt, or the shards of one gate");
    };
    for (share, two) in shares[1..].iter().zip(have.windows(2)) {
        let its = number(share);
        ensure!(two[0] != two[1], "shard {its} of {of} is given twice; give each once");
        ensure_alike(first, share).with_context(|| format!("shard {its} of {of}"))?;
    }
    let missing: Vec<String> = (1..=of).filter(|one| !have.contains(one)).map(|one| one.to_string()).collect();
    ensure!(
        missing.is_empty(),
        "of {of} shards these are missing: {}; give the receipts of all",
        first_of(&missing, MOST_NAMED, ", ")
    );
    // A function of one program is in every shard; of several programs a shard may have some alone.
    let is_one_program = !(first.head.engine.is_of_benches() && first.head.engine.model.contains(','));
    let functions: fn(usize, usize) -> usize = if is_one_program { usize::max } else { usize::saturating_add };
    let merged = PairedReceipt { share: None, ..joined(shares, functions)? };
    if merged.cases.is_empty() && merged.broken.is_empty() && !merged.partial {
        let text = "no shard has a bench that base has, too; compare with a revision that has one of them";
        return Err(WorkerError::NotComparable(text.into()).into());
    }
    merged.check()?;
    Ok(merged)
}

/// Runs of several programs as one receipt. Blocks of all stand one after the other: each is compared within itself alone.
///
/// # Errors
/// A case that two of them have; none of them.
pub fn join(runs: Vec<PairedReceipt>) -> Result<PairedReceipt> {
    joined(runs, usize::saturating_add)
}

/// As [`join`]; `functions` gives how many changed in two runs together.
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
    // Base has another run's counts then, so that judging would not say that those of this one are missing.
    if uncounted && !joined.base.counted.is_empty() && !joined.notes.contains(&Note::BaseNotCounted) {
        joined.notes.push(Note::BaseNotCounted);
    }
    if machines.len() > 1 {
        let text = format!("measured on machines of {} kinds: {}", machines.len(), machines.join(", "));
        joined.notes.push(Note::from(text));
    }
    Ok(joined)
}

/// Refuses a shard that does not answer the same question.
fn ensure_alike(first: &PairedReceipt, share: &PairedReceipt) -> Result<()> {
    let commits = |receipt: &PairedReceipt| {
        [&receipt.base, &receipt.head].map(|side| (side.build.commit.clone(), side.build.dirty, side.tool.clone()))
    };
    let suite = |receipt: &PairedReceipt| receipt.share.map(|share| (share.of, share.suite_cases));
    let alike = [
        ("commits", commits(first) == commits(share)),
        ("versions of infergate", first.tool == share.tool),
        ("suites, or numbers of shards", suite(first) == suite(share)),
        ("models, or bench targets", first.head.engine.model == share.head.engine.model),
        ("settings", first.terms == share.terms),
        ("features", first.built_with.features == share.built_with.features),
        ("profiles", first.built_with.profile == share.built_with.profile),
        ("numbers of threads", first.threads == share.threads),
        ("seeds", seed(first) == seed(share)),
        ("servers", first.servers == share.servers),
    ];
    match alike.into_iter().find(|(_, is_alike)| !is_alike) {
        Some((what, _)) => bail!("is of other {what} than the first; give the receipts of one gate"),
        None => Ok(()),
    }
}

/// The seed; `None` for servers, since each run of them draws its own.
fn seed(receipt: &PairedReceipt) -> Option<u64> {
    (receipt.head.engine.name != "server").then_some(receipt.seed)
}

/// What the model of base and of head holds, by name. Each shard's cases leave something else, so both sides are compared within a shard:
/// in one where head holds more by so much that it fails, or no longer says so; of several of these, or else of all, where it rose most.
fn worst_held(shares: &[PairedReceipt]) -> [BTreeMap<String, Counter>; 2] {
    let rise = |name: &String, (was, is): (Counter, Option<Counter>)| {
        let Some(is) = is else { return (true, f64::INFINITY) };
        let [base, head] = [was, is].map(|counter| BTreeMap::from([(name.clone(), counter)]));
        (holds_more(&base, &head, COUNTER_TOLERANCE), is.min as f64 / was.max.max(1) as f64)
    };
    let mut worst: BTreeMap<String, (Counter, Option<Counter>)> = BTreeMap::new();
    for share in shares {
        for (name, was) in &share.base.held {
            let both = (*was, share.head.held.get(name).copied());
            let known = worst.entry(name.clone()).or_insert(both);
            if rise(name, both) > rise(name, *known) {
                *known = both;
            }
        }
    }
    let base = worst.iter().map(|(name, (was, _))| (name.clone(), *was)).collect();
    [base, worst.into_iter().filter_map(|(name, (_, is))| Some((name, is?))).collect()]
}

/// Adds a shard to what there is of the others.
fn add(merged: &mut PairedReceipt, share: PairedReceipt, functions: fn(usize, usize) -> usize) -> Result<()> {
    for (ours, its) in [(&mut merged.base, share.base), (&mut merged.head, share.head)] {
        ours.counted.extend(its.counted);
        let new: Vec<_> = its.unmatched.into_iter().filter(|bench| !ours.unmatched.contains(bench)).collect();
        ours.unmatched.extend(new);
    }
    if let Some(case) = share.cases.iter().find(|case| merged.cases.iter().any(|ours| ours.id == case.id)) {
        bail!("{} is in two shards; give the receipts of one gate", case.id);
    }
    // Several bench targets can be of several packages.
    if merged.built_with.package != share.built_with.package {
        merged.built_with.package = None;
    }
    let code = merge_code((&merged.cases, merged.code.take()), (&share.cases, share.code), functions);
    merged.code = code;
    // Where one was timed as it was linked, not all are laid out alike.
    match (&mut merged.alike, share.alike) {
        (Some(ours), Some(its)) => ours.extend(its),
        (ours, _) => *ours = None,
    }
    merged.blocks.extend(share.blocks);
    merged.cases.extend(share.cases);
    merged.other_lengths.extend(share.other_lengths);
    merged.took.add(share.took);
    merged.partial |= share.partial;
    merged.out_of_time |= share.out_of_time;
    merged.invalid.extend(share.invalid);
    merged.broken.extend(share.broken);
    for note in share.notes {
        if !merged.notes.contains(&note) {
            merged.notes.push(note);
        }
    }
    merged.explained.extend(share.explained);
    merged.allocated.extend(share.allocated);
    merged.memory = worse_memory(merged.memory.take(), share.memory);
    Ok(())
}

/// Each shard may have followed memory: what one of them found is not undone by another that did not find it.
fn worse_memory(ours: Option<MemoryRecord>, its: Option<MemoryRecord>) -> Option<MemoryRecord> {
    let (Some(ours), Some(its)) = (&ours, &its) else { return ours.or(its) };
    // Of two that are judged alike the one that grew more.
    let badness = |record: &MemoryRecord| {
        let rows = memory::judge(record);
        let severity = rows.iter().map(|row| row.outcome.severity()).max();
        (severity, growth_bytes(asked(record, &record.runs.rss_bytes)))
    };
    Some(if badness(its) > badness(ours) { its.clone() } else { ours.clone() })
}

/// How the machine code of two runs' programs differs. What one bench target changed, or does not know, says nothing of another's cases.
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
