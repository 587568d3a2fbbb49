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
    let shard = Shard { index, count: 2 };
    let record = ShardRecord { index, count: 2, run: "ab".into(), clock_unix_ns: 1 };
    receipt.shards = vec![record];
    let level = &mut receipt.levels[0];
    level.whole = Some(level.arrivals);
    level.arrivals = shard.arrivals(level.arrivals);
    level.stop = shard.stop(level.stop);
    level.requests.retain(|record| shard.has(record.request));
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
    let (code, _, error) = merge(&place, &["0.json", "0.json"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("shards 1, 1 of 2 are given"), "{error}");
    assert!(!place.folder.path().join("all.json").exists(), "nothing of the earlier merge is left");
    let (code, _, error) = merge(&place, &["0.json", "all.json"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("--out: all.json is what RECEIPTS names too"), "{error}");
}

#[test]
fn a_ramp_and_what_a_dataset_repeats_are_in_the_receipt() {
    let place = Place::new();
    let rows = [1, 2, 3].map(|row| format!("{{\"prompt\": \"row {row}\"}}\n")).concat();
    std::fs::write(place.folder.path().join("data.jsonl"), rows).expect("a file");
    let target = format!("--target={}", polite());
    let load = [&target, "--model=m", "--api-key-env=KEY", "--input-tokens=8", "--output-tokens=4"];
    let level = ["--users=2", "--duration=300ms", "--ramp=20ms", "--dataset=data.jsonl", "--out=load.json"];
    let (code, said, error) = place.run(&[load, level].concat());
    assert!(code.is_some_and(|code| code != 2), "{error}");
    let receipt = place.receipt("load.json");
    assert_eq!((receipt.levels[0].ramp_ns, receipt.dataset_prompts), (20_000_000, Some(3)));
    assert_eq!(receipt.levels[0].stop, Stop::Duration { ns: 300_000_000 }, "the ramp comes before it");
    let first = receipt.levels[0].requests.iter().filter(|record| record.user == 1).map(|r| r.scheduled_ns).min();
    assert!(first.is_some_and(|first_ns| first_ns >= receipt.levels[0].began_ns + 10_000_000), "{first:?}");
    assert!(said.contains("the dataset's 3 prompts repeat"), "{said}");
}
