//! The exact channel: what has no noise.

use std::collections::BTreeSet;

use crate::receipt::{Baseline, CaseRecord, CaseVerdict, Channel, Counter, ExactRecord, Outcome, Receipt};

/// The metric name of a case's output ids.
pub(super) const OUTPUT: &str = "output";

/// On another platform (other SIMD width, other rounding) a first differing id whose two best logits lay closer than
/// this is not an error.
const NEAR_TIE_LOGITS: f32 = 1e-3;

/// Outputs and counters of every case, and the weights' bytes.
pub(super) fn judge(head: &Receipt, base: Option<&Baseline>) -> Vec<CaseVerdict> {
    let platform = base.map(|base| differing_platform(base, head));
    let mut rows = Vec::new();
    for record in &head.cases {
        let exact = base.and_then(|base| base.exact.iter().find(|exact| exact.id == record.id));
        let row = |verdict| CaseVerdict::new(record.id, OUTPUT, Channel::Exact, verdict);
        if let Some(reason) = super::invalid(head, record) {
            rows.push(CaseVerdict { note: Some(reason), ..row(Outcome::Invalid) });
            continue;
        }
        match (exact, &platform) {
            (Some(exact), Some(other)) => {
                rows.push(output(record, exact, other.as_deref()));
                rows.extend(counters(record, exact, other.as_deref()));
            }
            _ => {
                let note = "the baseline has no output of this case: nothing to compare; bless it";
                rows.push(CaseVerdict { note: Some(note.into()), ..row(Outcome::Advisory) });
            }
        }
    }
    if let (Some(base), Some(other)) = (base, &platform) {
        let bytes = |bytes: Option<u64>| bytes.map(|bytes| Counter { min: bytes, max: bytes });
        let (was, is) = (bytes(base.engine.weight_bytes), bytes(head.engine.weight_bytes));
        if was.is_some() || is.is_some() {
            rows.push(counter("model", "weight_bytes", was, is, other.as_deref()));
        }
    }
    rows
}

/// Why exactness across these two platforms cannot be asked for; `None` where it can. What neither side knows counts as
/// equal, which is the stricter reading.
fn differing_platform(base: &Baseline, head: &Receipt) -> Option<String> {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
    let (was, is) = (&base.machine, &head.machine);
    [
        ("operating system", was.os.clone(), is.os.clone()),
        ("architecture", was.arch.clone(), is.arch.clone()),
        ("libc", text(&was.libc), text(&is.libc)),
        ("instruction set", text(&was.instruction_set), text(&is.instruction_set)),
        ("thread count", base.threads.to_string(), head.threads.to_string()),
    ]
    .into_iter()
    .find(|(_, was, is)| was != is)
    .map(|(what, was, is)| format!("other {what} ({is}, baseline {was})"))
}

fn output(record: &CaseRecord, exact: &ExactRecord, other_platform: Option<&str>) -> CaseVerdict {
    let row = CaseVerdict::new(record.id, OUTPUT, Channel::Exact, Outcome::Pass);
    let (was, is) = (&exact.output.ids, &record.output.ids);
    let Some(position) = (0..was.len().max(is.len())).find(|&at| was.get(at) != is.get(at)) else { return row };
    let id = |ids: &[u32]| ids.get(position).map_or_else(|| "none".into(), u32::to_string);
    let found = format!("{}: output token {} is {} instead of {}", record.id, position + 1, id(is), id(was));
    let margin = exact.output.top2_margins.get(position).copied().flatten();
    let (verdict, note) = match (other_platform, margin) {
        (Some(other), Some(margin)) if margin < NEAR_TIE_LOGITS => {
            (Outcome::Advisory, format!("{found}; advisory: {other}, and the two best logits lay {margin:.1e} apart"))
        }
        (Some(other), _) => (Outcome::OutputChanged, format!("{found}; {other}, but this was no near tie")),
        (None, _) => (Outcome::OutputChanged, found),
    };
    CaseVerdict { verdict, note: Some(note), ..row }
}

/// Every counter either side knows, by name.
fn counters(record: &CaseRecord, exact: &ExactRecord, other_platform: Option<&str>) -> Vec<CaseVerdict> {
    let names: BTreeSet<&String> = exact.counters.keys().chain(record.counters.keys()).collect();
    let row = |name: &String| {
        let (was, is) = (exact.counters.get(name).copied(), record.counters.get(name).copied());
        counter(&record.id.to_string(), name, was, is, other_platform)
    };
    names.into_iter().map(row).collect()
}

/// Ranges are compared by their ends: worse is above all that was seen before even at its best, better is below all of it. A
/// thread that frees a little later than another looks makes a counter larger now and then, never smaller.
pub(super) fn counter(
    id: &str,
    name: &str,
    base: Option<Counter>,
    head: Option<Counter>,
    other_platform: Option<&str>,
) -> CaseVerdict {
    let (verdict, note) = match (base, head) {
        (Some(base), Some(head)) if head.min > base.max => {
            (Outcome::CounterRegressed, Some(format!("{id}: {name} is {} instead of {}", range(head), range(base))))
        }
        (Some(base), Some(head)) if head.max < base.min => {
            (Outcome::Improved, Some(format!("{id}: {name} is {} instead of {}", range(head), range(base))))
        }
        (Some(_), Some(_)) => (Outcome::Pass, None),
        // A counter must not escape the gate by no longer being counted.
        (Some(_), None) => {
            (Outcome::Inconclusive, Some(format!("{id}: {name} was counted before and is not counted any more")))
        }
        (None, _) => (Outcome::Advisory, Some("counters are new; bless them".into())),
    };
    let (verdict, note) = match (other_platform, verdict) {
        (Some(other), Outcome::CounterRegressed | Outcome::Improved | Outcome::Inconclusive) => {
            (Outcome::Advisory, note.map(|note| format!("{note}; advisory: {other}")))
        }
        _ => (verdict, note),
    };
    let value = |counter: Option<Counter>| counter.map(|counter| counter.max as f64);
    let (base, head) = (value(base), value(head));
    let ratio = head.zip(base).filter(|(_, base)| *base > 0.0).map(|(head, base)| head / base);
    CaseVerdict { ratio, base, head, note, ..CaseVerdict::new(id, name, Channel::Exact, verdict) }
}

fn range(counter: Counter) -> String {
    if counter.min == counter.max { counter.max.to_string() } else { format!("{} to {}", counter.min, counter.max) }
}
