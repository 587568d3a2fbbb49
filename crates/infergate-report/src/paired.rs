//! A paired run, for a person.

use super::model::{Block, Cell, Missing, Table, Unit};
use super::terminal;
use super::units::{self, MISSING};
use super::words::{self, provenance};
use infergate_core::printable::first_of;
use infergate_judge::paired::{QuickEstimate, not_compared};
use infergate_receipts::{
    Allocated, Bisection, BisectionEnd, BisectionStep, Explained, PairedCase, PairedReceipt, Took, Verdict, VerdictRow,
};

/// The verdict: who was compared, a line a case, what else there is to say, and the decision last.
pub fn verdict(receipt: &PairedReceipt, verdict: &Verdict) -> String {
    let subject = words::subject::engine(&receipt.head.engine, receipt.threads, &receipt.machine);
    let intended = words::accept::toml(receipt, verdict);
    let intended = intended.map_or_else(String::new, |tables| format!("{}\n\n{tables}\n", words::accept::HOW));
    let mut sides = provenance::sides(&receipt.base.build, &receipt.head.build);
    if let Some(work) = provenance::timed_work(receipt) {
        sides += &format!("; {work}");
    }
    let more = causes(&receipt.explained, &receipt.allocated) + &intended;
    terminal::verdict_and(verdict, &format!("{subject}\n{sides}"), &more)
}

/// Where cases take their time, and where they allocate more.
fn causes(explained: &[Explained], allocated: &[Allocated]) -> String {
    let explained = explained.iter().map(|one| {
        let heading = words::explained::heading(one).map_or_else(String::new, |heading| format!(" ({heading})"));
        (format!("where {} takes its time{heading}", one.id), words::explained::lines(one))
    });
    let allocated =
        allocated.iter().map(|one| (format!("where {} allocates more", one.id), words::allocated::lines(one)));
    let part = |(heading, lines)| format!("{heading}\n{}\n", terminal::block(&Block::List(lines)));
    explained.chain(allocated).map(part).collect()
}

/// As many cases of a limit are named.
const NAMED: usize = 8;

/// What the gate can honour, by what is expected to vary, said before the first block.
pub fn thresholds(receipt: &PairedReceipt) -> String {
    let timed: Vec<&PairedCase> = receipt.cases.iter().filter(|case| case.timed).collect();
    let mut limits: Vec<f64> = timed.iter().map(|case| case.threshold).collect();
    limits.sort_by(f64::total_cmp);
    limits.dedup();
    let lines: Vec<String> = limits
        .iter()
        .map(|limit| {
            let cases = timed.iter().filter(|case| case.threshold == *limit).map(|case| case.id.to_string());
            let cases: Vec<String> = cases.collect();
            format!("fails from {}: {}", units::signed_percent(limit - 1.0), named(&cases))
        })
        .collect();
    if lines.is_empty() { "nothing is timed".into() } else { lines.join("\n") }
}

/// `builds 92 s, pilot 3 s, timing 41 s, counting 12 s, explaining 0 s`.
pub fn took(took: &Took) -> String {
    let part = |(name, ns): (&str, u64)| format!("{name} {:.0} s", ns as f64 / 1e9);
    took.parts().map(part).join(", ")
}

/// What a quick look shows: the widest that any case may have changed, or those that are slower.
pub fn quick(receipt: &PairedReceipt, seen: &[QuickEstimate]) -> String {
    let mut table = Table::brief(&["case", "change (all intervals together 95 %)"]);
    for estimate in seen {
        table.row(vec![Cell::text(estimate.case.to_string()), Cell::text(estimated(estimate))]);
    }
    let changed = receipt.cases.iter().filter(|case| !case.timed && !receipt.is_same_code_of(case.id));
    let changed: Vec<String> = changed.map(|case| case.id.to_string()).collect();
    let slower: Vec<String> =
        seen.iter().filter(|one| one.is_slower()).map(|one| format!("{} {}", one.case, estimated(one))).collect();
    let most = seen.iter().map(|estimate| estimate.high).fold(f64::NAN, f64::max);
    let mut broken = receipt.invalid.iter().chain(&receipt.broken);
    let said = if let Some(first) = broken.next() {
        format!("look closer: {first}")
    } else if !changed.is_empty() {
        format!("look closer: another output of {}", named(&changed))
    } else if !slower.is_empty() {
        format!("look closer: {}", named(&slower))
    } else if receipt.partial {
        format!("cut short after {}", units::many(receipt.blocks.len(), "block"))
    } else if most.is_finite() {
        format!("nothing above {}", units::signed_percent(most - 1.0))
    } else if receipt.is_same_code() {
        "base and head are the same machine code: nothing was timed".to_owned()
    } else {
        "nothing was timed".to_owned()
    };
    let table = if seen.is_empty() { String::new() } else { terminal::table(&table) };
    let others = not_compared(receipt);
    let notes = broken.cloned().chain(receipt.notes.iter().chain(&others).map(words::note));
    let notes: String = notes.map(|note| format!("{note}\n")).collect();
    format!("\n{table}{notes}\nquick look, no verdict: {said}\n")
}

