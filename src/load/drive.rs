//! Puts a load on a scheduler and notes what became of each request.

use std::collections::{HashMap, VecDeque};

use anyhow::{Context, Result, bail, ensure};

use super::{Arrivals, Failure, FailureClass, LevelPlan, Phases, RequestRecord, Starts, Window, unmark};
use crate::engine::{Event, RequestId, Scheduler, TokenId};
use infergate_core::clock::Clock;
use infergate_core::printable::printable_within;
use infergate_core::receipt::output_sha256;

/// Of an engine's error, in a record.
const MOST_DETAIL_CHARS: usize = 200;

/// One request to send.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// Its prompt.
    pub prompt: Vec<TokenId>,
    /// Exactly so many output tokens.
    pub output_tokens: usize,
    /// Index of its scenario.
    pub scenario: u32,
}

/// What became of a load. Every request that was issued has a record: completed, failed or cancelled.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Driven {
    /// By their number. One that was never sent has `sent_ns` where it was given up.
    pub records: Vec<RequestRecord>,
    /// The output ids of each record.
    pub outputs: Vec<Vec<TokenId>>,
    /// The time in which the load was what was asked for; `None` where it never was.
    pub steady: Option<Window>,
    /// Most requests that one step worked on.
    pub largest_batch: usize,
    /// The error that ended the run, in one line.
    pub failure: Option<String>,
}

/// Drives `scheduler` until every measured request ended, or the engine failed. Requests are taken first come
/// first served; those without a free slot wait, and their latency goes on from the scheduled start.
///
/// `ask` gives the request of a number, from 0; `None`: there is none any more, whatever the stop rule says. It is asked at the
/// request's start, which takes microseconds and counts as its own time.
///
/// # Errors
/// For a scheduler without room; an engine that fails is a part of the answer.
pub fn drive(
    scheduler: &mut dyn Scheduler,
    clock: &dyn Clock,
    plan: &LevelPlan,
    ask: &mut dyn FnMut(u64) -> Option<Ask>,
) -> Result<Driven> {
    ensure!(scheduler.capacity() > 0, "the scheduler has no room for any request; make it for at least one");
    let starts = plan.arrivals.starts(plan.seed);
    let phases = Phases::new(plan.arrivals, plan.stop, plan.warm_up_requests, 0);
    let origin_ns = clock.now_ns();
    let mut driver = Driver {
        scheduler,
        clock,
        plan,
        ask,
        origin_ns,
        next_start_ns: None,
        starts,
        phases,
        over: false,
        waiting: VecDeque::new(),
        running: HashMap::new(),
        driven: Driven::default(),
    };
    let outcome = driver.run();
    driver.end(outcome.err().map(|error| printable_within(&format!("{error:#}"), MOST_DETAIL_CHARS).into_owned()));
    Ok(driver.driven)
}

struct Driver<'a, 'b> {
    scheduler: &'a mut dyn Scheduler,
    clock: &'a dyn Clock,
    plan: &'a LevelPlan,
    ask: &'b mut dyn FnMut(u64) -> Option<Ask>,
    origin_ns: u64,
    starts: Option<Starts>,
    phases: Phases,
    /// Of the open loop's next request.
    next_start_ns: Option<u64>,
    /// No further request starts.
    over: bool,
    /// Issued and without a slot: indices of records.
    waiting: VecDeque<(usize, Ask)>,
    running: HashMap<RequestId, Running>,
    driven: Driven,
}

#[derive(Clone, Copy)]
struct Running {
    /// Of its record.
    place: usize,
    output_tokens: usize,
}

impl Driver<'_, '_> {
    fn run(&mut self) -> Result<()> {
        match self.plan.arrivals {
            Arrivals::Closed { users } => {
                for user in 0..users {
                    self.issue(user, 0);
                }
            }
            Arrivals::Open { .. } => self.next_start_ns = self.starts.as_mut().and_then(Iterator::next),
        }
        loop {
            self.issue_due();
            self.admit()?;
            if self.over && self.phases.is_idle() {
                return Ok(());
            }
            match self.next_start_ns.filter(|_| !self.over) {
                _ if !self.running.is_empty() => self.step()?,
                Some(start_ns) => self.clock.spin_until_ns(self.origin_ns.saturating_add(start_ns)),
                None => return Ok(()),
            }
        }
    }

    /// Nanoseconds since the run began.
    fn now_ns(&self) -> u64 {
        self.clock.now_ns().saturating_sub(self.origin_ns)
    }

    /// Lets a request start at `scheduled_ns`, unless the load is over.
    fn issue(&mut self, user: u32, scheduled_ns: u64) {
        let request = self.driven.records.len() as u64;
        if self.over || self.phases.is_over(scheduled_ns) {
            self.over = true;
            return;
        }
        let Some(ask) = (self.ask)(request) else {
            self.phases.stop(scheduled_ns);
            self.over = true;
            return;
        };
        let measured = self.phases.start(request, scheduled_ns).unwrap_or(false);
        self.driven.records.push(RequestRecord {
            request,
            user,
            scenario: ask.scenario,
            measured,
            scheduled_ns,
            chunk_ns: Vec::with_capacity(ask.output_tokens),
            input_tokens: Some(ask.prompt.len() as u64),
            ..RequestRecord::default()
        });
        self.driven.outputs.push(Vec::with_capacity(ask.output_tokens));
        self.waiting.push_back((self.driven.records.len() - 1, ask));
    }

