//! Baselines of load runs as files: read forever, refused with a sentence, without what nobody should see.

use std::fs;

use cargo_infergate::receipt::{
    LoadBaseline, LoadReceipt, LoadSession, LoadSessionLevel, TargetRecord, read, to_json, write_json,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::gate::load_runs::run;
use crate::receipt::support::{golden, golden_value};

const GOLDEN: &str = "load-baseline-1.json";

/// The whole error of reading the golden file after `change`, without its folder.
#[track_caller]
fn error_after(change: impl FnOnce(&mut Value)) -> String {
    let mut value = golden_value(GOLDEN);
    change(&mut value);
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("file.json");
    fs::write(&path, value.to_string()).expect("a file");
    let error = format!("{:#}", read::<LoadBaseline>(&path).expect_err("a broken file is refused"));
    let place = path.display().to_string();
    assert!(error.starts_with(&place), "the error names the file: {error}");
    assert!(!error.contains('\n') && !error.ends_with('.'), "one line without a full stop: {error}");
    error
}

#[test]
fn the_first_load_baseline_is_still_read() {
    let baseline = read::<LoadBaseline>(&golden(GOLDEN)).expect("a v1 baseline");
    assert_eq!((baseline.sessions.len(), baseline.setup["model of B"].as_str()), (8, "other"));
    let level = &baseline.sessions[0].levels[1];
    assert_eq!((level.name().as_str(), level.failed, level.ttft_p50_ns), ("B/plain/2 users", 1, Some(75e6)));
    assert_eq!(baseline.sessions[0].levels[2].name(), "A/plain/4.5 requests/s");
}

#[test]
fn the_golden_load_receipt_becomes_a_session_of_the_golden_baseline() {
    let mut baseline = read::<LoadBaseline>(&golden(GOLDEN)).expect("a v1 baseline");
    let receipt = read::<LoadReceipt>(&golden("load-1.json")).expect("a v1 receipt");
    let error = baseline.ensure_accepts(&receipt).expect_err("it is invalid").to_string();
    assert!(error.contains("the run is invalid and cannot become a baseline: plain, 2 users: a reason"), "{error}");
    let receipt = LoadReceipt { invalid: Vec::new(), ..receipt };
    // Its sessions are of before requests were measured at full load alone.
    let error = baseline.ensure_accepts(&receipt).expect_err("other requests").to_string();
    assert!(error.contains("the baseline's measured requests is 'none'"), "{error}");
    baseline.setup.insert("measured requests".into(), "at full load to their ends".into());
    baseline.ensure_accepts(&receipt).expect("the same targets");
    baseline.add(&receipt, false);
    let (first, last) = (&baseline.sessions[0], &baseline.sessions[8]);
    let keys = |session: &LoadSession| -> Vec<String> { session.levels.iter().map(LoadSessionLevel::key).collect() };
    assert_eq!((keys(first), &first.conditions), (keys(last), &last.conditions));
    let counts: Vec<(u64, u64)> = last.levels.iter().map(|level| (level.issued, level.failed)).collect();
    assert_eq!(counts, [(5, 0), (5, 1), (3, 0), (3, 0)]);
    assert_eq!(last.levels[0].ttft_p50_ns, None, "too few requests for a median");
}

#[test]
fn what_is_written_is_read_the_same_and_names_no_server() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("baseline.json");
    let mut baseline = LoadBaseline::from_receipt(&run(1, 100));
    baseline.add(&run(2, 100), false);
    write_json(&path, &baseline).expect("a file");
    assert_eq!(read::<LoadBaseline>(&path).expect("the same file"), baseline);
    let text = to_json(&baseline).expect("JSON");
    assert!(text.contains("small") && !text.contains("secret.example") && !text.contains("http://"), "{text}");
}

