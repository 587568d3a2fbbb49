//! What is said of intended changes, and the table that declares one, ready to copy.

use infergate_core::printable::printable;
use serde_json::json;

use super::decided;
use infergate_receipts::{Accept, Evidence, OUTPUT, Outcome, PairedReceipt, Subject, UpTo, Verdict, VerdictRow};

/// Tables that are shown.
const MOST_TABLES: usize = 5;

/// Stands above the tables.
pub const HOW: &str = "If this is intended, add to infergate.toml (it counts for this comparison alone):";

/// The rows that pass because head declares them as intended, in a clause each, for whoever reviews.
pub fn accepted(verdict: &Verdict) -> Vec<String> {
    verdict.rows.iter().filter(|row| row.outcome == Outcome::Accepted).map(decided).collect()
}

/// What no table accepts, and what to do instead; `None` where nothing of that failed.
pub fn why_not(verdict: &Verdict) -> Option<&'static str> {
    let of_row = |row: &VerdictRow| match row.outcome {
        Outcome::Leak => {
            Some("A leak cannot be accepted: free that memory, or raise `--memory-runs` if a cache is still filling.")
        }
        Outcome::TargetMissed => Some("A missed target cannot be accepted: reach it, or merge another one first."),
        // Counts under load have no size.
        Outcome::CounterRegressed if matches!(row.subject, Subject::Load(_)) => {
            Some("A count under load cannot be accepted: fix what changed it.")
        }
        _ => None,
    };
    verdict.rows.iter().find_map(of_row)
}

/// The tables that would let pass what failed, as TOML; `None` where they would not, or where no revision was compared with. Whoever
/// needs more than the first few copies them.
pub fn toml(receipt: &PairedReceipt, verdict: &Verdict) -> Option<String> {
    if receipt.terms.is_none() || verdict.exit_code == 0 || why_not(verdict).is_some() {
        return None;
    }
    let mut tables: Vec<Accept> = Vec::new();
    for wanted in verdict.rows.iter().filter_map(table) {
        // A median and its mean: one table is for both.
        match tables.iter_mut().find(|known| (&known.case, &known.metric) == (&wanted.case, &wanted.metric)) {
            Some(known) => known.up_to = larger(known.up_to, wanted.up_to),
            None => tables.push(wanted),
        }
    }
    let shown: Vec<String> = tables.iter().take(MOST_TABLES).map(text).collect();
    let left = tables.len() - shown.len();
    let more = if left > 0 { format!("\n# and {left} more, likewise\n") } else { String::new() };
    (!shown.is_empty()).then(|| shown.join("\n") + &more)
}

fn larger(one: Option<UpTo>, other: Option<UpTo>) -> Option<UpTo> {
    match (one, other) {
        (Some(UpTo::Percent(one)), Some(UpTo::Percent(other))) => Some(UpTo::Percent(one.max(other))),
        (one, _) => one,
    }
}

/// The table for one row, without its reason. Its size leaves room for the next run of the same change.
fn table(row: &VerdictRow) -> Option<Accept> {
    let (metric, up_to) = match (&row.evidence, row.outcome) {
        (Evidence::Output(_), Outcome::OutputChanged) => (OUTPUT.to_owned(), None),
        (Evidence::Time(time), Outcome::Regressed) => {
            let [change, most] =
                [time.ratio?, time.interval.map_or(1.0, |interval| interval.high)].map(|ratio| (ratio - 1.0) * 1e3);
            // The interval's end, as it is shown, where that accepts the change itself.
            let tenths = if most.round() >= change { most.round() } else { change.ceil() };
            (time.metric.key_in("ns"), Some(UpTo::Percent(tenths.max(1.0) / 10.0)))
        }
        (Evidence::Counter(counter), Outcome::CounterRegressed) => {
            let most = counter.head?.max.saturating_sub(counter.base?.max).max(counter.rise()?);
            (counter.name.clone(), Some(UpTo::Number(most)))
        }
        _ => return None,
    };
    // A name that nobody can read is not copied.
    let is_readable = printable(&row.subject.id()) == row.subject.id() && printable(&metric) == metric;
    is_readable.then(|| Accept { case: row.subject.clone(), metric, up_to, reason: String::new() })
}

/// An empty reason is refused, so that nobody declares a change by copying alone.
fn text(accept: &Accept) -> String {
    // A string of JSON is one of TOML.
    let (case, metric) = (json!(accept.case.spelled()), json!(accept.metric));
    let mut text = format!("[[accept]]\ncase = {case}\nmetric = {metric}\n");
    match accept.up_to {
        Some(UpTo::Number(number)) => text += &format!("up_to = {number}\n"),
        Some(up_to) => text += &format!("up_to = \"{up_to}\"\n"),
        None => {}
    }
    text + "reason = \"\" # say why, for whoever reviews\n"
}
