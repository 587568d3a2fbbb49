//! The memory phase as a bench target: what `cargo bench -- memory` runs, and the worker that `cargo xtask memory` asks.

use std::env;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::Result;

use super::arguments::Arguments;
use crate::engine::EngineFactory;
use infergate_core::build_info;
use infergate_core::config::Config;
use infergate_core::memory::leak::{Finding, MemoryMeasure, asked, judge};
use infergate_core::memory::{MemoryRequest, run, size};
use infergate_core::outcome::Outcome;
use infergate_core::printable::{print_error, printable, printable_report};
use infergate_core::process::{outlive_file_limits, this_program};
use infergate_core::progress::Progress;
use infergate_core::receipt::{LeakSite, MemoryReceipt, write_json};
use infergate_core::worker::{Program, Timeouts};

/// The bench's name for criterion's filters.
const NAME: &str = "memory";

/// The whole of a memory bench target's `main`. The exit code is the verdict's: 1 for a leak. Errors go to stderr as one
/// line; exit code 2 then.
#[inline]
pub fn main(factory: &dyn EngineFactory) -> ExitCode {
    ExitCode::from(start(factory).map_or_else(|error| super::failed(&error), |code| code as u8))
}

#[inline]
fn start(factory: &dyn EngineFactory) -> Result<i32> {
    if super::is_worker() {
        return super::work(factory).map(|()| 0);
    }
    outlive_file_limits();
    let config = Config::load(&env::current_dir()?)?;
    let arguments = Arguments::parse(super::arguments());
    if arguments.list {
        println!("{NAME}: benchmark");
        return Ok(0);
    }
    let is_off = config.memory.runs == 0 && !arguments.test;
    if arguments.load_baseline || is_off || !arguments.names(NAME) {
        return Ok(0);
    }
    follow(&config, arguments.test)
}

/// This program again, as the worker: what keeps the records is no part of what is followed.
#[inline]
fn follow(config: &Config, test: bool) -> Result<i32> {
    let (commit, dirty) = build_info::git(Path::new("."));
    let request = MemoryRequest {
        worker: Program { commit, dirty, ..Program::new(this_program()?) },
        load: config.load_request(),
        counted: config.cases.clone(),
        case: config.memory.case,
        // One, where only whether it works is asked.
        runs: if test { 1 } else { config.memory.runs },
        prompt_text: config.own_prompt_text()?,
        timeouts: Timeouts::default(),
    };
    let path = config.target_folder().join("memory.json");
    let mut said = String::new();
    let mut say = |step: &Progress| {
        let stage = step.label.split(':').next().unwrap_or_default();
        if stage != said {
            eprintln!("{stage}");
            said = stage.to_owned();
        }
    };
    // A disk that is full ends no run: what is measured is in memory, too.
    let mut keep = |partial: &MemoryReceipt| drop(write_json(&path, partial));
    let receipt = run(&request, &mut keep, &mut say, &AtomicBool::new(false))?;
    if test {
        return Ok(match (receipt.memory.invalid.first(), receipt.memory.partial) {
            (None, false) => 0,
            (reason, _) => {
                eprintln!("error: {}", printable(reason.map_or("the memory phase was cut short", String::as_str)));
                Outcome::Invalid.exit_code()
            }
        });
    }
    let findings = judge(&receipt.memory);
    let worst = findings.iter().map(|finding| finding.outcome).max_by_key(|outcome| outcome.severity());
    let outcome = worst.unwrap_or(Outcome::Failed);
    // Before anything is written, which may fail. A closed pipe is not an error of ours.
    let summary = summary(&receipt, &findings, outcome);
    let _ = std::io::stdout().write_all(printable_report(&summary).as_bytes());
    match write_json(&path, &receipt) {
        Ok(()) => eprintln!("receipt: {}", printable(&path.to_string_lossy())),
        Err(error) if outcome.exit_code() == 0 => return Err(error),
        Err(error) => print_error(&error),
    }
    Ok(outcome.exit_code())
}

/// What was seen and what it means, a line each; the whole table is what `cargo infergate memory` prints.
fn summary(receipt: &MemoryReceipt, findings: &[Finding], outcome: Outcome) -> String {
    let memory = &receipt.memory;
    let model = printable(&receipt.engine.model);
    let mut text = format!("memory: {model}, {} runs of {}\n", memory.asked_runs, memory.case);
    for finding in findings {
        let bytes = match finding.evidence.measure {
            MemoryMeasure::Heap => asked(memory, &memory.runs.live_bytes),
            MemoryMeasure::Resident => asked(memory, &memory.runs.rss_bytes),
            // Their note says how they rise.
            MemoryMeasure::OpenFiles | MemoryMeasure::Threads => &[],
        };
        let ends = match bytes {
            [first, .., last] => {
                format!("{} after the first run, {} after the last: ", size(*first as f64), size(*last as f64))
            }
            _ => String::new(),
        };
        let _ = write!(text, "{}: {ends}{}", finding.evidence.measure.words(), finding.outcome.words());
        if let Some(bytes) = finding.evidence.smallest_leak_bytes {
            let _ = write!(text, " ({} in each run would be seen)", size(bytes));
        }
        if let Some(note) = &finding.note {
            let _ = write!(text, ", {note}");
        }
        text.push('\n');
    }
    for LeakSite { bytes_per_run, frames, .. } in &memory.sites {
        let frames = frames.join(", called by ");
        let _ = writeln!(text, "leak of {} a run: {}", size(*bytes_per_run), printable(&frames));
    }
    for missing in &memory.missing {
        let _ = writeln!(text, "not seen: {}", printable(missing));
    }
    let _ =
        writeln!(text, "verdict: {}", if outcome.exit_code() == 0 { Outcome::Pass.words() } else { outcome.words() });
    text
}
