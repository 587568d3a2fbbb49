//! How long an answer may take, and which times can be true: rules over numbers, without any process.

use std::time::Duration;

use infergate_core::case::Case;
use infergate_core::engine::LoadRequest;
use infergate_core::worker::{Honesty, Request, Reread, Sampling, Timeouts, WorkerError, ensure_waited_for};

const S: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn case() -> Case {
    "decode/p8".parse().expect("a case id")
}

fn prepare() -> Request {
    Request::Prepare { case: case(), known: None, feed: None }
}

fn sample(count: usize, iterations: usize) -> Request {
    Request::Sample { case: case(), sampling: Sampling::of(count, iterations) }
}

#[test]
fn the_first_answer_may_take_long_and_later_ones_ten_times_what_was_seen() {
    let mut timeouts = Timeouts::default();
    assert_eq!(timeouts.limit(&Request::Hello), 120 * S);
    assert_eq!(timeouts.limit(&prepare()), 1800 * S);
    timeouts.saw(&prepare(), 3 * S);
    timeouts.saw(&prepare(), S);
    assert_eq!(timeouts.limit(&prepare()), 30 * S, "the longest counts");
    assert_eq!(timeouts.limit(&sample(2, 5)), 300 * S, "10 iterations");
    assert_eq!(timeouts.limit(&Request::Count { case: case(), repeats: 8 }), 240 * S);
    assert_eq!(timeouts.limit(&Request::Memory { case: None }), 120 * S);
}

/// With a budget nothing is worth waiting for longer, but a model that is fetched.
#[test]
fn the_first_run_of_a_case_may_have_a_limit_of_its_own() {
    let mut timeouts = Timeouts { first_of_case: Some(300 * S), ..Timeouts::default() };
    let load = Request::Load { request: LoadRequest::default(), prompt_text: None };
    assert_eq!([timeouts.limit(&prepare()), timeouts.limit(&load)], [300 * S, 1800 * S]);
    timeouts.saw(&prepare(), 60 * S);
    assert_eq!(timeouts.limit(&prepare()), 600 * S);
}

#[test]
fn an_error_names_its_case_once() {
    let of = |text: &str| WorkerError::Refused(text.into()).about(case()).to_string();
    assert_eq!(of("index out of range"), "decode/p8: index out of range");
    assert_eq!(of("decode/p8: the prompt has 7 tokens"), "decode/p8: the prompt has 7 tokens");
}

/// In a fresh process a late bench waits for the set-up of those before it.
#[test]
fn a_bench_may_take_as_long_as_the_set_up_of_all_besides() {
    let mut timeouts = Timeouts::default();
    let bench: Case = "bench:late".parse().expect("a bench");
    let prepare = Request::Prepare { case: bench, known: None, feed: None };
    timeouts.saw(&Request::Load { request: LoadRequest::default(), prompt_text: None }, 60 * S);
    timeouts.saw(&prepare, MS);
    assert_eq!(timeouts.limit(&prepare), 610 * S);
    assert_eq!(timeouts.limit(&Request::Sample { case: bench, sampling: Sampling::of(1, 1) }), 610 * S);
    timeouts.saw(&self::prepare(), MS);
    assert_eq!(timeouts.limit(&self::prepare()), 10 * S, "an engine's case needs no other");
}

/// A server computes the output of a scenario for the first of its cases, whichever that is.
#[test]
fn a_case_of_a_server_may_take_as_long_as_any_other() {
    let [first, second] = ["bench:chat/ttft", "bench:chat/itl"].map(|name| Request::Prepare {
        case: name.parse().expect("a case"),
        known: None,
        feed: None,
    });
    let seen = |mut timeouts: Timeouts| {
        timeouts.saw(&first, 3 * S);
        timeouts.saw(&second, MS);
        timeouts.limit(&second)
    };
    assert_eq!(seen(Timeouts::default()), 30 * S);
    let of_bench = Timeouts { first_of_bench: Some(120 * S), ..Timeouts::default() };
    assert_eq!(seen(of_bench), 10 * S, "a bench computes its own");
}

#[test]
fn a_limit_is_never_short_and_never_overflows() {
    let mut timeouts = Timeouts::default();
    timeouts.saw(&prepare(), MS);
    assert_eq!(timeouts.limit(&sample(1, 1)), 10 * S);
    assert_eq!(timeouts.limit(&sample(0, 0)), 10 * S);
    assert!(timeouts.limit(&sample(usize::MAX, usize::MAX)) >= 10 * S);
}

#[test]
fn times_longer_than_the_wait_cannot_be_true() {
    assert!(ensure_waited_for(1_000_000, Duration::ZERO).is_ok(), "two clocks may differ by a millisecond");
    assert!(ensure_waited_for(1_009_000_000, S).is_ok());
    assert!(ensure_waited_for(1_100_000_000, S).is_err());
    assert!(ensure_waited_for(u128::from(u64::MAX) * 1000, S).is_err());
}

#[test]
fn a_worker_that_mostly_hides_more_than_half_of_its_time_is_found() {
    let mut honesty = Honesty::default();
    let mut note = |reported_ms: u128| honesty.note(case(), reported_ms * 1_000_000, 400 * MS, Duration::ZERO);
    for _ in 0..7 {
        note(100).expect("fewer than eight may be a burst");
    }
    let error = note(100).expect_err("eight are none");
    assert!(error.contains("decode/p8") && error.contains("8 of 8"), "{error}");
}

#[test]
fn slow_pipes_stalls_and_set_up_are_no_lies() {
    let mut honesty = Honesty::default();
    for request in 0..1000_u128 {
        // Each second answer comes a second late; turns of 15 ms through pipes that take 90 ms.
        let waited = if request % 2 == 0 { 105 * MS } else { 1105 * MS };
        honesty.note(case(), 15_000_000, waited, Duration::ZERO).expect("at most half are late");
    }
    let mut honesty = Honesty::default();
    for _ in 0..1000 {
        honesty.note(case(), 20_000_000, 900 * MS, 800 * MS).expect("the prompt is read anew before each step");
    }
}

#[test]
fn a_known_prompt_is_faster_only_where_each_of_its_times_is() {
    let times = |known_ns: &[u64], new_ns: &[u64]| {
        Reread { known_ns: known_ns.to_vec(), new_ns: new_ns.to_vec() }.times_as_fast()
    };
    let ms = 1_000_000;
    assert_eq!(times(&[ms, 2 * ms, ms], &[4 * ms, 5 * ms, 6 * ms]), Some(2.0));
    assert_eq!(times(&[ms, 4 * ms, ms], &[4 * ms, 5 * ms, 6 * ms]), None, "one was computed");
    assert_eq!(times(&[ms, ms, ms], &[6 * ms, ms, 6 * ms]), None, "one was known");
    assert_eq!(times(&[100 * ms; 3], &[140 * ms; 3]), None);
    assert_eq!(times(&[1000; 3], &[50_000; 3]), None, "its data may lie in a cache of the processor");
    assert_eq!(times(&[0; 3], &[ms; 3]), Some(1e6));
    assert_eq!(times(&[], &[]), None);
}