#[test]
fn what_no_run_could_have_given_is_refused() {
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 12] = [
        ("infergate.load-baseline/1 is needed", |value| value["schema"] = "infergate.load-baseline/2".into()),
        ("there are no sessions in it", |value| value["sessions"] = json!([])),
        ("session 1 of 2025-12-01T00:00:00Z: there are no levels in it", |value| {
            value["sessions"][0]["levels"] = json!([]);
        }),
        ("B/plain/2 users: is there twice", |value| {
            let level = value["sessions"][0]["levels"][1].clone();
            value["sessions"][0]["levels"][0] = level;
        }),
        ("more requests failed or were measured than were sent", |value| {
            value["sessions"][0]["levels"][0]["failed"] = json!(41);
        }),
        ("more requests failed or were measured than were sent", |value| {
            value["sessions"][0]["levels"][0]["measured"] = json!(41);
        }),
        ("which no run gives", |value| value["sessions"][0]["levels"][0]["issued"] = json!(u64::MAX)),
        ("its numbers: ", |value| value["sessions"][0]["levels"][0]["ttft_p50_ns"] = json!(-1.0)),
        ("its numbers: ", |value| value["sessions"][0]["levels"][0]["system_tokens_per_s"] = json!(1e300)),
        ("it has more tokens or turns than any run", |value| {
            value["sessions"][0]["levels"][0]["scenario"]["turns"] = json!(0);
        }),
        ("0 users are none", |value| value["sessions"][0]["levels"][0]["arrivals"]["users"] = json!(0)),
        ("a field is missing or not of its type", |value| value["setup"]["dataset"] = json!(3)),
    ];
    for (why, change) in changes {
        let error = error_after(change);
        assert!(error.contains(why), "'{why}' is not in: {error}");
    }
    let many: Value = (0..1_001).map(|at| (format!("key {at}"), json!("x"))).collect::<serde_json::Map<_, _>>().into();
    let settings = many.clone();
    assert!(error_after(|value| value["setup"] = settings).contains("1001 settings are more than any run has"));
    assert!(error_after(|value| value["sessions"][0]["conditions"] = many).contains("1001 conditions"));
    let mut session = golden_value(GOLDEN)["sessions"][0].clone();
    session["levels"] = json!([session["levels"][0]]);
    let sessions = json!(vec![session; 10_001]);
    assert!(error_after(|value| value["sessions"] = sessions).contains("10001 sessions are more than any run has"));
}

#[test]
fn a_run_that_must_not_become_a_session_is_refused() {
    let baseline = LoadBaseline::from_receipt(&run(1, 100));
    baseline.ensure_accepts(&run(2, 100)).expect("a sound run");
    type Change = fn(&mut LoadReceipt);
    let changes: [(&str, Change); 5] = [
        ("the run was cut short and cannot become a baseline", |run| run.partial = true),
        ("the run is invalid and cannot become a baseline: why", |run| run.invalid.push("why".into())),
        ("machine class is 'linux-x86_64-amd-epyc-2' and the run's is 'b'", |run| run.machine.class = "b".into()),
        ("the baseline's dataset is 'none' and the run's is '3 prompts'", |run| run.dataset_prompts = Some(3)),
        ("the session of 2026-01-01T00:00:00Z is in it already", |run| run.created = "2026-01-01T00:00:00Z".into()),
    ];
    for (why, change) in changes {
        let mut receipt = run(2, 100);
        change(&mut receipt);
        let error = baseline.ensure_accepts(&receipt).expect_err(why).to_string();
        assert!(error.contains(why), "'{why}' is not in: {error}");
    }
}

#[test]
fn its_name_stays_in_its_folder() {
    let name = |class: &str, name: &str| {
        let mut receipt = run(1, 100);
        receipt.machine.class = class.into();
        if let TargetRecord::Endpoint { model, .. } = &mut receipt.targets[0] {
            *model = name.into();
        }
        LoadBaseline::file_name(&receipt)
    };
    assert_eq!(name("linux-x86_64-amd-2", "small"), "linux-x86_64-amd-2/load/small-chat.json");
    assert_eq!(name("../../etc", "../../../etc/passwd"), "etc/load/etc-passwd-chat.json");
    assert!(name("c", &"x".repeat(5_000)).len() < 150);
}
