//! What an iteration of each criterion bench allocates, counted after the times by builds of their own.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use infergate_core::case::{Case, Phase};
use infergate_core::engine::TokenId;
use infergate_core::printable::{first_of, printable_within};
use infergate_core::progress::Progress;
use infergate_core::worker::{Capability, Client, Timeouts, WorkerError};

use super::memory::ensure_same_output;
use super::{output, progress, sources};
use crate::paired::{PairedRequest, Program};
use infergate_receipts::{CountedCase, Counter, Note, PairedReceipt, Side, Unit, clause};
use infergate_report::words::counter;
use sources::Sources;

/// Fresh processes that count each side, in turn: what depends on a process's luck, or on the machine, differs between them.
const PROCESSES: usize = 5;
/// Looks of each.
const LOOKS: usize = 2;
/// All of it may take so long, and an answer of a bench that was timed already.
const MOST: Duration = Duration::from_secs(120);
const PATIENCE: Duration = Duration::from_secs(60);
/// Counters that are named in a note.
const MOST_NAMED: usize = 8;
/// Characters of a reason in a note.
const MOST_CHARACTERS: usize = 200;

/// Both sides once more, base's first, as they count their heap; or why there are none.
pub type Counting = Result<(Program, Program), String>;

/// Builds them; `None` where nothing here is built by this command.
pub fn build(sources: &Sources, request: &PairedRequest) -> Option<Counting> {
    let (base, head) = sources.base.as_ref().zip(sources.head.as_ref())?;
    let both = || Ok((base.counting(&request.base)?, head.counting(&request.head)?));
    Some(both().map_err(|error: anyhow::Error| clause(&error)))
}

/// Counts the benches of both sides, and writes into `receipt` what can be compared, and what cannot, or why there is nothing.
/// A run that is cut short meanwhile is partial.
pub fn attach(
    receipt: &mut PairedReceipt,
    counting: &Counting,
    request: &PairedRequest,
    line: &progress::Line,
    cancelled: &AtomicBool,
) {
    let cases = wanted(receipt);
    if cases.is_empty() {
        return;
    }
    let counted = counting.as_ref().map_err(|why| anyhow::anyhow!("{why}")).and_then(|(base, head)| {
        let (was, is) = (&receipt.base.tool, &receipt.head.tool);
        ensure!(was == is, "base's benches are built with infergate {was}, head's with {is}, whose loops may differ");
        let mut run = Run { programs: [base, head], request, cancelled, begun: Instant::now(), left: BTreeMap::new() };
        let counts = run.all(&cases, line)?;
        Ok((counts, has_comparable_bytes(base, head), run.left))
    });
    line.finish();
    let messages = match counted {
        Ok((counts, with_bytes, left)) => [keep(receipt, counts, with_bytes), uncounted(&left)],
        Err(_) if progress::is_cancelled() => {
            receipt.partial = true;
            return;
        }
        Err(error) => [Some(format!("allocations are not counted: {}", clause(&error))), None],
    };
    for why in messages.into_iter().flatten() {
        output::line(&why);
        receipt.notes.push(Note::from(why));
    }
}

fn uncounted(left: &BTreeMap<Case, String>) -> Option<String> {
    let (first, why) = left.first_key_value()?;
    let more = if left.len() > 1 { format!(" and of {} more", left.len() - 1) } else { String::new() };
    Some(format!("allocations of {first}{more} are not counted: {}", printable_within(why, MOST_CHARACTERS)))
}

/// The benches whose code differs, the shortest first: those fit in what time there is.
fn wanted(receipt: &PairedReceipt) -> Vec<Case> {
    let is_wanted = |case: &Case| case.phase() == Phase::Bench && !receipt.is_same_code_of(*case);
    let mut cases: Vec<Case> = receipt.cases.iter().map(|case| case.id).filter(is_wanted).collect();
    let iteration_ns = |case: &Case| {
        let planned = receipt.cases.iter().find(|planned| planned.id == *case);
        let timed = receipt.blocks.iter().flat_map(|block| &block.cases).find(|timed| timed.id == *case);
        let sample_ns = timed.and_then(|timed| timed.head_ns.first().copied()).unwrap_or(u64::MAX);
        sample_ns / planned.map_or(1, |planned| planned.iterations_per_sample.max(1) as u64)
    };
    cases.sort_by_cached_key(iteration_ns);
    cases
}

type Counts = BTreeMap<Case, CountedCase>;

/// All processes of both sides.
struct Run<'a> {
    programs: [&'a Program; 2],
    request: &'a PairedRequest,
    cancelled: &'a AtomicBool,
    begun: Instant,
    /// Benches that are not counted, and why.
    left: BTreeMap<Case, String>,
}

