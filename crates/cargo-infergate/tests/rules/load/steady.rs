//! A level on a server that shares itself among the requests in flight: what it says is the truth of full load, or that it has too
//! few requests to say it.

use infergate_core::load::{Arrivals, Spacing, Stop};
use infergate_core::metric::Metric;
use infergate_load::plan::LoadPlan;
use infergate_load::summary::{LevelSummary, summarise};
use infergate_load::validity;
use infergate_receipts::{LevelRecord, LoadReceipt};

use crate::load::receipt::sound;
use crate::load::runner::{plan, run};
use crate::load::script::{Act, HEAD, Script, answer, done, send};

const MS: u64 = 1_000_000;
/// A token takes 4 ms for each request in flight.
const SHARE_MS: u64 = 4;

fn sharing() -> Vec<Act> {
    vec![send(HEAD), Act::Share(20, SHARE_MS), done(20)]
}

fn measure(script: &Script, plan: &LoadPlan) -> LevelRecord {
    run(script, plan.clone(), None).0.level
}

fn plan_of(arrivals: Arrivals, stop: Stop) -> LoadPlan {
    let mut plan = plan(arrivals, stop);
    plan.shape.output_tokens = 20;
    plan
}

/// Each reason why the numbers of `level` alone are not to be used.
fn reasons(level: &LevelRecord) -> Vec<String> {
    validity::reasons(&LoadReceipt { audits: Vec::new(), levels: vec![level.clone()], ..sound() })
}

#[track_caller]
fn assert_near(value: Option<f64>, truth: f64) {
    let ratio = value.expect("enough requests") / truth;
    assert!((0.97..=1.03).contains(&ratio), "{value:?} is not {truth}");
}

#[test]
fn the_medians_are_those_of_full_load() {
    for users in [1, 8, 32] {
        let script = Script::new([sharing()]);
        let level = measure(&script, &plan_of(Arrivals::Closed { users }, Stop::Requests { count: 80 }));
        let summary = summarise(&level);
        assert_eq!(summary.measured, 80);
        let gap_ns = (SHARE_MS * MS * u64::from(users)) as f64;
        for (metric, expected_ns) in [(Metric::Ttft, gap_ns), (Metric::Itl, gap_ns), (Metric::E2e, 20.0 * gap_ns)] {
            assert_near(summary.values(metric).at(0.5), expected_ns);
        }
        assert_near(summary.system_tokens_per_s, 250.0);
        assert_near(summary.in_flight, f64::from(users));
        assert_eq!(reasons(&level), Vec::<String>::new());
    }
}

/// What was in flight when the window began belongs to the rate: on an empty server its first latency would give few tokens.
#[test]
fn an_open_loop_is_measured_once_the_server_has_the_load() {
    // Each takes 2,740 ms and has 128 tokens, and four start a second.
    let arrivals = Arrivals::Open { requests_per_s: 4.0, spacing: Spacing::Constant };
    for (stop, started) in [(Stop::Requests { count: 40 }, 40), (Stop::Duration { ns: 12_000 * MS }, 48)] {
        let mut plan = plan_of(arrivals, stop);
        plan.shape.output_tokens = 128;
        let level = measure(&Script::new([answer(200, 20, 128)]), &plan);
        let LevelSummary { started: found, window, in_flight, system_tokens_per_s, .. } = summarise(&level);
        assert_eq!((found, window.map(|window| window.from_ns)), (started, Some(2_750 * MS)));
        assert_near(system_tokens_per_s, 4.0 * 128.0);
        assert_near(in_flight, 4.0 * 2.74);
        assert_eq!(reasons(&level), Vec::<String>::new());
    }
}

#[test]
fn an_open_loop_keeps_its_rate_for_every_measured_request() {
    // Each takes 480 ms alone, and five start a second.
    let arrivals = Arrivals::Open { requests_per_s: 5.0, spacing: Spacing::Constant };
    let level = measure(&Script::new([answer(100, 20, 20)]), &plan_of(arrivals, Stop::Requests { count: 40 }));
    let summary = summarise(&level);
    assert_eq!(summary.measured, 40);
    let window = summary.window.expect("steady");
    let last_ns = level.requests.iter().filter(|record| record.measured).map(|record| record.ended_ns).max();
    assert!(last_ns.is_some_and(|last_ns| last_ns <= window.to_ns));
    let starts = level.requests.iter().filter(|record| record.scheduled_ns <= window.to_ns).count() as u64;
    assert_eq!(starts, window.to_ns / (200 * MS) + 1, "the schedule, to the end");
    assert_eq!(reasons(&level), Vec::<String>::new());
}
