//! Runs one level: users or a schedule, until every measured request has ended, and then what is in flight.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use infergate_core::load::{Failure, FailureClass, Phases, RequestRecord, Starts, unmark};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinSet, spawn_local, yield_now};
use tokio::time::{Instant, sleep, sleep_until};

use crate::api::failures::failure;
use crate::client::connection::Connection;
use crate::client::endpoint::Endpoint;
use crate::client::stamped::RunClock;
use crate::plan::ramp::ramped_ns;
use crate::plan::{LoadPlan, REQUEST_WEIGHT, Turn};
use crate::receipt::LevelRecord;
use crate::targets::Outcome;
use crate::targets::live::Live;

/// The least time from the start of a request that failed to its user's next one: else a server that refuses everything would get requests
/// without pause.
const AFTER_FAILURE: Duration = Duration::from_millis(100);
/// How often the level looks whether it was asked to end.
const LOOK: Duration = Duration::from_millis(50);
/// A timer wakes up to two milliseconds late, which would be in the latency of each request of a schedule: the last stretch before a start
/// is spent awake.
const AWAKE: Duration = Duration::from_millis(2);
/// Starts that are closer to the one before are left to the timer: the client would be awake for more than a tenth of the time, and
/// is judged by how much it computes.
const AWAKE_FROM_NS: u64 = 20_000_000;
/// When all measured requests have ended, those after them are awaited for as long as the longest measured one took, and this
/// much more: a server that does not notice the end of a connection would carry them into the next level.
const PATIENCE_NS: u64 = 1_000_000_000;

/// A level while it runs.
struct Level {
    endpoints: Rc<[Endpoint]>,
    plan: LoadPlan,
    clock: RunClock,
    began_ns: u64,
    live: Arc<Live>,
    cancelled: watch::Sender<bool>,
    /// Requests of this shard.
    issued: Cell<u64>,
    phases: RefCell<Phases>,
    /// A request ended.
    ended: Notify,
    /// What is in flight is given up then, on the run's clock.
    give_up_ns: Cell<u64>,
    /// It ended early, since no more records can be kept.
    is_full: Cell<bool>,
}

/// Runs `plan` against `endpoints`, which conversations go to in turn, within a `LocalSet`. When `live` is cancelled, it gives up what is in
/// flight. The client's own processor time is not in the record.
pub async fn run_level(endpoints: Rc<[Endpoint]>, plan: LoadPlan, clock: RunClock, live: Arc<Live>) -> Outcome {
    let level = Rc::new(Level {
        endpoints,
        phases: RefCell::new(plan.phases()),
        plan,
        clock,
        began_ns: clock.now_ns(),
        live,
        cancelled: watch::Sender::new(false),
        issued: Cell::new(0),
        ended: Notify::new(),
        give_up_ns: Cell::new(u64::MAX),
        is_full: Cell::new(false),
    });
    let watched = level.clone();
    let watcher = spawn_local(async move {
        while !watched.live.is_cancelled() && watched.clock.now_ns() < watched.give_up_ns.get() {
            sleep(LOOK).await;
        }
        watched.stop();
        watched.cancelled.send_replace(true);
    });
    let mut requests = match level.plan.arrivals.starts(level.plan.seed) {
        Some(starts) => open(&level, starts).await,
        None => closed(&level).await,
    };
    watcher.abort();
    requests.sort_unstable_by_key(|record| record.request);
    let steady = level.phases.borrow().window().map(|window| window.later(level.began_ns));
    unmark(&mut requests, steady);
    let plan = &level.plan;
    let (arrivals, stop, warm_up_requests) = plan.own();
    let record = LevelRecord {
        scenario: plan.scenario,
        arrivals,
        whole: (!plan.shard.is_whole()).then_some(plan.arrivals),
        stop,
        warm_up_requests,
        ramp_ns: plan.ramp_ns,
        steady,
        began_ns: level.began_ns,
        wall_ns: clock.now_ns() - level.began_ns,
        client_cpu_ns: None,
        received: None,
        requests,
        batch: None,
    };
    Outcome { level: record, is_full: level.is_full.get() }
}

