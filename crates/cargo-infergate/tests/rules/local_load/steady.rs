//! Each measured request runs at full load to its last token: on an engine that shares itself among the requests in flight, so
//! that a token takes as long as there are others, the truth is known.

use infergate::load::{Ask, Driven, drive};
use infergate_core::load::{Arrivals, LevelPlan, RequestRecord, Stop};
use infergate_core::stats::median;

use crate::fake::VirtualClock;
use crate::local_load::engines::{Batch, MS, ask, plan};

/// A request's token takes 4 ms for each request in flight.
const SHARE_MS: u64 = 4;
const OUTPUT_TOKENS: usize = 20;

fn run(arrivals: Arrivals, stop: Stop, warm_up_requests: u64, output_tokens: fn(u64) -> usize) -> Driven {
    let clock = VirtualClock::default();
    let mut sharing = Batch::new(clock.clone(), 64);
    sharing.step_ns = |in_flight| SHARE_MS * MS * in_flight as u64;
    let mut ask = |request| Some(Ask { output_tokens: output_tokens(request), ..ask(request)? });
    let plan = LevelPlan { warm_up_requests, ..plan(arrivals, stop, 64) };
    drive(&mut sharing, &clock, &plan, &mut ask).expect("runs")
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

#[test]
fn the_time_asked_for_begins_when_all_users_are_warm() {
    // A request takes 32 * 80 ms, and no user is warm before.
    let arrivals = Arrivals::Closed { users: 32 };
    let driven = run(arrivals, Stop::Duration { ns: MS }, 1, |_| OUTPUT_TOKENS);
    assert_eq!(driven.steady.map(|window| window.from_ns), Some(2_560 * MS));
    assert_eq!(measured(&driven).len(), 32, "those that started in this millisecond, and at full load to their ends");
}
