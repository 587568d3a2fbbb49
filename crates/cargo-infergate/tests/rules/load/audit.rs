//! The self-audit: the client against a server that wrote down what it sent.

use std::sync::Arc;

use infergate_core::load::Arrivals;
use infergate_load::client::audit::{audit, compare};
use infergate_load::client::script_server::{Log, Script};
use infergate_load::targets::live::Live;

use crate::load::summary::level;

const SCRIPT: Script = Script { ttft_ns: 100_000_000, itl_ns: 20_000_000, output_tokens: 4 };

/// What the server of `level` would have written had it sent each token `late_ns` before it was seen.
fn log(late_ns: &dyn Fn(u64, usize) -> u64) -> Log {
    let requests = level(2, 70).requests;
    let times = |(request, chunks): (u64, Vec<u64>)| {
        let times = chunks.iter().enumerate().map(|(index, seen)| seen - late_ns(request, index)).collect();
        (request, times)
    };
    requests.into_iter().map(|record| (record.request, record.chunk_ns)).map(times).collect()
}

#[test]
fn errors_are_those_of_each_token() {
    let record = compare(&level(2, 70), SCRIPT, &log(&|_, _| 70_000));
    assert_eq!((record.requests, record.wrong_requests, record.tokens), (140, 0, 560));
    assert_eq!(record.stamp_error_ns.p99, Some(70e3));
    assert_eq!((record.gap_error_ns.p50, record.gap_error_ns.max), (Some(0.0), Some(0.0)));
    // One token of each request is late: its gap is longer, and the next one shorter.
    let record = compare(&level(2, 70), SCRIPT, &log(&|_, index| if index == 1 { 1_000_000 } else { 0 }));
    assert_eq!(record.gap_error_ns.p99, Some(1e6));
}

#[test]
fn answers_that_are_not_what_was_written_are_counted() {
    let mut log = log(&|_, _| 0);
    log.remove(&3);
    log.entry(5).or_default().pop();
    assert_eq!(compare(&level(2, 70), SCRIPT, &log).wrong_requests, 2);
}

/// The real thing: some users, every token of every answer.
#[test]
fn every_token_of_the_scripted_server_is_seen_and_none_before_it_was_written() {
    let live = Arc::new(Live::default());
    for arrivals in [
        Arrivals::Closed { users: 20 },
        Arrivals::Open { requests_per_s: 40.0, spacing: infergate_core::load::Spacing::Poisson },
    ] {
        let record = audit(arrivals, 1, &live).expect("an audit").expect("a clock in common");
        assert_eq!(record.wrong_requests, 0);
        assert_eq!(record.tokens, 32 * record.requests);
        assert!(record.stamp_error_ns.p50.is_some_and(|error| error > 0.0), "{record:?}");
        assert!(record.stamp_error_ns.max.is_some() && record.gap_error_ns.p99.is_some());
    }
}
