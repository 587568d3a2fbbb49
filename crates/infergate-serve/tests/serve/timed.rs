//! The engine whose times are set.

use std::collections::BTreeMap;
use std::time::Duration;

use infergate::engine::{Engine, check_contract};
use infergate_serve::timed::{TimedEngine, TimedScript};

fn options(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn instant() -> TimedScript {
    TimedScript { ttft: Duration::ZERO, itl: Duration::ZERO, ..TimedScript::default() }
}

#[test]
fn it_keeps_the_rules_of_an_engine() {
    check_contract(&mut TimedEngine::new(instant())).expect("keeps the rules");
    let slow = TimedScript { ttft: Duration::from_micros(900), itl: Duration::from_micros(300), ..instant() };
    check_contract(&mut TimedEngine::new(slow)).expect("keeps the rules");
}

#[test]
fn a_token_is_never_early() {
    let script = TimedScript {
        ttft: Duration::from_millis(5),
        itl: Duration::from_millis(2),
        stall: Some((3, Duration::from_millis(10))),
        ..TimedScript::default()
    };
    let mut scheduler = TimedEngine::new(script).scheduler(2).expect("serves");
    let clock = infergate::clock::MonotonicClock::new();
    let now_ns = || infergate::clock::Clock::now_ns(&clock);
    let begun_ns = now_ns();
    scheduler.submit(&[1, 2], 4).expect("a slot");
    let due_ms = [5, 7, 19, 21];
    let mut tokens = 0;
    while scheduler.in_flight() > 0 {
        for event in scheduler.step().expect("steps") {
            let at_ns = now_ns() - begun_ns;
            assert!(at_ns >= due_ms[event.index] * 1_000_000, "token {} after {at_ns} ns", event.index + 1);
            tokens += 1;
        }
    }
    assert_eq!(tokens, 4);
}

#[test]
fn its_times_and_faults_are_options() {
    let script = TimedScript::from_options(&options(&[
        ("ttft_ms", "1.5"),
        ("itl_ms", "0"),
        ("stall_at", "7"),
        ("stall_ms", "500"),
        ("context_tokens", "100"),
        ("salt", "3"),
        ("leak_bytes", "16384"),
    ]));
    let expected = TimedScript {
        ttft: Duration::from_micros(1500),
        itl: Duration::ZERO,
        stall: Some((7, Duration::from_millis(500))),
        context_tokens: 100,
        salt: 3,
        leak_bytes: 16384,
    };
    assert_eq!(script.expect("options"), expected);
    for bad in
        [("ttft_ms", "soon"), ("itl_ms", "-1"), ("itl_ms", "NaN"), ("itl_ms", "1e300"), ("salt", "1.5"), ("speed", "9")]
    {
        let error = TimedScript::from_options(&options(&[bad])).expect_err("refused");
        assert!(error.to_string().contains(bad.0), "{error}");
    }
}

#[test]
fn another_salt_is_another_output() {
    let first = |salt: u64| TimedEngine::new(TimedScript { salt, ..instant() }).start(&[1, 2]).expect("starts");
    assert_eq!(first(0), crate::engines::alone(&[1, 2], 1)[0]);
    assert_ne!(first(0), first(1));
}