    /// Issues what the open loop's schedule has due.
    fn issue_due(&mut self) {
        let now_ns = self.now_ns();
        while let Some(start_ns) = self.next_start_ns.filter(|start_ns| !self.over && *start_ns <= now_ns) {
            self.issue(0, start_ns);
            self.next_start_ns = self.starts.as_mut().and_then(Iterator::next);
        }
        // A schedule that is over must not be waited for.
        if let Some(next_ns) = self.next_start_ns {
            self.over |= self.phases.is_over(next_ns);
        }
    }

    /// Hands waiting requests over while there are free slots.
    fn admit(&mut self) -> Result<()> {
        while self.scheduler.in_flight() < self.scheduler.capacity() {
            let Some((place, ask)) = self.waiting.pop_front() else { return Ok(()) };
            let sent_ns = self.now_ns();
            let submitted = self.scheduler.submit(&ask.prompt, ask.output_tokens);
            if submitted.is_err() {
                // It is given up with the others that wait.
                self.waiting.push_front((place, ask.clone()));
            }
            let id = submitted.context("the engine does not take a request")?;
            self.driven.records[place].sent_ns = sent_ns;
            let running = Running { place, output_tokens: ask.output_tokens };
            ensure!(
                self.running.insert(id, running).is_none(),
                "the scheduler gave one request's number twice; give each its own"
            );
        }
        ensure!(
            self.waiting.is_empty() || !self.running.is_empty(),
            "the scheduler has no free slot though nothing is in flight; free it when a request ends"
        );
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        self.driven.largest_batch = self.driven.largest_batch.max(self.running.len());
        let before_ns = self.now_ns();
        let events = self.scheduler.step()?;
        let now_ns = self.now_ns();
        // One that takes time may give something later; one that does not never will.
        ensure!(
            !events.is_empty() || now_ns > before_ns,
            "the scheduler gave no token though {} requests are in flight",
            self.running.len()
        );
        let mut freed = Vec::new();
        for event in events {
            freed.extend(self.note(event, now_ns)?);
        }
        freed.sort_by_key(|place| self.driven.records[*place].ended_ns);
        // All ends first: whoever is free may not be needed any more.
        for place in &freed {
            let record = &self.driven.records[*place];
            self.phases.ended(record, record.ended_ns);
        }
        if let Arrivals::Closed { .. } = self.plan.arrivals {
            for place in freed {
                let record = &self.driven.records[place];
                self.issue(record.user, record.ended_ns);
            }
        }
        Ok(())
    }

    /// Notes one token. Its request's place, where it was the last.
    fn note(&mut self, event: Event, now_ns: u64) -> Result<Option<usize>> {
        let Some(&Running { place, output_tokens }) = self.running.get(&event.request) else {
            bail!("the scheduler gave a token of a request that is not in flight");
        };
        let (record, output) = (&mut self.driven.records[place], &mut self.driven.outputs[place]);
        ensure!(
            event.index == output.len(),
            "the scheduler gave token {} of a request where token {} comes next",
            event.index + 1,
            output.len() + 1
        );
        output.push(event.token);
        let last = output.len() == output_tokens;
        ensure!(
            event.finished == last,
            "the scheduler is wrong about token {} of {output_tokens} being a request's last",
            output.len()
        );
        let earliest_ns = record.chunk_ns.last().copied().unwrap_or(record.sent_ns);
        let at_ns = now_ns.saturating_sub(event.age_ns).max(earliest_ns);
        record.chunk_ns.push(at_ns);
        if !last {
            return Ok(None);
        }
        record.ended_ns = at_ns;
        self.running.remove(&event.request);
        Ok(Some(place))
    }

    /// Gives up what did not end, and completes the records.
    fn end(&mut self, failure: Option<String>) {
        let ended_ns = self.now_ns();
        if failure.is_some() {
            self.phases.stop(ended_ns);
        }
        let because = |class, detail: &str| Some(Failure { class, status: None, detail: detail.to_owned() });
        for (id, running) in std::mem::take(&mut self.running) {
            let record = &mut self.driven.records[running.place];
            record.ended_ns = ended_ns;
            record.failure = match &failure {
                Some(error) => because(FailureClass::Engine, error),
                None => because(FailureClass::Cancelled, "the level was over while it was in flight"),
            };
            self.scheduler.cancel(id);
        }
        for (place, _) in std::mem::take(&mut self.waiting) {
            let record = &mut self.driven.records[place];
            (record.sent_ns, record.ended_ns) = (ended_ns, ended_ns);
            record.failure = because(FailureClass::Cancelled, "the level was over before it was sent");
        }
        self.driven.failure = failure;
        self.driven.steady = self.phases.window();
        unmark(&mut self.driven.records, self.driven.steady);
        for (record, output) in self.driven.records.iter_mut().zip(&self.driven.outputs) {
            record.output_tokens = Some(output.len() as u64);
            record.output_sha256 = record.failure.is_none().then(|| output_sha256(output));
        }
    }
}
