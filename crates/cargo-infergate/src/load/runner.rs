//! Runs one level: users or a schedule, until the stop rule holds and all that is in flight has ended.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use infergate::load::{Arrivals, FailureClass, RequestRecord, Starts, Stop};
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_local};
use tokio::time::{sleep, sleep_until};

use super::client::Endpoint;
use super::connection::Connection;
use super::failures::failure;
use super::live::Live;
use super::plan::{LevelPlan, REQUEST_WEIGHT, Turn};
use super::ramp::{ramped_ns, user_start_ns};
use super::stamped::RunClock;
use crate::receipt::MAX_REQUESTS;

/// A user whose request failed waits before the next one: a server that refuses everything would be asked without pause.
const AFTER_FAILURE: Duration = Duration::from_millis(100);
/// How often the level looks whether it was asked to end.
const LOOK: Duration = Duration::from_millis(50);

/// What a level gave.
#[derive(Debug, Default)]
pub struct Ran {
    /// Each request, in the order of their starts.
    pub records: Vec<RequestRecord>,
    /// When the level began, on the run's clock.
    pub began_ns: u64,
    /// How long it took.
    pub wall_ns: u64,
    /// It ended early, because it kept as much as it may.
    pub is_full: bool,
}

struct Level {
    endpoints: Rc<[Endpoint]>,
    plan: LevelPlan,
    clock: RunClock,
    began_ns: u64,
    live: Arc<Live>,
    cancelled: watch::Receiver<bool>,
    /// Requests of this shard.
    issued: Cell<u64>,
    is_full: Cell<bool>,
}

/// Runs `plan` against `endpoints`, which conversations go to in turn, within a `LocalSet`. Asked to end by `live`, it gives up what is in flight.
pub async fn run_level(endpoints: Rc<[Endpoint]>, plan: LevelPlan, clock: RunClock, live: Arc<Live>) -> Ran {
    let (cancel, cancelled) = watch::channel(false);
    let watched = live.clone();
    let watcher = spawn_local(async move {
        while !watched.is_cancelled() {
            sleep(LOOK).await;
        }
        let _ = cancel.send(true);
        // Kept alive: a sender that is gone looks like a cancelled level.
        std::future::pending::<()>().await;
    });
    let began_ns = clock.now_ns();
    let (issued, is_full) = (Cell::new(0), Cell::new(false));
    let level = Rc::new(Level { endpoints, plan, clock, began_ns, live, cancelled, issued, is_full });
    let mut records = match (level.plan.arrivals.starts(level.plan.seed), level.plan.arrivals) {
        (Some(starts), _) => open(&level, starts).await,
        (None, Arrivals::Closed { users }) => closed(&level, users).await,
        (None, Arrivals::Open { .. }) => Vec::new(),
    };
    watcher.abort();
    records.sort_unstable_by_key(|record| record.request);
    Ran { records, began_ns, wall_ns: clock.now_ns() - began_ns, is_full: level.is_full.get() }
}

async fn closed(level: &Rc<Level>, users: u32) -> Vec<RequestRecord> {
    let (shard, ramp_ns) = (level.plan.shard, level.plan.ramp_ns);
    let mut running = JoinSet::new();
    for user in (0..users).filter(|user| shard.has(u64::from(*user))) {
        let start_ns = level.began_ns.saturating_add(user_start_ns(user.into(), users.into(), ramp_ns));
        running.spawn_local(one_user(level.clone(), user, start_ns));
    }
    running.join_all().await.concat()
}

/// One user: a request at `start_ns`, and the next when it ends.
async fn one_user(level: Rc<Level>, user: u32, start_ns: u64) -> Vec<RequestRecord> {
    let mut records = Vec::new();
    if level.plan.ramp_ns > 0 && level.unless_cancelled(sleep_until(level.clock.at(start_ns))).await.is_none() {
        return records;
    }
    let mut connections: Vec<Option<Connection>> = level.endpoints.iter().map(|_| None).collect();
    let (mut conversation, mut turn) = (0, 0);
    // Users begin with different targets, so that each has as many at any moment.
    let mut target = user as usize % connections.len();
    while let Some(request) = level.next_request(level.clock.now_ns()) {
        if turn == 0 {
            conversation = request;
        }
        let order = level.order(Turn { request, conversation, turn }, target);
        let record = level.one(order, user, level.clock.now_ns(), &mut connections[target]).await;
        let failed = record.failure.is_some();
        records.push(record);
        turn = (turn + 1) % level.plan.shape.turns.max(1);
        if failed {
            turn = 0;
        }
        if turn == 0 {
            target = (target + 1) % connections.len();
        }
        if failed {
            level.unless_cancelled(sleep(AFTER_FAILURE)).await;
        }
    }
    records
}

