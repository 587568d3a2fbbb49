//! Baselines of load runs as files, without what nobody should see.

use infergate_receipts::{
    LoadBaseline, LoadReceipt, LoadSession, LoadSessionLevel, TargetRecord, read, to_json, write_json,
};
use tempfile::TempDir;

use crate::gate::load_runs::run;
use crate::receipt::support::golden;

const GOLDEN: &str = "load-baseline-1.json";

#[test]
fn the_golden_load_receipt_becomes_a_session_of_the_golden_baseline() {
    let mut baseline = read::<LoadBaseline>(&golden(GOLDEN)).expect("a v1 baseline");
    let receipt = read::<LoadReceipt>(&golden("load-1.json")).expect("a v1 receipt");
    let error = baseline.ensure_accepts(&receipt).expect_err("it is invalid").to_string();
    assert!(error.contains("the run is invalid and cannot become a baseline: plain, 2 users: a reason"), "{error}");
    let receipt = LoadReceipt { invalid: Vec::new(), ..receipt };
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
fn a_run_that_must_not_become_a_session_is_refused() {
    let baseline = LoadBaseline::from_receipt(&run(1, 100));
    baseline.ensure_accepts(&run(2, 100)).expect("a sound run");
    type Change = fn(&mut LoadReceipt);
    let changes: [(&str, Change); 4] = [
        ("the run was cut short and cannot become a baseline", |run| run.partial = true),
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
