//! Receipts and baselines as the first version wrote them, and what blessing makes of them.

use infergate_judge::{Policy, judge};
use infergate_receipts::{Baseline, Outcome, Receipt, Session, read, read_receipt_or_baseline};

use crate::receipt::support::{golden, golden_value};

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
}

#[test]
fn a_run_that_must_not_become_a_baseline_is_refused() {
    let sound = read::<Receipt>(&golden("receipt-1.json")).expect("a v1 receipt");
    let baseline = Baseline::from_receipt(&sound);
    let sound = Receipt { created: "2027-01-01T00:00:00Z".into(), ..sound };
    baseline.ensure_accepts(&sound).expect("a sound run of the same subject");
    type Break = fn(&mut Receipt);
    let broken: [(&str, Break); 4] = [
        ("the run is invalid and cannot become a baseline: why", |run| run.invalid.push("why".into())),
        ("there are no cases in it", |run| run.cases.clear()),
        ("the baseline's model is 'synthetic:tiny' and the run's is 'other'", |run| run.engine.model = "other".into()),
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
    let name = |class: &str, name: &str, model: &str| {
        let mut run = Receipt::default();
        (run.machine.class, run.engine.name, run.engine.model) = (class.into(), name.into(), model.into());
        Baseline::file_name(&run)
    };
    assert_eq!(name("linux-x86_64-amd-2", "candle", "synthetic:gpt2"), "linux-x86_64-amd-2/candle-synthetic-gpt2.json");
    assert_eq!(
        name("c", "Candle 2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
        "c/candle-2-smollm2-135m-instruct.q4_1.gguf.json"
    );
    assert_eq!(name("../../etc", "/etc/passwd", "..\\..\\x"), "etc/etc-passwd-x.json");
    assert_eq!(name("..", "", "模型"), "unnamed/unnamed-unnamed.json");
}
