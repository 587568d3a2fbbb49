//! The memory phase as a bench target: what `cargo bench -- memory` runs, and the worker that `cargo xtask memory` asks.

use std::env;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::Result;

use super::arguments::Arguments;
use crate::build_info;
use crate::config::Config;
use crate::engine::EngineFactory;
use crate::gate::memory::{heap_leaks, judge, needs_confirmation};
use crate::memory::{MemoryRequest, Rules, run};
use crate::process::this_program;
use crate::receipt::{Outcome, Verdict, write_json};
use crate::report;
use crate::suite::Progress;

/// The bench's name for criterion's filters.
const NAME: &str = "memory";
/// Runs where only whether it works is asked.
const TEST_RUNS: usize = 1;

/// The whole of a memory bench target's `main`. The exit code is the verdict's: 1 for a leak. Errors go to stderr as one
/// line; exit code 2 then.
pub fn main(factory: &dyn EngineFactory) -> ExitCode {
    match start(factory) {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(2)),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn start(factory: &dyn EngineFactory) -> Result<i32> {
    if super::is_worker() {
        return super::work(factory).map(|()| 0);
    }
    let config = Config::load(&env::current_dir()?)?;
    let arguments = Arguments::parse(env::args().skip(1));
    if arguments.list {
        println!("{NAME}: benchmark");
        return Ok(0);
    }
    if arguments.load_baseline || !arguments.names(NAME) {
        return Ok(0);
    }
    follow(&config, arguments.test)
}

/// This program again, as the worker: what keeps the records is no part of what is followed.
fn follow(config: &Config, test: bool) -> Result<i32> {
    let (commit, dirty) = build_info::git(Path::new("."));
    let request = MemoryRequest {
        worker: this_program()?,
        commit,
        dirty,
        load: config.load_request(),
        counted: config.cases.clone(),
        case: config.memory.case,
        runs: if test { TEST_RUNS } else { config.memory.runs },
        prompt_text: config.prompt.is_some().then(|| config.prompt_text()).transpose()?,
    };
    let path = config.target_folder().join("memory.json");
    let rules = Rules { heap_leaks, needs_confirmation };
    let mut said = String::new();
    let mut say = |step: &Progress| {
        let stage = step.label.split(':').next().unwrap_or_default();
        if stage != said {
            eprintln!("{stage}");
            said = stage.to_owned();
        }
    };
    let receipt = run(&request, rules, &mut |partial| write_json(&path, partial), &mut say, &AtomicBool::new(false))?;
    if test {
        return Ok(match (receipt.memory.invalid.first(), receipt.memory.partial) {
            (None, false) => 0,
            (reason, _) => {
                eprintln!("error: {}", reason.map_or("the memory phase was cut short", String::as_str));
                Outcome::Invalid.exit_code()
            }
        });
    }
    write_json(&path, &receipt)?;
    let verdict = Verdict::of(judge(&receipt.memory, config.policy.memory), Vec::new());
    // A closed pipe is not an error of ours.
    let _ = anstream::stdout().write_all(report::memory::verdict(&receipt, &verdict).as_bytes());
    eprintln!("receipt: {}", path.display());
    Ok(verdict.exit_code)
}
