//! The stored channel: one session's time against the sessions of a baseline.

use infergate_judge::{Policy, judge, stored_limit, summary_ns};
use infergate_receipts::{Baseline, Counter, Interval, Outcome, Probes, ProcessSamples, VerdictRow};

use crate::gate::support::{assert_near, baseline, decode_baseline, note, notes, probes, row, run, time};

const QUIET: [u64; 8] = [1000, 1010, 990, 1000, 1005, 995, 1000, 1000];

fn judged(sessions: &[u64], head: &[u64]) -> VerdictRow {
    let verdict = judge(&run(&[("decode/p128", head)]), Some(&decode_baseline(sessions)), &Policy::default());
    row(&verdict.expect("a verdict"), "decode/p128", "itl_ns").clone()
}

#[track_caller]
fn ends(row: &VerdictRow) -> Interval {
    time(row).interval.expect("an interval")
}

#[test]
fn a_session_is_the_median_of_process_medians() {
    let process = |times: &[u64]| ProcessSamples {
        samples_ns: times.iter().map(|&ns| vec![ns]).collect(),
        ..ProcessSamples::default()
    };
    // Pooled, the median would be 10; the process with many fast samples counts once.
    let processes = [process(&[10, 10, 10, 10, 10, 10]), process(&[20, 22, 90]), process(&[30])];
    assert_eq!(summary_ns(&processes), Some(22.0));
    assert_eq!(summary_ns(&[]), None);
}

#[test]
fn the_limit_is_gate_mds_formula() {
    // s = 5 %, m = 9: 28 % at K = 8, 20 % at K = 20 (gate.md); t(K - 1, 1 - 0.01 / 9) from SciPy 1.17.
    for (sessions, t, percent) in [(8_usize, 4.694_710_851_6_f64, 28.0), (20, 3.533_042_905_2, 20.0)] {
        let step = 0.05 * ((sessions - 1) as f64 / sessions as f64).sqrt();
        let summaries: Vec<f64> = (0..sessions).map(|i| 1e6 * if i % 2 == 0 { step } else { -step }.exp()).collect();
        let limit = stored_limit(&[summaries], 9).expect("a limit");
        assert!((limit.std - 0.05).abs() < 1e-9 && (limit.centre - 1e6_f64.ln()).abs() < 1e-9, "{limit:?}");
        let by_hand = t * 0.05 * (1.0 + 1.0 / sessions as f64).sqrt();
        assert!((limit.limit / by_hand - 1.0).abs() < 1e-8, "{limit:?}, by hand {by_hand}");
        assert!(((limit.limit.exp() - 1.0) * 100.0 - percent).abs() < 0.6, "{limit:?}");
    }
}

#[test]
fn the_floor_holds_where_sessions_are_quiet() {
    let row = judged(&QUIET, &[1099, 1099, 1099]);
    assert_eq!(row.outcome, Outcome::WithinLimit, "{row:?}");
    assert_near(time(&row).threshold, 1.10);
    let row = judged(&QUIET, &[1102, 1102, 1102]);
    assert_eq!(row.outcome, Outcome::Regressed, "{row:?}");
    assert!(ends(&row).low > 1.0 && time(&row).p_adjusted.expect("p") < 0.01, "{row:?}");
}

#[test]
fn p_is_adjusted_for_every_case_of_the_run() {
    let cases = |ns: u64| run(&[("decode/p128", &[ns, ns, ns]), ("prefill/p128", &[ns, ns, ns])]);
    let base = baseline(&QUIET.map(cases));
    let two = judge(&cases(1020), Some(&base), &Policy::default()).expect("a verdict");
    let one = judged(&QUIET, &[1020, 1020, 1020]);
    let p = time(&one).p_adjusted.expect("p");
    assert!(p < 0.5, "{p}");
    assert_near(time(row(&two, "decode/p128", "itl_ns")).p_adjusted, 2.0 * p);
    assert!(ends(row(&two, "decode/p128", "itl_ns")).low < ends(&one).low, "more cases, wider interval");
}

