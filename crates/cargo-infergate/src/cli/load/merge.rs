//! `load merge`: the receipts of shards into one.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use super::{exit_code, show};
use crate::cli::outputs::Written;
use crate::cli::{flags, output, outputs};
use crate::load::merge::merge;
use crate::receipt::{LoadReceipt, read, write_json};

/// Its flags.
pub fn command() -> Command {
    let path = |arg: Arg| arg.value_parser(value_parser!(PathBuf)).required(true);
    Command::new("merge")
        .about("Put the shards of a load together")
        .arg(
            path(Arg::new("RECEIPTS").value_name("RECEIPT").action(ArgAction::Append).num_args(1..))
                .help("Receipt of each shard"),
        )
        .arg(path(Arg::new("out").long("out").value_name("FILE")).help("Where the receipt of the whole load goes"))
        .arg(flags::json("Write that receipt here as well"))
}

/// Reads, merges, keeps, prints what the whole load says.
pub fn run(matches: &ArgMatches) -> Result<i32> {
    outputs::begin(matches)?;
    let files = matches.get_many::<PathBuf>("RECEIPTS").into_iter().flatten();
    let read = |path: &PathBuf| -> Result<(String, LoadReceipt)> { Ok((path.display().to_string(), read(path)?)) };
    let receipt = merge(files.map(read).collect::<Result<_>>()?)?;
    receipt.validate()?;
    show(&receipt, false);
    let mut written = Written::default();
    if let Some(out) = flags::path(matches, "out")
        && written.note(write_json(&out, &receipt))
    {
        output::line(&format!("receipt: {}", out.display()));
    }
    written.json(flags::path(matches, "json").as_deref(), &receipt);
    Ok(written.code(exit_code(&receipt)))
}
