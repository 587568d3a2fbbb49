//! `calibrate`: what the gate says of itself, and how a later gate quotes it.

use cargo_infergate::receipt::{Calibration, read};

use crate::paired::{gate, program};
use crate::sandbox::{Sandbox, error, stderr, stdout};

fn calibrate(sandbox: &Sandbox, program_name: &str, arguments: &[&str]) -> assert_cmd::assert::Assert {
    let mut process = sandbox.process(&["calibrate", "--model=fake", "--threads=1", "--cases=prefill/p8,decode/p8"]);
    process.arg("--worker").arg(program(sandbox, program_name)).args(arguments);
    assert_cmd::Command::from_std(process).assert()
}

#[test]
fn identical_builds_pass_and_injected_slowdowns_are_found() {
    let sandbox = Sandbox::new();
    let other = program(&sandbox, "fake+faster");
    std::fs::rename(&other, sandbox.path("other")).expect("a fake under another name");
    let other = sandbox.path("other").to_string_lossy().into_owned();
    let said = calibrate(&sandbox, "fake", &["--gates=4", "--out=c.json", "--other-worker", &other]).success();
    let report = stdout(&said);
    assert!(
        report.contains("live, one file against itself: 0 of 2 gates regressed (0.00 % to 84.19 %), 2 passed"),
        "{report}"
    );
    assert!(report.contains("live, separate builds: 0 of 2 gates regressed"), "{report}");
    assert!(report.contains("10000 suites resampled from 32 live blocks: 0.00 %"), "{report}");
    let calibration = read::<Calibration>(&sandbox.path("c.json")).expect("kept");
    assert!(!calibration.partial);
    assert_eq!((calibration.gates.len(), calibration.power.len()), (4, 12));
    let row = |injected: &str| {
        report.lines().find(|line| line.starts_with("decode/p8") && line.contains(injected)).map(str::to_owned)
    };
    assert!(row("+5.0 %").is_some_and(|row| row.contains("100.00 %")), "{report}");
    assert!(row("+1.0 %").is_some_and(|row| row.contains(" 0.00 %")), "below the threshold: {report}");
}

#[test]
fn a_later_gate_of_this_machine_class_quotes_it() {
    let sandbox = Sandbox::new();
    calibrate(&sandbox, "fake", &["--gates=2", "--power-blocks=0"]).success();
    let said = gate(&sandbox, "fake", "fake", &[]).success();
    let report = stdout(&said);
    assert!(report.contains("0 of 2 gates between identical builds called regressed (at most 77.64 %"), "{report}");
}

#[test]
fn a_calibration_is_added_to_and_only_by_the_same_suite() {
    let sandbox = Sandbox::new();
    for _ in 0..2 {
        calibrate(&sandbox, "fake", &["--gates=1", "--power-blocks=0", "--out=c.json", "--add"]).success();
    }
    assert_eq!(read::<Calibration>(&sandbox.path("c.json")).expect("kept").gates.len(), 2);
    let line = error(calibrate(&sandbox, "fake", &["--gates=1", "--threshold=1.05", "--out=c.json", "--add"]));
    assert!(line.contains("leave --add out to begin anew"), "{line}");
    calibrate(&sandbox, "fake", &["--gates=1", "--power-blocks=0", "--out=c.json"]).success();
    assert_eq!(read::<Calibration>(&sandbox.path("c.json")).expect("kept").gates.len(), 1);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let sandbox = Sandbox::new();
    for (arguments, why) in [
        (&["--gates=0", "--power-blocks=0"][..], "leave nothing to measure"),
        (&["--slowdowns=0"], "is no slowdown in percent"),
        (&["--slowdowns=nan"], "is no slowdown in percent"),
    ] {
        let line = error(calibrate(&sandbox, "fake", arguments));
        assert!(line.contains(why), "{line}");
    }
    let said = calibrate(&sandbox, "fake+unrepeatable", &["--gates=1"]).code(2);
    assert!(stderr(&said).contains("make the engine deterministic"), "{}", stderr(&said));
}
