//! A paired run, for a person.

use super::model::{Block, Cell, Missing, Rows};
use super::terminal;
use super::units::{self, MISSING};
use super::words::{self, provenance};
use infergate_core::printable::first_of;
use infergate_judge::paired::{QuickEstimate, not_compared};
use infergate_receipts::{
    Allocated, Bisection, BisectionEnd, BisectionStep, Explained, PairedReceipt, TimeEvidence, Took, Verdict,
    VerdictRow,
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
    terminal::verdict(&format!("{subject}\n{sides}"), verdict, &more)
}

/// Where cases take their time, and where they allocate more.
fn causes(explained: &[Explained], allocated: &[Allocated]) -> String {
    let explained = explained.iter().map(|one| (words::explained::title(one), words::explained::lines(one)));
    let allocated =
        allocated.iter().map(|one| (format!("where {} allocates more", one.id), words::allocated::lines(one)));
    let part = |(heading, lines)| format!("{heading}\n{}\n", terminal::block(&Block::List(lines)));
    explained.chain(allocated).map(part).collect()
}

/// As many cases of a limit are named.
const NAMED: usize = 8;

/// `builds 92 s, pilot 3 s, timing 41 s, counting 12 s, explaining 0 s`.
pub fn took(took: &Took) -> String {
    let part = |(name, ns): (&str, u64)| format!("{name} {:.0} s", ns as f64 / 1e9);
    took.parts().map(part).join(", ")
}

/// What a quick look shows: the widest that any case may have changed, or those that are slower.
pub fn quick(receipt: &PairedReceipt, seen: &[QuickEstimate]) -> String {
    let table = Rows::of("quick", "", seen)
        .words("case", |estimate| estimate.case.to_string())
        .titled_numbers("change", "change (all intervals together 95 %)", |estimate| estimated(estimate))
        .table();
    let changed = receipt.cases.iter().filter(|case| !case.timed && !receipt.is_same_code_of(case.id));
    let changed: Vec<String> = changed.map(|case| case.id.to_string()).collect();
    let slower: Vec<String> =
        seen.iter().filter(|one| one.is_slower()).map(|one| format!("{} {}", one.case, estimated(one))).collect();
    let most = seen.iter().map(|estimate| estimate.high).fold(f64::NAN, f64::max);
    let mut broken = receipt.invalid.iter().chain(&receipt.broken);
    let said = if let Some(first) = broken.next() {
        format!("look closer: {first}")
    } else if !changed.is_empty() {
        format!("look closer: another output of {}", first_of(&changed, NAMED, ", "))
    } else if !slower.is_empty() {
        format!("look closer: {}", first_of(&slower, NAMED, ", "))
    } else if receipt.partial {
        format!("cut short after {}", units::many(receipt.blocks.len(), "block"))
    } else if most.is_finite() {
        format!("nothing above {}", units::change(most - 1.0))
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
    let [ratio, low, high] = [estimate.ratio, estimate.low, estimate.high].map(|ratio| units::change(ratio - 1.0));
    format!("{ratio} ({low} to {high})")
}

/// A bisection: each step with its interval, and what it found in one line.
pub fn bisection(found: &Bisection) -> String {
    let Bisection { case, searched, end, steps, confirmed, explained, .. } = found;
    let mut text = format!("\n{}, each against the good {searched}\n\n", case.strip_prefix("bench:").unwrap_or(case));
    let confirmed = confirmed
        .as_ref()
        .map(|step| BisectionStep { name: format!("{}, against the one before it", step.name), ..step.clone() });
    let table = Rows::of("steps", "", steps.iter().chain(&confirmed))
        .titled_words("step", *searched, |step| step.name.clone())
        .words("change", |step| time(step).map_or(Cell::Missing(Missing::NotMeasured), words::change))
        .words("blocks", |step| Cell::count(time(step).and_then(|time| time.blocks)))
        .words("verdict", |step| match &step.row {
            Some(row) => words::ending(row),
            None => format!("skipped: {}", step.skipped.as_deref().unwrap_or(MISSING)),
        })
        .table();
    text += &terminal::table(&table);
    text += &terminal::paragraph(causes(explained.as_slice(), &[]));
    text += &match end {
        BisectionEnd::First { name } => format!("\nfirst slower {searched}: {name}\n"),
        BisectionEnd::OneOf { names } => {
            format!("\nthe first slower {searched} is one of these, which could not be judged: {}\n", names.join("; "))
        }
        BisectionEnd::Unconfirmed { name } => format!(
            "\nno single {searched} is slower than the one before it by the limit; {name} is the first slower than the good one\n"
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

fn time(step: &BisectionStep) -> Option<&TimeEvidence> {
    step.row.as_ref().and_then(VerdictRow::time)
}
