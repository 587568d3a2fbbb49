//! Which requests of a level count, and until when its load is kept: [`Phases`]. Pure.
//!
//! A level has three phases. Before: a ramp and warm-up, until the load is what was asked for; the schedule of an open loop goes on
//! until its first requests have ended, for it finds an empty server. Then the requests that are measured start. Behind the last of
//! them the load goes on, with requests that do not count, until every measured one has ended. So each measured request ran at
//! full load to its last token. A request is chosen by its start: choosing by ends would leave out long answers.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::{Arrivals, Failure, FailureClass, RequestRecord, Stop};

/// A stretch of a run, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Its begin.
    pub from_ns: u64,
    /// Its end, after its begin.
    pub to_ns: u64,
}

impl Window {
    /// The same on a clock that started `offset_ns` earlier.
    #[must_use]
    pub fn later(self, offset_ns: u64) -> Self {
        Self { from_ns: self.from_ns.saturating_add(offset_ns), to_ns: self.to_ns.saturating_add(offset_ns) }
    }
}

/// Where a level is. Times are nanoseconds since it began.
#[derive(Debug)]
pub struct Phases {
    stop: Stop,
    ramp_ns: u64,
    warm_up: WarmUp,
    keeps_on: bool,
    /// When the load became what was asked for.
    from_ns: Option<u64>,
    /// Measured requests that started, and those of them that did not end yet.
    measured: u64,
    open: u64,
    last_end_ns: u64,
    longest_ns: u64,
    /// Open loop: when the schedule's first request behind the measured ones starts. Until then the rate is that of their starts.
    next_ns: u64,
    /// When the load ended before its time.
    stopped_ns: Option<u64>,
}

#[derive(Debug)]
enum WarmUp {
    /// Closed loop: so many requests of each user, and the users that have not ended theirs.
    Users { requests: u64, cold: u64, ended: HashMap<u32, u64> },
    /// Open loop: so many of the schedule's first requests behind the ramp are left, those of them in flight by number, and when
    /// the last one ended.
    Schedule { left: u64, open: HashSet<u64>, ended_ns: u64 },
}

impl Phases {
    /// A level that begins with `warm_up_requests` of each user, or of the schedule, and with a ramp of `ramp_ns`, in which nothing is
    /// measured.
    pub fn new(arrivals: Arrivals, stop: Stop, warm_up_requests: u64, ramp_ns: u64) -> Self {
        let warm_up = match arrivals {
            Arrivals::Closed { users } => {
                let cold = if warm_up_requests == 0 { 0 } else { u64::from(users) };
                WarmUp::Users { requests: warm_up_requests, cold, ended: HashMap::new() }
            }
            Arrivals::Open { .. } => WarmUp::Schedule { left: warm_up_requests, open: HashSet::new(), ended_ns: 0 },
        };
        let is_warm = matches!(warm_up, WarmUp::Users { cold: 0, .. });
        Self {
            stop,
            ramp_ns,
            warm_up,
            keeps_on: false,
            from_ns: is_warm.then_some(ramp_ns),
            measured: 0,
            open: 0,
            last_end_ns: 0,
            longest_ns: 0,
            next_ns: 0,
            stopped_ns: None,
        }
    }

    /// Beside other clients, who may still measure when this one is done: it keeps the load for as long again as its longest
    /// measured request took.
    #[must_use]
    pub fn beside_others(mut self) -> Self {
        self.keeps_on = true;
        self
    }

    /// Lets `request` start at `start_ns`, and says whether it is measured. `None`: the load is over.
    pub fn start(&mut self, request: u64, start_ns: u64) -> Option<bool> {
        if self.is_over(start_ns) {
            return None;
        }
        if let WarmUp::Schedule { left, open, ended_ns } = &mut self.warm_up {
            if start_ns < self.ramp_ns {
                return Some(false);
            }
            if *left > 0 {
                *left -= 1;
                open.insert(request);
                return Some(false);
            }
            if !open.is_empty() || start_ns < *ended_ns {
                return Some(false);
            }
            self.from_ns.get_or_insert(start_ns);
        }
        let is_full = self.from_ns.is_some_and(|from_ns| start_ns >= from_ns);
        let is_measured = is_full && !self.has_all(start_ns);
        self.measured += u64::from(is_measured);
        self.open += u64::from(is_measured);
        Some(is_measured)
    }

