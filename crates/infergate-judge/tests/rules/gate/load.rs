//! Load runs against sessions of a load baseline.

use infergate_core::load::{Arrivals, Failure, FailureClass};
use infergate_judge::Policy;
use infergate_judge::load::{compare, judge, judge_with};
use infergate_receipts::{
    Evidence, LoadBaseline, LoadReceipt, Metric, Note, Outcome, Reason, ShardRecord, Shown, TargetRecord, Verdict,
    VerdictRow,
};

use crate::gate::load_runs::run;

/// Sessions of `count` days, up to 2 % apart.
fn baseline(count: u32) -> LoadBaseline {
    let mut days = (1..=count).map(|day| run(day, 100 + u64::from(day % 3)));
    let mut baseline = LoadBaseline::from_receipt(&days.next().expect("a session"));
    days.for_each(|day| baseline.add(&day, false));
    baseline
}

fn judged(head: &LoadReceipt, base: &LoadBaseline) -> Verdict {
    judge(head, Some(base), &Policy::default()).expect("a verdict")
}

fn required() -> Policy {
    Policy { require_baseline: true, ..Policy::default() }
}

fn times(verdict: &Verdict) -> Vec<&VerdictRow> {
    verdict.rows.iter().filter(|row| row.time().is_some()).collect()
}

fn outcomes(rows: &[&VerdictRow]) -> Vec<Outcome> {
    rows.iter().map(|row| row.outcome).collect()
}

/// The row of a count: `failed_requests`.
fn count<'a>(verdict: &'a Verdict, name: &str) -> &'a VerdictRow {
    let is_it = |row: &&VerdictRow| matches!(&row.evidence, Evidence::Counter(counter) if counter.name == name);
    verdict.rows.iter().find(is_it).expect("a row")
}

fn fail(receipt: &mut LoadReceipt, requests: usize, class: FailureClass) {
    for record in receipt.levels[0].requests.iter_mut().take(requests) {
        record.failure = Some(Failure { class, status: None, detail: "why".into() });
    }
}

fn reasons(verdict: &Verdict) -> Vec<&Reason> {
    verdict.rows.iter().flat_map(|row| &row.reasons).collect()
}

fn other(what: &str, base: &str, head: &str) -> Reason {
    Reason::OtherLoad { what: what.into(), base: base.into(), head: head.into() }
}

#[test]
fn a_slowdown_is_regressed_from_eight_sessions_on() {
    let slow = run(20, 150);
    let verdict = judged(&slow, &baseline(8));
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Regressed, 1));
    assert_eq!(outcomes(&times(&verdict)), [Outcome::Regressed; 4]);
    assert!(times(&verdict).iter().all(|row| row.time().is_some_and(|time| time.shown == Some(Shown::Slower))));
    let few = judged(&slow, &baseline(7));
    assert_eq!((few.verdict, few.exit_code), (Outcome::Pass, 0));
    assert_eq!(outcomes(&times(&few)), [Outcome::Advisory; 4]);
    assert!(reasons(&few).contains(&&Reason::TooFewSessions { sessions: 7, days: 7, needed: 8 }));
    let fast = judged(&run(20, 60), &baseline(8));
    assert_eq!((outcomes(&times(&fast)), fast.exit_code), (vec![Outcome::Improved; 4], 0));
    // Eight of one day are one.
    let mut day = baseline(8);
    day.sessions
        .iter_mut()
        .zip(0..)
        .for_each(|(session, hour)| session.created = format!("2026-01-01T{hour:02}:00:00Z"));
    let verdict = judged(&slow, &day);
    assert_eq!((outcomes(&times(&verdict)), verdict.exit_code), (vec![Outcome::Advisory; 4], 0));
    assert!(reasons(&verdict).contains(&&Reason::TooFewSessions { sessions: 8, days: 1, needed: 8 }));
}

