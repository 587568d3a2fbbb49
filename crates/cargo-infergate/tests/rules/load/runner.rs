//! Levels in made-up time: who starts when, what is counted, how a run ends.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use infergate_core::load::{Arrivals, FailureClass, RequestRecord, Spacing, Stop, Window};
use infergate_load::client::endpoint::Limits;
use infergate_load::client::runner::run_level;
use infergate_load::client::stamped::RunClock;
use infergate_load::plan::shard::Shard;
use infergate_load::plan::{LoadPlan, Prompts};
use infergate_load::targets::Outcome;
use infergate_load::targets::live::Live;
use infergate_receipts::Scenario;
use tokio::task::spawn_local;
use tokio::time::{advance, sleep};

use crate::load::script::{Act, HEAD, Script, answer, endpoint, in_made_up_time, send, token};

const MS: u64 = 1_000_000;

pub fn plan(arrivals: Arrivals, stop: Stop) -> LoadPlan {
    LoadPlan {
        scenario: 0,
        shape: Scenario::plain("plain", 8, 4),
        arrivals,
        stop,
        warm_up_requests: 1,
        ramp_ns: 0,
        shard: Shard::WHOLE,
        seed: 1,
        prompts: Prompts::Words { seed: 7, shared: 0 },
        max_kept: u64::MAX,
    }
}

/// Runs `plan`, interrupted after `cancel_after` where that is given.
pub fn run(script: &Script, plan: LoadPlan, cancel_after: Option<Duration>) -> (Outcome, Arc<Live>) {
    in_made_up_time(async {
        let cancelled = Arc::new(AtomicBool::new(false));
        let live = Arc::new(Live::new(cancelled.clone()));
        if let Some(after) = cancel_after {
            spawn_local(async move {
                sleep(after).await;
                cancelled.store(true, Ordering::Relaxed);
            });
        }
        let endpoints = Rc::new([endpoint(script, Limits::default())]);
        (run_level(endpoints, plan, RunClock::start(), live.clone()).await, live)
    })
}

fn closed(users: u32, count: u64) -> LoadPlan {
    plan(Arrivals::Closed { users }, Stop::Requests { count })
}

#[test]
fn users_have_one_request_in_flight_each_and_the_next_when_it_ends() {
    let script = Script::new([answer(40, 20, 4)]);
    let (ran, live) = run(&script, closed(3, 9), None);
    let measured: Vec<&RequestRecord> = ran.level.requests.iter().filter(|record| record.measured).collect();
    assert_eq!(measured.len(), 9);
    assert_eq!(script.dials.get(), 3, "a connection a user");
    for (index, record) in (0..).zip(&ran.level.requests) {
        assert_eq!((record.request, record.failure.clone()), (index, None));
        assert_eq!(record.scheduled_ns, index / 3 * 100 * MS, "each takes 100 ms");
        assert_eq!(record.ended_ns - record.scheduled_ns, 100 * MS);
    }
    let users: Vec<u32> = ran.level.requests.iter().map(|record| record.user).collect();
    assert!((0..3).all(|user| users.iter().filter(|other| **other == user).count() >= 5), "{users:?}");
    let (seen, sent) = (live.seen(), ran.level.requests.len() as u64);
    assert_eq!((seen.issued, seen.ended, seen.failed, seen.pieces), (sent, sent, 0, 4 * sent));
}

#[test]
fn prompts_are_unlike_each_other_and_a_conversation_goes_on() {
    let script = Script::new([answer(1, 1, 4)]);
    let mut turns = closed(1, 6);
    turns.shape = Scenario { turns: 3, turn_tokens: 5, ..Scenario::plain("agent", 20, 4) };
    run(&script, turns, None);
    let prompts: Vec<String> = script.requests.borrow().iter().map(|request| prompt_of(request)).collect();
    for (turn, prompt) in prompts.iter().enumerate() {
        assert_eq!(prompt.split(' ').count(), 20 + 5 * (turn % 3), "{prompt}");
    }
    assert!(prompts[1].starts_with(&prompts[0]) && prompts[2].starts_with(&prompts[1]));
    assert!(prompts[4].starts_with(&prompts[3]) && !prompts[3].starts_with(&prompts[0][..40]));
}

pub fn prompt_of(request: &str) -> String {
    let (_, body) = request.split_once("\r\n\r\n").expect("a body");
    let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
    body["prompt"].as_str().expect("a prompt").to_owned()
}

#[test]
fn a_shared_prefix_is_shared_and_nothing_else_is() {
    let script = Script::new([answer(1, 1, 4)]);
    let mut shared = closed(2, 4);
    shared.prompts = Prompts::Words { seed: 7, shared: 5 };
    run(&script, shared, None);
    let prompts: Vec<Vec<String>> = script
        .requests
        .borrow()
        .iter()
        .map(|request| prompt_of(request).split(' ').map(str::to_owned).collect())
        .collect();
    for pair in prompts.windows(2) {
        assert_eq!(pair[0][..5], pair[1][..5]);
        assert_ne!(pair[0][5..], pair[1][5..]);
    }
}