    /// Notes the end of a request, well or not.
    pub fn ended(&mut self, record: &RequestRecord, ended_ns: u64) {
        match &mut self.warm_up {
            WarmUp::Users { requests, cold, ended } if *cold > 0 => {
                let own = ended.entry(record.user).or_default();
                *own += 1;
                *cold -= u64::from(*own == *requests);
                if *cold == 0 {
                    self.from_ns = Some(ended_ns.max(self.ramp_ns));
                }
            }
            WarmUp::Users { .. } => {}
            WarmUp::Schedule { open, ended_ns: last_ns, .. } => {
                if open.remove(&record.request) {
                    *last_ns = ended_ns.max(*last_ns);
                }
            }
        }
        if record.measured {
            self.open = self.open.saturating_sub(1);
            self.last_end_ns = self.last_end_ns.max(ended_ns);
            self.longest_ns = self.longest_ns.max(record.ended_ns.saturating_sub(record.scheduled_ns));
        }
    }

    /// The load ends at `at_ns`, whatever is measured: nobody can keep it any longer.
    pub fn stop(&mut self, at_ns: u64) {
        self.stopped_ns.get_or_insert(at_ns);
    }

    /// Whether the request that comes next, at `at_ns`, does not start: all that count have ended, or the load was stopped.
    pub fn is_over(&mut self, at_ns: u64) -> bool {
        let is_schedule = matches!(self.warm_up, WarmUp::Schedule { .. });
        if is_schedule && self.next_ns == 0 && self.measured > 0 && self.has_all(at_ns) {
            self.next_ns = at_ns;
        }
        self.stopped_ns.is_some_and(|stopped_ns| at_ns >= stopped_ns)
            || (self.has_all(at_ns) && self.open == 0 && at_ns >= self.kept_until_ns())
    }

    /// Whether no measured request is in flight.
    pub fn is_idle(&self) -> bool {
        self.open == 0
    }

    /// How long the longest measured request took.
    pub fn longest_ns(&self) -> u64 {
        self.longest_ns
    }

    /// Once the level is over: the time in which the load was what was asked for, until it needed to be no more or was stopped.
    /// `None` where that is no time.
    pub fn window(&self) -> Option<Window> {
        let from_ns = self.from_ns.filter(|_| self.measured > 0)?;
        let to_ns = self.kept_until_ns().max(self.next_ns).min(self.stopped_ns.unwrap_or(u64::MAX));
        (from_ns < to_ns).then_some(Window { from_ns, to_ns })
    }

    /// Whether every request that is to be measured has started, for one that would start at `at_ns`.
    fn has_all(&self, at_ns: u64) -> bool {
        match self.stop {
            Stop::Requests { count } => self.measured >= count,
            Stop::Duration { ns } => self.from_ns.is_some_and(|from_ns| at_ns >= from_ns.saturating_add(ns)),
        }
    }

    fn kept_until_ns(&self) -> u64 {
        let more_ns = if self.keeps_on && self.measured > 0 { self.longest_ns } else { 0 };
        self.last_end_ns.saturating_add(more_ns)
    }
}

/// Takes the mark of what did not run at full load to its end, where the load ended early: that request, and all that started
/// with or after it.
pub fn unmark(records: &mut [RequestRecord], window: Option<Window>) {
    let until_ns = window.map_or(0, |window| {
        let is_given_up = |failure: &Failure| failure.class == FailureClass::Cancelled;
        let is_cut = |record: &&RequestRecord| {
            record.ended_ns > window.to_ns || record.failure.as_ref().is_some_and(is_given_up)
        };
        let cut = records.iter().filter(|record| record.measured).filter(is_cut);
        cut.map(|record| record.scheduled_ns).min().unwrap_or(u64::MAX)
    });
    for record in records {
        record.measured &= record.scheduled_ns < until_ns;
    }
}
