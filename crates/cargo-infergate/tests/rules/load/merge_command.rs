//! `load merge` and the flags of many machines, as a user runs them.

use std::process::Output;

use infergate_core::load::Stop;
use infergate_load::plan::shard::Shard;
use infergate_receipts::{LoadReceipt, ShardRecord, write_json};

use crate::load::command::{Place, polite};
use crate::load::receipt::sound;

/// A shard's part of [`sound`]: one user of two.
fn shard(index: u32) -> LoadReceipt {
    let mut receipt = sound();
    let shard = Shard::new(index, 2).expect("a shard");
    let record =
        ShardRecord { index, count: 2, run: "ab".into(), start_unix_ns: 1, clock_unix_ns: 1, machine: "linux".into() };
    receipt.shards = vec![record];
    let level = &mut receipt.levels[0];
    level.whole = Some(level.arrivals);
    level.arrivals = shard.arrivals(level.arrivals);
    level.stop = shard.stop(level.stop);
    level.requests.retain(|record| shard.has(record.request));
    level.issued = level.requests.len() as u64;
    receipt
}

fn merge(place: &Place, files: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } =
        place.command(&[&["merge"], files, &["--out", "all.json"]].concat()).output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn shards_become_one_receipt_with_the_tables_of_the_whole_load() {
    let place = Place::new();
    for index in [0, 1] {
        write_json(&place.folder.path().join(format!("{index}.json")), &shard(index)).expect("a file");
    }
    let (code, said, error) = merge(&place, &["0.json", "1.json"]);
    assert_eq!(code, Some(0), "{said}{error}");
    for words in ["Self-audit before the run", "users   shard", "- merged from 2 shards of run ab"] {
        assert!(said.contains(words), "{words} is not in {said}");
    }
    let merged = place.receipt("all.json");
    assert_eq!(merged.levels, sound().levels);
    let (code, said, _) = merge(&place, &["0.json", "1.json", "--json=-", "--quiet"]);
    assert_eq!(code, Some(0));
    assert_eq!(serde_json::from_str::<LoadReceipt>(&said).expect("JSON alone"), merged);
    let (code, _, error) = merge(&place, &["0.json", "0.json"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("shards 1, 1 of 2 are given"), "{error}");
    assert!(!place.folder.path().join("all.json").exists(), "nothing of the earlier merge is left");
    let (code, _, error) = merge(&place, &["0.json", "all.json"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("--out: all.json is what RECEIPTS names too"), "{error}");
}

const LOAD: [&str; 5] =
    ["--target=http://127.0.0.1:1", "--model=m", "--input-tokens=8", "--output-tokens=4", "--requests=4"];

/// A time that no test sees.
const LATER: &str = "--start-at=2200-01-01T00:00:00Z";

#[track_caller]
fn refused(variables: &[(&str, &str)], arguments: &[&str]) -> String {
    let place = Place::new();
    let mut command = place.command(&[&LOAD[..], arguments].concat());
    let Output { status, stderr, .. } = command.envs(variables.iter().copied()).output().expect("it starts");
    let error = String::from_utf8(stderr).expect("UTF-8");
    assert_eq!(status.code(), Some(2), "{error}");
    error
}

#[test]
fn a_start_that_cannot_be_kept_is_refused() {
    let error = refused(&[], &["--start-at=2020-01-01T00:00:00Z"]);
    assert!(error.contains("that was") && error.contains("give a time that every shard can reach"), "{error}");
    assert!(refused(&[], &["--start-at=1500000000"]).contains("ago; give a time"));
    assert!(refused(&[], &["--start-at=1500000000.25"]).contains("ago; give a time"));
    for text in ["--start-at=soon", "--start-at=2026-01-01", "--start-at=nan"] {
        assert!(refused(&[], &[text]).contains("write a time in UTC as"), "{text}");
    }
    assert!(refused(&[], &["--shard=1/2"]).contains("--start-at"), "shards begin together");
}

#[test]
fn a_shard_that_is_none_is_refused() {
    assert!(refused(&[], &[LATER, "--shard=3/2"]).contains("--shard: there is no shard 3 of 2"));
    assert!(refused(&[], &[LATER, "--shard=first"]).contains("write K/N"));
    let error = refused(&[], &[LATER, "--shard=1/3", "--users=2,3"]);
    assert!(error.contains("--users 2: fewer than the 3 shards"), "{error}");
    let error = refused(&[], &[LATER, "--shard=1/3", "--until-slo=ttft_p95=1s"]);
    assert!(error.contains("--until-slo: each shard would search by itself"), "{error}");
}

/// Whatever comes after the shard was found is refused for another reason, which shows that it was found.
#[test]
fn the_environment_names_a_shard_where_no_flag_does() {
    let (index, count) = ("JOB_COMPLETION_INDEX", "INFERGATE_SHARDS");
    let (id, min, step, tasks) =
        ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP", "SLURM_ARRAY_TASK_COUNT");
    let few = [LATER, "--users=1"];
    let found = |variables: &[(&str, &str)], expected: &str| {
        let error = refused(variables, &few);
        assert!(error.contains(expected), "{expected} is not in {error}");
    };
    found(&[(index, "1"), (count, "4")], "fewer than the 4 shards");
    found(&[(id, "9"), (min, "5"), (step, "2"), (tasks, "3")], "fewer than the 3 shards");
    found(&[(id, "2"), (min, "1"), (tasks, "6")], "fewer than the 6 shards");
    found(&[(index, "1")], "JOB_COMPLETION_INDEX is set and INFERGATE_SHARDS is not");
    found(&[(count, "4")], "INFERGATE_SHARDS is set and JOB_COMPLETION_INDEX is not");
    found(
        &[(index, "4"), (count, "4")],
        "JOB_COMPLETION_INDEX=4, INFERGATE_SHARDS=4: there is no shard with the index 4 of 4",
    );
    found(&[(index, "x"), (count, "4")], "JOB_COMPLETION_INDEX=x: is no number");
    found(&[(id, "1")], "SLURM_ARRAY_TASK_ID is set, and SLURM_ARRAY_TASK_MIN or");
    found(
        &[(id, "7"), (min, "1"), (tasks, "3")],
        "is none of 3 tasks from 1 in steps of 1; number the array without gaps",
    );
    found(&[(index, "0"), (count, "2"), (id, "0"), (min, "0"), (tasks, "2")], "are both set");
    let error = refused(&[(index, "1")], &[LATER, "--shard=1/2", "--users=1"]);
    assert!(error.contains("fewer than the 2 shards"), "the flag wins: {error}");
    // Without a common start nobody asked for shards: what is wrong here is the dataset.
    let error = refused(&[(index, "1")], &["--users=1", "--dataset=missing.jsonl"]);
    assert!(error.contains("missing.jsonl"), "{error}");
}

#[test]
fn a_ramp_and_what_a_dataset_repeats_are_in_the_receipt() {
    let place = Place::new();
    let rows = [1, 2, 3].map(|row| format!("{{\"prompt\": \"row {row}\"}}\n")).concat();
    std::fs::write(place.folder.path().join("data.jsonl"), rows).expect("a file");
    std::fs::write(place.folder.path().join("key"), "SECRET").expect("a file");
    let target = format!("--target={}", polite());
    let load = [&target, "--model=m", "--api-key-file=key", "--input-tokens=8", "--output-tokens=4"];
    let level = ["--users=2", "--duration=300ms", "--ramp=20ms", "--dataset=data.jsonl", "--out=load.json"];
    let (code, said, error) = place.run(&[load, level].concat());
    assert!(code.is_some_and(|code| code != 2), "{error}");
    let receipt = place.receipt("load.json");
    assert_eq!((receipt.levels[0].ramp_ns, receipt.dataset_prompts), (20_000_000, Some(3)));
    assert_eq!(receipt.levels[0].stop, Stop::Duration { ns: 300_000_000 }, "the ramp comes before it");
    let first = receipt.levels[0].requests.iter().filter(|record| record.user == 1).map(|r| r.scheduled_ns).min();
    assert!(first.is_some_and(|first_ns| first_ns >= receipt.levels[0].began_ns + 10_000_000), "{first:?}");
    assert!(said.contains("- plain, 2 users: the dataset's 3 prompts were sent"), "{said}");
}
