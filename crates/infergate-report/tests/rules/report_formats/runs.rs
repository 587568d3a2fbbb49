//! Load runs whose times are known.

use infergate_core::load::{Arrivals, Failure, FailureClass, RequestRecord, Stop, Window, unmark};
use infergate_receipts::Scenario;
use infergate_receipts::{LevelRecord, LoadReceipt, Machine, Price, TargetRecord};

#[path = "../../../../infergate-judge/tests/rules/gate/load_runs.rs"]
mod load_runs;

pub use load_runs::MS;

/// How a server answers: the first token after `ttft_ms`, each further one after `itl_ms`.
#[derive(Debug, Clone, Copy)]
pub struct Answers {
    pub ttft_ms: u64,
    pub itl_ms: u64,
    pub tokens: u64,
}

impl Answers {
    pub fn new(ttft_ms: u64, itl_ms: u64, tokens: u64) -> Self {
        Self { ttft_ms, itl_ms, tokens }
    }

    pub fn e2e_ms(self) -> u64 {
        self.ttft_ms + self.itl_ms * (self.tokens - 1)
    }

    /// A request that starts at `start_ns`.
    pub fn request(self, number: u64, user: u32, start_ns: u64) -> RequestRecord {
        let chunk_ns = (0..self.tokens).map(|token| start_ns + (self.ttft_ms + token * self.itl_ms) * MS);
        RequestRecord {
            request: number,
            user,
            scheduled_ns: start_ns,
            sent_ns: start_ns,
            ended_ns: start_ns + self.e2e_ms() * MS,
            chunk_ns: chunk_ns.collect(),
            input_tokens: Some(20),
            output_tokens: Some(self.tokens),
            ..RequestRecord::default()
        }
    }
}

/// `users` users who send `each` requests, one directly after the other; `answers` says how each is answered, by its number.
pub fn level(scenario: u32, users: u32, each: u64, answers: impl Fn(u64) -> Answers) -> LevelRecord {
    let mut free_ns = vec![0; users as usize];
    let mut requests = Vec::new();
    for number in 0..each * u64::from(users) {
        let user = number % u64::from(users);
        let start = &mut free_ns[user as usize];
        let mut request = answers(number).request(number, user as u32, *start);
        request.scenario = scenario;
        *start = request.ended_ns;
        requests.push(request);
    }
    of(scenario, users, requests)
}

/// Every user's first request is its warm-up, and the load is full until the first of them has no more to send.
fn of(scenario: u32, users: u32, mut requests: Vec<RequestRecord>) -> LevelRecord {
    requests.sort_by_key(|request| (request.scheduled_ns, request.request));
    let ends_ns = (0..users).map(|user| {
        let own = requests.iter().filter(move |request| request.user == user);
        own.map(|request| request.ended_ns).collect::<Vec<u64>>()
    });
    let from_ns = ends_ns.clone().filter_map(|ends_ns| ends_ns.first().copied()).max().unwrap_or(0);
    let to_ns = ends_ns.filter_map(|ends_ns| ends_ns.last().copied()).min().unwrap_or(0);
    let steady = Some(Window { from_ns, to_ns });
    requests.iter_mut().for_each(|request| request.measured = request.scheduled_ns >= from_ns);
    unmark(&mut requests, steady);
    let stop = Stop::Requests { count: requests.iter().filter(|request| request.measured).count() as u64 };
    LevelRecord { scenario, stop, steady, ..load_runs::of(Arrivals::Closed { users }, requests) }
}

/// Requests that each go to the next target.
pub fn in_turn(mut level: LevelRecord, targets: u32) -> LevelRecord {
    for request in &mut level.requests {
        request.target = request.request as u32 % targets;
    }
    level
}

pub fn fail(request: &mut RequestRecord, class: FailureClass) {
    request.failure = Some(Failure { class, status: None, detail: "why".into() });
}

pub fn server(name: &str, price: Option<Price>) -> TargetRecord {
    TargetRecord::Endpoint {
        name: name.into(),
        url: "http://127.0.0.1:8000/v1/chat/completions".into(),
        api: "chat".into(),
        model: format!("model{name}"),
        extensions: vec!["ignore_eos".into()],
        shared_prefix_tokens: 0,
        price,
    }
}

pub fn receipt(targets: Vec<TargetRecord>, scenarios: Vec<Scenario>, levels: Vec<LevelRecord>) -> LoadReceipt {
    let run = load_runs::run(1, 100);
    let machine = Machine { cpu_model: "EPYC".into(), ..run.machine };
    LoadReceipt { notes: vec!["a note".into()], machine, targets, scenarios, levels, ..run }
}

/// Two scenarios at 1, 2 and 4 users: the more users, the slower each of them.
pub fn scenarios() -> LoadReceipt {
    let level = |scenario: u32, users: u32, slow: u64| {
        let factor = [10, 15, 25][users as usize / 2];
        // A few milliseconds more or less, so that quartiles differ.
        let answers = move |number: u64| Answers::new(slow * 10 * factor + number * 7 % 5, slow * factor / 5, 4);
        self::level(scenario, users, [30, 15, 8][users as usize / 2], answers)
    };
    let levels =
        [1, 2].into_iter().flat_map(|slow: u64| [1, 2, 4].map(|users| level(slow as u32 - 1, users, slow * slow)));
    let agent = Scenario { turns: 2, turn_tokens: 3, ..Scenario::plain("agent", 200, 4) };
    receipt(vec![server("", None)], vec![Scenario::plain("chatbot", 20, 4), agent], levels.collect())
}

/// Two targets at 2 users: the first begins sooner, the second goes on faster; one request of the second failed.
pub fn targets() -> LoadReceipt {
    let both = [Answers::new(20, 20, 4), Answers::new(100, 10, 4)];
    // Each user goes from one to the other, and they begin with different ones.
    let mut level = level(0, 2, 60, |number| both[(number as usize / 2 + number as usize) % 2]);
    for request in &mut level.requests {
        request.target = u32::from(request.chunk_ns[0] - request.scheduled_ns == 100 * MS);
    }
    let failed = level.requests.iter_mut().filter(|request| request.target == 1).nth(20).expect("a request");
    fail(failed, FailureClass::CutStream);
    let price = Price { input_per_million: 1.0, output_per_million: 2.0 };
    receipt(
        vec![server("near", Some(price)), server("far", None)],
        vec![Scenario::plain("chatbot", 20, 4)],
        vec![level],
    )
}
