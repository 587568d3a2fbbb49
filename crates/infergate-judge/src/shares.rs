//! How much of its machine a case uses, next to sessions of every machine class. Times of different classes cannot be compared; shares of
//! what a machine can do can. They are shown and decide nothing: docs/evidence/noise.md says how far unchanged ones lie apart.

use std::collections::BTreeSet;

use infergate_receipts::{Baseline, Note, Receipt, Session, Verdict, VerdictRow};

use super::time::{limit_fraction, summary_ns};

/// A note for each time of `verdict` that no limit judged: its share of the hardware's limit, and the range of those in sessions of
/// `baselines` with the same engine, model and thread count. The work is head's, since it belongs to the model and the case.
pub fn shares(verdict: &Verdict, head: &Receipt, baselines: &[Baseline]) -> Vec<Note> {
    let sessions: Vec<(&str, &Session)> = baselines
        .iter()
        .filter(|baseline| baseline.ensure_same_subject(head).is_ok())
        .flat_map(|baseline| baseline.sessions.iter().map(move |session| (&*baseline.machine.class, session)))
        .filter(|(_, session)| session.threads == head.threads)
        .collect();
    let note = |row: &VerdictRow| {
        let share = row.time().filter(|time| time.threshold.is_none())?.limit_fraction?;
        let work = head.cases.iter().find(|record| row.subject == record.id.into())?.work.as_ref();
        let known = sessions.iter().filter_map(|(class, session)| {
            let case = session.cases.iter().find(|case| row.subject == case.id.into())?;
            Some((*class, limit_fraction(work, session.probes.as_ref(), summary_ns(&case.processes))?))
        });
        let (classes, shares): (BTreeSet<&str>, Vec<f64>) = known.unzip();
        let lowest = shares.iter().copied().reduce(f64::min)?;
        let highest = shares.iter().copied().reduce(f64::max)?;
        let (sessions, classes) = (shares.len(), classes.len());
        // One session has no range.
        (sessions > 1).then(|| Note::Share { subject: row.subject.clone(), share, lowest, highest, sessions, classes })
    };
    verdict.rows.iter().filter_map(note).collect()
}
