//! `compare`: two files that were measured before.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command, value_parser};

use super::{flags, gate};
use crate::gate::compare;
use crate::receipt::{ReceiptOrBaseline, read_receipt_or_baseline};
use crate::report::terminal;

/// Its flags.
pub fn command() -> Command {
    let file = |name: &'static str, help: &'static str| {
        Arg::new(name).value_name(name).required(true).help(help).value_parser(value_parser!(PathBuf))
    };
    Command::new("compare")
        .about("Compare two receipts or baselines and decide (exit code)")
        .arg(file("BASE", "Receipt or baseline to compare with"))
        .arg(file("HEAD", "Receipt or baseline to judge"))
        .args(flags::judge())
        .arg(flags::json("Write the verdict here"))
        .after_help(
            "Examples:\n  cargo xtask compare before.json after.json\n  \
             cargo xtask compare baselines/CLASS/candle-synthetic-gpt2.json target/infergate/receipt.json",
        )
}

/// Reads both, judges, prints.
pub fn run(matches: &ArgMatches) -> Result<i32> {
    let config = flags::config(matches)?;
    let read = |name: &str| read_receipt_or_baseline(&flags::path(matches, name).context("a file is missing")?);
    let (base, head) = (read("BASE")?, read("HEAD")?);
    let verdict = compare(&base, &head, &config.policy)?;
    let subject = match &head {
        ReceiptOrBaseline::Receipt(receipt) => terminal::subject(receipt),
        ReceiptOrBaseline::Baseline(baseline) => {
            terminal::engine(&baseline.engine, baseline.threads, &baseline.machine)
        }
    };
    gate::finish(&verdict, &subject, flags::path(matches, "json").as_deref())
}
