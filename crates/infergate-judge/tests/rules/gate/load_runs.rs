//! Load runs whose times are known.

use infergate_core::load::{Arrivals, RequestRecord, Stop, Window};
use infergate_receipts::Scenario;
use infergate_receipts::{LOAD_SCHEMA, LevelRecord, LoadReceipt, Machine, TargetRecord};

const US: u64 = 1_000;
const USERS: u32 = 2;

/// The run of a day in January: 2 users who send 20 requests each, one after the other. A request has its first token after
/// `percent` of 100 ms and three more after as many percent of 20 ms each: at 100 these are 50 tokens/s of both users together.
pub fn run(day: u32, percent: u64) -> LoadReceipt {
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
        audits: Vec::new(),
        levels: vec![level(percent)],
    }
}

fn level(percent: u64) -> LevelRecord {
    let after_ns = [100, 120, 140, 160].map(|ms: u64| ms * 10 * percent * US);
    let request = |number: u64| {
        let start_ns = number / u64::from(USERS) * after_ns[3];
        RequestRecord {
            request: number,
            user: (number % u64::from(USERS)) as u32,
            scheduled_ns: start_ns,
            sent_ns: start_ns,
            chunk_ns: after_ns.map(|ns| start_ns + ns).into(),
            ended_ns: start_ns + after_ns[3],
            output_tokens: Some(4),
            measured: start_ns > 0,
            ..RequestRecord::default()
        }
    };
    let requests: Vec<RequestRecord> = (0..20 * u64::from(USERS)).map(request).collect();
    LevelRecord {
        scenario: 0,
        arrivals: Arrivals::Closed { users: USERS },
        whole: None,
        stop: Stop::Requests { count: requests.len() as u64 },
        warm_up_requests: 1,
        ramp_ns: 0,
        steady: Some(Window { from_ns: after_ns[3], to_ns: 20 * after_ns[3] }),
        began_ns: 0,
        wall_ns: 20 * after_ns[3],
        client_cpu_ns: None,
        received: None,
        issued: requests.len() as u64,
        requests,
        batch: None,
    }
}