/// Requests by a schedule. Connections that are open and idle are used again, the last one first.
async fn open(level: &Rc<Level>, starts: Starts) -> Vec<RequestRecord> {
    let targets = level.endpoints.len() as u64;
    let idle: Rc<[RefCell<Vec<Connection>>]> = level.endpoints.iter().map(|_| RefCell::default()).collect();
    let mut running = JoinSet::new();
    let turns = u64::from(level.plan.shape.turns.max(1));
    let shard = level.plan.shard;
    for (_, start_ns) in (0..).zip(starts).filter(|(number, _)| shard.has(*number)) {
        let scheduled_ns = level.began_ns.saturating_add(ramped_ns(start_ns, level.plan.ramp_ns));
        let Some(request) = level.next_request(scheduled_ns) else { break };
        let turn = u32::try_from(request % turns).unwrap_or(0);
        // Made before its time comes: making it takes some.
        let target = (request / turns % targets) as usize;
        let order = level.order(Turn { request, conversation: request - u64::from(turn), turn }, target);
        let until = sleep_until(level.clock.at(scheduled_ns));
        if level.unless_cancelled(until).await.is_none() {
            level.issued.set(level.issued.get() - 1);
            break;
        }
        let (level, idle) = (level.clone(), idle.clone());
        running.spawn_local(async move {
            let mut connection = idle[target].borrow_mut().pop();
            let record = level.one(order, 0, scheduled_ns, &mut connection).await;
            idle[target].borrow_mut().extend(connection);
            record
        });
    }
    running.join_all().await
}

/// A request that is ready to be sent.
struct Order {
    request: u64,
    target: usize,
    body: bytes::Bytes,
    output_tokens: u32,
}

impl Level {
    /// The number in the whole load of the next request, if one may start at `at_ns`.
    fn next_request(&self, at_ns: u64) -> Option<u64> {
        let own = self.issued.get();
        let kept = self.live.seen().pieces + REQUEST_WEIGHT * own;
        let is_full = own >= MAX_REQUESTS as u64 || kept >= self.plan.max_kept;
        let is_over = match self.plan.shard.stop(self.plan.stop) {
            Stop::Requests { count } => own >= count,
            Stop::Duration { ns } => at_ns.saturating_sub(self.began_ns) >= ns,
        };
        if is_full && !is_over {
            self.is_full.set(true);
        }
        if is_full || is_over || *self.cancelled.borrow() {
            return None;
        }
        self.issued.set(own + 1);
        Some(self.plan.shard.number(own))
    }

    fn order(&self, turn: Turn, target: usize) -> Order {
        let (prompt, output_tokens) = self.plan.ask(turn);
        let body = self.endpoints[target].wanted.body(&prompt, output_tokens);
        Order { request: turn.request, target, body, output_tokens }
    }

    async fn one(
        &self,
        order: Order,
        user: u32,
        scheduled_ns: u64,
        connection: &mut Option<Connection>,
    ) -> RequestRecord {
        let mut record = RequestRecord {
            request: order.request,
            user,
            scenario: self.plan.scenario,
            target: u32::try_from(order.target).unwrap_or(u32::MAX),
            scheduled_ns,
            sent_ns: self.clock.now_ns(),
            ..RequestRecord::default()
        };
        self.live.sent();
        let run = (self.clock, &*self.live);
        let sent = self.endpoints[order.target].request(order.body, order.output_tokens, connection, &mut record, run);
        let outcome = self.unless_cancelled(sent).await;
        let outcome = outcome.unwrap_or_else(|| Err(failure(FailureClass::Cancelled, "the run ended first")));
        if let Err(failure) = outcome {
            record.ended_ns = self.clock.now_ns();
            record.failure = Some(failure);
        }
        self.live.ended(record.failure.is_some());
        record
    }

    /// What `work` gives; `None` where the level is given up first.
    async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut cancelled = self.cancelled.clone();
        tokio::select! {
            biased;
            done = work => Some(done),
            _ = cancelled.wait_for(|cancelled| *cancelled) => None,
        }
    }
}
