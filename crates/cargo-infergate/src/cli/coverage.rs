//! After a run: how much of what changed the cases run whose time differs.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use clap::Args;
use infergate_core::printable::printable_within;

use super::progress;
use crate::code::{Changed, ChangedFunction};
use crate::coverage::Watched;
use crate::gate::paired::{PairedPolicy, asks, decide};
use crate::paired::{PairedRequest, Program};
use crate::receipt::{CodeRuns, PairedCase, PairedReceipt, clause};

/// As many names as a line has room for.
const NAMED: usize = 4;
const MOST_CHARACTERS: usize = 60;

/// Watches each case whose time differs or is not decided, in both builds, and writes into the receipt what it runs.
pub fn attach(
    receipt: &mut PairedReceipt,
    policy: &PairedPolicy,
    request: &PairedRequest,
    changed: Option<&Changed>,
    line: &progress::Line,
    cancelled: &AtomicBool,
) {
    let Some(changed) = changed.filter(|_| !receipt.partial && receipt.code.is_some()) else { return };
    let verdict = decide(receipt, policy);
    let asking: Vec<_> = verdict.rows.iter().filter(|row| asks(row)).filter_map(|row| row.subject.case()).collect();
    let cases: Vec<PairedCase> = receipt.cases.iter().filter(|case| asking.contains(&case.id)).cloned().collect();
    let total_steps = cases.len();
    let mut runs = Vec::new();
    for (done_steps, case) in cases.iter().enumerate() {
        let label = format!("what {} runs of what changed", case.id);
        line.show(&infergate_core::progress::Progress { label, done_steps, total_steps });
        runs.push(of_case(case, request, changed, cancelled));
    }
    if let Some(code) = &mut receipt.code {
        code.runs = runs;
    }
}

fn of_case(case: &PairedCase, request: &PairedRequest, changed: &Changed, cancelled: &AtomicBool) -> CodeRuns {
    match seen(case, request, changed, cancelled) {
        Ok(functions) => {
            let shown = |name: &&ChangedFunction| printable_within(&name.name, MOST_CHARACTERS).into_owned();
            let mut named: Vec<String> = functions.iter().map(shown).collect();
            named.dedup();
            named.truncate(NAMED);
            CodeRuns { id: case.id, functions: Some(functions.len()), changed: None, named, why: None }
        }
        Err(error) => {
            CodeRuns { id: case.id, functions: None, changed: None, named: Vec::new(), why: Some(clause(&error)) }
        }
    }
}

/// The functions that changed and run.
fn seen<'a>(
    case: &PairedCase,
    request: &PairedRequest,
    changed: &'a Changed,
    cancelled: &AtomicBool,
) -> Result<Vec<&'a ChangedFunction>> {
    anyhow::ensure!(changed.is_all, "something differs that is in no function of a name");
    let in_base =
        watched(case, request, &request.base, changed, |function| function.base, cancelled).context("base")?;
    let in_head =
        watched(case, request, &request.head, changed, |function| function.head, cancelled).context("head")?;
    let runs = |function: &&ChangedFunction| {
        let is_in = |seen: &[u64], at: Option<u64>| at.is_some_and(|at| seen.contains(&at));
        is_in(&in_base, function.base) || is_in(&in_head, function.head)
    };
    Ok(changed.functions.iter().filter(runs).collect())
}

fn watched(
    case: &PairedCase,
    request: &PairedRequest,
    program: &Program,
    changed: &Changed,
    of_side: fn(&ChangedFunction) -> Option<u64>,
    cancelled: &AtomicBool,
) -> Result<Vec<u64>> {
    let functions: Vec<u64> = changed.functions.iter().filter_map(of_side).collect();
    let prompt_text = request.prompt_text.as_deref();
    Watched { program, load: &request.load, prompt_text, functions: &functions }.run(case, cancelled)
}

/// The hidden command between the gate and a watched worker.
#[derive(Args)]
#[cfg_attr(
    not(all(target_os = "linux", target_arch = "x86_64")),
    expect(dead_code, reason = "nothing is watched there")
)]
pub struct Coverage {
    #[arg(long)]
    functions: PathBuf,
    #[arg(long)]
    seen: PathBuf,
    #[arg(long)]
    package: Option<PathBuf>,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub fn serve(asked: &Coverage) -> Result<i32> {
    infergate_core::process::end_with_parent();
    let places = std::fs::read_to_string(&asked.functions).context("the functions to watch cannot be read")?;
    let functions: Vec<u64> =
        places.lines().map(|line| u64::from_str_radix(line, 16)).collect::<Result<_, _>>().context("no place")?;
    let (program, arguments) = asked.command.split_first().context("no program was named")?;
    let package = asked.package.as_ref().map(|folder| folder.as_os_str());
    crate::coverage::trace(program.as_ref(), arguments, package, &functions, &asked.seen)
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub fn serve(_: &Coverage) -> Result<i32> {
    anyhow::bail!("functions are watched on Linux for x86-64 alone")
}
