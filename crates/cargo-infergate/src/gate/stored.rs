//! The stored channel: one session's time against the sessions of a committed baseline.
//!
//! The unit is a session, summarised per case by the median of process medians: processes of one hour share its luck, so
//! more of them do not narrow anything. The limit comes from the spread of the sessions, as a prediction interval for one
//! more session, and never below the policy's floor.
//!
//! The level holds for sessions whose logarithms are normal and independent. Rare hours far outside the rest raise several
//! times the alarms (measured in tests/gate/false_alarms.rs), more so while there are few sessions to have shown them.
//!
//! *Noise never overrides regressed.* A case above its limit is regressed even where its own processes scatter beyond the
//! variance limit: its p value rests on the spread between sessions, and otherwise a change that makes a program slower
//! and erratic would end as "unstable". Noise does override `within limit` and `improved`, which a lucky median could
//! feign. Where time is only advisory noise is noted and decides nothing.

use crate::receipt::{Baseline, CaseRecord, CaseVerdict, Channel, Metric, Outcome, Receipt, Session};
use crate::stats::{log_ratio, mean, sample_std, student_t_quantile, student_t_upper_tail};

use super::{Policy, exact, time};

/// What the sessions of a case allow to be said about one more session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoredLimit {
    /// Sessions, K.
    pub sessions: usize,
    /// Mean of the sessions' log summaries, ln ns.
    pub centre: f64,
    /// Their sample standard deviation, s.
    pub std: f64,
    /// t(K - 1, 1 - alpha / m) s sqrt(1 + 1 / K): half the prediction interval of one more session, natural log.
    pub half_width: f64,
    /// max(ln floor, half width): a log ratio above it is regressed. `limit.exp()` is the ratio that is printed.
    pub limit: f64,
}

/// The limit for one more session of a case, from the summaries (ns) of the sessions before it.
///
/// `tests` is m, the number of cases judged together. `None` below `policy.min_sessions`, or for a summary that is not
/// finite and above zero.
pub fn stored_limit(summaries_ns: &[f64], tests: usize, policy: &Policy) -> Option<StoredLimit> {
    let sessions = summaries_ns.len();
    if sessions < policy.min_sessions.max(2) || tests == 0 {
        return None;
    }
    let logs: Vec<f64> = summaries_ns.iter().map(|&ns| log_ratio(1.0, ns)).collect::<Option<_>>()?;
    let (centre, std) = (mean(&logs)?, sample_std(&logs)?);
    let t = student_t_quantile(1.0 - policy.alpha / tests as f64, (sessions - 1) as f64)?;
    let half_width = t * std * (1.0 + 1.0 / sessions as f64).sqrt();
    Some(StoredLimit { sessions, centre, std, half_width, limit: half_width.max(policy.stored_floor.ln()) })
}

impl StoredLimit {
    /// The chance that an unchanged program shows a log ratio of `change` or more: one-sided t test of one session against
    /// K. `None` when the sessions do not differ at all.
    pub fn p_value(&self, change: f64) -> Option<f64> {
        let scale = self.std * (1.0 + 1.0 / self.sessions as f64).sqrt();
        if scale > 0.0 { student_t_upper_tail(change / scale, (self.sessions - 1) as f64) } else { None }
    }
}

/// The time of every case, after its output was judged on the `exact` channel.
pub(super) fn judge(
    head: &Receipt,
    base: Option<&Baseline>,
    policy: &Policy,
    exact: &[CaseVerdict],
) -> Vec<CaseVerdict> {
    let stored = Stored { head, base, policy };
    let output = |record: &CaseRecord| {
        let row = exact.iter().find(|row| row.metric == exact::OUTPUT && row.id == record.id.to_string());
        row.map_or(Outcome::Invalid, |row| row.verdict)
    };
    head.cases.iter().map(|record| stored.judge(record, output(record))).collect()
}

/// The stored channel for one run.
struct Stored<'a> {
    head: &'a Receipt,
    base: Option<&'a Baseline>,
    policy: &'a Policy,
}

