//! A v1 file is read the same by every later version.

use cargo_infergate::gate::{Policy, judge};
use cargo_infergate::receipt::{
    Against, BASELINE_SCHEMA, Baseline, Metric, Name, Outcome, RECEIPT_SCHEMA, Reason, Receipt, ReceiptOrBaseline,
    Session, Shown, Subject, VERDICT_SCHEMA, Verdict, read, read_receipt_or_baseline, to_json, write_json,
};

use crate::receipt::support::{golden, golden_text, golden_value};

#[test]
fn the_first_receipt_is_still_read() {
    let receipt = read::<Receipt>(&golden("receipt-1.json")).expect("a v1 receipt");
    assert_eq!(receipt.schema, RECEIPT_SCHEMA);
    assert_eq!(receipt.machine.class, "linux-x86_64-amd-epyc-2");
    assert_eq!((receipt.engine.name.as_str(), receipt.engine.model.as_str()), ("candle", "synthetic:tiny"));
    let ids: Vec<String> = receipt.cases.iter().map(|case| case.id.to_string()).collect();
    assert_eq!(ids, ["prefill/p8", "decode/p8", "generate/p8-o3"]);
    assert_eq!(receipt.cases[0].processes[0].times_ns(), [1_200_000.0, 1_250_000.0]);
    let trace = &receipt.cases[2].processes[0].traces()[0];
    assert_eq!((trace.ttft_ns(), trace.e2e_ns(), trace.tpot_ns()), (Some(1_210_000), Some(1_810_000), Some(300_000.0)));
    assert_eq!(receipt.cases[1].output.top2_margins, [Some(0.5), None]);
    assert_eq!(receipt.cases[1].counters["allocations_per_token"].max, 14);
    assert_eq!(receipt.cold[0].ttft_ns(), 9_300_000);
    assert_eq!(receipt.warm[0].load_ns, None);
}

#[test]
fn the_first_baseline_is_still_read() {
    let baseline = read::<Baseline>(&golden("baseline-1.json")).expect("a v1 baseline");
    assert_eq!(baseline.schema, BASELINE_SCHEMA);
    assert_eq!((baseline.sessions.len(), baseline.exact.len()), (2, 3));
    assert_eq!(baseline.sessions[1].cases[1].processes[0].times_ns(), [300_000.0, 310_000.0]);
}

#[test]
fn a_verdict_of_this_schema_is_still_read() {
    let verdict: Verdict = serde_json::from_str(&golden_text("verdict-2.json")).expect("a verdict");
    assert_eq!((&*verdict.schema, verdict.verdict, verdict.exit_code), (VERDICT_SCHEMA, Outcome::Regressed, 1));
    let time = verdict.rows[2].time().expect("a time");
    assert_eq!((time.metric, time.against, time.shown), (Metric::Itl, Against::Baseline, Some(Shown::Slower)));
    assert_eq!(time.interval.map(|interval| (interval.low, interval.level)), Some((1.21, 0.996)));
    assert_eq!(time.blocks, None);
    assert_eq!(verdict.rows[3].subject, Subject::Named(Name::new("criterion", "fib/20").expect("a name")));
    assert_eq!(verdict.rows[2].reasons, [Reason::Noisy { cv: 0.25, limit: 0.2 }]);
}

#[test]
fn what_is_read_is_written_and_read_the_same() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = folder.path().join("again.json");
    for name in ["receipt-1.json", "baseline-1.json"] {
        let document = read_receipt_or_baseline(&golden(name)).expect(name);
        match &document {
            ReceiptOrBaseline::Receipt(receipt) => write_json(&path, receipt),
            ReceiptOrBaseline::Baseline(baseline) => write_json(&path, baseline),
        }
        .expect("a copy");
        assert_eq!(read_receipt_or_baseline(&path).expect("the copy"), document, "{name}");
    }
}

#[test]
fn undefined_is_null_in_a_verdict() {
    let verdict: Verdict = serde_json::from_value(golden_value("verdict-2.json")).expect("a verdict");
    let text = to_json(&verdict).expect("JSON");
    assert!(text.contains("\"position\": null") && !text.contains("NaN"), "{text}");
    assert_eq!(serde_json::from_str::<Verdict>(&text).expect("the copy"), verdict);
}