#[test]
fn two_runs_are_compared_and_only_counts_decide() {
    let same = compare(&run(1, 100), &run(2, 100), &Policy::default()).expect("a verdict");
    assert_eq!((same.verdict, same.exit_code), (Outcome::Pass, 0));
    assert_eq!(same.notes[0], Note::OneSession);
    let ratios: Vec<f64> = times(&same).iter().filter_map(|row| row.time()?.ratio).collect();
    assert!(ratios.len() == 4 && ratios.iter().all(|ratio| (ratio - 1.0).abs() < 1e-9), "{ratios:?}");
    let slow = compare(&run(1, 100), &run(2, 300), &Policy::default()).expect("a verdict");
    assert_eq!((outcomes(&times(&slow)), slow.exit_code), (vec![Outcome::Advisory; 4], 0));
}

#[test]
fn a_level_meets_its_targets_or_misses_them() {
    let mut head = run(20, 100);
    fail(&mut head, 1, FailureClass::Timeout);
    for (target, expected) in [
        ("* failed_percent < 50", Outcome::Pass),
        ("load:chatbot/2?users failed_percent < 0.1", Outcome::TargetMissed),
        ("load:other/* failed_percent < 50", Outcome::TargetMissed),
        ("* ttft_ms < 5000", Outcome::TargetMissed),
    ] {
        let targets = [target.parse().expect("a target")];
        let verdict = judge_with(&head, None, &Policy::default(), &targets).expect("a verdict");
        let row = verdict.rows.iter().find(|row| matches!(row.evidence, Evidence::Target(_)));
        assert_eq!(row.map(|row| row.outcome), Some(expected), "{target}");
    }
}

#[test]
fn a_first_failure_regresses_at_once() {
    for (class, name, other) in [
        (FailureClass::Status5xx, "failed_requests", "wrong_length_requests"),
        (FailureClass::WrongLength, "wrong_length_requests", "failed_requests"),
    ] {
        let mut head = run(20, 100);
        fail(&mut head, 1, class);
        let verdict = judged(&head, &baseline(1));
        assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::CounterRegressed, 1), "{class:?}");
        assert_eq!(count(&verdict, name).outcome, Outcome::CounterRegressed);
        assert_eq!(
            count(&verdict, name).reasons,
            [Reason::MoreFail { failed: 1, issued: 40, most_before: 0.0, blocks: None }]
        );
        assert_eq!(count(&verdict, other).outcome, Outcome::Pass);
    }
    let mut ended = run(20, 100);
    fail(&mut ended, 1, FailureClass::Cancelled);
    assert_eq!(judged(&ended, &baseline(1)).exit_code, 0, "what was in flight at the end did not fail");
}

#[test]
fn where_requests_failed_before_more_must_fail_than_chance_explains() {
    // So many of 40, spread over the run.
    let failing = |day, requests: usize| {
        let mut receipt = run(day, 100);
        for at in (0..requests).map(|nth| nth * 40 / requests) {
            let failure = Failure { class: FailureClass::Timeout, status: None, detail: "why".into() };
            receipt.levels[0].requests[at].failure = Some(failure);
        }
        receipt
    };
    let mut base = LoadBaseline::from_receipt(&failing(1, 2));
    (2..=8).for_each(|day| base.add(&failing(day, 2), false));
    let outcome = |head: &LoadReceipt, base: &LoadBaseline| count(&judged(head, base), "failed_requests").outcome;
    for (requests, expected) in
        [(0, Outcome::Pass), (2, Outcome::Pass), (3, Outcome::Advisory), (20, Outcome::CounterRegressed)]
    {
        assert_eq!(outcome(&failing(20, requests), &base), expected, "{requests} of 40");
    }
    // One stretch is one event, and sessions of one day say nothing of the next.
    let mut stretch = run(20, 100);
    fail(&mut stretch, 20, FailureClass::Timeout);
    assert_eq!(outcome(&stretch, &base), Outcome::Advisory);
    base.sessions
        .iter_mut()
        .zip(0..)
        .for_each(|(session, hour)| session.created = format!("2026-01-01T{hour:02}:00:00Z"));
    assert_eq!(outcome(&failing(20, 20), &base), Outcome::Advisory);
}

