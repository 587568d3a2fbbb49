//! A level that begins slowly: who starts when, and that none of it is in the steady window.

use infergate_core::load::{Arrivals, Spacing, Stop};
use infergate_load::plan::LoadPlan;
use infergate_load::plan::ramp::ramped_ns;
use infergate_load::plan::shard::Shard;
use infergate_load::summary::{Window, steady_window};

use crate::load::runner::{plan, run};
use crate::load::script::{Script, answer};

const MS: u64 = 1_000_000;

fn ramped(arrivals: Arrivals, stop: Stop, ramp_ms: u64) -> LoadPlan {
    LoadPlan { ramp_ns: ramp_ms * MS, ..plan(arrivals, stop) }
}

#[test]
fn users_begin_one_after_the_other_and_the_window_after_the_last_one_is_warm() {
    // An answer takes 100 ms.
    let plan = ramped(Arrivals::Closed { users: 4 }, Stop::Duration { ns: 1_000 * MS }, 1_000);
    let (ran, _) = run(&Script::new([answer(40, 20, 4)]), plan.clone(), None);
    for user in 0..4 {
        let first =
            ran.level.requests.iter().filter(|record| record.user == user).map(|record| record.scheduled_ns).min();
        assert_eq!(first, Some(u64::from(user) * 250 * MS));
    }
    let from_ns = steady_window(&ran.level).map(|window| window.from_ns);
    assert_eq!(from_ns, Some(1_000 * MS), "750 + 100 is within the ramp");
    let late = LoadPlan { warm_up_requests: 4, ..plan };
    let (ran, _) = run(&Script::new([answer(40, 20, 4)]), late, None);
    let from_ns = steady_window(&ran.level).map(|window| window.from_ns);
    assert_eq!(from_ns, Some(1_150 * MS), "750 and four times 100");
}

#[test]
fn a_rate_rises_in_a_straight_line() {
    let arrivals = Arrivals::Open { requests_per_s: 100.0, spacing: Spacing::Constant };
    let plan = ramped(arrivals, Stop::Duration { ns: 1_000 * MS }, 2_000);
    let (ran, _) = run(&Script::new([answer(3, 2, 4)]), plan, None);
    let within = |from_ms: u64, to_ms: u64| {
        let starts = ran.level.requests.iter().map(|record| record.scheduled_ns / MS);
        starts.filter(|ms| (from_ms..to_ms).contains(ms)).count()
    };
    // A quarter of the ramp's requests in its first half, then as many as without a ramp.
    assert_eq!((within(0, 1_000), within(1_000, 2_000), within(2_000, 3_000)), (25, 75, 100));
    let starts: Vec<u64> = ran.level.requests.iter().map(|record| record.scheduled_ns).collect();
    assert!(starts.is_sorted());
    let expected = Window { from_ns: 2_010 * MS, to_ns: 3_010 * MS };
    assert_eq!(steady_window(&ran.level), Some(expected), "once one that started at the full rate has ended");
}

#[test]
fn shards_ramp_as_one_client_does() {
    let plan = ramped(Arrivals::Closed { users: 4 }, Stop::Duration { ns: 500 * MS }, 1_000);
    let plan = LoadPlan { shard: Shard { index: 1, count: 2 }, ..plan };
    let (ran, _) = run(&Script::new([answer(40, 20, 4)]), plan, None);
    for user in [1, 3] {
        let first =
            ran.level.requests.iter().filter(|record| record.user == user).map(|record| record.scheduled_ns).min();
        assert_eq!(first, Some(u64::from(user) * 250 * MS));
    }
}

#[test]
fn without_a_ramp_nothing_moves() {
    assert_eq!(ramped_ns(123, 0), 123);
    // Both pieces meet at the end of the ramp.
    assert_eq!((ramped_ns(500, 1_000), ramped_ns(501, 1_000)), (1_000, 1_001));
    assert_eq!(ramped_ns(u64::MAX, u64::MAX), u64::MAX);
}
