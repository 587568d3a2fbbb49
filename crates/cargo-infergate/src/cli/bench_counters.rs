//! What an iteration of each criterion bench allocates, counted after the times by builds of their own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use infergate_core::case::{Case, Phase};
use infergate_core::progress::Progress;
use infergate_core::worker::{Capability, Client, Patience, WorkerError};

use super::memory::ensure_said;
use super::{layouts, output, progress};
use crate::paired::{PairedRequest, Program};
use crate::receipt::{CountedCase, Counter, PairedReceipt, Side, Unit};
use layouts::Sources;

/// Fresh processes that count each side: what depends on a process's luck differs between them.
const PROCESSES: usize = 5;

/// Counts the benches of both sides, and writes into `receipt` what repeats exactly in all processes of both. Gives the programs that
/// counted; `None` where nothing was counted, of which it says why.
pub fn attach(
    receipt: &mut PairedReceipt,
    sources: &Sources,
    request: &PairedRequest,
    line: &progress::Line,
    cancelled: &AtomicBool,
) -> Option<(Program, Program)> {
    let is_wanted = |case: &Case| case.phase() == Phase::Bench && !receipt.is_same_code_of(*case);
    let cases: Vec<Case> = receipt.cases.iter().map(|case| case.id).filter(is_wanted).collect();
    if cases.is_empty() {
        return None;
    }
    match counted(&cases, sources, request, line, cancelled) {
        Ok(Some((counts, programs))) => {
            keep(receipt, counts, has_comparable_bytes(&programs));
            Some(programs)
        }
        Ok(None) => None,
        Err(error) => {
            line.finish();
            if !progress::is_cancelled() {
                output::say_why("allocations are not counted", &error);
            }
            None
        }
    }
}

type Counts = BTreeMap<Case, CountedCase>;

/// What both sides counted, base's first, and the programs that did.
type Counted = ([Counts; 2], (Program, Program));

fn counted(
    cases: &[Case],
    sources: &Sources,
    request: &PairedRequest,
    line: &progress::Line,
    cancelled: &AtomicBool,
) -> Result<Option<Counted>> {
    let (Some(base), Some(head)) = (&sources.base, &sources.head) else { return Ok(None) };
    let stop = || cancelled.load(Ordering::Relaxed);
    let mut done = 0;
    let mut show = |label: &str| {
        line.show(&Progress { label: label.to_owned(), done_steps: done, total_steps: 2 + 2 * PROCESSES });
        done += 1;
    };
    show("allocations, building base");
    let Some(base) = base.counting(&request.base, &stop)? else { return Ok(None) };
    show("allocations, building head");
    let Some(head) = head.counting(&request.head, &stop)? else { return Ok(None) };
    let mut both = [Counts::new(), Counts::new()];
    for (program, counts) in [&base, &head].into_iter().zip(&mut both) {
        for _ in 0..PROCESSES {
            show("allocations, counting");
            if !count(cases, program, request, counts, cancelled)? {
                return Ok(None);
            }
        }
    }
    Ok(Some((both, (base, head))))
}

/// One process's counts, put to those of others. False where it cannot count.
fn count(
    cases: &[Case],
    program: &Program,
    request: &PairedRequest,
    counts: &mut Counts,
    cancelled: &AtomicBool,
) -> Result<bool> {
    let (mut client, _) = Client::spawn(&program.open()?, &request.load, Patience::default(), cancelled)?;
    if !client.can(Capability::Count) {
        return Ok(false);
    }
    client.load(&request.load, request.prompt_text.as_deref())?;
    for case in cases {
        let found = client.prepare(*case, None).and_then(|_| client.count(*case, 1));
        match found {
            Ok(found) => put(counts, found),
            // A bench that cannot be counted, or that only the other side has, leaves the others theirs.
            Err(WorkerError::Refused(_)) => drop(counts.remove(case)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

fn put(counts: &mut Counts, found: CountedCase) {
    let known = counts.entry(found.id).or_insert_with(|| found.clone());
    for (name, counter) in found.counters {
        let known = known.counters.entry(name).or_insert(counter);
        *known = Counter { min: known.min.min(counter.min), max: known.max.max(counter.max) };
    }
}

/// A bench may keep paths of its package, and each side's lies in a folder of its own.
fn has_comparable_bytes((base, head): &(Program, Program)) -> bool {
    let length = |program: &Program| program.package.as_ref().map(|folder| folder.as_os_str().len());
    length(base) == length(head)
}

/// What repeats exactly on both sides. A range tells nothing of a bench whose input is made by chance.
fn keep(receipt: &mut PairedReceipt, [mut base, mut head]: [Counts; 2], with_bytes: bool) {
    let is_exact = |counter: &Counter| counter.min == counter.max;
    for (id, was) in &mut base {
        let Some(is) = head.get_mut(id) else { continue };
        was.counters.retain(|name, counter| {
            let is_asked = with_bytes || Unit::of(name) == Unit::Number;
            is_asked && is_exact(counter) && is.counters.get(name).is_some_and(is_exact)
        });
        is.counters.retain(|name, _| was.counters.contains_key(name));
    }
    let both = |one: &Counts, other: &Counts| -> Vec<CountedCase> {
        one.values().filter(|case| !case.counters.is_empty() && other.contains_key(&case.id)).cloned().collect()
    };
    let (was, is) = (both(&base, &head), both(&head, &base));
    ensure_said(receipt, Side::Base, &was);
    ensure_said(receipt, Side::Head, &is);
    (receipt.base.counted, receipt.head.counted) = (was, is);
}
