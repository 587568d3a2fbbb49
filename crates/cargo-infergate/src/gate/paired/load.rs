//! What has no noise under load: requests that fail, and requests that a server lets starve.

use crate::receipt::{
    Counter, CounterEvidence, Evidence, Name, Outcome, PairedReceipt, Reason, Side, Subject, Unit, VerdictRow,
    WindowRecord,
};
use crate::stats::clopper_pearson;

use super::looks::{LEVEL, Series, outcomes};
use super::verdict::series;

type Count = fn(&WindowRecord) -> u64;

const COUNTS: [(&str, Count); 2] =
    [("failed_requests", WindowRecord::failed), ("starved_requests", |window| window.starved)];

/// Two rows for each level.
pub(super) fn rows(receipt: &PairedReceipt) -> Vec<VerdictRow> {
    let windows: Vec<&WindowRecord> = receipt.blocks.iter().flat_map(|block| &block.windows).collect();
    let mut levels: Vec<(&str, u32)> = Vec::new();
    for window in &windows {
        if !levels.contains(&(&window.scenario, window.users)) {
            levels.push((&window.scenario, window.users));
        }
    }
    let tests = levels.len() * COUNTS.len();
    let of_level = |(scenario, users): (&str, u32)| {
        let of_level: Vec<&WindowRecord> =
            windows.iter().copied().filter(|window| window.scenario == scenario && window.users == users).collect();
        let plural = if users == 1 { "" } else { "s" };
        let subject = Name::new("load", &format!("{scenario}/{users} user{plural}"));
        let subject = subject.map_or(Subject::Process, Subject::Named);
        COUNTS.map(|count| row(subject.clone(), count, &of_level, tests))
    };
    levels.into_iter().flat_map(of_level).collect()
}

/// Whether a number under load is regressed, or a count of its requests is.
pub(super) fn is_decided(receipt: &PairedReceipt) -> bool {
    // Of servers that run already blocks alone decide nothing.
    if receipt.servers.is_some() || receipt.cases.iter().all(|case| case.load.is_none()) {
        return false;
    }
    let suite: Vec<Series> = series(&receipt.cases, &receipt.blocks).into_iter().map(|(_, series)| series).collect();
    outcomes(&suite).contains(&Some(Outcome::Regressed))
        || rows(receipt).iter().any(|row| row.outcome == Outcome::CounterRegressed)
}

fn row(subject: Subject, (name, count): (&str, Count), windows: &[&WindowRecord], tests: usize) -> VerdictRow {
    let of_side = |side: Side| {
        let own = windows.iter().filter(|window| window.side == side);
        own.fold((0_u64, 0_u64), |(hits, issued), window| {
            (hits.saturating_add(count(window)), issued.saturating_add(window.issued))
        })
    };
    let (base, head) = (of_side(Side::Base), of_side(Side::Head));
    let counter = |(hits, _): (u64, u64)| Some(Counter { min: hits, max: hits });
    let evidence = Evidence::Counter(CounterEvidence {
        name: name.into(),
        unit: Unit::Number,
        base: counter(base),
        head: counter(head),
        tolerance: 0.0,
    });
    let share = |(hits, issued): (u64, u64)| hits as f64 / issued.max(1) as f64;
    if share(head) <= share(base) {
        return VerdictRow::new(subject, Outcome::Pass, evidence);
    }
    // What never happened in base is new; else head must have more than both counts leave open.
    let confidence = 1.0 - 2.0 * LEVEL / tests.max(1) as f64;
    let least = clopper_pearson(head.0, head.1, confidence).map(|(low, _)| low);
    let most = clopper_pearson(base.0, base.1, confidence).map(|(_, high)| high);
    let is_more = base.0 == 0 || least.zip(most).is_some_and(|(least, most)| least > most);
    let outcome = if is_more { Outcome::CounterRegressed } else { Outcome::Advisory };
    let reason = Reason::MoreFail { failed: head.0, issued: head.1, most_before: share(base) };
    VerdictRow::new(subject, outcome, evidence).because(reason)
}
