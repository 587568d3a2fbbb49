//! Each measured request runs at full load to its last token: on an engine that shares itself among the requests in flight, so
//! that a token takes as long as there are others, the truth is known.

use infergate::clock::VirtualClock;
use infergate::load::{Ask, Driven, Load, drive};
use infergate_core::load::{Arrivals, FailureClass, RequestRecord, Spacing, Stop};
use infergate_core::stats::median;

use crate::local_load::engines::{Batch, MS, NEVER, ask};

/// A request's token takes 4 ms for each request in flight.
const SHARE_MS: u64 = 4;
const OUTPUT_TOKENS: usize = 20;

fn run(arrivals: Arrivals, stop: Stop, warm_up_requests: u64, output_tokens: fn(u64) -> usize) -> Driven {
    let clock = VirtualClock::default();
    let mut sharing = Batch::new(clock.clone(), 64);
    sharing.step_ns = |in_flight| SHARE_MS * MS * in_flight as u64;
    let mut ask = |request| Some(Ask { output_tokens: output_tokens(request), ..ask(request)? });
    let load = Load { arrivals, warm_up_requests, stop, seed: 1, ask: &mut ask, cancelled: &NEVER };
    drive(&mut sharing, &clock, load).expect("runs")
}

fn measured(driven: &Driven) -> Vec<&RequestRecord> {
    driven.records.iter().filter(|record| record.measured).collect()
}

fn median_ms(values: impl Iterator<Item = u64>) -> Option<f64> {
    median(&values.map(|ns| ns as f64 / MS as f64).collect::<Vec<_>>())
}

#[test]
fn the_medians_of_a_shared_engine_are_those_of_full_load() {
    for users in [1, 8, 32] {
        let driven = run(Arrivals::Closed { users }, Stop::Requests { count: 80 }, 1, |_| OUTPUT_TOKENS);
        let measured = measured(&driven);
        assert_eq!(measured.len(), 80, "so many are measured, whatever else was sent");
        let gap_ms = (SHARE_MS * u64::from(users)) as f64;
        let first = measured.iter().map(|record| record.chunk_ns[0] - record.scheduled_ns);
        let gaps = measured.iter().flat_map(|record| record.chunk_ns.windows(2).map(|pair| pair[1] - pair[0]));
        let whole = measured.iter().map(|record| record.ended_ns - record.scheduled_ns);
        assert_eq!(median_ms(first), Some(gap_ms));
        assert_eq!(median_ms(gaps), Some(gap_ms));
        assert_eq!(median_ms(whole), Some(OUTPUT_TOKENS as f64 * gap_ms));
    }
}

/// Answers of 1 to 40 tokens: users end at different times.
#[test]
fn every_user_has_a_request_in_flight_until_the_last_measured_one_has_ended() {
    let users = 7;
    let driven =
        run(Arrivals::Closed { users }, Stop::Requests { count: 30 }, 2, |request| 1 + (request * 13 % 40) as usize);
    let window = driven.steady.expect("steady");
    let measured = measured(&driven);
    assert_eq!(measured.len(), 30);
    assert_eq!(measured.iter().map(|record| record.ended_ns).max(), Some(window.to_ns));
    let first = measured[0].request;
    assert!(measured.iter().map(|record| record.request).eq(first..first + 30), "chosen by their starts");
    let busy = |user: u32| -> u64 {
        let own = driven.records.iter().filter(|record| record.user == user);
        own.map(|record| record.ended_ns.min(window.to_ns).saturating_sub(record.scheduled_ns.max(window.from_ns)))
            .sum()
    };
    assert!((0..users).all(|user| busy(user) == window.to_ns - window.from_ns), "nobody pauses");
    let warm = |user: u32| {
        let before = driven.records.iter().filter(|record| record.user == user && record.ended_ns <= window.from_ns);
        before.count() >= 2
    };
    assert!((0..users).all(warm), "each user had ended its warm-up");
    let behind = driven.records.iter().filter(|record| record.ended_ns >= window.to_ns && !record.measured);
    assert!(behind.clone().count() > 0);
    let given_up =
        |record: &RequestRecord| record.failure.as_ref().is_some_and(|why| why.class == FailureClass::Cancelled);
    assert!(behind.clone().all(given_up), "they say that they were given up");
}

#[test]
fn an_open_loop_keeps_its_rate_until_the_last_measured_request_has_ended() {
    let arrivals = Arrivals::Open { requests_per_s: 10.0, spacing: Spacing::Constant };
    // 100 ms alone, longer beside others: requests overlap.
    let driven = run(arrivals, Stop::Requests { count: 20 }, 3, |_| 25);
    let window = driven.steady.expect("steady");
    let measured = measured(&driven);
    assert!(measured.iter().map(|record| record.request).eq(3..23), "the first ones behind the warm-up");
    assert_eq!(window.from_ns, 300 * MS);
    let last_end_ns = measured.iter().map(|record| record.ended_ns).max().expect("some");
    assert!(window.to_ns >= last_end_ns);
    let last_start_ns = driven.records.last().expect("some").scheduled_ns;
    assert!(last_start_ns + 100 * MS >= last_end_ns, "{last_start_ns} {last_end_ns}");
}

#[test]
fn the_time_asked_for_begins_when_all_users_are_warm() {
    // A request takes 32 * 80 ms, and no user is warm before.
    let arrivals = Arrivals::Closed { users: 32 };
    let driven = run(arrivals, Stop::Duration { ns: MS }, 1, |_| OUTPUT_TOKENS);
    assert_eq!(driven.steady.map(|window| window.from_ns), Some(2_560 * MS));
    assert_eq!(measured(&driven).len(), 32, "those that started in this millisecond, and at full load to their ends");
}
