//! A server under load on made-up time: users in a closed loop, slots, a queue, steps that give every running request a token.

use std::collections::VecDeque;

use infergate_core::load::{Failure, FailureClass, RequestRecord};
use infergate_core::sha256;

const MS: f64 = 1e6;

/// What a server does.
#[derive(Debug, Clone, Copy)]
pub struct Server {
    /// A step, whatever runs in it.
    pub step_ms: f64,
    /// What each running request adds to it.
    pub row_ms: f64,
    /// The newest request is served first.
    pub newest_first: bool,
    /// Each ten seconds it stands still for so long.
    pub stall_ms: f64,
    /// Each request beyond so many is refused.
    pub refused_from: usize,
    /// One request of so many gets some tokens and never goes on; 0: none.
    pub hangs_each: u64,
    /// Beside others an answer ends after half of its tokens.
    pub ends_early: bool,
    /// Beside others such a share of the answers is another one.
    pub garbles: f64,
}

fn failure(class: FailureClass) -> Failure {
    Failure { class, status: None, detail: String::new() }
}

impl Default for Server {
    fn default() -> Self {
        Self {
            step_ms: 20.0,
            row_ms: 0.0,
            newest_first: false,
            stall_ms: 0.0,
            refused_from: usize::MAX,
            hangs_each: 0,
            ends_early: false,
            garbles: 0.0,
        }
    }
}

const SLOTS: usize = 12;
const TOKENS: usize = 16;

/// Its answer to whatever is asked.
pub const SAID: &str = "so";
const PERIOD_MS: f64 = 10_000.0;

/// Tokens of a stream that hangs, and how long after the last start it is given up.
const HANGS_AFTER: usize = 4;
const GIVE_UP_NS: u64 = 8_500_000_000;

/// One request on its way.
struct Running {
    record: RequestRecord,
    left: usize,
}

impl Running {
    fn hangs(&self, each: u64) -> bool {
        each > 0 && self.record.request % each == each - 1 && self.left == TOKENS - HANGS_AFTER
    }
}

impl Server {
    /// What `users` see whose first starts are spread over `ramp_ns` and who send until `stop_ns`. The server began `since_ms`
    /// before the load; `random` is the machine's noise.
    pub fn serve(
        self,
        users: u32,
        ramp_ns: u64,
        stop_ns: u64,
        since_ms: f64,
        random: &mut fastrand::Rng,
    ) -> Vec<RequestRecord> {
        let mut waiting: VecDeque<Running> = VecDeque::new();
        let mut running: Vec<Running> = Vec::new();
        let mut done = Vec::new();
        let mut coming: Vec<(u64, u32)> = (0..users).map(|u| (ramp_ns * u64::from(u) / u64::from(users), u)).collect();
        let mut now_ms = 0.0;
        // A process that is a little faster or slower than the next one, and steps that vary.
        let speed = 1.0 + 0.01 * (random.f64() - 0.5);
        let mut issued = 0;
        while !(coming.is_empty() && waiting.is_empty() && running.is_empty()) {
            let now_ns = (now_ms * MS) as u64;
            let (here, later): (Vec<_>, Vec<_>) = coming.into_iter().partition(|(at_ns, _)| *at_ns <= now_ns);
            coming = later;
            for (at_ns, user) in here {
                let record = RequestRecord {
                    request: issued,
                    user,
                    scheduled_ns: at_ns,
                    sent_ns: at_ns,
                    ..RequestRecord::default()
                };
                issued += 1;
                waiting.push_back(Running { record, left: TOKENS });
            }
            while running.len() < SLOTS
                && let Some(next) = if self.newest_first { waiting.pop_back() } else { waiting.pop_front() }
            {
                running.push(next);
            }
            let step_ms = (self.step_ms + self.row_ms * running.len() as f64) * speed * (1.0 + 0.1 * random.f64());
            let before = ((since_ms + now_ms) / PERIOD_MS) as u64;
            now_ms += step_ms;
            if ((since_ms + now_ms) / PERIOD_MS) as u64 > before {
                now_ms += self.stall_ms;
            }
            let now_ns = (now_ms * MS) as u64;
            for one in &mut running {
                one.record.chunk_ns.push(now_ns);
                one.left -= 1;
            }
            let (hung, others): (Vec<_>, Vec<_>) = running.into_iter().partition(|one| one.hangs(self.hangs_each));
            done.extend(hung.into_iter().map(|Running { mut record, .. }| {
                record.ended_ns = stop_ns + GIVE_UP_NS;
                record.failure = Some(failure(FailureClass::Cancelled));
                record
            }));
            let last = if self.ends_early && others.len() > 1 { TOKENS / 2 } else { 0 };
            let (ended, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|one| one.left <= last);
            running = others;
            for Running { mut record, .. } in ended {
                record.ended_ns = now_ns;
                let tokens = record.chunk_ns.len() as u64;
                record.output_tokens = Some(tokens);
                record.text_bytes = Some(4 * tokens);
                let is_garbled = self.garbles > 0.0 && !running.is_empty() && random.f64() < self.garbles;
                let said = if is_garbled { "garbled" } else { SAID };
                record.output_sha256 = Some(sha256::of(said));
                if done.len() >= self.refused_from {
                    record.failure = Some(failure(FailureClass::Status5xx));
                }
                if now_ns < stop_ns {
                    coming.push((now_ns + 1_000_000, record.user));
                }
                done.push(record);
            }
        }
        done.sort_unstable_by_key(|record| record.request);
        done
    }
}
