//! What is kept of a file or an answer is bounded by its length, whatever is in it.

use std::path::{Path, PathBuf};

use cargo_infergate::receipt::{
    Baseline, Calibration, LoadBaseline, LoadReceipt, MemoryReceipt, PairedReceipt, Receipt, Verdict,
};
use infergate_core::json::most_bytes;
use infergate_core::receipt::RULES;
use infergate_core::stats::theil_sen;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::files::golden;
use crate::hostile::within_memory;
use crate::swell::within_charge;

#[track_caller]
fn swelled<T: DeserializeOwned>(name: &str) {
    let text = std::fs::read_to_string(golden(name)).expect("a golden file");
    let sound: Value = serde_json::from_str(&text).expect("JSON");
    let tried = within_charge::<T>(name, &sound);
    assert!(tried >= 10, "{name}: only {tried} files");
}

/// What runs wrote is charged with far less than it may be.
#[test]
fn files_of_runs_are_not_refused() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut waiting: Vec<PathBuf> = ["baselines", "docs/gallery"].iter().map(|folder| root.join(folder)).collect();
    let mut tried = 0;
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|ending| ending == "json") {
                let text = std::fs::read_to_string(&path).expect("text");
                let charged = most_bytes(&text, RULES).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                // Twenty times as long it would still be read.
                let (long, room) = (text.len() as f64, 15.0 * 1024.0 * 1024.0);
                assert!(20.0 * (charged as f64 - 7.0 * long) < room, "{}: {charged} of {long}", path.display());
                tried += 1;
            }
        }
    }
    assert!(tried > 5, "{tried} files");
}

#[test]
fn of_receipts() {
    swelled::<Receipt>("receipt-1.json");
    swelled::<Baseline>("baseline-1.json");
    swelled::<MemoryReceipt>("memory-1.json");
}

#[test]
fn of_paired_receipts_and_verdicts() {
    swelled::<PairedReceipt>("paired-1.json");
    swelled::<Verdict>("verdict-2.json");
    swelled::<Calibration>("calibration-1.json");
}

#[test]
fn of_load_receipts() {
    swelled::<LoadReceipt>("load-1.json");
    swelled::<LoadReceipt>("load-shard-1.json");
    swelled::<LoadBaseline>("load-baseline-1.json");
}

/// As many runs as a file may have, and as many again: all pairs of them would take 400 MB.
#[test]
fn of_the_trend_of_a_long_memory_phase() {
    let values: Vec<f64> = (0..10_000).map(|at| f64::from(at % 97)).collect();
    let line = within_memory("a trend", size_of_val(&*values), || theil_sen(&values));
    assert!(line.is_some_and(|line| line.slope.abs() < 0.1), "{line:?}");
}
