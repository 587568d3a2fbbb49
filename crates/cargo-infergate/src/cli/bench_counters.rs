//! Counts what an iteration of each criterion bench allocates, after the timing, in separate builds.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use infergate_build::{output, progress};
use infergate_core::case::{Case, Phase};
use infergate_core::printable::first_of;
use infergate_core::progress::Progress;
use infergate_core::worker::Timeouts;

use super::memory::ensure_same_output;
use crate::paired::{PairedRequest, Program};
use infergate_build::sources::Sources;
use infergate_receipts::{CountedCase, Counter, Note, PairedCase, PairedReceipt, Side, Unit, blocks_of, clause};
use infergate_report::words::counter;

/// Fresh processes that count, five of each side in turn: what varies by process, or by the moment, differs between them.
const PROCESSES: usize = 10;
/// How often each process counts a case.
const REPEATS: usize = 2;
/// The time limit of all counting.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// The time limit of an answer: the bench was timed already.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The most counters that a note names.
const MOST_NAMED: usize = 8;

/// Builds of both sides that count their heap, base's first; or why there are none.
pub type CountingBuilds = Result<(Program, Program)>;

/// Builds them; `None` if the programs of this gate were given.
pub fn build(sources: &Sources, request: &PairedRequest) -> Option<CountingBuilds> {
    let (base, head) = sources.base.as_ref().zip(sources.head.as_ref())?;
    Some(base.counting(&request.base).and_then(|base| Ok((base, head.counting(&request.head)?))))
}

/// Counts the benches of both sides, and writes into `receipt` what can be compared, and what cannot, or why there is nothing.
/// If the user ends it, the receipt is partial.
pub fn attach(receipt: &mut PairedReceipt, counting: &CountingBuilds, request: &PairedRequest) {
    let cases = wanted(receipt);
    if cases.is_empty() {
        return;
    }
    let counted = counting.as_ref().map_err(|error| anyhow!("{error:#}")).and_then(|(base, head)| {
        let (was, is) = (&receipt.base.tool, &receipt.head.tool);
        ensure!(was == is, "base's benches are built with infergate {was}, head's with {is}, whose loops may differ");
        count([base, head], &cases, request)
    });
    let messages = match counted {
        Ok((counts, not_counted)) => [keep(receipt, request, counts), uncounted(&not_counted)],
        Err(_) if progress::is_cancelled() => {
            receipt.partial = true;
            return;
        }
        Err(error) => [Some(format!("allocations are not counted: {}", clause(&error))), None],
    };
    for why in messages.into_iter().flatten() {
        output::status_escaped(&why);
        receipt.notes.push(Note::from(why));
    }
}

/// Benches that are not counted, and why.
type NotCounted = BTreeMap<Case, String>;

fn uncounted(not_counted: &NotCounted) -> Option<String> {
    let why = not_counted.values().next()?;
    let names: Vec<String> = not_counted.keys().map(Case::to_string).collect();
    Some(format!("allocations of {} are not counted: {why}", first_of(&names, 1, ", ")))
}

/// The benches whose code differs, the shortest first: the time may not suffice for all.
fn wanted(receipt: &PairedReceipt) -> Vec<Case> {
    let is_wanted = |case: &&PairedCase| case.id.phase() == Phase::Bench && !receipt.is_same_code_of(case.id);
    let mut cases: Vec<&PairedCase> = receipt.cases.iter().filter(is_wanted).collect();
    cases.sort_by_cached_key(|case| {
        let timed = blocks_of(&receipt.blocks, case.id).next();
        let sample_ns = timed.and_then(|timed| timed.head_ns.first().copied()).unwrap_or(u64::MAX);
        sample_ns / case.iterations_per_sample.max(1) as u64
    });
    cases.into_iter().map(|case| case.id).collect()
}

type Counts = BTreeMap<Case, CountedCase>;

