//! `bless`: write or refresh this machine class's baseline, after showing what changes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use serde::Serialize;

use super::outputs::Written;
use super::turn::{self, Kind};
use super::{bench, early, flags, load_gate, output};
use crate::machine;
use crate::receipt::{Baseline, Receipt, ensure_writable, read};
use crate::report::blessing;

/// Its flags.
pub fn command() -> Command {
    Command::new("bless")
        .about("Add a session to this machine class's baseline")
        .args(flags::measure())
        .args(flags::one("baselines"))
        .arg(flags::out())
        .arg(
            Arg::new("receipt")
                .long("receipt")
                .value_name("FILE")
                .action(ArgAction::Append)
                .help("Bless this receipt, of a suite or of a load run, instead of measuring; repeatable")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with_all(flags::measure_ids()),
        )
        .arg(flags::memory_worker())
        .arg(
            Arg::new("dry-run")
                .long("dry-run")
                .action(ArgAction::SetTrue)
                .help("Show what would change, write nothing"),
        )
        .arg(flags::json("Write the new baseline here as well"))
        .arg(turn::arg())
        .after_help(
            "Examples:\n  cargo xtask bless\n  cargo xtask bless --receipt target/infergate/receipt.json --dry-run\n\n\
             Time is judged from sessions of 8 days on: those of one day share its luck and count once",
        )
}

/// Measures or reads, shows, and writes only when every receipt is good.
pub fn run(matches: &ArgMatches) -> Result<i32> {
    let config = flags::config(matches)?;
    let given: Vec<PathBuf> = matches.get_many::<PathBuf>("receipt").into_iter().flatten().cloned().collect();
    if let Some(first) = given.first()
        && load_gate::is_load(first)?
    {
        return load_gate::bless(matches, &config, &given);
    }
    let mut written = Written::default();
    let mut receipts: Vec<Receipt> = match given.is_empty() {
        false => given.iter().map(|path| read::<Receipt>(path)).collect::<Result<_>>()?,
        true => {
            early::baselines(&config)?;
            if !matches.get_flag("dry-run") {
                ensure_writable(&config.baselines.join(machine::detect().class).join("baseline.json"))?;
            }
            let measured = bench::measure(&config, matches, 0)?;
            bench::keep(&measured.out, &measured.receipt, &mut written);
            vec![measured.receipt]
        }
    };
    receipts.sort_by(|a, b| a.created.cmp(&b.created));
    receipts.iter().try_for_each(Receipt::ensure_blessable)?;
    let _alone = alone(matches, &config.baselines)?;
    let mut refreshed: BTreeMap<PathBuf, Baseline> = BTreeMap::new();
    for receipt in &receipts {
        let path = config.baselines.join(Baseline::file_name(&receipt.machine.class, &receipt.engine));
        let before = match refreshed.remove(&path) {
            Some(before) => Some(before),
            None => flags::is_there(&path).then(|| read::<Baseline>(&path)).transpose()?,
        };
        let after = appended(before.as_ref(), receipt, &path)?;
        output::report(&blessing::changes(before.as_ref(), &after, receipt, &path));
        refreshed.insert(path, after);
    }
    Ok(write(matches, &refreshed, written))
}

/// From before the baselines are read until they are written no other command may do the same, or one of two sessions would be
/// lost. It is the folder that is locked, so that no file comes beside those that are committed.
///
/// # Errors
/// A folder that cannot be made or opened; a wait that the user ended.
pub fn alone(matches: &ArgMatches, folder: &Path) -> Result<Option<File>> {
    // Elsewhere folders are not opened, and two at once are their user's to keep apart.
    if matches.get_flag("dry-run") || !cfg!(unix) {
        return Ok(None);
    }
    let cannot = || format!("{}: cannot be written", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    let file = File::open(folder).with_context(cannot)?;
    let words = || format!("waiting: another command writes baselines in {}", folder.display());
    turn::wait_for(&file, Kind::Alone, &words, &|| false)?;
    Ok(Some(file))
}

/// Writes the baselines, each where it belongs, unless this is a dry run; gives the exit code.
pub fn write<T: Serialize>(matches: &ArgMatches, refreshed: &BTreeMap<PathBuf, T>, mut written: Written) -> i32 {
    if matches.get_flag("dry-run") {
        output::say("dry run: no baseline was written");
    } else {
        for (path, baseline) in refreshed {
            written.json(Some(path), baseline);
        }
    }
    if let Some(last) = refreshed.values().last() {
        written.json(flags::path(matches, "json").as_deref(), last);
    }
    written.code(0)
}

fn appended(before: Option<&Baseline>, receipt: &Receipt, path: &Path) -> Result<Baseline> {
    let Some(before) = before else { return Ok(Baseline::from_receipt(receipt)) };
    before.ensure_accepts(receipt).with_context(|| format!("{}: not blessed", path.display()))?;
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