fn estimated(estimate: &QuickEstimate) -> String {
    let [ratio, low, high] =
        [estimate.ratio, estimate.low, estimate.high].map(|ratio| units::signed_percent(ratio - 1.0));
    format!("{ratio} ({low} to {high})")
}

/// As many as a line has room for.
fn named(all: &[String]) -> String {
    first_of(all, NAMED, ", ")
}

/// What the time given is enough for, said before it is used. `needed_s` is what all cases would take, where that is known.
pub fn budget(blocks: usize, to_fail: usize, undecided: &[String], needed_s: Option<f64>) -> String {
    let only_passes = if blocks < to_fail {
        format!("; no single case can be called slower in it: that takes {to_fail}")
    } else {
        String::new()
    };
    let needed = needed_s.map_or_else(
        || "; no budget is enough for them on this machine".to_owned(),
        |needed_s| format!("; --budget {}s would do", needed_s.ceil()),
    );
    match undecided.is_empty() {
        true => format!("the budget holds {blocks} blocks{only_passes}"),
        false => format!(
            "the budget holds {blocks} blocks, too few for what varies most: {}{needed}{only_passes}",
            named(undecided)
        ),
    }
}

/// A bisection: each step with its interval, and what it found in one line.
pub fn bisection(found: &Bisection) -> String {
    let Bisection { case, searched, end, steps, confirmed, explained, .. } = found;
    let mut text = format!("\n{}, each against the good {searched}\n\n", case.strip_prefix("bench:").unwrap_or(case));
    let mut table = Table::brief(&[*searched, "change", "blocks", "verdict"]).left_aligned();
    let confirmed = confirmed
        .as_ref()
        .map(|step| BisectionStep { name: format!("{}, against the one before it", step.name), ..step.clone() });
    for step in steps.iter().chain(&confirmed) {
        let time = step.row.as_ref().and_then(VerdictRow::time);
        let blocks = time.and_then(|time| time.blocks).map(|blocks| blocks as f64);
        let skipped = || format!("skipped: {}", step.skipped.as_deref().unwrap_or(MISSING));
        table.row(vec![
            Cell::text(step.name.clone()),
            time.map_or(Cell::Missing(Missing::NotMeasured), words::change),
            Cell::number(blocks, Unit::Count, Missing::NotMeasured),
            Cell::text(step.row.as_ref().map_or_else(skipped, words::ending)),
        ]);
    }
    text += &terminal::table(&table);
    text += &terminal::paragraph(causes(explained.as_slice(), &[]));
    text += &match end {
        BisectionEnd::First { name } => format!("\nfirst slower {searched}: {name}\n"),
        BisectionEnd::OneOf { names } => {
            format!("\nthe first slower {searched} is one of these, which could not be judged: {}\n", names.join("; "))
        }
        BisectionEnd::Unconfirmed { name } => format!(
            "\nno single {searched} was shown to be slower than the one before it by the limit; {name} is the first that is slower than the \
             good one\n"
        ),
        BisectionEnd::CutShort { names } => format!(
            "\ninterrupted; the first slower {searched} is one of these {}: {}\n",
            names.len(),
            first_of(names, NAMED, "; ")
        ),
        BisectionEnd::NotJudged { why } => {
            format!("\nthe bad {searched} could not be judged, so nothing was searched: {why}\n")
        }
        BisectionEnd::NotSlower => {
            format!("\nthe bad {searched} was not shown to be slower than the good one; nothing to search\n")
        }
    };
    text
}
