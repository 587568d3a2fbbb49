//! What a calibration says: gates by kind, and what slowed blocks show.

use infergate_core::engine::EngineInfo;
use infergate_core::receipt::{Build, Machine};
use infergate_core::stats::clopper_pearson;
use infergate_judge::paired::{block_noise, false_failure_rate, mean_test, smallest_detectable, summarise};
use infergate_receipts::{CALIBRATION_SCHEMA, Calibration, Note, PairedReceipt, Share, output_sha256, read};
use serde_json::{Value, json};

fn quiet(blocks: usize) -> Vec<f64> {
    (0..blocks).map(|i| 0.005 * (((i * 7 % 24) as f64 + 0.5) / 12.0 - 1.0)).collect()
}

/// Two cases. Gates, each with whether its builds are separate and by what ln ratio its prefill differs.
fn calibration(gates: &[(bool, f64)]) -> Calibration {
    let case = |id: &str| {
        let said = json!({ "sha256": output_sha256(&[1]), "ids": [1] });
        json!({ "id": id, "threshold": 1.02, "widest": 1.05, "pairs": 2, "iterations_per_sample": 1, "timed": true, "base_output": said, "head_output": said })
    };
    let times = |id: &str, difference: f64| {
        let head_ns = (1e9 * difference.exp()).round() as u64;
        json!({ "id": id, "base_ns": [1_000_000_000, 1_000_000_000], "head_ns": [head_ns, head_ns] })
    };
    let gate = |&(separate_builds, difference): &(bool, f64)| {
        let noise = quiet(if difference == 0.0 { 8 } else { 12 });
        let hash = |build: char| build.to_string().repeat(64);
        let block = |(at, noise): (usize, f64)| {
            let mut cases = vec![times("prefill/p128", difference + noise), times("decode/p128", noise)];
            // What has passed is not measured any more.
            cases.truncate(if at < 8 { 2 } else { 1 });
            json!({ "ran_first": "head", "cases": cases })
        };
        let blocks: Vec<Value> = noise.into_iter().enumerate().map(block).collect();
        let head = hash(if separate_builds { 'b' } else { 'a' });
        json!({ "base_sha256": hash('a'), "head_sha256": head, "took_ns": 1, "blocks": blocks })
    };
    let document = json!({
        "schema": CALIBRATION_SCHEMA, "created": "2026-11-21T07:00:00Z", "tool": "0.1.0", "threads": 2, "seed": 0,
        "machine": Machine::default(),
        "subject": { "tool": "0.1.0", "build": Build::default(), "engine": EngineInfo::default() },
        "cases": [case("prefill/p128"), case("decode/p128")],
        "gates": gates.iter().map(gate).collect::<Vec<Value>>(),
    });
    let mut calibration: Calibration = serde_json::from_value(document).expect("a calibration");
    let noise = block_noise(&calibration);
    for (case, noise) in calibration.cases.iter_mut().zip(noise) {
        case.mean = Some(mean_test(None, case.threshold, noise.mean_std));
    }
    calibration
}

#[test]
fn a_calibration_counts_its_gates_by_kind() {
    let mut calibration = calibration(&[(true, 0.1), (true, 0.0)]);
    // Neither regressed nor passed: cut short.
    calibration.gates[1].blocks.truncate(3);
    calibration.gates.iter_mut().for_each(|gate| gate.took_ns = 3_500_000_000);
    let summary = summarise(&calibration);
    let (same, separate) = (summary.same_file, summary.separate_builds);
    assert_eq!((same.gates, same.regressed_share, same.passed_share, same.blocks), (0, None, None, None));
    assert_eq!((separate.gates, separate.regressed, separate.passed, separate.blocks), (2, 1, 0, Some(7.5)));
    assert_eq!(separate.settled, 1, "a gate that was cut short says nothing");
    assert_eq!(separate.wall_seconds, Some(3.5));
    // Two pairs of about a second a case: 20 cases in one gate and 6 in the other.
    assert!(separate.timed_seconds.is_some_and(|seconds| (50.0..60.0).contains(&seconds)), "{separate:?}");
    let interval = |share: Option<Share>| share.map(|share| (share.low, share.high));
    assert_eq!(interval(separate.regressed_share), clopper_pearson(1, 1, 0.95));
    assert_eq!(interval(separate.passed_share), clopper_pearson(0, 2, 0.95));
    // Whole blocks: eight before the quiet case passed, and three.
    assert_eq!(summary.noise[1].blocks, 11);
}

/// `doctor` promises what a gate by these settings holds to.
#[test]
fn what_a_gate_detects_goes_by_its_limit() {
    let calibration = calibration(&[(true, 0.0); 3]);
    let smallest = |threshold| -> Vec<f64> {
        smallest_detectable(&calibration, threshold).into_iter().map(|ratio| ratio.expect("detectable")).collect()
    };
    // Blocks of 0.3 %: hardly more than the limit itself.
    assert!(smallest(1.02).iter().all(|ratio| (1.02..1.024).contains(ratio)), "{:?}", smallest(1.02));
    assert!(smallest(1.10).iter().all(|ratio| (1.10..1.12).contains(ratio)));
}

#[test]
fn errors_are_quoted_of_gates_between_two_builds_under_the_same_conditions() {
    let mut calibration = calibration(&[(true, 0.0), (false, 0.0), (true, 0.1)]);
    let mut receipt = golden();
    (receipt.tool, receipt.cases) = (calibration.tool.clone(), calibration.cases.clone());
    (calibration.machine, calibration.subject) = (receipt.machine.clone(), receipt.head.clone());
    receipt.blocks.clear();
    let quoted = false_failure_rate(Some(&calibration), &receipt);
    assert!(matches!(quoted, Note::OwnErrors { gates: 2, regressed: 1, inconclusive: 0, .. }), "{quoted:?}");
    calibration.threads = 1;
    let why = "the calibration is of 1 thread, and this run of 2 threads";
    assert_eq!(false_failure_rate(Some(&calibration), &receipt), Note::OwnErrorsUnknown { why: why.into() });
}

/// A paired receipt, to be changed.
fn golden() -> PairedReceipt {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/paired-1.json");
    read(path.as_ref()).expect("a golden file")
}
