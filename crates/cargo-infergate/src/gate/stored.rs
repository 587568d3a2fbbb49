//! The stored channel: one session's time against the sessions of a committed baseline.
//!
//! The unit is a session, summarised per case by the median of process medians: processes of one hour share its luck, so
//! more of them do not narrow anything. Of each day one session counts ([`newest_of_each_day`]), since those of one day share
//! its luck, too. The limit comes from the spread between these days, as a prediction interval for one more session, and never
//! below the policy's floor.
//!
//! The level holds for days whose logarithms are normal and independent. Rare hours far outside the rest raise several
//! times the alarms (measured in tests/rules/gate/false_alarms.rs), more so while there are few sessions to have shown them.
//!
//! *Noise never overrides regressed.* A case above its limit is regressed even where its own processes scatter beyond the
//! variance limit: its p value rests on the spread between sessions, and otherwise a change that makes a program slower
//! and erratic would end as "unstable". Noise does override `within limit` and `improved`, which a lucky median could
//! feign. Where time is only advisory noise is noted and decides nothing.

use super::{Policy, newest_of_each_day, time};
use crate::receipt::{
    Against, Baseline, CaseRecord, Evidence, Interval, Metric, Outcome, Reason, Receipt, Remedy, Session, Shown,
    TimeEvidence, VerdictRow,
};
use crate::stats::{log_ratio, mean, sample_std, student_t_quantile, student_t_upper_tail};

/// What the sessions of a case allow to be said about one more session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoredLimit {
    /// Days with a session, K.
    pub days: usize,
    /// Mean of the days' log summaries, ln ns.
    pub centre: f64,
    /// Their sample standard deviation, s.
    pub std: f64,
    /// t(K - 1, 1 - alpha / m) s sqrt(1 + 1 / K): half the prediction interval of one more session, natural log.
    pub half_width: f64,
    /// max(ln floor, half width): a log ratio above it is regressed. `limit.exp()` is the ratio that is printed.
    pub limit: f64,
}

/// The limit for one more session of a case, from the summaries (ns) of sessions of different days before it.
///
/// `tests` is m, the number of cases judged together. `None` below `policy.min_sessions`, or for a summary that is not
/// finite and above zero.
pub fn stored_limit(summaries_ns: &[f64], tests: usize, policy: &Policy) -> Option<StoredLimit> {
    let days = summaries_ns.len();
    if days < policy.min_sessions.max(2) || tests == 0 {
        return None;
    }
    let logs: Vec<f64> = summaries_ns.iter().map(|&ns| log_ratio(1.0, ns)).collect::<Option<_>>()?;
    let (centre, std) = (mean(&logs)?, sample_std(&logs)?);
    let t = student_t_quantile(1.0 - policy.alpha / tests as f64, (days - 1) as f64)?;
    let half_width = t * std * (1.0 + 1.0 / days as f64).sqrt();
    Some(StoredLimit { days, centre, std, half_width, limit: half_width.max(policy.stored_floor.ln()) })
}

impl StoredLimit {
    /// The chance that an unchanged program shows a log ratio of `change` or more: one-sided t test of one session against
    /// those of K days. `None` when the sessions do not differ at all.
    pub fn p_value(&self, change: f64) -> Option<f64> {
        let scale = self.std * (1.0 + 1.0 / self.days as f64).sqrt();
        if scale > 0.0 { student_t_upper_tail(change / scale, (self.days - 1) as f64) } else { None }
    }

