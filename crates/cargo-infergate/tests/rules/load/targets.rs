//! Several targets in one run: asked in turn, told apart, compared.

use std::rc::Rc;
use std::sync::Arc;

use infergate_core::load::{Arrivals, Failure, FailureClass, Spacing, Stop};
use infergate_core::metric::Metric;
use infergate_load::client::endpoint::Limits;
use infergate_load::client::runner::run_level;
use infergate_load::client::stamped::RunClock;
use infergate_load::summary::crossing::{Faster, compare};
use infergate_load::summary::{summarise, summarise_target};
use infergate_receipts::LevelRecord;

use crate::load::runner::plan;
use crate::load::script::{Script, answer, endpoint, in_made_up_time};

/// A level of two targets: the first has a short TTFT (20 ms) and long gaps (20 ms), the second 100 and 10 ms.
fn level(arrivals: Arrivals, count: u64, turns: u32) -> LevelRecord {
    let (first, second) = (Script::new([answer(20, 20, 4)]), Script::new([answer(100, 10, 4)]));
    let mut plan = plan(arrivals, Stop::Requests { count });
    (plan.warm_up_requests, plan.shape.turns) = (2, turns);
    let endpoints = Rc::new([endpoint(&first, Limits::default()), endpoint(&second, Limits::default())]);
    in_made_up_time(async { run_level(endpoints, plan, RunClock::start(), Arc::default()).await }).level
}

#[test]
fn each_user_goes_from_one_to_the_other_and_both_are_busy_at_any_moment() {
    let level = level(Arrivals::Closed { users: 2 }, 40, 1);
    for user in [0, 1] {
        let targets: Vec<u32> = level.requests.iter().filter(|r| r.user == user).map(|r| r.target).collect();
        assert!(targets.iter().zip(&targets[1..]).all(|(one, next)| one != next), "{targets:?}");
        assert_eq!(targets[0], user);
    }
    let (first, second) = (summarise_target(&level, Some(0)), summarise_target(&level, Some(1)));
    assert_eq!(first.started + second.started, 40);
    assert_eq!(first.issued + second.issued, level.requests.len() as u64);
    assert_eq!((first.values(Metric::Ttft).at(0.5), second.values(Metric::Ttft).at(0.5)), (Some(20e6), Some(100e6)));
    assert_eq!((first.values(Metric::Itl).at(0.5), second.values(Metric::Itl).at(0.5)), (Some(20e6), Some(10e6)));
    assert_eq!(summarise(&level).in_flight.map(f64::round), Some(2.0));
}

#[test]
fn a_conversation_stays_with_its_target() {
    let open = Arrivals::Open { requests_per_s: 10.0, spacing: Spacing::Constant };
    for arrivals in [Arrivals::Closed { users: 1 }, open] {
        let targets: Vec<u32> = level(arrivals, 12, 3).requests.iter().map(|record| record.target).collect();
        assert_eq!(targets[..14], [0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0]);
    }
}

#[test]
fn the_length_from_which_on_the_other_is_faster() {
    let level = level(Arrivals::Closed { users: 2 }, 80, 1);
    let (first, second) = (summarise_target(&level, Some(0)), summarise_target(&level, Some(1)));
    // 20 + 20 (n - 1) and 100 + 10 (n - 1) meet at 9: both take 180 ms.
    let expected = Faster::UpTo { first: true, tokens: 9.0, interval: Some((9.0, 9.0)) };
    assert_eq!(compare(&first, &second, 1), Some(expected));
    let mirrored = Faster::UpTo { first: false, tokens: 9.0, interval: Some((9.0, 9.0)) };
    assert_eq!(compare(&second, &first, 1), Some(mirrored));
    assert_eq!(compare(&first, &first, 1), Some(Faster::Always(true)));
    let nothing = summarise_target(&level, Some(7));
    assert_eq!(compare(&first, &nothing, 1), None);
}

/// A request that failed is slower than all others, in the interval, too.
#[test]
fn the_interval_of_a_crossing_is_of_all_requests() {
    let mut level = level(Arrivals::Closed { users: 2 }, 400, 1);
    let failure = Failure { class: FailureClass::Timeout, status: None, detail: "timed out".into() };
    for (number, record) in level.requests.iter_mut().filter(|record| record.target == 1).enumerate() {
        // The first token after 100 to 139 ms, and three requests of ten without one.
        let later_ns = (number as u64 * 7 % 40) * 1_000_000;
        record.chunk_ns.iter_mut().for_each(|ns| *ns += later_ns);
        record.ended_ns += later_ns;
        record.failure = (number % 10 < 3).then(|| failure.clone());
    }
    let found = compare(&summarise_target(&level, Some(0)), &summarise_target(&level, Some(1)), 1);
    let Some(Faster::UpTo { first: true, tokens, interval: Some((low, high)) }) = found else { panic!("{found:?}") };
    // The middle of all is at five sevenths of those that completed: 20 + 20 (n - 1) and 128 + 10 (n - 1) meet at 11.8.
    assert!((11.5..=12.1).contains(&tokens), "{tokens}");
    assert!((low..=high).contains(&tokens), "{tokens} is not in {low} to {high}");
}
