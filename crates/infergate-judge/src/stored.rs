//! The stored channel: one session's time against the sessions of a committed baseline.
//!
//! The unit is a session, summarised per case by the median of process medians: processes of one hour share its conditions, so
//! more of them do not narrow anything. One session of each day counts ([`newest_of_each_day`](super::newest_of_each_day)), since
//! sessions of one day share its conditions, too. The limit comes from the spread between these days, as a prediction interval
//! for one more session, and never below a floor of 10 %.
//!
//! A change that moves the times on purpose is a step. One more session is compared only with the days after the last step; all
//! segments between steps tell how much days differ. Otherwise a step would count as spread, and losing a gain again would go
//! unseen.
//!
//! The level holds for days whose logarithms are normal and independent. Rare hours far outside the rest multiply the false
//! failures (measured in tests/rules/gate/false_alarms.rs), more so if too few sessions have shown such hours.
//!
//! *Noise never overrides regressed.* A case above its limit is regressed even if its own processes scatter beyond the variance
//! limit: its p value rests on the spread between sessions, and otherwise a change that makes a program slower and erratic would
//! end as "unstable". Noise does override `within limit` and `improved`, which a median can reach by chance. If time is only
//! advisory, noise is noted and decides nothing.

use super::exact::other_class;
use super::policy::{ALPHA, CV_LIMIT, MIN_SESSIONS, Policy, STORED_FLOOR};
use super::{newest_per_day_by_segment, segments, time};
use infergate_core::case::Case;
use infergate_core::stats::{log_ratio, mean, sample_std, student_t_quantile, student_t_upper_tail};
use infergate_receipts::{
    Against, Baseline, CaseRecord, Evidence, Interval, Metric, Outcome, ProcessSamples, Reason, Receipt, Remedy,
    Session, Shown, Subject, TimeEvidence, VerdictRow,
};

/// The limit of one more session of a case, from its earlier sessions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoredLimit {
    /// Days with a session after the last step, K.
    pub days: usize,
    /// Degrees of freedom of `std`: the number of all days less one for each segment between steps, f.
    pub freedom: usize,
    /// Mean of the K days' log summaries, ln ns.
    pub centre: f64,
    /// Standard deviation of days around the mean of their segment, s.
    pub std: f64,
    /// t(f, 1 - alpha / m) s sqrt(1 + 1 / K): half the prediction interval of one more session, natural log.
    pub half_width: f64,
    /// max(ln floor, half width): a log ratio above it is regressed. `limit.exp()` is the ratio that is printed.
    pub limit: f64,
}

/// The limit for one more session of a case, from the summaries (ns) of sessions of earlier days, by segment between steps.
///
/// `tests` is m, the number of cases judged together. `None` if too few days show how much days differ (`spread_days` below
/// [`MIN_SESSIONS`]), or if a summary is not finite and above zero.
pub fn stored_limit(segments_ns: &[Vec<f64>], tests: usize) -> Option<StoredLimit> {
    let days = segments_ns.last()?.len();
    if spread_days(segments_ns) < MIN_SESSIONS || tests == 0 {
        return None;
    }
    let segments: Vec<Vec<f64>> = segments_ns.iter().map(|days| logs(days)).collect::<Option<_>>()?;
    let centre = mean(segments.last()?)?;
    let squares = segments.iter().filter_map(|logs| Some(sample_std(logs)?.powi(2) * (logs.len() - 1) as f64));
    let freedom = spread_days(segments_ns) - 1;
    let std = (squares.sum::<f64>() / freedom as f64).sqrt();
    let t = student_t_quantile(1.0 - ALPHA / tests as f64, freedom as f64)?;
    let half_width = t * std * (1.0 + 1.0 / days as f64).sqrt();
    Some(StoredLimit { days, freedom, centre, std, half_width, limit: half_width.max(STORED_FLOOR.ln()) })
}

