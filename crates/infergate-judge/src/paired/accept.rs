//! Changes that head declares as intended. A declaration holds for one comparison, up to the size that it names, until base has
//! the same table.

use crate::Policy;
use infergate_core::case::Case;
use infergate_receipts::{
    Accept, Evidence, NoEffect, Note, Outcome, PairedCase, PairedReceipt, Reason, Statistic, UpTo, VerdictRow,
};

/// Accepts the changes that head declares, up to their size. Returns notes for entries without effect.
pub(super) fn apply(rows: &mut [VerdictRow], receipt: &PairedReceipt, policy: &Policy) -> Vec<Note> {
    let Some(terms) = &receipt.terms else { return Vec::new() };
    let in_effect: Vec<&Accept> = terms.in_effect(&policy.accepted_before).collect();
    let stale = terms.accept.iter().filter(|accept| !in_effect.contains(accept));
    let note = |accept: &Accept, why| Note::NotAccepted { accept: accept.clone(), why };
    let mut notes: Vec<Note> = stale.map(|accept| note(accept, NoEffect::Stale)).collect();
    for accept in in_effect {
        let named = rows.iter_mut().filter(|row| accept.names(&row.subject, &row.evidence));
        let mut effects: Vec<AcceptEffect> = Vec::new();
        for row in named {
            // A case's median comes before its mean.
            let median_accepted = effects.contains(&AcceptEffect::Accepted);
            effects.push(if median_accepted {
                mean_of_accepted_median(row, accept, receipt)
            } else {
                effect_on(row, accept, receipt)
            });
        }
        if effects.is_empty() {
            notes.push(note(accept, NoEffect::NothingSuch));
        } else if effects.iter().all(|effect| *effect == AcceptEffect::Unneeded) {
            notes.push(note(accept, NoEffect::NotNeeded));
        }
    }
    notes
}

/// What a table did to a row that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AcceptEffect {
    Accepted,
    /// The row still fails.
    Failed,
    /// The row did not fail.
    Unneeded,
}

fn effect_on(row: &mut VerdictRow, accept: &Accept, receipt: &PairedReceipt) -> AcceptEffect {
    if row.outcome.exit_code() == 0 {
        return AcceptEffect::Unneeded;
    }
    if is_within(row, accept, receipt) {
        row.reasons.push(Reason::Accepted { up_to: accept.up_to, reason: accept.reason.trim().to_owned() });
        (row.outcome, row.remedy) = (Outcome::Accepted, None);
        return AcceptEffect::Accepted;
    }
    // Only a regression can be a larger change: other rows broke or were cut short.
    if matches!(row.outcome, Outcome::Regressed | Outcome::CounterRegressed) {
        row.reasons.push(Reason::BeyondAccepted { up_to: accept.up_to });
    }
    AcceptEffect::Failed
}

/// The mean of a case whose median is accepted. It may exceed the accepted change by a mean's own limit at most, so that a stall
/// does not pass. This also holds if it was not judged because the median failed first.
fn mean_of_accepted_median(row: &mut VerdictRow, accept: &Accept, receipt: &PairedReceipt) -> AcceptEffect {
    let is_mean = row.time().is_some_and(|time| time.statistic == Statistic::Mean);
    let has_failed = is_mean && row.outcome == Outcome::Regressed;
    if !has_failed && !row.reasons.contains(&Reason::MedianRegressed) {
        return effect_on(row, accept, receipt);
    }
    let is_stall = row.time().is_none_or(|time| {
        let percent = if let Some(UpTo::Percent(percent)) = accept.up_to { Some(percent) } else { None };
        let most = percent.zip(time.threshold).map(|(percent, limit)| (1.0 + percent / 100.0) * limit);
        most.zip(time.ratio).is_none_or(|(most, ratio)| ratio > most)
    });
    if !is_stall {
        if has_failed {
            (row.outcome, row.reasons, row.remedy) = (Outcome::Advisory, vec![Reason::MedianRegressed], None);
        }
        return AcceptEffect::Unneeded;
    }
    row.outcome = Outcome::Regressed;
    row.reasons = vec![Reason::SomeSlower, Reason::BeyondAccepted { up_to: accept.up_to }];
    AcceptEffect::Failed
}

/// Whether all that keeps the row from passing is a change of the accepted size.
fn is_within(row: &VerdictRow, accept: &Accept, receipt: &PairedReceipt) -> bool {
    let is_small = accept.covers(&row.evidence);
    match (row.outcome, &row.evidence) {
        (Outcome::Regressed, Evidence::Time(_)) | (Outcome::CounterRegressed, Evidence::Counter(_)) => is_small,
        // An undecided time is accepted if its whole interval is.
        (Outcome::Inconclusive | Outcome::Unstable, Evidence::Time(time)) => {
            let mut worst = time.clone();
            worst.ratio = time.interval.map(|interval| interval.high);
            is_small && accept.covers(&Evidence::Time(worst))
        }
        // An untimed case could be slower unseen.
        (Outcome::OutputChanged, Evidence::Output(_)) => {
            let is_own = |id: Case| row.subject == id.into();
            let is_timed = |case: &PairedCase| is_own(case.id) && (case.timed || receipt.is_same_code_of(case.id));
            let is_untimed_length = receipt.other_lengths.iter().any(|length| is_own(length.id));
            is_small && (is_untimed_length || receipt.cases.iter().any(is_timed))
        }
        _ => false,
    }
}