#[test]
fn a_case_counts_only_in_the_sessions_that_ran_it() {
    let mut sessions: Vec<_> = QUIET.iter().map(|&ns| run(&[("decode/p128", &[ns, ns, ns])])).collect();
    sessions.push(run(&[("prefill/p128", &[500; 3])]));
    let head = run(&[("decode/p128", &[1000; 3]), ("prefill/p128", &[500; 3]), ("prefill/p7", &[9; 3])]);
    let verdict = judge(&head, Some(&baseline(&sessions)), &Policy::default()).expect("a verdict");
    assert_eq!(row(&verdict, "decode/p128", "itl_ns").outcome, Outcome::WithinLimit);
    assert!(
        note(row(&verdict, "prefill/p128", "ttft_ns"))
            .contains("1 session of 1 day: time is advisory, 7 more days needed")
    );
    let unknown = row(&verdict, "prefill/p7", "ttft_ns");
    assert_eq!((unknown.outcome, time(unknown).base_ns, time(unknown).ratio), (Outcome::Advisory, None, None));
    assert!(note(unknown).contains("no session of this case"), "{unknown:?}");
}

/// Eight threads are as fast as one by another kernel alone.
#[test]
fn times_of_another_number_of_threads_are_not_compared() {
    let mut head = run(&[("decode/p128", &[5000; 3])]);
    head.threads += 1;
    let verdict = judge(&head, Some(&decode_baseline(&QUIET)), &Policy::default()).expect("a verdict");
    let row = row(&verdict, "decode/p128", "itl_ns");
    assert_eq!((row.outcome, time(row).ratio), (Outcome::Advisory, None), "{row:?}");
}

#[test]
fn a_case_above_its_variance_limit_is_unstable() {
    let row = judged(&QUIET, &[700, 1000, 1400]);
    assert_eq!(row.outcome, Outcome::Unstable, "{row:?}");
    assert_eq!(note(&row), "CV 34 % is above the limit of 20 %");
    // A median that is low by chance must not count as an improvement.
    assert_eq!(judged(&QUIET, &[500, 800, 1400]).outcome, Outcome::Unstable);
}

#[test]
fn noise_never_overrides_regressed() {
    let row = judged(&QUIET, &[1000, 1500, 2500]);
    assert_eq!(row.outcome, Outcome::Regressed, "{row:?}");
    assert!(note(&row).contains("CV"), "the noise is still named: {row:?}");
}

#[test]
fn noise_decides_nothing_where_time_is_advisory() {
    let head = run(&[("decode/p128", &[500, 1000, 3000])]);
    let verdict = judge(&head, Some(&decode_baseline(&QUIET[..2])), &Policy::default()).expect("a verdict");
    assert_eq!(verdict.exit_code, 0);
    assert!(note(row(&verdict, "decode/p128", "itl_ns")).contains("above the limit of 20 %"));
}

#[test]
fn probes_do_not_move_a_limit_and_their_drift_is_named() {
    let mut head = run(&[("decode/p128", &[1300; 3])]);
    let mut slow = probes(30e9, 200e9);
    slow.after.as_mut().expect("after").memory_read_bytes_per_s = 15e9;
    head.probes = Some(slow);
    let verdict = judge(&head, Some(&decode_baseline(&QUIET)), &Policy::default()).expect("a verdict");
    assert_eq!(verdict.verdict, Outcome::Regressed);
    assert!(notes(&verdict).iter().any(|note| note == "the machine drifted during the run: memory read -50 %"));
}

#[test]
fn the_fraction_of_the_hardware_limit_uses_the_best_probe_and_is_not_clamped() {
    let mut head = run(&[("decode/p128", &[1_000_000; 3])]);
    head.cases[0].work = Some(infergate_receipts::Work { bytes: 20_000_000.0, flops: 100_000_000.0 });
    let fraction = |head: &infergate_receipts::Receipt| {
        let verdict = judge(head, None, &Policy::default()).expect("a verdict");
        row(&verdict, "decode/p128", "itl_ns").time().expect("a time").limit_fraction
    };
    assert_eq!(fraction(&head), None, "no probes");
    let mut pair = probes(20e9, 500e9);
    pair.after.as_mut().expect("after").memory_read_bytes_per_s = 40e9;
    pair.before.fma_flops_per_s = 250e9;
    head.probes = Some(pair);
    // 20 MB at 40 GB/s are 0.5 ms, 0.1 GFLOP at 500 GFLOP/s are 0.2 ms, of 1 ms.
    assert_near(fraction(&head), 0.7);
    pair.after = None;
    head.probes = Some(pair);
    assert_near(fraction(&head), 1.4);
    // A probe between the cases saw more.
    pair.best = Some(Probes { memory_read_bytes_per_s: 80e9, fma_flops_per_s: 1e12 });
    head.probes = Some(pair);
    assert_near(fraction(&head), 0.35);
    head.cases[0].work = None;
    assert_eq!(fraction(&head), None, "no work");
}