/// Counts the same cases in all processes of both sides. If a bench ends its process, another process counts the next ones.
fn count(programs: [&Program; 2], cases: &[Case], request: &PairedRequest) -> Result<([Counts; 2], NotCounted)> {
    let line = progress::Line::default();
    let timeouts = Timeouts { first: ANSWER_TIMEOUT, ..Timeouts::default() };
    let start = |side: usize| request.start(&programs[side].open()?, timeouts.clone());
    let begun = Instant::now();
    let mut not_counted = NotCounted::new();
    let mut counts = [Counts::new(), Counts::new()];
    let mut outputs = [BTreeMap::new(), BTreeMap::new()];
    for done_steps in 0..PROCESSES {
        let side = done_steps % 2;
        line.show(&Progress { label: "allocations".to_owned(), done_steps, total_steps: PROCESSES });
        // A bench that is dropped later was counted in fewer processes than the others.
        let share = TIME_LIMIT.mul_f64((done_steps + 1) as f64 / PROCESSES as f64);
        let mut client = start(side)?;
        for &case in cases {
            if not_counted.contains_key(&case) {
                continue;
            }
            if begun.elapsed() > share {
                not_counted.insert(case, format!("all would take longer than {} s", TIME_LIMIT.as_secs()));
                continue;
            }
            let known = outputs[side].get(&case).cloned();
            let found = client.prepare(case, known).and_then(|reply| {
                outputs[side].insert(case, reply.output.ids);
                client.count(case, REPEATS)
            });
            match found {
                Ok(found) => {
                    counts[side].entry(case).and_modify(|known| known.add(&found)).or_insert(found);
                }
                Err(error) => {
                    not_counted.insert(case, clause(&error.into()));
                    client = start(side)?;
                }
            }
        }
    }
    for counts in &mut counts {
        counts.retain(|case, _| !not_counted.contains_key(case));
    }
    Ok((counts, not_counted))
}

/// Writes what can be compared into `receipt`, and gives a sentence about what does not repeat.
fn keep(receipt: &mut PairedReceipt, request: &PairedRequest, [base, head]: [Counts; 2]) -> Option<String> {
    // A bench may keep paths of its package, and each side's lies in a folder of its own.
    let length = |program: &Program| program.package.as_ref().map(|folder| folder.as_os_str().len());
    let with_bytes = length(&request.base) == length(&request.head);
    let (mut of_base, mut of_head, mut unrepeated) = (Vec::new(), Vec::new(), Vec::new());
    for (mut was, mut is) in base.into_values().zip(head.into_values()) {
        let names = keep_comparable(&mut was, &mut is, with_bytes);
        unrepeated.extend(names.iter().map(|name| format!("{} of {}", counter::name(name), was.id)));
        if !was.counters.is_empty() {
            of_base.push(was);
            of_head.push(is);
        }
    }
    ensure_same_output(receipt, Side::Base, &of_base);
    ensure_same_output(receipt, Side::Head, &of_head);
    (receipt.base.counted, receipt.head.counted) = (of_base, of_head);
    let named = first_of(&unrepeated, MOST_NAMED, ", ");
    (!unrepeated.is_empty()).then(|| format!("these do not repeat and are not compared: {named}"))
}

/// Keeps counters that repeat exactly on both sides. Also keeps those that repeat in base and are higher in every run of head: a rise must
/// not escape because it does not repeat. Other ranges tell nothing, since a bench may have random input. Gives the names of those dropped.
fn keep_comparable(was: &mut CountedCase, is: &mut CountedCase, with_bytes: bool) -> Vec<String> {
    let is_exact = |counter: &Counter| counter.min == counter.max;
    let mut unrepeated = Vec::new();
    was.counters.retain(|name, base| {
        let is_compared = with_bytes || Unit::of(name) == Unit::Number;
        let Some(head) = is.counters.get(name).filter(|_| is_compared) else { return false };
        let is_comparable = is_exact(base) && (is_exact(head) || head.min > base.max);
        if !is_comparable {
            unrepeated.push(name.clone());
        }
        is_comparable
    });
    is.counters.retain(|name, _| was.counters.contains_key(name));
    unrepeated
}

#[cfg(test)]
mod tests {
    use super::{CountedCase, Counter, keep_comparable};

    fn counted(min: u64, max: u64) -> CountedCase {
        CountedCase {
            id: "bench:sort".parse().expect("a case"),
            output_sha256: String::new(),
            counters: [("allocations_per_iteration".to_owned(), Counter { min, max })].into(),
            reached_twice: Default::default(),
        }
    }

    #[test]
    fn a_counter_does_not_escape_by_no_longer_repeating() {
        for (base, head, is_compared) in [
            ((100, 100), (100, 100), true),
            ((100, 100), (1000, 1003), true),
            ((100, 100), (100, 1003), false),
            ((100, 100), (90, 95), false),
            ((100, 120), (1000, 1000), false),
        ] {
            let (mut was, mut is) = (counted(base.0, base.1), counted(head.0, head.1));
            let unrepeated = keep_comparable(&mut was, &mut is, true);
            assert_eq!(was.counters.len() + is.counters.len(), 2 * usize::from(is_compared), "{base:?} {head:?}");
            assert_eq!(unrepeated.is_empty(), is_compared, "what is not compared is named");
        }
    }
}
