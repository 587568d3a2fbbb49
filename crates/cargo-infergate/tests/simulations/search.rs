//! The search for the most users: where it ends, and how often its answer misses the objective.

use infergate_core::metric::Metric;
use infergate_core::stats::quantile;
use infergate_load::plan::search::{Step, next_step};
use infergate_load::summary::slo::meets;
use infergate_load::summary::summarise;
use infergate_receipts::Limit;
use proptest::prelude::*;

use crate::queue::{Load, Queue, Server};

proptest! {
    /// Whatever the capacity is, it is found to a twentieth, in few levels, and was run twice.
    #[test]
    fn the_search_ends_at_the_capacity(capacity in 0_u32..3_000, most in 1_u32..2_000) {
        let mut tried = Vec::new();
        let found = loop {
            match next_step(&tried, most) {
                Step::Run(users) => tried.push((users, users <= capacity)),
                Step::Found(found) => break found,
            }
            prop_assert!(tried.len() <= 25, "{tried:?}");
        };
        let reachable = capacity.min(most);
        let met = found.unwrap_or(0);
        prop_assert!(met <= reachable && f64::from(reachable - met) <= 0.05 * f64::from(met).max(20.0), "{met} of {reachable}");
        prop_assert_eq!(tried.iter().filter(|(users, _)| Some(*users) == found).count(), if met > 0 { 2 } else { 0 });
    }
}

#[test]
fn a_failed_confirmation_steps_down_and_searches_no_more() {
    let mut tried = vec![(1, true), (2, true), (4, true), (8, false), (6, true), (7, false)];
    assert_eq!(next_step(&tried, 64), Step::Run(6));
    tried.push((6, false));
    assert_eq!(next_step(&tried, 64), Step::Run(4), "not 5, which was never run");
    tried.push((4, true));
    assert_eq!(next_step(&tried, 64), Step::Found(Some(4)));
    assert_eq!(next_step(&[(1, false)], 64), Step::Found(None));
}

/// `cargo test -p cargo-infergate --test rules most_users -- --nocapture` prints how often it does not (docs/evidence/load-client.md).
#[test]
fn the_most_users_that_are_named_meet_the_objective() {
    const SERVERS: u64 = 60;
    let (mut missed, mut named, mut part) = (0, 0, 0.0);
    for number in 0..SERVERS {
        let server =
            Server { slots: if number % 2 == 0 { 4 } else { 16 }, fixed: [0.0, 0.8][(number / 2 % 2) as usize] };
        let limit: Limit = format!("e2e_p90={}ms", 260 + 7 * (number % 20)).parse().expect("a limit");
        let mut tried = Vec::new();
        let found = loop {
            match next_step(&tried, 256) {
                Step::Found(found) => break found,
                Step::Run(users) => {
                    let seed = 1_000 * number + tried.len() as u64;
                    let level = Queue::warm(server, Load::Closed(users), seed).level(600);
                    tried.push((users, meets(&summarise(&level), &[limit]) == Some(true)));
                }
            }
        };
        let is_met = |users: u32| {
            let long = Queue::warm(server, Load::Closed(users), number).take(20_000);
            let times: Vec<f64> = long.filter_map(|record| Metric::E2e.value(&record)).collect();
            quantile(&times, 0.9).is_some_and(|ns| ns <= limit.limit_ns as f64)
        };
        let Some(users) = found else { continue };
        named += 1;
        missed += u64::from(!is_met(users));
        let truth = (users..).find(|more| !is_met(more + 1)).unwrap_or(users);
        part += f64::from(users) / f64::from(truth);
    }
    println!(
        "{named} of {SERVERS} servers: {missed} answers miss the objective; {:.2} of the true most users in the mean",
        part / named as f64
    );
    assert!(named > SERVERS / 2 && missed * 20 <= named, "{missed} of {named}");
}
