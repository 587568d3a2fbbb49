//! Made-up servers: queues whose truth is known from a very long run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use infergate_core::load::{Arrivals, RequestRecord};

use infergate_receipts::LevelRecord;

/// Mean time of service.
const SERVICE_NS: f64 = 100e6;

/// A server with `slots`, each of which serves a request in a time of mean 100 ms.
#[derive(Debug, Clone, Copy)]
pub struct Server {
    pub slots: usize,
    /// The part of a service that is the same for each request; the rest is exponential.
    pub fixed: f64,
}

/// What puts load on it.
#[derive(Debug, Clone, Copy)]
pub enum Load {
    /// Poisson arrivals at this part of what the server can do.
    Open(f64),
    /// So many users.
    Closed(u32),
}

/// A server at work: what it did goes on from one stretch of requests to the next.
pub struct Queue {
    server: Server,
    load: Load,
    random: fastrand::Rng,
    free_ns: BinaryHeap<Reverse<u64>>,
    users_ns: BinaryHeap<Reverse<(u64, u32)>>,
    now_ns: u64,
    number: u64,
}

impl Queue {
    /// One that has served 3,000 requests.
    pub fn warm(server: Server, load: Load, seed: u64) -> Self {
        let users = if let Load::Closed(users) = load { users } else { 0 };
        let mut queue = Self {
            server,
            load,
            random: fastrand::Rng::with_seed(seed),
            free_ns: (0..server.slots).map(|_| Reverse(0)).collect(),
            users_ns: (0..users).map(|user| Reverse((0, user))).collect(),
            now_ns: 0,
            number: 0,
        };
        queue.by_ref().take(3_000).for_each(drop);
        queue
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.random.f64()).ln()
    }

    /// The next `requests` as a level, without warm-up.
    pub fn level(&mut self, requests: usize) -> LevelRecord {
        let arrivals = match self.load {
            Load::Closed(users) => Arrivals::Closed { users },
            Load::Open(_) => Arrivals::Open { requests_per_s: 1.0, spacing: infergate_core::load::Spacing::Poisson },
        };
        let records: Vec<RequestRecord> = self.by_ref().take(requests).collect();
        // The queue goes on behind them: each ran under its load to the end.
        let last_end_ns = records.iter().map(|record| record.ended_ns).max().unwrap_or(0);
        let window = (records[0].scheduled_ns, last_end_ns);
        let mut level = crate::gate::load_runs::level(1, 1, 100);
        level.arrivals = arrivals;
        level.steady = Some(infergate_load::summary::Window { from_ns: window.0, to_ns: window.1 });
        level.wall_ns = window.1;
        level.requests = records;
        level
    }
}

impl Iterator for Queue {
    type Item = RequestRecord;

    /// A first token when a slot is free, a second one at the end.
    fn next(&mut self) -> Option<RequestRecord> {
        let (start_ns, user) = match self.load {
            Load::Open(load) => {
                let gap_ns = self.exponential() * SERVICE_NS / (load * self.server.slots as f64);
                self.now_ns += gap_ns as u64;
                (self.now_ns, 0)
            }
            Load::Closed(_) => self.users_ns.pop()?.0,
        };
        let served = self.server.fixed + (1.0 - self.server.fixed) * self.exponential();
        let begun_ns = self.free_ns.pop()?.0.max(start_ns);
        let ended_ns = begun_ns + (served * SERVICE_NS) as u64;
        self.free_ns.push(Reverse(ended_ns));
        if matches!(self.load, Load::Closed(_)) {
            self.users_ns.push(Reverse((ended_ns, user)));
        }
        self.number += 1;
        Some(RequestRecord {
            request: self.number - 1,
            measured: true,
            user,
            scheduled_ns: start_ns,
            sent_ns: start_ns,
            chunk_ns: vec![begun_ns, ended_ns],
            output_tokens: Some(2),
            ended_ns,
            ..RequestRecord::default()
        })
    }
}