/// The times (ns) of a case in the sessions with this thread count; other thread counts are not comparable. Each has its segment
/// and its time of creation.
fn known(sessions: &[Session], id: Case, threads: usize) -> Vec<(usize, &str, f64)> {
    let segments = segments(sessions.iter().map(|session| session.step));
    let alike = segments.zip(sessions).filter(|(_, session)| session.threads == threads);
    let times = alike.filter_map(|(segment, session)| {
        let case = session.cases.iter().find(|case| case.id == id)?;
        Some((segment, session.created.as_str(), time::summary_ns(&case.processes)?))
    });
    times.collect()
}

/// Equivalent number of days without a step: each segment after the first loses one for its mean.
fn spread_days(segments: &[Vec<f64>]) -> usize {
    let days: usize = segments.iter().map(Vec::len).sum();
    (days + 1).saturating_sub(segments.len().max(1))
}

impl StoredLimit {
    /// The chance that an unchanged program shows a log ratio of `change` or more: one-sided t test of one session against
    /// those of K days. `None` when the sessions do not differ at all.
    fn p_value(&self, change: f64) -> Option<f64> {
        let scale = self.std * (1.0 + 1.0 / self.days as f64).sqrt();
        if scale > 0.0 { student_t_upper_tail(change / scale, self.freedom as f64) } else { None }
    }

    /// Compares `head_ns`, one of `tests` times, with this limit: the numbers, and regressed, improved or within the limit.
    fn compare(&self, time: TimeEvidence, head_ns: f64, tests: usize) -> (TimeEvidence, Outcome) {
        let change = head_ns.ln() - self.centre;
        let beyond = |limit: f64| {
            if change > limit {
                Some(Shown::Slower)
            } else if change < -limit {
                Some(Shown::Faster)
            } else {
                None
            }
        };
        let outcome = match beyond(self.limit) {
            Some(Shown::Slower) => Outcome::Regressed,
            Some(Shown::Faster) => Outcome::Improved,
            None => Outcome::WithinLimit,
        };
        let shown = beyond(self.half_width);
        let p = self.p_value(if shown == Some(Shown::Faster) { -change } else { change });
        let tests = tests as f64;
        let level = 1.0 - 2.0 * ALPHA / tests;
        let time = TimeEvidence {
            interval: Interval::of_logs(change - self.half_width, change + self.half_width, level),
            shown,
            p_adjusted: p.map(|p| (p * tests).min(1.0)),
            threshold: Some(self.limit.exp()),
            ..time
        };
        (time, outcome)
    }
}

/// The stored channel for one run, of a suite or of load.
pub(super) struct StoredJudge<'a> {
    pub policy: &'a Policy,
    pub has_base: bool,
    /// The reason, if the baseline is of another machine class.
    pub elsewhere: Option<Reason>,
    /// Times that are judged together.
    pub tests: usize,
}

impl StoredJudge<'_> {
    /// The outcome of a time without a comparable baseline.
    pub(super) fn without_baseline(&self) -> Outcome {
        if self.policy.require_baseline { Outcome::NotComparable } else { Outcome::Advisory }
    }

    /// `time` with the numbers of `sessions`, each a segment, a time of creation and a time (ns).
    pub(super) fn with_baseline(&self, time: TimeEvidence, sessions: &[(usize, &str, f64)]) -> TimeEvidence {
        let segments = newest_per_day_by_segment(sessions);
        // The geometric mean, since times are compared as ratios.
        let base_ns = segments.last().and_then(|days| Some(mean(&logs(days)?)?.exp()));
        let ratio = time.head_ns.zip(base_ns).map(|(head, base)| head / base).filter(|ratio| ratio.is_finite());
        // Sessions after the last step, then the days of all segments.
        let since = sessions.iter().filter(|(segment, ..)| Some(segment) == sessions.last().map(|(last, ..)| last));
        let all_days: usize = segments.iter().map(Vec::len).sum();
        let spread_days = (segments.len() > 1).then_some(all_days);
        let days = segments.last().map(Vec::len);
        TimeEvidence { base_ns, ratio, sessions: Some(since.count()), days, spread_days, ..time }
    }

    /// The verdict on `time`, which has the numbers of [`with_baseline`](Self::with_baseline). `scatter` is the reason if its own
    /// processes vary too much, or are too few to tell.
    pub(super) fn judge(
        &self,
        subject: Subject,
        time: TimeEvidence,
        sessions: &[(usize, &str, f64)],
        scatter: Option<Reason>,
    ) -> VerdictRow {
        let row = |time, outcome, reasons: Vec<Reason>| VerdictRow {
            reasons,
            ..VerdictRow::new(subject, outcome, Evidence::Time(time))
        };
        let (Some(head_ns), Some(_)) = (time.head_ns, time.base_ns) else {
            let reason = if self.has_base { Reason::NoSession } else { Reason::NoBaseline };
            return row(time, self.without_baseline(), vec![reason]).with_remedy(Remedy::Bless);
        };
        if let Some(elsewhere) = &self.elsewhere {
            return row(time, self.without_baseline(), vec![elsewhere.clone()]);
        }
        let is_noisy = matches!(scatter, Some(Reason::Noisy { .. }));
        let segments = newest_per_day_by_segment(sessions);
        let Some(limit) = stored_limit(&segments, self.tests) else {
            let days = segments.iter().map(Vec::len).sum();
            let needed = MIN_SESSIONS + days - spread_days(&segments);
            let few = Reason::TooFewSessions { sessions: sessions.len(), days, needed };
            return row(time, Outcome::Advisory, [few].into_iter().chain(scatter.filter(|_| is_noisy)).collect());
        };
        let (time, outcome) = limit.compare(time, head_ns, self.tests);
        let outcome = if is_noisy && outcome != Outcome::Regressed { Outcome::Unstable } else { outcome };
        row(time, outcome, scatter.into_iter().collect())
    }
}

