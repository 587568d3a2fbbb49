//! What holds for every run, however odd.

use infergate_judge::{Policy, judge};
use infergate_receipts::{
    Baseline, Counter, Outcome, Probes, ProcessSamples, Receipt, Verdict, VerdictRow, Work, to_json,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::gate::support::{baseline, output, probes, row, run};

const IDS: [&str; 3] = ["prefill/p8", "decode/p8", "generate/p8-o2"];

/// Anything a receipt can hold, sound or not.
fn any_run() -> impl Strategy<Value = Receipt> {
    let samples = vec(vec(vec(prop_oneof![any::<u64>(), 1u64..1000], 0..4), 0..4), 0..4);
    let case = (samples, vec(0u32..3, 0..4), prop::option::of((any::<f64>(), any::<f64>())), any::<(u64, u64)>());
    let rate = prop_oneof![Just(f64::NAN), Just(0.0), 1e9..1e12];
    (vec(case, 0..4), prop::option::of((rate.clone(), rate)), any::<(bool, bool, bool)>()).prop_map(
        |(cases, rates, (partial, elsewhere, invalid))| {
            let mut receipt = all(1000);
            receipt.cases.truncate(cases.len());
            for (record, (processes, ids, work, (min, max))) in receipt.cases.iter_mut().zip(cases) {
                record.processes = processes
                    .into_iter()
                    .map(|samples_ns| ProcessSamples { samples_ns, ..ProcessSamples::default() })
                    .collect();
                record.output = output(ids);
                record.work = work.map(|(bytes, flops)| Work { bytes, flops });
                record.counters.insert("heap".into(), Counter { min, max });
            }
            receipt.probes = rates.map(|(memory, matrix)| probes(memory, matrix));
            receipt.partial = partial;
            if elsewhere {
                receipt.machine.class = "elsewhere".into();
                receipt.machine.libc = None;
            }
            if invalid {
                receipt.invalid.push("the run broke".into());
            }
            receipt
        },
    )
}

/// A sound run in which every process of every case took `ns`.
fn all(ns: u64) -> Receipt {
    let times = [ns; 3];
    run(&IDS.map(|id| (id, &times[..])))
}

/// Sound sessions of all cases with these times.
fn sessions(times: &[u64]) -> Baseline {
    baseline(&times.iter().map(|&ns| all(ns)).collect::<Vec<_>>())
}

fn judged(head: &Receipt, base: Option<&Baseline>, require_baseline: bool) -> Verdict {
    let targets = vec!["* e2e_ms < 1000".parse().unwrap()];
    let policy = Policy { require_baseline, ..Policy::default() };
    let policy = if head.cases.is_empty() { policy } else { Policy { targets, ..policy } };
    judge(head, base, &policy).expect("a verdict")
}

proptest! {
    #[test]
    fn any_run_gets_a_verdict_and_the_worst_row_decides(
        head in any_run(), sound in prop::option::of(vec(1u64..1000, 1..10)), odd in prop::option::of(any_run()),
        require_baseline in any::<bool>(),
    ) {
        let base = sound.map(|times| sessions(&times)).or(odd.map(|odd| Baseline::from_receipt(&odd)));
        let verdict = judged(&head, base.as_ref(), require_baseline);
        let worst = verdict.rows.iter().map(|row| row.outcome.severity()).max().unwrap_or(0);
        prop_assert!(verdict.verdict.severity() >= worst);
        prop_assert_eq!(verdict.exit_code, verdict.verdict.exit_code());
        if head.partial || !head.invalid.is_empty() || head.cases.is_empty() {
            prop_assert_ne!(verdict.exit_code, 0);
        }
        for time in verdict.rows.iter().filter_map(VerdictRow::time) {
            let ends = time.interval.map(|interval| interval.low).into_iter().chain(time.interval.map(|i| i.high));
            let numbers = [time.ratio, time.p_adjusted, time.cv].into_iter().flatten().chain(ends);
            prop_assert!(numbers.into_iter().all(f64::is_finite), "{:?}", time);
        }
        let again: Verdict = serde_json::from_str(&to_json(&verdict).unwrap()).unwrap();
        prop_assert_eq!(again, verdict);
    }

    #[test]
    fn slower_is_never_judged_better(times in vec(900u64..1100, 8..12), ns in 500u64..3000, more in 0u64..3000) {
        let base = sessions(&times);
        let rank = |ns: u64| {
            let verdict = judged(&all(ns), Some(&base), false);
            match row(&verdict, "decode/p8", "itl_ns").outcome {
                Outcome::Improved => 0,
                Outcome::WithinLimit => 1,
                Outcome::Regressed => 2,
                other => panic!("{other:?}"),
            }
        };
        prop_assert!(rank(ns) <= rank(ns + more));
    }

    #[test]
    fn the_unit_of_time_does_not_matter(times in vec(900u64..1100, 8..12), ns in 500u64..3000, factor in 2u64..1_000_000) {
        let verdict = |factor: u64| {
            let times: Vec<u64> = times.iter().map(|time| time * factor).collect();
            let head = run(&[("decode/p8", &[ns * factor; 3])]);
            let verdict = judge(&head, Some(&sessions(&times)), &Policy::default()).expect("a verdict");
            row(&verdict, "decode/p8", "itl_ns").time().expect("a time").clone()
        };
        let (one, other) = (verdict(1), verdict(factor));
        let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a / b - 1.0).abs() < 1e-6,
            (a, b) => a == b,
        };
        prop_assert!(near(one.ratio, other.ratio) && near(one.threshold, other.threshold), "{:?} {:?}", one, other);
    }

    #[test]
    fn the_fraction_of_the_limit_is_undefined_or_above_zero(
        bytes in any::<f64>(), flops in any::<f64>(), memory in any::<f64>(), matrix in any::<f64>(), ns in any::<f64>(),
    ) {
        let mut pair = probes(memory, matrix);
        pair.after = Some(Probes { memory_read_bytes_per_s: matrix, ..pair.before });
        let fraction = infergate_judge::limit_fraction(Some(&Work { bytes, flops }), Some(&pair), Some(ns));
        prop_assert!(fraction.is_none_or(|fraction| fraction > 0.0 && fraction.is_finite()));
    }
}
