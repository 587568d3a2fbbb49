//! `load merge`: the receipts of shards into one.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};

use super::{exit_code, show};
use crate::cli::outputs::{self, Written};
use crate::cli::{output, pages};
use infergate_load::merge::merge;
use infergate_receipts::{LoadReceipt, read, write_json};
use infergate_report::inputs::Inputs;

/// What `load` does beside putting on load.
#[derive(Subcommand)]
pub enum Commands {
    Merge(Merge),
}

/// Put the shards of a load together
#[derive(Args)]
pub struct Merge {
    /// Receipt of each shard
    #[arg(value_name = "RECEIPT", required = true)]
    receipts: Vec<PathBuf>,
    /// Where the receipt of the whole load goes
    #[arg(long)]
    out: PathBuf,
    /// Write that receipt here as well; - is stdout, which then has nothing else
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Reads, merges, keeps, prints what the whole load says.
pub fn run(options: &Merge) -> Result<i32> {
    let Merge { receipts, out, json } = options;
    outputs::begin(&[("RECEIPTS", receipts)], Some(out), json.as_deref())?;
    let read = |path: &PathBuf| -> Result<(String, LoadReceipt)> { Ok((path.display().to_string(), read(path)?)) };
    let receipt = merge(receipts.iter().map(read).collect::<Result<_>>()?)?;
    let code = exit_code(&receipt);
    show(&Inputs { load: Some(receipt.clone()), ..pages::inputs() }, code != 0);
    let mut written = Written::default();
    if written.note(write_json(out, &receipt)) {
        output::line(&format!("receipt: {}", out.display()));
    }
    written.json(json.as_deref(), &receipt);
    Ok(written.code(code))
}
