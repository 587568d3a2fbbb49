//! What a calibration says: gates by kind, what slowed blocks show, and how much builds differ.

use std::collections::BTreeSet;

use cargo_infergate::gate::paired::{
    Compared, known_tau, layout_spread, own_errors, sides, smallest_called, summarise,
};
use cargo_infergate::receipt::{
    CALIBRATION_SCHEMA, Calibration, LayoutFiles, Note, PairedReceipt, Share, output_sha256, read,
};
use infergate::engine::EngineInfo;
use infergate_core::receipt::{Build, Machine};
use infergate_core::stats::{clopper_pearson, normal, pooled_std};
use serde_json::{Value, json};

fn quiet(blocks: usize) -> Vec<f64> {
    (0..blocks).map(|i| 0.005 * (((i * 7 % 24) as f64 + 0.5) / 12.0 - 1.0)).collect()
}

/// Two cases. Gates, each with whether its builds are separate and by what ln ratio its prefill differs, and blocks whose
/// prefill was slowed by 5 %.
fn calibration(gates: &[(bool, f64)], power_blocks: usize) -> Calibration {
    let case = |id: &str| {
        let said = json!({ "sha256": output_sha256(&[1]), "ids": [1] });
        json!({ "id": id, "threshold": 1.02, "pairs": 2, "iterations_per_sample": 1, "timed": true, "base_output": said, "head_output": said })
    };
    let times = |id: &str, difference: f64| {
        let head_ns = (1e9 * difference.exp()).round() as u64;
        json!({ "id": id, "slowdown": 0.05, "base_ns": [1_000_000_000, 1_000_000_000], "head_ns": [head_ns, head_ns] })
    };
    let gate = |&(separate_builds, difference): &(bool, f64)| {
        let noise = quiet(if difference == 0.0 { 8 } else { 12 });
        let hash = |build: char| build.to_string().repeat(64);
        let block = |(at, noise): (usize, f64)| {
            let mut cases = vec![times("prefill/p128", difference + noise), times("decode/p128", noise)];
            // What has passed is not measured any more.
            cases.truncate(if at < 8 { 2 } else { 1 });
            json!({ "started_first": "base", "ran_first": "head", "cases": cases })
        };
        let blocks: Vec<Value> = noise.into_iter().enumerate().map(block).collect();
        let head = hash(if separate_builds { 'b' } else { 'a' });
        json!({ "separate_builds": separate_builds, "base_sha256": hash('a'), "head_sha256": head, "blocks": blocks })
    };
    let slowed = |noise| json!({ "cases": [{ "id": "prefill/p128", "slowed": [times("", 1.05_f64.ln() + noise)] }] });
    let document = json!({
        "schema": CALIBRATION_SCHEMA, "created": "2026-11-21T07:00:00Z", "tool": "0.1.0", "threads": 2, "seed": 0,
        "machine": Machine::default(),
        "subject": { "tool": "0.1.0", "build": Build::default(), "engine": EngineInfo::default() },
        "cases": [case("prefill/p128"), case("decode/p128")],
        "gates": gates.iter().map(gate).collect::<Vec<Value>>(),
        "power": quiet(power_blocks).into_iter().map(slowed).collect::<Vec<Value>>(),
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
    let mut calibration = calibration(&[(true, 0.1), (true, 0.0)], 0);
    // Neither regressed nor passed: cut short.
    calibration.gates[1].blocks.truncate(3);
    calibration.gates[0].took_ns = Some(7_000_000_000);
    let summary = summarise(&calibration);
    let (same, separate) = (summary.same_file, summary.separate_builds);
    assert_eq!((same.gates, same.regressed_share, same.passed_share, same.blocks), (0, None, None, None));
    assert_eq!((separate.gates, separate.regressed, separate.passed, separate.blocks), (2, 1, 0, Some(7.5)));
    assert_eq!(separate.settled, 1, "a gate that was cut short says nothing");
    assert_eq!(separate.wall_seconds, Some(7.0));
    // Two pairs of about a second a case: 20 cases in one gate and 6 in the other.
    assert!(separate.timed_seconds.is_some_and(|seconds| (50.0..60.0).contains(&seconds)), "{separate:?}");
    let interval = |share: Option<Share>| share.map(|share| (share.low, share.high));
    assert_eq!(interval(separate.regressed_share), clopper_pearson(1, 1, 0.95));
    assert_eq!(interval(separate.passed_share), clopper_pearson(0, 2, 0.95));
    // Whole blocks: eight before the quiet case passed, and three.
    assert_eq!((summary.noise[1].blocks, summary.found.len()), (11, 0));
}

/// `doctor` promises what a gate by these settings holds to.
#[test]
fn what_a_gate_calls_goes_by_its_limit_and_its_layouts() {
    let calibration = calibration(&[(true, 0.0); 3], 0);
    let smallest = |threshold, layouts| -> Vec<f64> {
        smallest_called(&calibration, threshold, layouts).into_iter().map(|ratio| ratio.expect("called")).collect()
    };
    assert!(smallest(None, None).iter().all(|ratio| (1.02..1.04).contains(ratio)), "{:?}", smallest(None, None));
    assert!(smallest(Some(1.10), None).iter().all(|ratio| (1.10..1.12).contains(ratio)));
    // Five gates between builds whose prefill differs by 0.3 %: by two builds alone little is known of others.
    let differing = [0.003, -0.003, 0.003, -0.003, 0.003].map(|ln| (true, ln));
    let calibration = self::calibration(&differing, 0);
    let prefill = |layouts| smallest_called(&calibration, None, Some(layouts))[0].expect("called");
    assert!(prefill(1) > prefill(16) + 0.03, "{} and {}", prefill(1), prefill(16));
}

/// Two builds that happen to be alike say nothing of others, and a gate that trusted them would link one of each side.
#[test]
fn how_much_layouts_differ_is_known_from_five_gates_between_builds_on() {
    let tau =
        |gates: usize| known_tau(&calibration(&vec![(true, 0.0); gates], 0), "prefill/p128".parse().expect("a case"));
    assert_eq!([1, 4].map(tau), [None, None]);
    assert!(tau(5).is_some_and(|tau| tau < 0.005), "{:?}", tau(5));
}

/// Layouts of two sides differ for a whole gate, by the more the fewer are drawn.
#[test]
fn errors_are_quoted_of_gates_that_drew_no_more_layouts_of_two_sides() {
    let mut calibration = calibration(&[(false, 0.0); 2], 0);
    let hashes = |from: u8| (from..from + 5).map(|at| format!("{at:064x}")).collect::<Vec<String>>();
    let halves = LayoutFiles { base: hashes(0), head: hashes(5), ..LayoutFiles::default() };
    calibration.gates.iter_mut().for_each(|gate| gate.layouts = Some(halves.clone()));
    let mut receipt = golden();
    (receipt.tool, receipt.cases) = (calibration.tool.clone(), calibration.cases.clone());
    (calibration.machine, calibration.subject) = (receipt.machine.clone(), receipt.head.clone());
    receipt.blocks.clear();
    let mut quoted = |calibration: &Calibration, drawn: u8| {
        let [base, head] = ['b', 'c'].map(|build| vec![build.to_string().repeat(64); drawn.into()]);
        receipt.layouts = Some(LayoutFiles { base, head, ..LayoutFiles::default() });
        own_errors(Some(calibration), &receipt)
    };
    for drawn in [5, 13] {
        assert!(matches!(quoted(&calibration, drawn), Note::OwnErrors { gates: 2, regressed: 0, .. }), "{drawn}");
    }
    let too_few = quoted(&calibration, 4);
    assert!(matches!(&too_few, Note::OwnErrorsUnknown { why } if why.contains("drew 4 builds a side")), "{too_few:?}");
    // As calibrations once were: what differs between the sides was left out.
    let same = LayoutFiles { head: hashes(0), ..halves };
    calibration.gates.iter_mut().for_each(|gate| gate.layouts = Some(same.clone()));
    assert!(matches!(quoted(&calibration, 13), Note::OwnErrorsUnknown { .. }));

    calibration.threads = 1;
    let why = "the calibration is of 1 thread, and this run of 2 threads";
    assert_eq!(quoted(&calibration, 5), Note::OwnErrorsUnknown { why: why.into() });
}

/// A paired receipt, to be changed.
fn golden() -> PairedReceipt {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/paired-1.json");
    read(path.as_ref()).expect("a golden file")
}

#[test]
fn two_files_are_separate_builds_only_when_their_bytes_differ() {
    let mut calibration = calibration(&[(true, 0.0), (true, 0.0), (true, 0.0)], 0);
    calibration.gates[1].head_sha256 = calibration.gates[1].base_sha256.clone();
    (calibration.gates[2].base_sha256, calibration.gates[2].head_sha256) = (None, None);
    let alarms = summarise(&calibration);
    assert_eq!((alarms.same_file.gates, alarms.separate_builds.gates), (2, 1), "a copy, and what nobody noted");
}

#[test]
fn slowed_blocks_check_what_a_gate_calls() {
    let summary = summarise(&calibration(&[(false, 0.0), (false, 0.0)], 12));
    // Blocks of 0.3 %: hardly more than the limit of 2 % itself.
    let called = &summary.smallest_called;
    assert!(called.iter().all(|ratio| ratio.is_some_and(|ratio| (1.02..1.024).contains(&ratio))), "{called:?}");
    let [prefill, decode] = &summary.found[..] else { panic!("a row a case: {:?}", summary.found) };
    let measured = prefill.measured.expect("a ratio");
    assert!(measured.low < 0.05 && 0.05 < measured.high && (measured.share - 0.05).abs() < 0.002, "{prefill:?}");
    assert_eq!((prefill.rows, decode.rows, decode.measured), (12, 0, None));
}

/// Gates between builds whose difference has the standard deviation `tau`, with blocks that vary by `std`.
fn gates_between_builds(seed: u64, tau: f64, std: f64, builds: usize, gates: usize, blocks: usize) -> Vec<Compared> {
    let mut random = fastrand::Rng::with_seed(seed);
    let luck: Vec<f64> = (0..builds).map(|_| tau / 2.0_f64.sqrt() * normal(&mut random)).collect();
    let mut gate = |at: usize| {
        let (base, head) = (at % builds, (at + 1 + at / builds) % builds);
        let differences = (0..blocks).map(|_| luck[head] - luck[base] + std * normal(&mut random)).collect();
        Compared { base, head, differences }
    };
    (0..gates).map(&mut gate).collect()
}

#[test]
fn tau_is_found_again_and_its_bound_holds_nineteen_times_of_twenty() {
    for (tau, std) in [(0.0, 0.008), (0.01, 0.008)] {
        let found: Vec<(f64, f64)> = (0..60)
            .map(|seed| {
                let (found, at_most, _) =
                    layout_spread(&gates_between_builds(seed, tau, std, 10, 20, 8)).expect("gates");
                (found, at_most.expect("a bound"))
            })
            .collect();
        let squares = found.iter().map(|(tau, _)| tau * tau).sum::<f64>() / 60.0;
        // Cut off at zero, the estimate of nothing is a little above it.
        assert!((squares.sqrt() - tau).abs() < 0.002, "{tau}: {}", squares.sqrt());
        let held = found.iter().filter(|(_, at_most)| *at_most >= tau).count();
        assert!(held >= 52 && (tau == 0.0 || held < 60), "{tau}: {held} of 60");
    }
}

/// The numbers of scripts beside the fixtures: `tests/fixtures/make_tau.py`, with NumPy and SciPy.
#[test]
fn tau_agrees_with_a_reference() {
    let gate =
        |base: usize, head: usize, differences: &[f64]| Compared { base, head, differences: differences.to_vec() };
    let gates = [
        gate(0, 1, &[0.011, 0.004, 0.009, 0.014, 0.002, 0.008]),
        gate(2, 3, &[-0.006, 0.001, -0.009, -0.003, -0.012, -0.001, -0.004]),
        gate(4, 5, &[0.003, -0.002, 0.006, 0.001, -0.004, 0.002]),
        gate(6, 7, &[0.001, 0.012, 0.006, 0.004, 0.009, 0.007, 0.003, 0.008]),
        gate(8, 9, &[-0.011, -0.002, -0.007, -0.013, -0.006, -0.009]),
    ];
    let (tau, at_most, block_std) = layout_spread(&gates).expect("gates");
    assert!((block_std - 0.004_001_594_070_122_657_5).abs() < 1e-12, "{block_std}");
    assert!((tau - 0.005_989_304_272_664_224_5).abs() < 1e-12, "{tau}");
    // No build is in two gates, so that the bound has a closed form but for the unequal numbers of blocks; simulated here.
    assert!((at_most.expect("a bound") / 0.012_839_594_8 - 1.0).abs() < 0.05, "{at_most:?}");
    let pooled = pooled_std(&gates.map(|gate| gate.differences)).expect("a deviation");
    assert_eq!(pooled, block_std);
    assert_eq!(layout_spread(&[gate(0, 1, &[0.01])]), None);
}

#[test]
fn gates_use_every_build_before_any_twice_and_every_pair_in_the_end() {
    for builds in [2, 3, 10, 11] {
        let separate = |gates: usize| (0..gates).map(move |turn| sides(2 * turn + 1, builds));
        assert!(separate(200).all(|(base, head)| base != head && base.max(head) < builds), "{builds}");
        let first: BTreeSet<usize> = separate(builds / 2).flat_map(|(base, head)| [base, head]).collect();
        assert_eq!(first.len(), builds / 2 * 2, "{builds}");
        let pairs: BTreeSet<(usize, usize)> =
            separate(builds * (builds - 1)).map(|(a, b)| (a.min(b), a.max(b))).collect();
        assert_eq!(pairs.len(), builds * (builds - 1) / 2, "{builds}");
        let alone: BTreeSet<(usize, usize)> = (0..builds).map(|turn| sides(2 * turn, builds)).collect();
        assert!(alone.len() == builds && alone.iter().all(|(base, head)| base == head), "{builds}");
    }
    assert_eq!((sides(0, 1), sides(1, 1), sides(7, 1)), ((0, 0), (0, 0), (0, 0)));
}