    /// How `head_ns`, one of `tests` times, lies to this limit: the numbers, and regressed, improved or within the limit.
    pub(super) fn weigh(
        &self,
        time: TimeEvidence,
        head_ns: f64,
        tests: usize,
        policy: &Policy,
    ) -> (TimeEvidence, Outcome) {
        let change = head_ns.ln() - self.centre;
        let beyond = |limit: f64| match () {
            () if change > limit => Some(Shown::Slower),
            () if change < -limit => Some(Shown::Faster),
            () => None,
        };
        let outcome = match beyond(self.limit) {
            Some(Shown::Slower) => Outcome::Regressed,
            Some(Shown::Faster) => Outcome::Improved,
            None => Outcome::WithinLimit,
        };
        let shown = beyond(self.half_width);
        let p = self.p_value(if shown == Some(Shown::Faster) { -change } else { change });
        let tests = tests as f64;
        let level = 1.0 - 2.0 * policy.alpha / tests;
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

/// The time of every case, after its output was judged on the `exact` channel.
pub(super) fn judge(head: &Receipt, base: Option<&Baseline>, policy: &Policy, exact: &[VerdictRow]) -> Vec<VerdictRow> {
    let stored = Stored { head, base, policy };
    let output = |record: &CaseRecord| {
        let is_output = |row: &&VerdictRow| matches!(row.evidence, Evidence::Output(_));
        let row = exact.iter().filter(is_output).find(|row| row.subject == record.id.into());
        row.map_or(Outcome::Invalid, |row| row.outcome)
    };
    head.cases.iter().map(|record| stored.judge(record, output(record))).collect()
}

/// The stored channel for one run.
struct Stored<'a> {
    head: &'a Receipt,
    base: Option<&'a Baseline>,
    policy: &'a Policy,
}

/// What a time alone amounts to.
struct Judged {
    time: TimeEvidence,
    outcome: Outcome,
    reasons: Vec<Reason>,
    remedy: Option<Remedy>,
}

impl Judged {
    fn new(time: TimeEvidence, outcome: Outcome, reasons: Vec<Reason>) -> Self {
        Self { time, outcome, reasons, remedy: None }
    }
}

impl Stored<'_> {
    /// The time of one case, after its `output` was judged.
    fn judge(&self, record: &CaseRecord, output: Outcome) -> VerdictRow {
        let head_ns = time::summary_ns(&record.processes);
        let time = TimeEvidence {
            head_ns,
            cv: time::variation(&record.processes),
            limit_fraction: time::limit_fraction(record.work.as_ref(), self.head.probes.as_ref(), head_ns),
            ..TimeEvidence::new(Metric::gated(record.id), Against::Baseline)
        };
        let judged = match (output, head_ns) {
            (Outcome::Invalid, _) => {
                let what = super::invalid(self.head, record).unwrap_or_else(|| "the run is invalid".into());
                let time = TimeEvidence { cv: None, limit_fraction: None, ..time };
                Judged::new(time, Outcome::Invalid, vec![Reason::Broken { what }])
            }
            (_, None) => {
                let outcome = if self.head.partial { Outcome::Partial } else { Outcome::Invalid };
                let judged = Judged::new(time, outcome, vec![Reason::NotTimed]);
                Judged { remedy: Some(Remedy::MeasureAgain), ..judged }
            }
            (_, Some(head_ns)) => {
                let judged = self.compare(time, record, head_ns);
                if self.head.partial {
                    Judged::new(judged.time, Outcome::Partial, vec![Reason::CutShort])
                } else if output == Outcome::OutputChanged {
                    Judged::new(judged.time, Outcome::Advisory, vec![Reason::OutputChanged])
                } else {
                    judged
                }
            }
        };
        let Judged { time, outcome, reasons, remedy } = judged;
        VerdictRow { reasons, remedy, ..VerdictRow::new(record.id, outcome, Evidence::Time(time)) }
    }

    fn compare(&self, time: TimeEvidence, record: &CaseRecord, head_ns: f64) -> Judged {
        let sessions = self.sessions(record);
        let days = newest_of_each_day(sessions.iter().map(|(session, ns)| (session.created.as_str(), *ns)));
        let (Some(base), Some(base_ns)) = (self.base, geometric_mean(&days)) else {
            let reason = if self.base.is_some() { Reason::NoSession } else { Reason::NoBaseline };
            let judged = Judged::new(time, self.without_baseline(), vec![reason]);
            return Judged { remedy: Some(Remedy::Bless), ..judged };
        };
        let ratio = Some(head_ns / base_ns);
        let counted = (Some(sessions.len()), Some(days.len()));
        let time = TimeEvidence { base_ns: Some(base_ns), ratio, sessions: counted.0, days: counted.1, ..time };
        if base.machine.class != self.head.machine.class {
            return self.elsewhere(time, record, head_ns, &sessions);
        }
        let Some(limit) = stored_limit(&days, self.head.cases.len(), self.policy) else {
            let few = too_few(sessions.len(), days.len(), self.policy);
            let reasons = [Some(few), self.noise(&time)].into_iter().flatten().collect();
            return Judged::new(time, Outcome::Advisory, reasons);
        };
        self.decide(time, &limit, head_ns, record)
    }