/// The time of every case of a suite, after its output was judged on the `exact` channel.
pub(super) fn judge(head: &Receipt, base: Option<&Baseline>, policy: &Policy, exact: &[VerdictRow]) -> Vec<VerdictRow> {
    let elsewhere = base.and_then(|base| other_class(&base.machine, &head.machine));
    let stored = StoredJudge { policy, has_base: base.is_some(), elsewhere, tests: head.cases.len() };
    let sessions = base.map_or(&[][..], |base| &base.sessions);
    let of_case = |record: &CaseRecord| {
        let head_ns = time::summary_ns(&record.processes);
        let time = TimeEvidence { head_ns, ..TimeEvidence::new(Metric::gated(record.id), Against::Baseline) };
        if let Some(what) = super::invalid(head, record) {
            let row = VerdictRow::new(record.id, Outcome::Invalid, Evidence::Time(time));
            return row.because(Reason::Broken { what });
        }
        let time = TimeEvidence {
            cv: time::variation(&time::process_medians(&record.processes, ProcessSamples::times_ns)),
            limit_fraction: time::limit_fraction(record.work.as_ref(), head.probes.as_ref(), head_ns),
            ..time
        };
        if head_ns.is_none() {
            let outcome = if head.partial { Outcome::Partial } else { Outcome::Invalid };
            let row = VerdictRow::new(record.id, outcome, Evidence::Time(time));
            return row.because(Reason::NotTimed).with_remedy(Remedy::MeasureAgain);
        }
        let known = known(sessions, record.id, head.threads);
        let scatter = match time.cv {
            None => Some(Reason::TooFewProcesses { processes: record.processes.len() }),
            Some(cv) => (cv > CV_LIMIT).then_some(Reason::Noisy { cv, limit: CV_LIMIT }),
        };
        let time = if known.is_empty() { time } else { stored.with_baseline(time, &known) };
        let row = stored.judge(record.id.into(), time, &known, scatter);
        let is_changed = |row: &VerdictRow| row.outcome == Outcome::OutputChanged && row.subject == record.id.into();
        let (outcome, reason) = match (head.partial, exact.iter().any(is_changed)) {
            (true, _) => (Outcome::Partial, Reason::CutShort),
            (false, true) => (Outcome::Advisory, Reason::OutputChanged),
            (false, false) => return row,
        };
        VerdictRow { outcome, reasons: vec![reason], remedy: None, ..row }
    };
    head.cases.iter().map(of_case).collect()
}

/// ln of each time. `None` if one is not above zero.
fn logs(times_ns: &[f64]) -> Option<Vec<f64>> {
    times_ns.iter().map(|&ns| log_ratio(1.0, ns)).collect()
}
