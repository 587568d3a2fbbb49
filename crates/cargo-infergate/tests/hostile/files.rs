//! Every format, damaged in every way, through the same steps as a command takes: read, judge, show.

use std::path::Path;

use cargo_infergate::gate::paired::{PairedPolicy, summarise};
use cargo_infergate::gate::{self, Policy};
use cargo_infergate::receipt::{
    Baseline, Calibration, Format, LoadBaseline, LoadReceipt, MemoryReceipt, PairedReceipt, Receipt, ReceiptOrBaseline,
    Verdict, read, read_receipt_or_baseline,
};
use cargo_infergate::report::export::chosen;
use cargo_infergate::report::inputs::Inputs;
use cargo_infergate::report::{self, topics};
use infergate_core::printable::{printable, printable_report};
use infergate_load::judge;
use infergate_load::merge::merge;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;
use tempfile::TempDir;

use crate::inputs;
use crate::mutation::{INJECTED, changed, changes, injected_everywhere};

pub fn golden(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn sound<T: Format>(name: &str) -> T {
    read(&golden(name)).expect("a golden file is sound")
}

/// Damages the golden file `name` again and again, and asks `shown` for what people would see of each that can still be read.
fn survives(name: &str, shown: &dyn Fn(&Path) -> anyhow::Result<Vec<String>>) {
    let text = std::fs::read_to_string(golden(name)).expect("a golden file");
    let value: Value = serde_json::from_str(&text).expect("JSON");
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("damaged.json");
    assert!(!shown(&golden(name)).expect("the golden file itself").is_empty());
    let sound_to_show = |bytes: Vec<u8>| {
        std::fs::write(&path, bytes).expect("a file");
        match shown(&path) {
            Err(error) => {
                let line = format!("{error:#}");
                prop_assert!(printable(&line).len() > 10, "an error says something: {line}");
                prop_assert!(!line.ends_with('.'), "no full stop: {line}");
            }
            Ok(reports) => {
                for report in reports {
                    let report = printable_report(&report);
                    let own = report.lines().find(|line| line.starts_with(INJECTED));
                    prop_assert_eq!(own, None, "a file writes a line of its own:\n{}", report);
                }
            }
        }
        Ok(())
    };
    // By chance alone a field that is shown as it is would be found in one run of many.
    for bytes in injected_everywhere(&value) {
        sound_to_show(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let config = Config { cases: inputs(), failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&changes(), |changes| sound_to_show(changed(value.clone(), &changes)));
    if let Err(error) = outcome {
        panic!("{name}: {error}");
    }
}

/// The pages of these formats and their pictures; of none those that are usual.
fn pages(formats: &[String], inputs: &Inputs) -> anyhow::Result<Vec<String>> {
    let made = topics::report(inputs);
    let files = chosen(formats, inputs)?.into_iter().map(|exporter| (exporter.export)(inputs, &made));
    let files = files.collect::<anyhow::Result<Vec<_>>>()?.concat();
    Ok(files.into_iter().map(|file| file.text).collect())
}

/// In every usual format, and on the terminal.
#[test]
fn verdicts() {
    survives("verdict-2.json", &|path| {
        let verdict: Verdict = read(path)?;
        let mut shown = vec![report::terminal::verdict(&verdict, "head"), report::terminal::load_verdict(&verdict)];
        shown.extend(pages(&[], &Inputs { verdict: Some(verdict), ..Inputs::new("cargo infergate") })?);
        Ok(shown)
    });
}

#[test]
fn receipts() {
    let baseline: Baseline = sound("baseline-1.json");
    let other = ReceiptOrBaseline::Receipt(Box::new(sound("receipt-1.json")));
    survives("receipt-1.json", &|path| {
        let receipt: Receipt = read(path)?;
        let mut shown = vec![report::terminal::receipt(&receipt)];
        for base in [Some(&baseline), None] {
            let verdict = gate::judge(&receipt, base, &Policy::default())?;
            shown.push(report::terminal::verdict(&verdict, &report::terminal::subject(&receipt)));
        }
        let verdict = gate::compare(&other, &read_receipt_or_baseline(path)?, &Policy::default())?;
        shown.push(report::terminal::verdict(&verdict, &report::terminal::subject(&receipt)));
        if receipt.ensure_blessable().is_ok() && baseline.ensure_accepts(&receipt).is_ok() {
            let mut after = baseline.clone();
            after.add(&receipt, false);
            shown.push(report::blessing::changes(Some(&baseline), &after, &receipt, &Policy::default(), path));
        }
        Ok(shown)
    });
}

#[test]
fn baselines() {
    let receipt: Receipt = sound("receipt-1.json");
    survives("baseline-1.json", &|path| {
        let baseline: Baseline = read(path)?;
        let verdict = gate::judge(&receipt, Some(&baseline), &Policy::default())?;
        let mut shown = vec![report::terminal::verdict(&verdict, &report::terminal::subject(&receipt))];
        if baseline.ensure_accepts(&receipt).is_ok() {
            let mut after = baseline.clone();
            after.add(&receipt, false);
            shown.push(report::blessing::changes(Some(&baseline), &after, &receipt, &Policy::default(), path));
        }
        Ok(shown)
    });
}

#[test]
fn paired_receipts() {
    let sound = std::cell::Cell::new(0);
    survives("paired-1.json", &|path| {
        let receipt: PairedReceipt = read(path)?;
        // What a run could have shown is simulated, which takes a while: every two-hundredth is judged.
        sound.set(sound.get() + 1);
        if sound.get() % 200 != 1 {
            return Ok(vec![report::paired::thresholds(&receipt)]);
        }
        let verdict = gate::paired::judge(&receipt, &PairedPolicy::default());
        Ok(vec![report::paired::thresholds(&receipt), report::paired::verdict(&receipt, &verdict)])
    });
}

#[test]
fn memory_receipts() {
    survives("memory-1.json", &|path| {
        let receipt: MemoryReceipt = read(path)?;
        let verdict = Verdict::of(gate::memory::judge(&receipt.memory), Vec::new());
        Ok(vec![report::terminal::memory(&receipt, &verdict)])
    });
}

#[test]
fn load_receipts() {
    survives("load-1.json", &|path| {
        let mut receipt: LoadReceipt = read(path)?;
        receipt.invalid.extend(judge::reasons(&receipt));
        let text = report::terminal::load(&receipt);
        let inputs = Inputs { load: Some(receipt), ..Inputs::new("cargo infergate") };
        let mut shown = pages(&["md".to_owned()], &inputs)?;
        shown.push(text);
        Ok(shown)
    });
}

/// As the base and, appended to, as a file that is blessed.
#[test]
fn load_baselines() {
    let receipt: LoadReceipt = LoadReceipt { invalid: Vec::new(), ..sound("load-1.json") };
    survives("load-baseline-1.json", &|path| {
        let baseline: LoadBaseline = read(path)?;
        let verdict = gate::load::judge(&receipt, Some(&baseline), &Policy::default())?;
        let mut shown = vec![report::terminal::load_verdict(&verdict)];
        if baseline.ensure_accepts(&receipt).is_ok() {
            let mut after = baseline.clone();
            after.add(&receipt, false);
            shown.push(report::blessing::load_changes(Some(&baseline), &after, path));
        }
        Ok(shown)
    });
}

/// Judged by sound sessions, and as what they are judged by.
#[test]
fn judged_load_receipts() {
    let baseline: LoadBaseline = sound("load-baseline-1.json");
    let other: LoadReceipt = sound("load-1.json");
    survives("load-1.json", &|path| {
        let receipt: LoadReceipt = read(path)?;
        let policy = Policy::default();
        let verdicts = [
            gate::load::judge(&receipt, Some(&baseline), &policy)?,
            gate::load::judge(&receipt, None, &policy)?,
            gate::load::compare(&receipt, &other, &policy)?,
        ];
        let mut shown = verdicts.map(|verdict| report::terminal::load_verdict(&verdict)).to_vec();
        let after = LoadBaseline::from_receipt(&receipt);
        if after.validate().is_ok() {
            shown.push(report::blessing::load_changes(Some(&baseline), &after, path));
        }
        Ok(shown)
    });
}

/// Merged with the other half.
#[test]
fn shards_of_a_load() {
    let mut other: LoadReceipt = sound("load-shard-1.json");
    other.shards[0].index = 1;
    for record in other.levels.iter_mut().flat_map(|level| &mut level.requests) {
        record.request += 1;
        record.user += 1;
    }
    survives("load-shard-1.json", &|path| {
        let merged = merge(vec![("damaged.json".into(), read(path)?), ("other.json".into(), other.clone())])?;
        merged.validate()?;
        Ok(vec![report::terminal::load(&merged)])
    });
}

#[test]
fn calibrations() {
    survives("calibration-1.json", &|path| {
        let calibration: Calibration = read(path)?;
        // From 12 blocks on, suites are drawn from them by the thousand.
        if calibration.gates.iter().map(|gate| gate.blocks.len()).sum::<usize>() >= 12 || calibration.power.len() >= 12
        {
            return Ok(vec!["sound".into()]);
        }
        let summary = summarise(&calibration);
        Ok(vec![report::calibration::text(&calibration, &summary)])
    });
}
