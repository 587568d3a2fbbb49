//! The thread that the engine works on: requests come in over one channel, tokens go out over one for each request.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;

use infergate::engine::{Event, RequestId, Scheduler, TokenId};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedSender;

/// A request on its way to the engine. One whose receiver is gone is cancelled.
pub struct Job {
    /// At least one token.
    pub prompt: Vec<TokenId>,
    /// Exactly so many.
    pub output_tokens: usize,
    /// Where the tokens go. There are never more than the context holds, so that it needs no limit.
    pub said: UnboundedSender<Said>,
    /// Its place among those that are served or wait; free again when the job ends.
    pub place: OwnedSemaphorePermit,
}

/// What the engine says to one request.
#[derive(Debug)]
pub enum Said {
    /// The next token.
    Token(TokenId),
    /// The end, before the last token, and why, in one line.
    Failed(String),
}

/// How busy the engine is.
#[derive(Debug, Default)]
pub struct Status {
    /// Requests that are served.
    pub in_flight: AtomicUsize,
    /// Requests that wait for a slot.
    pub waiting: AtomicUsize,
    /// The server ends: what is in flight is given up.
    pub ending: AtomicBool,
    /// The engine's thread ended: nobody is served any more.
    pub over: AtomicBool,
}

/// Says that the thread ended, also where the engine made it panic.
struct End(Arc<Status>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

/// Serves `jobs` on `scheduler` until no more can come, first come first served.
pub fn work(scheduler: Box<dyn Scheduler + Send>, jobs: Receiver<Job>, status: Arc<Status>) {
    let _end = End(status.clone());
    let mut desk = Desk { scheduler, waiting: VecDeque::new(), running: HashMap::new(), status };
    loop {
        if desk.is_idle() {
            match jobs.recv() {
                Ok(job) => desk.waiting.push_back(job),
                Err(_) => return,
            }
        }
        desk.waiting.extend(jobs.try_iter());
        if desk.status.ending.load(Ordering::Relaxed) {
            return;
        }
        // A client that is gone must not keep another one's place.
        desk.waiting.retain(|job| !job.said.is_closed());
        desk.admit();
        desk.publish();
        desk.step();
    }
}

struct Desk {
    scheduler: Box<dyn Scheduler + Send>,
    waiting: VecDeque<Job>,
    running: HashMap<RequestId, Running>,
    status: Arc<Status>,
}

/// A job that the scheduler has.
struct Running {
    job: Job,
    /// Tokens so far.
    given_tokens: usize,
}

impl Desk {
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    fn publish(&self) {
        self.status.in_flight.store(self.running.len(), Ordering::Relaxed);
        self.status.waiting.store(self.waiting.len(), Ordering::Relaxed);
    }

    fn admit(&mut self) {
        while self.scheduler.in_flight() < self.scheduler.capacity() {
            let Some(job) = self.waiting.pop_front() else { return };
            match self.scheduler.submit(&job.prompt, job.output_tokens) {
                Ok(request) => drop(self.running.insert(request, Running { job, given_tokens: 0 })),
                Err(error) => fail(job, &error),
            }
        }
    }

    fn step(&mut self) {
        if self.running.is_empty() {
            return;
        }
        match self.scheduler.step() {
            Ok(events) => events.into_iter().for_each(|event| self.hand_over(event)),
            Err(error) => {
                // Nothing is in flight any more. The engine may be able to serve the next ones.
                self.running.drain().for_each(|(_, running)| fail(running.job, &error));
                self.publish();
            }
        }
    }

    fn hand_over(&mut self, event: Event) {
        let Some(running) = self.running.get_mut(&event.request) else { return };
        running.given_tokens += 1;
        if !event.finished {
            if running.job.said.send(Said::Token(event.token)).is_err() {
                self.scheduler.cancel(event.request);
                self.running.remove(&event.request);
                self.publish();
            }
            return;
        }
        let Some(Running { job, given_tokens }) = self.running.remove(&event.request) else { return };
        // The place is free before the client can know that its request ended, or its next one could be refused.
        drop(job.place);
        self.publish();
        let _ = job.said.send(Said::Token(event.token));
        if given_tokens < job.output_tokens {
            let of = job.output_tokens;
            let why = format!(
                "the scheduler ended the request after {given_tokens} of {of} tokens; let it ignore end-of-sequence"
            );
            let _ = job.said.send(Said::Failed(why));
        }
    }
}

fn fail(job: Job, error: &anyhow::Error) {
    drop(job.place);
    let line = format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ");
    let _ = job.said.send(Said::Failed(line));
}