impl Stored<'_> {
    /// The time of one case, after its `output` was judged.
    fn judge(&self, record: &CaseRecord, output: Outcome) -> CaseVerdict {
        let head_ns = time::summary_ns(&record.processes);
        let row = CaseVerdict {
            head: head_ns,
            cv: time::variation(&record.processes),
            limit_fraction: time::limit_fraction(record.work.as_ref(), self.head.probes.as_ref(), head_ns),
            ..CaseVerdict::time(record.id, Metric::of(&record.id), Channel::Stored, Outcome::Advisory)
        };
        let note = |row: CaseVerdict, verdict, note: String| CaseVerdict { verdict, note: Some(note), ..row };
        match (output, head_ns) {
            (Outcome::Invalid, _) => {
                let reason = super::invalid(self.head, record).unwrap_or_else(|| "the run is invalid".into());
                CaseVerdict { cv: None, limit_fraction: None, ..note(row, Outcome::Invalid, reason) }
            }
            (_, None) => {
                note(row, no_time(self.head.partial), format!("{}: nothing was timed; measure again", record.id))
            }
            (_, Some(head_ns)) => {
                let row = self.compare(row, record, head_ns);
                if self.head.partial {
                    note(row, Outcome::Partial, "the run was cut short: not judged".into())
                } else if output == Outcome::OutputChanged {
                    let why = "the output changed, so its time is not judged: a faster wrong answer is a failure";
                    note(row, Outcome::Advisory, why.into())
                } else {
                    row
                }
            }
        }
    }

    fn compare(&self, row: CaseVerdict, record: &CaseRecord, head_ns: f64) -> CaseVerdict {
        let sessions = self.sessions(record);
        let summaries: Vec<f64> = sessions.iter().map(|(_, ns)| *ns).collect();
        let (Some(base), Some(base_ns)) = (self.base, geometric_mean(&summaries)) else {
            let verdict = if self.policy.require_baseline { Outcome::NotComparable } else { Outcome::Advisory };
            let note = if self.base.is_some() { "the baseline has no session of this case" } else { "no baseline" };
            return CaseVerdict { verdict, note: Some(format!("{note}: time is advisory; bless one")), ..row };
        };
        let row = CaseVerdict { base: Some(base_ns), ratio: Some(head_ns / base_ns), ..row };
        if base.machine.class != self.head.machine.class {
            return self.elsewhere(row, record, head_ns, &sessions);
        }
        let Some(limit) = stored_limit(&summaries, self.head.cases.len(), self.policy) else {
            let missing = self.policy.min_sessions.saturating_sub(summaries.len());
            let noise = self.noise(&row).map(|noise| format!("; {noise}")).unwrap_or_default();
            let note = format!(
                "{} of {} sessions: time is advisory, {missing} are missing{noise}",
                summaries.len(),
                self.policy.min_sessions
            );
            return CaseVerdict { note: Some(note), ..row };
        };
        self.decide(row, &limit, head_ns, record)
    }

    /// K sessions or more of this machine class: the verdict.
    fn decide(&self, row: CaseVerdict, limit: &StoredLimit, head_ns: f64, record: &CaseRecord) -> CaseVerdict {
        let change = head_ns.ln() - limit.centre;
        let noise = self.noise(&row);
        let verdict = match () {
            () if change > limit.limit => Outcome::Regressed,
            () if noise.is_some() => Outcome::Unstable,
            () if change < -limit.limit => Outcome::Improved,
            () => Outcome::WithinLimit,
        };
        let tests = self.head.cases.len() as f64;
        let few = row.cv.is_none().then(|| format!("{} processes: too few for a CV", record.processes.len()));
        let short = self.shorter_than_sessions(record);
        let notes: Vec<String> = [noise, few, short].into_iter().flatten().collect();
        CaseVerdict {
            verdict,
            ci_low: Some((change - limit.half_width).exp()),
            ci_high: Some((change + limit.half_width).exp()),
            p_adjusted: limit.p_value(change).map(|p| (p * tests).min(1.0)),
            threshold: Some(limit.limit.exp()),
            note: (!notes.is_empty()).then(|| notes.join("; ")),
            ..row
        }
    }

    /// Another machine class: the ratio is that of fractions of the hardware's limit, and decides nothing.
    fn elsewhere(
        &self,
        row: CaseVerdict,
        record: &CaseRecord,
        head_ns: f64,
        sessions: &[(&Session, f64)],
    ) -> CaseVerdict {
        let verdict = if self.policy.require_baseline { Outcome::NotComparable } else { Outcome::Advisory };
        let work = record.work.as_ref();
        let head = time::ideal_ns(work, self.head.probes.as_ref()).map(|ideal| head_ns / ideal);
        let base: Vec<f64> = sessions
            .iter()
            .filter_map(|(session, ns)| Some(ns / time::ideal_ns(work, session.probes.as_ref())?))
            .collect();
        let ratio = head.zip(geometric_mean(&base)).map(|(head, base)| head / base);
        let note = match ratio {
            Some(_) => "another machine class: advisory, ratio normalised by the probes",
            None => "another machine class: advisory, and not normalised, as probes or work are missing",
        };
        CaseVerdict { verdict, ratio: ratio.or(row.ratio), note: Some(note.into()), ..row }
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
    fn shorter_than_sessions(&self, record: &CaseRecord) -> Option<String> {
        let is = record.processes.len();
        let cases = self.base?.sessions.iter().flat_map(|session| &session.cases);
        let was = cases.filter(|case| case.id == record.id).map(|case| case.processes.len()).min()?;
        (is < was)
            .then(|| format!("{is} processes against {was} or more in the baseline's sessions: expect more scatter"))
    }

    fn noise(&self, row: &CaseVerdict) -> Option<String> {
        let cv = row.cv.filter(|cv| *cv > self.policy.cv_limit)?;
        Some(format!("CV {:.0} % is above the limit of {:.0} %", cv * 100.0, self.policy.cv_limit * 100.0))
    }
}

fn no_time(partial: bool) -> Outcome {
    if partial { Outcome::Partial } else { Outcome::Invalid }
}

fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = values.iter().map(|&value| log_ratio(1.0, value)).collect::<Option<_>>()?;
    mean(&logs).map(f64::exp)
}
