//! `compare`: two files that were measured before.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::{flags, load_gate, pages};
use crate::config::{Config, Layer};
use infergate_build::output;
use infergate_judge::compare;
use infergate_receipts::{ReceiptOrBaseline, read_receipt_or_baseline};
use infergate_report::inputs::Inputs;
use infergate_report::{terminal, words};

/// Compare two receipts or baselines and decide
#[derive(Args)]
#[command(args = flags::some(&["require_baseline", "drift_tolerance", "counter_tolerance", "targets"]))]
#[command(after_help = "Examples:\n  cargo xtask compare before.json after.json\n  \
    cargo xtask compare baselines/CLASS/candle-synthetic-gpt2.json target/infergate/receipt.json\n  \
    cargo xtask compare load-before.json load-after.json")]
pub struct Compare {
    /// Receipt or baseline to compare with
    base: PathBuf,
    /// Receipt or baseline to judge
    head: PathBuf,
    /// Write the verdict here; - is stdout, which then has nothing else
    #[arg(long)]
    json: Option<PathBuf>,
}

pub fn run(options: &Compare, keys: &Layer) -> Result<i32> {
    let Compare { base, head, json } = options;
    let config = Config::here(keys)?;
    if load_gate::is_load(base)? || load_gate::is_load(head)? {
        load_gate::ensure_no_targets(keys)?;
        return load_gate::compare(&config, base, head, json.as_deref());
    }
    let (base, head) = (read_receipt_or_baseline(base)?, read_receipt_or_baseline(head)?);
    let verdict = compare(&base, &head, &config.policy)?;
    let subject = match &head {
        ReceiptOrBaseline::Receipt(receipt) => words::subject::subject(receipt),
        ReceiptOrBaseline::Baseline(baseline) => {
            words::subject::engine(&baseline.engine, baseline.threads, &baseline.machine)
        }
    };
    output::print_verdict(&terminal::verdict(&subject, &verdict, ""));
    Ok(pages::conclude(&Inputs { verdict: Some(verdict), ..pages::inputs() }, json.as_deref(), None))
}
