//! `bench`: measure the suite and keep a receipt.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use super::flags::{self, Workers};
use super::machine_lock::{self, Wait};
use super::outputs::{Kept, exit_code_of_measuring};
use super::{memory, outputs, pages, preflight};
use crate::config::Config;
use crate::suite::{self, SuiteRequest};
use infergate_build::{bench_target, output, progress};
use infergate_receipts::Receipt;
use infergate_report::inputs::Inputs;
use infergate_report::terminal;

/// Measure the suite and write a receipt
#[derive(Args)]
#[command(args = flags::of_suite())]
#[command(
    after_help = "Examples:\n  cargo xtask bench\n  cargo xtask bench --model model.gguf --cases 'decode/*' --runs 3\n  \
    cargo xtask bench --cases prefill/p256 --out before.json"
)]
pub struct Bench {
    /// Where the receipt goes [default: target/infergate/receipt.json]
    #[arg(long)]
    out: Option<PathBuf>,
    #[command(flatten)]
    wait: Wait,
    /// Keep what the model said in the receipt, for a report that shows it
    #[arg(long)]
    keep_text: bool,
    #[command(flatten)]
    workers: Workers,
}

/// Measures, writes the receipt, prints it.
pub fn run(options: &Bench, config: &Config) -> Result<i32> {
    let out = options.out.as_deref();
    let (receipt, out) = run_suite(config, out, &options.workers, &options.wait, options.keep_text, 0)?;
    output::report(&terminal::report(&Inputs { head: Some(receipt.clone()), ..pages::inputs() }));
    outputs::receipt(&out, &receipt, receipt.partial);
    Ok(exit_code_of_measuring(receipt.partial, &receipt.invalid))
}

/// Builds the bench targets, runs the suite, counts, and follows `memory_runs` runs. Gives the receipt, whole or partial, and its path,
/// `out` or the usual one: the caller prints the result first, then writes the receipt there.
pub fn run_suite(
    config: &Config,
    out: Option<&Path>,
    workers: &Workers,
    wait: &Wait,
    keep_text: bool,
    memory_runs: usize,
) -> Result<(Receipt, PathBuf)> {
    let out = out.map_or_else(|| config.measured.target_folder().join("receipt.json"), Path::to_owned);
    outputs::remove_previous(&out)?;
    preflight::check(config)?;
    let prompt_text = config.measured.own_prompt_text()?;
    let _lock = machine_lock::take(wait)?;
    let worker = bench_target::worker(&config.build_request(), workers.worker.clone())?;
    let memory_worker = memory::worker(config, workers, &worker, memory_runs)?;
    let is_followed = memory_runs > 0 && memory_worker.as_ref().is_some_and(|worker| !worker.is_timed);
    let request = SuiteRequest {
        worker,
        prober: Some(infergate_core::process::this_program()?),
        load: config.measured.load_request(),
        cases: config.measured.cases.clone(),
        runs: config.session.runs as usize,
        seconds_per_case: config.session.seconds_per_case,
        prompt_text,
        keep_text,
        memory_case: is_followed.then_some(config.measured.memory.case),
    };
    let line = progress::Line::default();
    let kept = Kept::at(&out);
    let receipt =
        suite::run(&request, &mut |so_far| kept.keep(so_far), &mut |step| line.show(step), progress::cancelled());
    line.finish();
    let mut receipt = receipt.inspect_err(|_| kept.print_where())?;
    // The kept receipt is partial until its last phase is in it.
    if let Some(worker) = memory_worker.filter(|_| !receipt.partial)
        && let Err(error) = memory::attach(config, worker, memory_runs, &mut receipt)
    {
        // If the user ended it, the receipt keeps what was measured before.
        if !progress::is_cancelled() {
            kept.print_where();
            return Err(error);
        }
        receipt.partial = true;
    }
    Ok((receipt, out))
}
