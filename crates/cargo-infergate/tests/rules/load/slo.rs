//! Limits: of levels, and of each request.

use infergate_core::load::{Failure, FailureClass};
use infergate_core::metric::Metric;
use infergate_load::summary::slo::{goodput, meets};
use infergate_load::summary::summarise;
use infergate_receipts::{Limit, LoadReceipt};

use crate::load::summary::level;
use crate::load::text;

const MS: u64 = 1_000_000;

fn limit(text: &str) -> Limit {
    text.parse().expect("a limit")
}

#[test]
fn limits_are_read_and_written_the_same() {
    for text in ["ttft_p95=500ms", "itl_p99.9=70ms", "tpot=50ms", "e2e=10s"] {
        assert_eq!(limit(text).to_string(), text);
    }
    for text in ["ttft", "ttft=", "ttft=5", "speed=5s", "ttft_p0=1s", "ttft_p100=1s", "ttft_px=1s", "=1s", ""] {
        assert!(text.parse::<Limit>().is_err(), "{text}");
    }
}

#[test]
fn a_level_meets_its_limits_or_cannot_say() {
    let summary = summarise(&level(2, 200));
    assert_eq!(meets(&summary, &[limit("ttft_p95=100ms"), limit("itl_p50=20ms")]), Some(true));
    assert_eq!(meets(&summary, &[limit("ttft_p95=100ms"), limit("itl_p50=19ms")]), Some(false));
    assert_eq!(meets(&summarise(&level(2, 40)), &[limit("ttft_p99=1s")]), None, "78 requests have no p99");
    assert_eq!(
        meets(&summarise(&level(2, 40)), &[limit("ttft_p95=1s")]),
        None,
        "they have a p95, and no interval of it"
    );
}

/// A request without an end is slower than any limit.
#[test]
fn failed_requests_are_infinitely_slow() {
    let mut failed = level(2, 600);
    for record in failed.requests.iter_mut().skip(7).step_by(33) {
        record.failure = Some(Failure { class: FailureClass::Timeout, status: None, detail: "why".into() });
    }
    let summary = summarise(&failed);
    assert_eq!((summary.values(Metric::Ttft).at(0.99), summary.values(Metric::Itl).at(0.99)), (None, None));
    assert_eq!(summary.values(Metric::E2e).with_failures(0.99), Some(f64::INFINITY));
    assert_eq!(
        (summary.values(Metric::E2e).at(0.9), summary.values(Metric::OutputThroughput).at(0.01)),
        (Some(160e6), Some(25.0))
    );
    assert_eq!(meets(&summary, &[limit("ttft_p99=1h")]), Some(false));
    assert_eq!(meets(&summary, &[limit("ttft_p90=100ms")]), Some(true));
}

#[test]
fn goodput_counts_requests_that_meet_every_limit() {
    let mut level = level(1, 101);
    for record in level.requests.iter_mut().step_by(4) {
        record.chunk_ns.last_mut().into_iter().for_each(|last| *last += 1);
    }
    let found = |texts: &[&str]| {
        let limits: Vec<Limit> = texts.iter().map(|text| limit(text)).collect();
        goodput(&level, &summarise(&level), &limits).expect("a goodput")
    };
    assert_eq!((found(&["ttft=100ms"]).good, found(&["ttft=100ms"]).all), (100, 100));
    assert_eq!(found(&["ttft=100ms", "e2e=160ms"]).good, 75);
    assert_eq!((found(&["itl=20ms"]).good, found(&["ttft=99ms"]).good), (75, 0));
    let good = found(&["e2e=160ms"]);
    let (per_s, (low, high)) = (good.requests_per_s, good.within.expect("an interval"));
    assert!((per_s - 75.0 / 16.0).abs() < 1e-3 && low < per_s && per_s < high, "{per_s} in {low} to {high}");
    assert_eq!(level.wall_ns / MS, 16_160);
}

#[test]
fn the_most_users_are_those_that_met_the_limits_twice() {
    let said = |runs: &[(u32, bool)]| {
        let levels = runs.iter().map(|(users, met)| {
            let mut level = level(*users, 40);
            let failure = Failure { class: FailureClass::Timeout, status: None, detail: "timed out".into() };
            level.requests.iter_mut().for_each(|record| record.failure = (!met).then(|| failure.clone()));
            level
        });
        let receipt = crate::load::receipt::sound();
        let levels = levels.collect();
        let text = text(&LoadReceipt { limits: vec![limit("ttft_p50=1s")], levels, ..receipt });
        text.lines().find(|line| line.contains("ttft_p50=1s")).expect("it is said").to_owned()
    };
    let confirmed = said(&[(1, true), (2, true), (4, true), (8, false), (6, false), (5, false), (4, true)]);
    assert_eq!(confirmed, "- Most users that meet ttft_p50=1s, shown in two runs: 4; a run of 5 does not.");
    let luck = said(&[(1, true), (2, true), (4, true), (8, false), (6, true), (7, false), (6, false), (4, true)]);
    assert_eq!(luck, "- Most users that meet ttft_p50=1s, shown in two runs: 4; a run of 6 does not.");
    let interrupted = said(&[(1, true), (2, true), (4, true), (8, false)]);
    assert_eq!(interrupted, "- One run of 4 users meets ttft_p50=1s; a run of 8 does not.");
    let all = said(&[(1, true), (2, true), (2, true)]);
    assert_eq!(all, "- Most users that meet ttft_p50=1s, shown in two runs: 2; no more were shown to.");
    let crossed = said(&[(1, false), (2, true)]);
    assert_eq!(crossed, "- One run of 2 users meets ttft_p50=1s; a run of 1 does not.");
}
