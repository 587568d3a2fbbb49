//! Inputs from the golden files, and the files made of them.

use std::path::Path;

use infergate_judge::memory::judge;
use infergate_judge::paired::{Policy, judge as judge_pair};
use infergate_receipts::{Format, LoadReceipt, MemoryReceipt, MemoryRecord, PairedReceipt, Receipt, Verdict, read};
use infergate_report::export::{EXPORTERS, File, chosen};
use infergate_report::inputs::Inputs;
use infergate_report::topics::report;

use crate::report_formats::runs;

pub fn golden<T: Format>(name: &str) -> T {
    read::<T>(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name)).expect("a golden file")
}

/// One run.
pub fn run() -> Inputs {
    Inputs { head: Some(golden::<Receipt>("receipt-1.json")), ..Inputs::new("cargo infergate") }
}

/// Two runs, judged.
pub fn two_runs() -> Inputs {
    let verdict = Some(golden::<Verdict>("verdict-1.json"));
    Inputs { base: run().head, verdict, ..run() }
}

/// The golden phases rose, and were written before a rise was confirmed: as many runs again go on as they did.
fn confirmed(record: &mut MemoryRecord) {
    let runs = &mut record.runs;
    for column in [&mut runs.live_bytes, &mut runs.live_blocks] {
        let rise = column.last().zip(column.first()).map_or(0, |(last, first)| last - first);
        let each = rise / (column.len() as u64 - 1);
        column.extend(column.clone().iter().map(|bytes| bytes + rise + each));
    }
    runs.rss_bytes.extend_from_within(..);
}

/// A paired run, judged.
pub fn paired() -> Inputs {
    let mut paired = golden::<PairedReceipt>("paired-1.json");
    confirmed(paired.memory.as_mut().expect("it was followed"));
    let verdict = Some(judge_pair(&paired, &Policy::default()));
    Inputs { paired: Some(paired), verdict, ..Inputs::new("cargo infergate") }
}

/// A memory phase, judged.
pub fn memory() -> Inputs {
    let mut memory = golden::<MemoryReceipt>("memory-1.json");
    confirmed(&mut memory.memory);
    let verdict = Some(Verdict::of(judge(&memory.memory), Vec::new()));
    Inputs { memory: Some(memory), verdict, ..Inputs::new("cargo infergate") }
}

pub fn all() -> [(&'static str, Inputs); 6] {
    [
        ("run", run()),
        ("two-runs", two_runs()),
        ("paired", paired()),
        ("memory", memory()),
        ("load", load(runs::scenarios())),
        ("load-targets", load(runs::targets())),
    ]
}

/// A load run.
pub fn load(receipt: LoadReceipt) -> Inputs {
    Inputs { load: Some(receipt.into()), ..Inputs::new("cargo infergate") }
}

/// Every file of every format that has what it needs.
pub fn files(inputs: &Inputs) -> Vec<File> {
    let names: Vec<String> = EXPORTERS
        .iter()
        .filter(|exporter| exporter.lacks(inputs).is_none())
        .map(|exporter| exporter.name.to_owned())
        .collect();
    let report = report(inputs);
    let exporters = chosen(&names, inputs).expect("known names");
    let mut files: Vec<File> =
        exporters.into_iter().flat_map(|exporter| exporter.files(inputs, &report).expect("files")).collect();
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files.dedup();
    files
}

/// The text of the file `name`.
pub fn file(inputs: &Inputs, name: &str) -> String {
    files(inputs).into_iter().find(|file| file.name == name).expect("a file of that name").text
}
