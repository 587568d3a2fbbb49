//! A verdict file that contradicts itself: a decision that its rows do not give, or a row that its own numbers do not.
//!
//! It may come from a stranger. A report that believed its first field would say `pass` above a table of regressions.

use anyhow::{Result, bail, ensure};
use infergate_core::receipt::limits::in_range;

use super::accept::covers;
use super::verdict::worst;
use super::{Against, Evidence, Note, Outcome, OutputComparison, Reason, Subject, TimeEvidence, Verdict, VerdictRow};

/// No time is longer, nanoseconds.
const MOST_NS: f64 = u64::MAX as f64;

/// Refuses a decision that does not follow from rows and notes, and an exit code that is not the decision's.
///
/// What holds for the whole run stands in no row, so these four need none and may be worse than every row: invalid, partial, not
/// comparable and failed. Nothing may be better.
pub(super) fn ensure_decided_by_rows(verdict: &Verdict) -> Result<()> {
    let (said, rows) = (verdict.verdict, &verdict.rows);
    ensure!(
        verdict.passes_undecided() || verdict.exit_code == said.exit_code(),
        "its exit code {} is not that of its verdict; the file was edited",
        verdict.exit_code
    );
    let is_broken = |note: &Note| matches!(note, Note::Broken { .. } | Note::CutShort { base: false });
    ensure!(
        !verdict.notes.iter().any(is_broken)
            || (verdict.exit_code != 0 && said.severity() >= Outcome::Invalid.severity()),
        "it says {} of a run that broke or was cut short; the file was edited",
        said.words()
    );
    let of_rows = worst(rows, |_| true).unwrap_or(Outcome::Failed);
    let of_run = matches!(said, Outcome::Invalid | Outcome::Partial | Outcome::NotComparable | Outcome::Failed);
    let is_a_row = rows.iter().any(|row| row.outcome == said);
    // Where `undecided` is `warn`, the worst row that noise did not leave open.
    let beside_undecided = || {
        of_rows.is_undecided()
            && worst(rows, |row| !row.passes_undecided()).is_some_and(|worst| worst.severity() == said.severity())
    };
    let follows = match (said.severity(), of_rows.severity()) {
        _ if rows.is_empty() => of_run,
        (0, 0) => said == Outcome::Pass,
        (own, worst) if own == worst => is_a_row || of_run,
        (own, worst) if own > worst => of_run,
        _ => is_a_row && beside_undecided(),
    };
    if follows {
        return Ok(());
    }
    let Some(row) = rows.iter().find(|row| row.outcome.severity() == of_rows.severity()) else {
        bail!("it says {} and has no rows; the file was edited, judge the receipt again", said.words());
    };
    bail!(
        "it says {} and its row {} says {}; the file was edited, judge the receipt again",
        said.words(),
        row.subject,
        row.outcome.words()
    )
}

/// Refuses numbers that no gate gives and that nothing can be made of.
pub(super) fn ensure_row_is_sound(row: &VerdictRow) -> Result<()> {
    match &row.evidence {
        Evidence::Time(time @ TimeEvidence { ratio, interval, .. }) => {
            let times = [time.base_ns, time.head_ns].into_iter().flatten();
            let is_chance = |p: f64| (0.0..=1.0).contains(&p);
            ensure!(
                times.into_iter().all(|ns| (0.0..=MOST_NS).contains(&ns)) && time.p_adjusted.is_none_or(is_chance),
                "{}: its times are none; the file was edited, judge the receipt again",
                row.subject
            );
            let ends = interval.iter().flat_map(|interval| [interval.low, interval.high]);
            ensure!(
                ratio.iter().copied().chain(ends).all(|ratio| ratio.is_finite() && ratio >= 0.0),
                "{}: its ratio is none of times; the file was edited, judge the receipt again",
                row.subject
            );
            Ok(())
        }
        Evidence::Output(output) => {
            let places = [output.position, output.positions].into_iter().flatten();
            in_range(places.map(|place| place as u64), format_args!("{}: place of a token", row.subject))
        }
        Evidence::Counter(counter) => {
            let mut sides = [counter.base, counter.head].into_iter().flatten();
            ensure!(
                sides.all(|side| side.min <= side.max),
                "{}: a count is more than its most; the file was edited, judge the receipt again",
                row.subject
            );
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Refuses a row that passes although what it compared fails. Shown and not judged is no pass.
pub(super) fn ensure_row_agrees(row: &VerdictRow) -> Result<()> {
    if row.outcome.exit_code() != 0 || row.outcome == Outcome::Advisory {
        return Ok(());
    }
    let fails = match &row.evidence {
        evidence if row.outcome == Outcome::Accepted => !is_accepted(row, evidence),
        Evidence::Output(output) => match output.comparison {
            OutputComparison::Changed => true,
            // The place at which two outputs part.
            OutputComparison::Same => output.position.is_some(),
            _ => false,
        },
        // It says why itself.
        Evidence::Time(_) if row.outcome == Outcome::Layout => {
            !row.reasons.iter().any(|reason| matches!(reason, Reason::RunsNothingChanged { .. }))
        }
        Evidence::Time(time) => is_beyond(time, row.outcome),
        // Requests under load are compared by their share of all, which is not in the row.
        Evidence::Counter(_) if matches!(row.subject, Subject::Named(_)) => false,
        Evidence::Counter(counter) => counter.rises(),
        Evidence::Target(target) => target.value.is_none_or(|value| !target.target.is_met_by(value)),
        Evidence::Memory(_) => false,
    };
    ensure!(
        !fails,
        "its row {} says {} and its numbers say otherwise; the file was edited, judge the receipt again",
        row.subject,
        row.outcome.words()
    );
    Ok(())
}

/// Whether one of the row's reasons accepts a change of this size.
fn is_accepted(row: &VerdictRow, evidence: &Evidence) -> bool {
    if matches!((&row.subject, evidence), (Subject::Named(_), Evidence::Counter(_))) {
        return false;
    }
    let accepts = |reason: &Reason| matches!(reason, Reason::Accepted { up_to, .. } if covers(*up_to, evidence));
    row.reasons.iter().any(accepts)
}

/// Whether a time is slower than its outcome allows; most of them allow the limit: on the stored channel by its ratio, in a paired run by its whole interval, since
/// there the blocks decide. What was not timed has no ratio.
fn is_beyond(time: &TimeEvidence, outcome: Outcome) -> bool {
    match outcome {
        Outcome::SameCode => return time.ratio.is_some(),
        Outcome::Improved => return time.ratio.is_some_and(|ratio| ratio >= 1.0),
        // However much it differs, the case runs nothing that changed.
        Outcome::Layout => return false,
        _ => {}
    }
    let least = match time.against {
        Against::Baseline => time.ratio,
        Against::Base => time.interval.map(|interval| interval.low),
    };
    // The limit was made of logarithms.
    least.zip(time.threshold).is_some_and(|(least, limit)| least > limit * (1.0 + 1e-9))
}
