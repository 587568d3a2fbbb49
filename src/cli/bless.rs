//! `bless`: write or refresh this machine class's baseline, after showing what changes.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use super::{bench, flags, output};
use crate::receipt::{Baseline, Receipt, read_baseline, read_receipt, write_json};
use crate::report::blessing;

/// Its flags.
pub fn command() -> Command {
    Command::new("bless")
        .about("Append sessions to the baseline of this machine class, or write a new one")
        .args(flags::measure())
        .args(flags::one("baselines"))
        .arg(bench::out())
        .arg(
            Arg::new("receipt")
                .long("receipt")
                .value_name("FILE")
                .action(ArgAction::Append)
                .help("Bless this receipt instead of measuring; repeatable")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("dry-run")
                .long("dry-run")
                .action(ArgAction::SetTrue)
                .help("Show what would change, write nothing"),
        )
        .arg(flags::json("Write the new baseline here as well"))
        .after_help(
            "Examples:\n  cargo xtask bless\n  cargo xtask bless --receipt target/infergate/receipt.json --dry-run\n\n\
             A baseline is judged against from 8 sessions on, spread over time: see baselines/README.md",
        )
}

/// Measures or reads, shows, writes.
pub fn run(matches: &ArgMatches) -> Result<i32> {
    let config = flags::config(matches)?;
    let receipts: Vec<Receipt> = match matches.get_many::<PathBuf>("receipt") {
        Some(paths) => paths.map(|path| read_receipt(path)).collect::<Result<_>>()?,
        None => vec![bench::measure(&config, matches)?],
    };
    let dry_run = matches.get_flag("dry-run");
    for receipt in &receipts {
        receipt.ensure_blessable()?;
        let path = config.baselines.join(Baseline::file_name(&receipt.machine.class, &receipt.engine));
        let before = path.is_file().then(|| read_baseline(&path)).transpose()?;
        let after = appended(before.as_ref(), receipt, &path)?;
        output::report(&blessing::changes(before.as_ref(), &after, receipt, &path));
        if !dry_run {
            write_json(&path, &after)?;
        }
        if let Some(json) = flags::path(matches, "json") {
            write_json(&json, &after)?;
        }
    }
    if dry_run {
        output::say("dry run: nothing was written");
    }
    Ok(0)
}

fn appended(before: Option<&Baseline>, receipt: &Receipt, path: &Path) -> Result<Baseline> {
    let Some(before) = before else { return Ok(Baseline::from_receipt(receipt)) };
    before.ensure_accepts(receipt)?;
    ensure!(
        before.sessions.iter().all(|session| session.created != receipt.created),
        "{}: the session of {} is in it already; measure a new one",
        path.display(),
        receipt.created
    );
    let mut after = before.clone();
    after.append(receipt);
    Ok(after)
}