/// What was gained by a change must not be lost again unseen: a step is no spread.
#[test]
fn behind_a_step_days_are_compared_with_each_other() {
    let after = |step: bool| {
        let mut base = decode_baseline(&[&QUIET[..], &[800]].concat());
        base.sessions[8].step = step;
        judge(&run(&[("decode/p128", &[900, 900, 900])]), Some(&base), &Policy::default()).expect("a verdict")
    };
    let row_of = |verdict| row(verdict, "decode/p128", "itl_ns").clone();
    let (without, with) = (row_of(&after(false)), row_of(&after(true)));
    assert_eq!((without.outcome, with.outcome), (Outcome::WithinLimit, Outcome::Regressed), "{without:?} {with:?}");
    assert_near(time(&with).base_ns, 800.0);
    let days = |row| (time(row).sessions, time(row).days, time(row).spread_days);
    assert_eq!((days(&without), days(&with)), ((Some(9), Some(9), None), (Some(1), Some(1), Some(9))));
    // How much days differ is known from before it.
    let limit = stored_limit(&[QUIET.map(|ns| ns as f64).to_vec(), vec![800.0]], 1);
    let limit = limit.expect("a limit");
    assert_eq!((limit.days, limit.freedom), (1, 7));
    let logs: Vec<f64> = QUIET.iter().map(|&ns| (ns as f64).ln()).collect();
    let centre = logs.iter().sum::<f64>() / 8.0;
    let std = (logs.iter().map(|log| (log - centre).powi(2)).sum::<f64>() / 7.0).sqrt();
    // t(7, 0.99), SciPy 1.17.
    assert!((limit.half_width - 2.997_951_566_868_528 * std * 2.0_f64.sqrt()).abs() < 1e-9, "{limit:?}");
}

#[test]
fn days_that_are_alone_behind_a_step_say_nothing_of_how_days_differ() {
    let mut base = decode_baseline(&[1000; 5]);
    base.sessions[4].step = true;
    let verdict = judge(&run(&[("decode/p128", &[1000; 3])]), Some(&base), &Policy::default()).expect("a verdict");
    let said = note(row(&verdict, "decode/p128", "itl_ns"));
    assert_eq!(
        said, "5 sessions of 5 days: time is advisory, 4 more days needed",
        "four days and a step are as good as four"
    );
    let alone: Vec<Vec<f64>> = (0..8).map(|at| vec![1000.0 + f64::from(at)]).collect();
    assert_eq!(stored_limit(&alone, 1), None);
}

#[test]
fn an_older_session_is_added_at_its_place_and_is_no_reference() {
    let counted = |created: &str, allocations: u64| {
        let mut receipt = run(&[("decode/p128", &[1000])]);
        receipt.created = created.into();
        let counter = Counter { min: allocations, max: allocations };
        receipt.cases[0].counters = [("allocations_per_token".to_owned(), counter)].into();
        receipt
    };
    let mut base = Baseline::from_receipt(&counted("2026-11-07T07:00:00Z", 600));
    let mut newer = counted("2026-11-09T07:00:00Z", 564);
    let held = |bytes: u64| [("live_bytes_at_rest".to_owned(), Counter { min: bytes, max: bytes })].into();
    (newer.held, newer.engine.weight_bytes) = (held(42 << 20), Some(2000));
    base.add(&newer, false);
    let mut older = counted("2026-11-08T07:00:00Z", 600);
    older.held = held(90 << 20);
    base.add(&older, false);
    assert_eq!(base.held, held(42 << 20));
    let days: Vec<&str> = base.sessions.iter().map(|session| &session.created[8..10]).collect();
    assert_eq!(days, ["07", "08", "09"]);
    let verdict = judge(&counted("2026-11-10T07:00:00Z", 600), Some(&base), &Policy::default()).expect("a verdict");
    assert_eq!(verdict.verdict, Outcome::CounterRegressed, "{verdict:?}");
    // A session that counts nothing takes no counter away.
    let mut bare = counted("2026-11-11T07:00:00Z", 0);
    bare.cases[0].counters.clear();
    base.add(&bare, false);
    assert_eq!(base.exact[0].counters["allocations_per_token"].max, 564);
}