#[test]
fn a_run_that_is_invalid_or_was_cut_short_gives_no_verdict() {
    let (mut invalid, mut partial) = (run(20, 150), run(20, 150));
    invalid.invalid.push("the client was too slow".into());
    partial.partial = true;
    fail(&mut partial, 5, FailureClass::Status5xx);
    for (head, expected) in [(invalid, Outcome::Invalid), (partial, Outcome::Partial)] {
        let verdict = judged(&head, &baseline(8));
        assert_eq!((verdict.verdict, verdict.exit_code), (expected, 3));
        assert!(verdict.rows.iter().all(|row| row.outcome == expected), "{verdict:?}");
        let verdict = compare(&head, &run(21, 150), &Policy::default()).expect("a verdict");
        let expected = if head.partial { 0 } else { 3 };
        assert_eq!(verdict.exit_code, expected, "as the base run: {:?}", verdict.notes);
    }
    let nothing = LoadReceipt { partial: true, levels: Vec::new(), ..run(20, 100) };
    assert_eq!(judged(&nothing, &baseline(8)).exit_code, 3);
}

#[test]
fn another_load_is_named_and_not_comparable_where_a_baseline_is_required() {
    type Change = fn(&mut LoadReceipt);
    fn endpoint(receipt: &mut LoadReceipt) -> (&mut String, &mut String, &mut Vec<String>) {
        match &mut receipt.targets[0] {
            TargetRecord::Endpoint { api, model, extensions, .. } => (api, model, extensions),
            TargetRecord::Local { .. } => panic!("a server"),
        }
    }
    let changes: [(Change, Reason); 8] = [
        (|head| head.scenarios[0].name = "agent".into(), Reason::NoSession),
        (|head| head.scenarios[0].output_tokens = 5, Reason::NoSession),
        (|head| head.scenarios[0].input_tokens = 64, Reason::NoSession),
        (|head| *endpoint(head).0 = "completions".into(), other("API", "chat", "completions")),
        (|head| *endpoint(head).1 = "large".into(), other("model", "small", "large")),
        (|head| endpoint(head).2.push("ignore_eos".into()), other("extensions", "none", "ignore_eos")),
        (|head| head.dataset_prompts = Some(9), other("dataset", "none", "9 prompts")),
        (|head| head.levels[0].arrivals = Arrivals::Closed { users: 3 }, Reason::NoSession),
    ];
    for (change, reason) in changes {
        let mut head = run(20, 150);
        change(&mut head);
        let verdict = judged(&head, &baseline(8));
        assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Pass, 0), "{reason:?}");
        assert!(verdict.rows.iter().all(|row| row.outcome == Outcome::Advisory), "{verdict:?}");
        assert!(reasons(&verdict).contains(&&reason), "{reason:?} in {:?}", reasons(&verdict));
        let verdict = judge(&head, Some(&baseline(8)), &required()).expect("a verdict");
        assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::NotComparable, 4), "{reason:?}");
    }
}

#[test]
fn a_level_that_was_not_run_is_named() {
    let mut both = run(1, 100);
    let mut more = both.levels[0].clone();
    more.arrivals = Arrivals::Closed { users: 1 };
    both.levels.push(more);
    let base = LoadBaseline::from_receipt(&both);
    let verdict = judged(&run(2, 100), &base);
    let missing = Note::NotRun { subjects: vec!["load:chatbot/1 user".parse().expect("a subject")] };
    assert!(verdict.notes.contains(&missing), "{:?}", verdict.notes);
    assert_eq!(verdict.exit_code, 0);
    let verdict = judge(&run(2, 100), Some(&base), &required()).expect("a verdict");
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::NotComparable, 4));
}

