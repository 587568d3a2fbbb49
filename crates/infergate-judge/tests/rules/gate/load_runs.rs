//! Load runs whose times are known.

use infergate_core::load::{Arrivals, RequestRecord, Stop, Window};
use infergate_receipts::Scenario;
use infergate_receipts::{AuditRecord, ErrorNs, LOAD_SCHEMA, LevelRecord, LoadReceipt, Machine, TargetRecord};

pub const MS: u64 = 1_000_000;

/// The run of a day in January: 2 users who send 20 requests each, one after the other. A request has its first token after
/// `percent` of 100 ms and three more after as many percent of 20 ms each: at 100 these are 50 tokens/s of both users together.
pub fn run(day: u32, percent: u64) -> LoadReceipt {
    let error = ErrorNs { p50: Some(50e3), p99: Some(200e3), max: Some(900e3) };
    LoadReceipt {
        schema: LOAD_SCHEMA.into(),
        created: format!("2026-01-{day:02}T00:00:00Z"),
        partial: false,
        invalid: Vec::new(),
        notes: Vec::new(),
        tool: "0.1.0".into(),
        machine: Machine { class: "linux-x86_64-amd-epyc-2".into(), ..Machine::default() },
        probes: None,
        targets: vec![TargetRecord::Endpoint {
            name: String::new(),
            url: "http://secret.example:8000/v1/chat/completions".into(),
            api: "chat".into(),
            model: "small".into(),
            extensions: Vec::new(),
            shared_prefix_tokens: 0,
            price: None,
        }],
        seed: 1,
        prompt_seed: u64::from(day),
        limits: Vec::new(),
        scenarios: vec![Scenario::plain("chatbot", 256, 4)],
        dataset_prompts: None,
        shards: Vec::new(),
        audits: vec![AuditRecord {
            shard: None,
            arrivals: Arrivals::Closed { users: 2 },
            requests: 12,
            wrong_requests: 0,
            tokens: 384,
            stamp_error_ns: error,
            gap_error_ns: error,
            client_cpu_share: Some(0.03),
        }],
        levels: vec![level(2, 20, percent)],
    }
}

/// A request that starts at `start_ns`, as those of [`run`] do.
pub fn request(number: u64, user: u32, start_ns: u64, percent: u64) -> RequestRecord {
    let after_ns = [100, 120, 140, 160].map(|ms: u64| ms * MS / 100 * percent);
    RequestRecord {
        request: number,
        user,
        scheduled_ns: start_ns,
        sent_ns: start_ns,
        chunk_ns: after_ns.map(|ns| start_ns + ns).into(),
        ended_ns: start_ns + after_ns[3],
        output_tokens: Some(4),
        ..RequestRecord::default()
    }
}

/// `users` users who send `each` requests, one directly after the other, all measured but the first one.
pub fn level(users: u32, each: u64, percent: u64) -> LevelRecord {
    let took_ns = 160 * MS / 100 * percent;
    let numbers = (0..each).flat_map(|round| (0..users).map(move |user| (round, user)));
    let requests = numbers.enumerate().map(|(number, (round, user))| RequestRecord {
        measured: round > 0,
        ..request(number as u64, user, round * took_ns, percent)
    });
    let mut level = of(Arrivals::Closed { users }, requests.collect());
    level.steady = (each > 1).then_some(Window { from_ns: took_ns, to_ns: level.wall_ns });
    level.stop = Stop::Requests { count: level.requests.iter().filter(|record| record.measured).count() as u64 };
    level
}

/// A level of these requests, without a steady window.
pub fn of(arrivals: Arrivals, requests: Vec<RequestRecord>) -> LevelRecord {
    LevelRecord {
        batch: None,
        scenario: 0,
        arrivals,
        whole: None,
        stop: Stop::Requests { count: requests.len() as u64 },
        warm_up_requests: 1,
        ramp_ns: 0,
        steady: None,
        began_ns: 0,
        wall_ns: requests.iter().map(|record| record.ended_ns).max().unwrap_or(0),
        client_cpu_ns: Some(MS),
        received: None,
        requests,
    }
}
