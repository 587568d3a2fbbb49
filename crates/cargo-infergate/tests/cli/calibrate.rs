//! `calibrate`: what the gate says of itself, and how a later gate quotes it.

use std::path::PathBuf;

use infergate_receipts::{Calibration, read, write_json};

use crate::paired::{gate, program};
use crate::sandbox::{Sandbox, error, stdout};

fn calibrate(sandbox: &Sandbox, program_name: &str, arguments: &[&str]) -> assert_cmd::assert::Assert {
    let mut process = sandbox.process(&["calibrate", "--model=fake", "--threads=1", "--cases=prefill/p8,decode/p8"]);
    process.arg("--worker").arg(program(sandbox, program_name)).args(arguments);
    assert_cmd::Command::from_std(process).assert()
}

/// A program of these bytes.
fn executable(sandbox: &Sandbox, name: &str, bytes: &[u8]) -> String {
    let path: PathBuf = sandbox.path(&format!("{name}{}", std::env::consts::EXE_SUFFIX));
    // A copy first: it brings the permission to be run.
    std::fs::copy(program(sandbox, "fake"), &path).expect("a copy");
    std::fs::write(&path, bytes).expect("a file");
    path.to_string_lossy().into_owned()
}

#[test]
fn identical_builds_pass() {
    let sandbox = Sandbox::new();
    // The same program, and one byte more that nobody reads.
    let mut bytes = std::fs::read(program(&sandbox, "fake")).expect("a fake");
    bytes.push(0);
    let other = executable(&sandbox, "other", &bytes);
    let said = calibrate(&sandbox, "fake", &["--gates=4", "--out=c.json", "--other-worker", &other]).success();
    let report = stdout(&said);
    assert!(
        report.contains(
            "live, one file against itself: 0 of 2 decided gates regressed (0.00 % to 84.19 %), 2 of 2 passed"
        ),
        "{report}"
    );
    assert!(report.contains("live, two builds that do the same: 0 of 2 decided gates regressed"), "{report}");
    let calibration = read::<Calibration>(&sandbox.path("c.json")).expect("kept");
    assert_eq!(calibration.gates.len(), 4);
    let hashes = |at: usize| (&calibration.gates[at].base_sha256, &calibration.gates[at].head_sha256);
    assert!(hashes(0).0 == hashes(0).1 && hashes(1).0 != hashes(1).1, "told apart by hash");
    let row = |title: &str, words: &str| {
        let table = report.split_once(title).map_or("", |(_, rest)| rest);
        table.lines().any(|line| line.starts_with("decode/p8") && line.contains(words))
    };
    assert!(row("noise: standard deviation", "+2.0 %"), "{report}");
}

#[test]
fn a_later_gate_of_this_machine_class_quotes_it() {
    let sandbox = Sandbox::new();
    let mut bytes = std::fs::read(program(&sandbox, "fake")).expect("a fake");
    bytes.push(0);
    let other = executable(&sandbox, "other", &bytes);
    calibrate(&sandbox, "fake", &["--gates=4", "--other-worker", &other]).success();
    let said = |head: &str, arguments: &[&str]| stdout(&gate(&sandbox, "fake", head, arguments).success());
    let report = said("fake", &[]);
    // Two of four are between builds, and 0 of 2 is at most 77.64 %.
    let quoted = "0 of 2 decided gates between two builds that do the same (at most 78 %";
    assert!(report.contains(quoted) && report.contains("By design at most 1 % of suites"), "{report}");
    let report = said("fake", &["--cases=decode/p9"]);
    assert!(report.contains("was not measured: the calibration has other cases"), "{report}");

    // One of other threads is named, and none of these threads takes its place.
    let only = |folder: PathBuf| std::fs::read_dir(folder).expect("a folder").next().expect("one").expect("it").path();
    let kept = only(only(sandbox.path("baselines")).join("calibration"));
    let of_two = Calibration { threads: 2, ..read::<Calibration>(&kept).expect("kept") };
    write_json(&kept, &of_two).expect("kept");
    let why = "the calibration is of 2 threads, and this run of 1 thread";
    let report = said("fake", &[]);
    assert!(report.contains(why), "{report}");
    let line = error(calibrate(&sandbox, "fake", &["--gates=1"]));
    assert!(line.contains(why) && line.contains("keep this one elsewhere by --out"), "{line}");
    assert_eq!(read::<Calibration>(&kept).expect("as it was"), of_two);
}

#[test]
fn a_calibration_is_added_to_and_only_by_the_same_suite() {
    let sandbox = Sandbox::new();
    let gates = || read::<Calibration>(&sandbox.path("c.json")).expect("kept").gates;
    let said = calibrate(&sandbox, "fake", &["--gates=1", "--out=c.json", "--json=-"]).success();
    serde_json::from_str::<serde_json::Value>(&stdout(&said)).expect("JSON alone");
    let first = gates();
    calibrate(&sandbox, "fake", &["--gates=2", "--out=c.json"]).success();
    let all = gates();
    assert_eq!((all.len(), &all[0]), (3, &first[0]));
    let line = error(calibrate(&sandbox, "fake", &["--gates=1", "--threshold=1.05", "--out=c.json"]));
    assert!(line.contains("another suite, threshold") && line.contains("delete that file first"), "{line}");
    assert_eq!(gates(), all, "as it was");
}