#[test]
fn without_a_baseline_or_on_another_machine_time_is_advisory() {
    let alone = judge(&run(1, 100), None, &Policy::default()).expect("a verdict");
    assert_eq!(
        (alone.exit_code, &alone.notes[..]),
        (0, &[Note::NoBaseline { machine_class: run(1, 1).machine.class }][..])
    );
    assert_eq!(judge(&run(1, 100), None, &required()).expect("a verdict").exit_code, 4);
    let mut elsewhere = run(20, 300);
    elsewhere.machine.class = "macos-aarch64-apple-m3-8c".into();
    let verdict = judged(&elsewhere, &baseline(8));
    assert_eq!((outcomes(&times(&verdict)), verdict.exit_code), (vec![Outcome::Advisory; 4], 0));
    let verdict = judge(&elsewhere, Some(&baseline(8)), &required()).expect("a verdict");
    assert_eq!(verdict.exit_code, 4);
    fail(&mut elsewhere, 1, FailureClass::Status5xx);
    assert_eq!(judged(&elsewhere, &baseline(8)).exit_code, 1, "failures do not depend on the machine");
}

#[test]
fn a_metric_that_is_gone_does_not_pass() {
    let mut head = run(20, 100);
    // Everything comes in one piece: there are no gaps any more.
    for record in &mut head.levels[0].requests {
        record.chunk_ns = vec![record.ended_ns];
    }
    let verdict = judged(&head, &baseline(8));
    let gap = times(&verdict).into_iter().find(|row| row.time().is_some_and(|time| time.metric == Metric::Itl));
    let gap = gap.expect("a row");
    assert_eq!((gap.outcome, &gap.reasons[..]), (Outcome::Inconclusive, &[Reason::NotTimed][..]));
}

#[test]
fn each_of_several_targets_is_judged() {
    let two = |day: u32, slow_ms: u64| {
        let mut receipt = run(day, 100);
        receipt.targets = ["A", "B"]
            .map(|name| {
                let mut target = receipt.targets[0].clone();
                if let TargetRecord::Endpoint { name: own, .. } = &mut target {
                    *own = name.into();
                }
                target
            })
            .into();
        for record in &mut receipt.levels[0].requests {
            record.target = record.user;
            let late_ns = u64::from(record.user) * slow_ms * 1_000_000;
            record.chunk_ns.iter_mut().for_each(|ns| *ns += late_ns);
            record.ended_ns += late_ns;
        }
        receipt
    };
    let mut base = LoadBaseline::from_receipt(&two(1, 0));
    (2..=8).for_each(|day| base.add(&two(day, 0), false));
    let levels = || base.sessions.iter().flat_map(|session| &session.levels);
    assert!(levels().all(|level| level.system_tokens_per_s.is_none()), "the slowest one decides it for each");
    let verdict = judged(&two(20, 50), &base);
    assert!(times(&verdict).iter().all(|row| row.time().is_some_and(|time| time.metric != Metric::SystemToken)));
    let regressed: Vec<String> = verdict
        .rows
        .iter()
        .filter(|row| row.outcome == Outcome::Regressed)
        .map(|row| row.subject.to_string())
        .collect();
    assert!(!regressed.is_empty() && regressed.iter().all(|name| name == "load:B/chatbot/2 users"), "{regressed:?}");
    let verdict = judged(&run(20, 100), &base);
    assert!(reasons(&verdict).contains(&&other("API", "none", "chat")), "{:?}", reasons(&verdict));
}

#[test]
fn a_part_of_a_load_is_refused() {
    let mut part = run(1, 100);
    part.shards = vec![ShardRecord { index: 0, count: 2, run: "ab".into(), clock_unix_ns: 1 }];
    let error = judge(&part, None, &Policy::default()).expect_err("a shard").to_string();
    assert!(error.contains("one shard of a load"), "{error}");
    assert!(baseline(1).ensure_accepts(&part).is_err());
}
