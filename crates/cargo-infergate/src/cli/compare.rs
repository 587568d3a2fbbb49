//! `compare`: two files that were measured before.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command, value_parser};

use super::outputs::Written;
use super::{flags, load_gate, output, report};
use crate::gate::compare;
use crate::receipt::{ReceiptOrBaseline, read_receipt_or_baseline};
use crate::report::inputs::Inputs;
use crate::report::terminal;

/// Its flags.
pub fn command() -> Command {
    let file = |name: &'static str, help: &'static str| {
        Arg::new(name).value_name(name).required(true).help(help).value_parser(value_parser!(PathBuf))
    };
    Command::new("compare")
        .about("Compare two receipts or baselines and decide")
        .arg(file("BASE", "Receipt or baseline to compare with"))
        .arg(file("HEAD", "Receipt or baseline to judge"))
        .args(flags::judge())
        .arg(flags::json("Write the verdict here"))
        .after_help(
            "Examples:\n  cargo xtask compare before.json after.json\n  \
             cargo xtask compare baselines/CLASS/candle-synthetic-gpt2.json target/infergate/receipt.json\n  \
             cargo xtask compare load-before.json load-after.json",
        )
}

/// Reads both, judges, prints.
pub fn run(matches: &ArgMatches) -> Result<i32> {
    let config = flags::config(matches)?;
    let path = |name: &str| flags::path(matches, name).context("a file is missing");
    let (base, head) = (path("BASE")?, path("HEAD")?);
    if load_gate::is_load(&base)? || load_gate::is_load(&head)? {
        return load_gate::compare(matches, &config, &base, &head);
    }
    let (base, head) = (read_receipt_or_baseline(&base)?, read_receipt_or_baseline(&head)?);
    let verdict = compare(&base, &head, &config.policy)?;
    let subject = match &head {
        ReceiptOrBaseline::Receipt(receipt) => terminal::subject(receipt),
        ReceiptOrBaseline::Baseline(baseline) => {
            terminal::engine(&baseline.engine, baseline.threads, &baseline.machine)
        }
    };
    output::decided(&terminal::verdict(&verdict, &subject));
    let (code, mut written) = (verdict.exit_code, Written::default());
    let inputs = Inputs { verdict: Some(verdict), ..report::inputs() };
    report::verdict(&inputs, flags::path(matches, "json").as_deref(), &mut written);
    Ok(written.code(code))
}