    /// Sessions of K days or more of this machine class: the verdict.
    fn decide(&self, time: TimeEvidence, limit: &StoredLimit, head_ns: f64, record: &CaseRecord) -> Judged {
        let noise = self.noise(&time);
        let processes = record.processes.len();
        let few = time.cv.is_none().then_some(Reason::TooFewProcesses { processes });
        let (time, outcome) = limit.weigh(time, head_ns, self.head.cases.len(), self.policy);
        let outcome = if noise.is_some() && outcome != Outcome::Regressed { Outcome::Unstable } else { outcome };
        let reasons = [noise, few, self.shorter_than_sessions(record)].into_iter().flatten().collect();
        Judged::new(time, outcome, reasons)
    }

    /// Another machine class: the ratio is that of fractions of the hardware's limit, and decides nothing.
    fn elsewhere(&self, time: TimeEvidence, record: &CaseRecord, head_ns: f64, sessions: &[(&Session, f64)]) -> Judged {
        let work = record.work.as_ref();
        let head = time::ideal_ns(work, self.head.probes.as_ref()).map(|ideal| head_ns / ideal);
        let base: Vec<f64> = sessions
            .iter()
            .filter_map(|(session, ns)| Some(ns / time::ideal_ns(work, session.probes.as_ref())?))
            .collect();
        let ratio = head.zip(geometric_mean(&base)).map(|(head, base)| head / base);
        let reason = Reason::OtherMachine { normalised: ratio.is_some() };
        Judged::new(TimeEvidence { ratio: ratio.or(time.ratio), ..time }, self.without_baseline(), vec![reason])
    }

    /// How a time ends that has no comparable baseline.
    fn without_baseline(&self) -> Outcome {
        if self.policy.require_baseline { Outcome::NotComparable } else { Outcome::Advisory }
    }

    /// The sessions that measured this case, with their summaries, ns.
    fn sessions<'s>(&'s self, record: &CaseRecord) -> Vec<(&'s Session, f64)> {
        let sessions = self.base.map_or(&[][..], |base| &base.sessions);
        let summary = |session: &'s Session| {
            let case = session.cases.iter().find(|case| case.id == record.id)?;
            Some((session, time::summary_ns(&case.processes)?))
        };
        sessions.iter().filter_map(summary).collect()
    }

    /// A session of fewer processes scatters more than those the limit was made from.
    fn shorter_than_sessions(&self, record: &CaseRecord) -> Option<Reason> {
        let processes = record.processes.len();
        let cases = self.base?.sessions.iter().flat_map(|session| &session.cases);
        let usual = cases.filter(|case| case.id == record.id).map(|case| case.processes.len()).min()?;
        (processes < usual).then_some(Reason::ShorterThanSessions { processes, usual })
    }

    fn noise(&self, time: &TimeEvidence) -> Option<Reason> {
        let limit = self.policy.cv_limit;
        time.cv.filter(|cv| *cv > limit).map(|cv| Reason::Noisy { cv, limit })
    }
}

/// Why time is advisory while there are sessions of fewer days than a limit takes.
pub(super) fn too_few(sessions: usize, days: usize, policy: &Policy) -> Reason {
    Reason::TooFewSessions { sessions, days: Some(days), needed: policy.min_sessions }
}

/// The mean that belongs to ratios. `None` without values, or for one that is not above zero.
pub(super) fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = values.iter().map(|&value| log_ratio(1.0, value)).collect::<Option<_>>()?;
    mean(&logs).map(f64::exp)
}