impl<'a> Run<'a> {
    fn all(&mut self, cases: &[Case], line: &progress::Line) -> Result<[Counts; 2]> {
        let mut counts = [Counts::new(), Counts::new()];
        let mut outputs = [BTreeMap::new(), BTreeMap::new()];
        for done_steps in 0..2 * PROCESSES {
            let side = done_steps % 2;
            line.show(&Progress { label: "allocations".to_owned(), done_steps, total_steps: 2 * PROCESSES });
            // What is left out later was not looked at as often as the others.
            let share = MOST.mul_f64((done_steps + 1) as f64 / (2 * PROCESSES) as f64);
            self.process(cases, side, share, &mut counts[side], &mut outputs[side])?;
        }
        for counts in &mut counts {
            counts.retain(|case, _| !self.left.contains_key(case));
        }
        Ok(counts)
    }

    /// One process's counts, put to those of others. A bench that ends it costs the others nothing.
    fn process(
        &mut self,
        cases: &[Case],
        side: usize,
        share: Duration,
        counts: &mut Counts,
        outputs: &mut BTreeMap<Case, Vec<TokenId>>,
    ) -> Result<()> {
        let mut client = self.start(side)?;
        for case in cases {
            if self.left.contains_key(case) {
                continue;
            }
            if self.begun.elapsed() > share {
                self.left.insert(*case, format!("all would take longer than {} s", MOST.as_secs()));
                continue;
            }
            let known = outputs.get(case).cloned();
            let found = client.prepare(*case, known).and_then(|reply| {
                outputs.insert(*case, reply.output.ids);
                client.count(*case, LOOKS)
            });
            match found {
                Ok(found) => put(counts, found),
                Err(error @ WorkerError::Interrupted(_)) => return Err(error.into()),
                Err(error) => {
                    let goes_on = matches!(error, WorkerError::Refused(_));
                    self.left.insert(*case, clause(&error.into()));
                    if !goes_on {
                        client = self.start(side)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn start(&self, side: usize) -> Result<Client<'a>> {
        let (program, load) = (self.programs[side], &self.request.load);
        let (mut client, _) =
            Client::spawn(&program.open()?, load, Timeouts { first: PATIENCE, ..Timeouts::default() }, self.cancelled)?;
        ensure!(client.can(Capability::Count), "a bench target that was built to count cannot");
        client.load(load, self.request.prompt_text.as_deref()).context("a bench target that counts does not start")?;
        Ok(client)
    }
}

fn put(counts: &mut Counts, found: CountedCase) {
    let known = counts.entry(found.id).or_insert_with(|| found.clone());
    for (name, counter) in found.counters {
        let known = known.counters.entry(name).or_insert(counter);
        *known = known.with(counter);
    }
}

/// A bench may keep paths of its package, and each side's lies in a folder of its own.
fn has_comparable_bytes(base: &Program, head: &Program) -> bool {
    let length = |program: &Program| program.package.as_ref().map(|folder| folder.as_os_str().len());
    length(base) == length(head)
}

/// Writes what can be compared into `receipt`, and says what does not repeat.
fn keep(receipt: &mut PairedReceipt, [mut base, mut head]: [Counts; 2], with_bytes: bool) -> Option<String> {
    let mut unrepeated = Vec::new();
    for (id, was) in &mut base {
        let Some(is) = head.get_mut(id) else { continue };
        let names = keep_comparable(was, is, with_bytes);
        unrepeated.extend(names.iter().map(|name| format!("{} of {id}", counter::name(name))));
    }
    let both = |one: &Counts, other: &Counts| -> Vec<CountedCase> {
        one.values().filter(|case| !case.counters.is_empty() && other.contains_key(&case.id)).cloned().collect()
    };
    let (was, is) = (both(&base, &head), both(&head, &base));
    ensure_same_output(receipt, Side::Base, &was);
    ensure_same_output(receipt, Side::Head, &is);
    (receipt.base.counted, receipt.head.counted) = (was, is);
    let named = || first_of(&unrepeated, MOST_NAMED, ", ");
    (!unrepeated.is_empty()).then(|| format!("these do not repeat and are not compared: {}", named()))
}

/// Keeps what repeats exactly on both sides, and what repeats in base and is above it at head's smallest: it must not escape by no
/// longer repeating. Any other range tells nothing of a bench whose input is made by chance; their names.
fn keep_comparable(was: &mut CountedCase, is: &mut CountedCase, with_bytes: bool) -> Vec<String> {
    let is_exact = |counter: &Counter| counter.min == counter.max;
    let mut unrepeated = Vec::new();
    was.counters.retain(|name, base| {
        let is_asked = with_bytes || Unit::of(name) == Unit::Number;
        let Some(head) = is.counters.get(name).filter(|_| is_asked) else { return false };
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
            assert_eq!(unrepeated.is_empty(), is_compared, "what is left out is said");
        }
    }
}