#[test]
fn an_open_loop_counts_from_the_schedule() {
    // Each answer takes 390 ms; requests start every 100 ms whatever the server does.
    let script = Script::new([answer(90, 100, 4)]);
    let arrivals = Arrivals::Open { requests_per_s: 10.0, spacing: Spacing::Constant };
    let (ran, _) = run(&script, plan(arrivals, Stop::Requests { count: 8 }), None);
    let measured = ran.level.requests.iter().filter(|record| record.measured);
    let scheduled: Vec<u64> = measured.map(|record| record.scheduled_ns / MS).collect();
    assert_eq!(scheduled, [400, 500, 600, 700, 800, 900, 1_000, 1_100], "once the one of warm-up has ended");
    let last = ran.level.requests.last().map(|record| record.scheduled_ns / MS);
    assert_eq!(last, Some(1_400), "the rate is kept until the eighth has ended");
    assert!(ran.level.requests.iter().all(|record| record.sent_ns >= record.scheduled_ns));
    assert!(script.dials.get() <= 5, "idle connections are used again: {}", script.dials.get());
}

/// A timer counts whole milliseconds, and requests start each 33.3 ms.
#[test]
fn an_open_loop_starts_on_time_between_two_milliseconds() {
    let script = Script::new([answer(4, 2, 4)]);
    let arrivals = Arrivals::Open { requests_per_s: 30.0, spacing: Spacing::Constant };
    let ran = in_made_up_time(async {
        spawn_local(async {
            loop {
                advance(Duration::from_micros(50)).await;
            }
        });
        let endpoints = Rc::new([endpoint(&script, Limits::default())]);
        let plan = plan(arrivals, Stop::Requests { count: 8 });
        run_level(endpoints, plan, RunClock::start(), Arc::default()).await
    });
    let late_ns: Vec<u64> = ran.level.requests.iter().map(|record| record.sent_ns - record.scheduled_ns).collect();
    assert!(late_ns.len() > 8 && late_ns[1..].iter().all(|late_ns| *late_ns <= 100_000), "{late_ns:?}");
}

#[test]
fn a_duration_ends_starts_and_what_is_in_flight_goes_on() {
    let script = Script::new([answer(40, 20, 4)]);
    let stop = Stop::Duration { ns: 150 * MS };
    let (ran, _) = run(&script, plan(Arrivals::Closed { users: 2 }, stop), None);
    let measured = |ran: &Outcome| ran.level.requests.iter().filter(|record| record.measured).count();
    assert_eq!(measured(&ran), 3, "one began when both were warm, at 100 ms, and two at 200");
    assert_eq!((ran.level.steady, ran.level.wall_ns), (Some(Window { from_ns: 100 * MS, to_ns: 300 * MS }), 400 * MS));
    assert!(ran.level.requests.iter().all(|record| record.failure.is_none()));
    let arrivals = Arrivals::Open { requests_per_s: 10.0, spacing: Spacing::Constant };
    let (ran, _) = run(&Script::new([answer(30, 20, 4)]), plan(arrivals, stop), None);
    assert_eq!(measured(&ran), 2, "at 100 and 200 ms");
}

#[test]
fn what_is_in_flight_when_a_run_is_interrupted_is_cancelled_and_counted() {
    let endless = vec![send(HEAD), token(), Act::Hang];
    for arrivals in [Arrivals::Closed { users: 5 }, Arrivals::Open { requests_per_s: 100.0, spacing: Spacing::Poisson }]
    {
        let script = Script::new([endless.clone()]);
        let (ran, live) = run(&script, plan(arrivals, Stop::Requests { count: 1_000 }), Some(Duration::from_secs(1)));
        let cancelled = |record: &infergate_core::load::RequestRecord| {
            record.failure.as_ref().is_some_and(|failure| failure.class == FailureClass::Cancelled)
        };
        assert!(!ran.level.requests.is_empty() && ran.level.requests.iter().all(cancelled));
        let early = ran.level.requests.iter().filter(|record| record.sent_ns < 900 * MS);
        assert!(
            early.clone().count() > 0 && early.clone().all(|record| record.chunk_ns.len() == 1),
            "what came is kept"
        );
        assert!(ran.level.wall_ns <= 1_100 * MS, "{}", ran.level.wall_ns);
        let numbers: Vec<u64> = ran.level.requests.iter().map(|record| record.request).collect();
        assert_eq!(numbers, (0..ran.level.requests.len() as u64).collect::<Vec<_>>());
        assert_eq!(live.seen().issued, ran.level.requests.len() as u64);
    }
}

#[test]
fn every_tenth_answer_broken_is_every_tenth_request_failed() {
    let mut answers = vec![answer(10, 10, 4); 9];
    answers.push(vec![send(HEAD), token(), Act::Close]);
    let script = Script::new(answers.iter().cycle().take(100).cloned());
    let (ran, _) = run(&script, closed(1, 100), None);
    let failed: Vec<u64> =
        ran.level.requests[..100].iter().filter(|record| record.failure.is_some()).map(|r| r.request).collect();
    assert_eq!(failed, (0..10).map(|tens| 10 * tens + 9).collect::<Vec<_>>());
}

#[test]
fn a_server_that_refuses_before_it_completed_a_request_is_asked_wrongly() {
    let refusal = vec![send("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")];
    for (answers, is_refused) in [(vec![refusal.clone()], true), (vec![answer(1, 1, 4), refusal], false)] {
        let (_, live) = run(&Script::new(answers), closed(1, 4), None);
        assert_eq!(live.refused.get().map(|(target, _)| *target), is_refused.then_some(0));
    }
}

#[test]
fn a_level_that_keeps_too_much_ends_early_and_says_so() {
    let script = Script::new([answer(1, 1, 4)]);
    let mut bounded = closed(1, 100);
    bounded.max_kept = 100;
    let (ran, _) = run(&script, bounded, None);
    assert_eq!((ran.level.requests.len(), ran.is_full), (3, true));
}