/// Users, each of whom waits for the answer to a request before the next.
async fn closed(level: &Rc<Level>) -> Vec<RequestRecord> {
    let LoadPlan { arrivals, shard, ramp_ns, .. } = level.plan;
    let users = arrivals.users().unwrap_or(0);
    let mut running = JoinSet::new();
    for user in (0..users).filter(|user| shard.has(u64::from(*user))) {
        // One after the other, the first at once.
        let start_ns = level.began_ns + ramp_ns / u64::from(users) * u64::from(user);
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
    loop {
        let request = level.next_number();
        if turn == 0 {
            conversation = request;
        }
        // Made before it starts: making it takes some time.
        let order = level.order(Turn { request, conversation, turn }, target);
        let start_ns = level.clock.now_ns();
        let Some(measured) = level.next_request(start_ns) else { return records };
        let record = level.run_request(order, measured, user, start_ns, &mut connections[target]).await;
        let failed = record.failure.is_some();
        records.push(record);
        turn = if failed { 0 } else { (turn + 1) % level.plan.shape.turns.max(1) };
        if turn == 0 {
            target = (target + 1) % connections.len();
        }
        if failed {
            level.unless_cancelled(sleep_until(level.clock.at(start_ns) + AFTER_FAILURE)).await;
        }
    }
}

/// Requests by a schedule. Connections that are open and idle are used again, the last one first.
async fn open(level: &Rc<Level>, starts: Starts) -> Vec<RequestRecord> {
    let targets = level.endpoints.len() as u64;
    let idle: Rc<[RefCell<Vec<Connection>>]> = level.endpoints.iter().map(|_| RefCell::default()).collect();
    let mut running = JoinSet::new();
    let turns = u64::from(level.plan.shape.turns.max(1));
    let shard = level.plan.shard;
    let mut last_ns = 0;
    for (request, start_ns) in (0..).zip(starts).filter(|(number, _)| shard.has(*number)) {
        let scheduled_ns = level.began_ns.saturating_add(ramped_ns(start_ns, level.plan.ramp_ns));
        let turn = (request % turns) as u32;
        // Made before it starts: making it takes some time.
        let target = (request / turns % targets) as usize;
        let order = level.order(Turn { request, conversation: request - u64::from(turn), turn }, target);
        level.wait_for_start(scheduled_ns, scheduled_ns - last_ns >= AWAKE_FROM_NS).await;
        last_ns = scheduled_ns;
        let Some(measured) = level.next_request(scheduled_ns) else { break };
        let (level, idle) = (level.clone(), idle.clone());
        running.spawn_local(async move {
            let mut connection = idle[target].borrow_mut().pop();
            let record = level.run_request(order, measured, 0, scheduled_ns, &mut connection).await;
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
    /// The number in the whole load of the next request.
    fn next_number(&self) -> u64 {
        self.plan.shard.number(self.issued.get())
    }

    /// Counts the next request, and gives whether it is measured; `None` if none may start at `start_ns`.
    fn next_request(&self, start_ns: u64) -> Option<bool> {
        let own = self.issued.get();
        let kept = self.live.seen().pieces + REQUEST_WEIGHT * own;
        let is_full = kept >= self.plan.max_kept;
        if *self.cancelled.borrow() {
            return None;
        }
        let (mut phases, start_ns) = (self.phases.borrow_mut(), self.since_begin(start_ns));
        if is_full && !phases.is_over(start_ns) {
            self.is_full.set(true);
            phases.stop(start_ns);
        }
        let measured = phases.start(self.next_number(), start_ns)?;
        self.issued.set(own + 1);
        Some(measured)
    }

    /// Waits until `start_ns`, in the end awake where `is_awake`, or until no request will start then.
    async fn wait_for_start(&self, start_ns: u64, is_awake: bool) {
        let due = start_at(self.clock.at(start_ns), is_awake);
        tokio::pin!(due);
        while !self.phases.borrow_mut().is_over(self.since_begin(start_ns)) {
            tokio::select! {
                biased;
                due = self.unless_cancelled(&mut due) => {
                    if due.is_none() {
                        self.stop();
                    }
                    return;
                }
                () = self.ended.notified() => {}
            }
        }
    }

    /// Ends the load before its time.
    fn stop(&self) {
        self.phases.borrow_mut().stop(self.since_begin(self.clock.now_ns()));
    }

    fn since_begin(&self, ns: u64) -> u64 {
        ns.saturating_sub(self.began_ns)
    }

    /// Notes the end of a request. After the last measured one also notes how long the others are awaited; and of a target that never
    /// answered, that it refuses requests.
    fn note_end(&self, record: &RequestRecord) {
        let now_ns = self.clock.now_ns();
        let mut phases = self.phases.borrow_mut();
        phases.ended(record, self.since_begin(now_ns));
        if phases.is_over(self.since_begin(now_ns)) && self.give_up_ns.get() == u64::MAX {
            self.give_up_ns.set(now_ns + phases.longest_ns() + PATIENCE_NS);
        }
        self.ended.notify_one();
        self.live.ended(record.failure.is_some());
        let answered = &self.endpoints[record.target as usize].answered;
        match &record.failure {
            None => answered.set(true),
            Some(Failure { class: FailureClass::Status4xx | FailureClass::Tls, detail, .. }) if !answered.get() => {
                _ = self.live.refused.set((record.target, detail.clone()));
            }
            Some(_) => {}
        }
    }

    fn order(&self, turn: Turn, target: usize) -> Order {
        let (prompt, output_tokens) = self.plan.ask(turn);
        let body = self.endpoints[target].template.body(&prompt, output_tokens).into();
        Order { request: turn.request, target, body, output_tokens }
    }

    async fn run_request(
        &self,
        order: Order,
        measured: bool,
        user: u32,
        scheduled_ns: u64,
        connection: &mut Option<Connection>,
    ) -> RequestRecord {
        let mut record = RequestRecord {
            request: order.request,
            user,
            scenario: self.plan.scenario,
            measured,
            target: order.target as u32,
            scheduled_ns,
            sent_ns: self.clock.now_ns(),
            ..RequestRecord::default()
        };
        self.live.sent();
        let run = (self.clock, &*self.live);
        let sent = self.endpoints[order.target].request(order.body, order.output_tokens, connection, &mut record, run);
        let outcome = self
            .unless_cancelled(sent)
            .await
            .unwrap_or_else(|| Err(failure(FailureClass::Cancelled, "the level ended first")));
        if let Err(failure) = outcome {
            record.ended_ns = self.clock.now_ns();
            record.failure = Some(failure);
        }
        self.note_end(&record);
        record
    }

    /// What `work` gives; `None` where the level is given up first.
    async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut cancelled = self.cancelled.subscribe();
        tokio::select! {
            biased;
            done = work => Some(done),
            _ = cancelled.wait_for(|cancelled| *cancelled) => None,
        }
    }
}

/// Waits until `at`, in the end awake where `is_awake`. A clock that stands meanwhile, as in tests, is moved by timers alone.
async fn start_at(at: Instant, is_awake: bool) {
    let mut moves = is_awake;
    sleep_until(if moves { at.checked_sub(AWAKE).unwrap_or(at) } else { at }).await;
    while Instant::now() < at {
        let now = Instant::now();
        if moves {
            yield_now().await
        } else {
            sleep_until(at).await
        }
        moves = moves && Instant::now() > now;
    }
}
