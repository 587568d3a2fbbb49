//! `gate`: measure, compare with the committed baseline or a revision, decide.

use anyhow::{Result, ensure};

use super::gate_options::Gate;
use super::{bench, files, outputs, pages, paired_gate, preflight};
use crate::config::{Config, Layer};
use infergate_build::output;
use infergate_receipts::{Baseline, PAIRED_SCHEMA, Receipt, read, schema_of};
use infergate_report::inputs::Inputs;
use infergate_report::{terminal, words};

/// Measures, or reads receipts; judges, prints, and gives the exit code. A paired gate goes to `paired_gate`.
pub fn run(options: &Gate, keys: &Layer) -> Result<i32> {
    pages::begin(options.report.as_deref())?;
    let config = Config::here(keys)?;
    let schema = options.receipt.first().map(|path| schema_of(path)).transpose()?.unwrap_or_default();
    let is_paired_receipt = schema.starts_with(PAIRED_SCHEMA.trim_end_matches(char::is_numeric));
    if options.paired.is_paired() || is_paired_receipt || options.receipt.len() > 1 {
        return paired_gate::run(options, &config);
    }
    ensure!(
        !options.paired.allow_output_change,
        "--allow-output-change is for a comparison with another revision; give --against, or bless the new output"
    );
    let (receipt, out) = match options.receipt.first() {
        Some(path) => (read::<Receipt>(path)?, None),
        None => {
            preflight::targets(&config, options.workers.worker.is_some())?;
            preflight::baselines(&config)?;
            let (out, runs) = (options.out.as_deref(), config.measured.memory.runs);
            let (receipt, out) = bench::run_suite(&config, out, &options.workers, &options.wait, false, runs)?;
            (receipt, Some(out))
        }
    };
    let baselines = find_baselines(&config, &receipt)?;
    let verdict = infergate_judge::judge_by_all(&receipt, &baselines, &config.policy).inspect_err(|_| {
        // A baseline of something else does not lose what was measured.
        out.iter().for_each(|out| outputs::receipt(out, &receipt, receipt.partial));
    })?;
    output::print_verdict(&terminal::verdict(&words::subject::subject(&receipt), &verdict, ""));
    if let Some(out) = out {
        outputs::receipt(&out, &receipt, receipt.partial);
    }
    let base = infergate_judge::nearest(&baselines, &receipt);
    let base = base.and_then(|baseline| infergate_judge::newest_session(baseline).ok());
    let inputs = Inputs { base, head: Some(receipt), verdict: Some(verdict), ..pages::inputs() };
    Ok(pages::conclude(&inputs, options.json.as_deref(), options.report.as_deref()))
}

/// The baselines of this engine and model, of every machine class.
fn find_baselines(config: &Config, receipt: &Receipt) -> Result<Vec<Baseline>> {
    let own = config.baselines.join(Baseline::file_name(receipt));
    let name = own.file_name().unwrap_or_default();
    let of_classes = files::entries(&config.baselines)?.into_iter().map(|class| class.join(name));
    of_classes.filter_map(|path| files::read_if_there(&path).transpose()).collect()
}