#[test]
fn the_golden_baseline_is_the_golden_receipts_own() {
    let receipt = read::<Receipt>(&golden("receipt-1.json")).expect("a v1 receipt");
    let baseline = read::<Baseline>(&golden("baseline-1.json")).expect("a v1 baseline");
    assert_eq!(baseline.sessions[1], Session::from(&receipt));
    let verdict = judge(&receipt, Some(&baseline), &Policy::default()).expect("a verdict");
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Pass, 0), "{verdict:?}");
}

#[test]
fn unknown_fields_do_no_harm() {
    for name in ["receipt-1.json", "baseline-1.json"] {
        let mut value = golden_value(name);
        value["from_the_future"] = serde_json::json!({ "deep": [1, 2, 3] });
        value["machine"]["colour"] = "grey".into();
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("later.json");
        std::fs::write(&path, value.to_string()).expect("a file");
        let document = read_receipt_or_baseline(&path).expect(name);
        assert_eq!(document, read_receipt_or_baseline(&golden(name)).expect(name));
    }
}

#[test]
fn blessing_appends_a_session_and_renews_the_exact_reference() {
    let receipt = read::<Receipt>(&golden("receipt-1.json")).expect("a v1 receipt");
    let mut baseline = Baseline::from_receipt(&receipt);
    assert_eq!((baseline.sessions.len(), baseline.exact.len()), (1, 3));
    let mut later = receipt.clone();
    later.cases.truncate(1);
    later.cases[0].output = receipt.cases[0].output.clone();
    later.cases[0].output.top2_margins = vec![Some(0.25)];
    later.threads = 4;
    baseline.add(&later, false);
    assert_eq!((baseline.sessions.len(), baseline.exact.len(), baseline.threads), (2, 3, 4));
    assert_eq!(baseline.exact[0].output.top2_margins, [Some(0.25)]);
    assert_eq!(baseline.exact[1].output, receipt.cases[1].output, "a case that was not run keeps its reference");
    baseline.validate().expect("a sound baseline");
}

#[test]
fn a_run_that_must_not_become_a_baseline_is_refused() {
    let sound = read::<Receipt>(&golden("receipt-1.json")).expect("a v1 receipt");
    let baseline = Baseline::from_receipt(&sound);
    baseline.ensure_accepts(&sound).expect("a sound run of the same subject");
    type Break = fn(&mut Receipt);
    let broken: [(&str, Break); 6] = [
        ("the run was cut short and cannot become a baseline", |run| run.partial = true),
        ("the run is invalid and cannot become a baseline: why", |run| run.invalid.push("why".into())),
        ("there are no cases in it", |run| run.cases.clear()),
        ("the baseline's model is 'synthetic:tiny' and the run's is 'other'", |run| run.engine.model = "other".into()),
        ("the baseline's seed is '0' and the run's is '1'", |run| run.seed = 1),
        ("machine class is 'linux-x86_64-amd-epyc-2' and the run's is 'b'", |run| run.machine.class = "b".into()),
    ];
    for (reason, break_it) in broken {
        let mut run = sound.clone();
        break_it(&mut run);
        let error = baseline.ensure_accepts(&run).expect_err(reason).to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_baselines_name_stays_in_its_folder() {
    let engine = |name: &str, model: &str| infergate::engine::EngineInfo {
        name: name.into(),
        model: model.into(),
        ..Default::default()
    };
    let name = |class, name, model| Baseline::file_name(class, &engine(name, model));
    assert_eq!(name("linux-x86_64-amd-2", "candle", "synthetic:gpt2"), "linux-x86_64-amd-2/candle-synthetic-gpt2.json");
    assert_eq!(
        name("c", "Candle 2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
        "c/candle-2-smollm2-135m-instruct.q4_1.gguf.json"
    );
    assert_eq!(name("../../etc", "/etc/passwd", "..\\..\\x"), "etc/etc-passwd-x.json");
    assert_eq!(name("..", "", "模型"), "unnamed/unnamed-unnamed.json");
}
