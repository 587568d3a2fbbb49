//! What `bless` is asked, and how a session comes into a baseline, of a suite or of a load.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{Arg, Args};
use serde::Serialize;

use super::flags::{self, Keys, TakesKeys, Workers};
use super::output;
use super::outputs::Written;
use super::turn::{self, Kind, Wait};

/// Add a session to this machine class's baseline
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask bless\n  cargo xtask bless --receipt target/infergate/receipt.json --dry-run\n\n\
    Time is judged from sessions of 8 days on: those of one day share its luck and count once"
)]
pub struct Bless {
    #[command(flatten)]
    pub keys: Keys<Self>,
    /// Where the receipt goes [default: target/infergate/receipt.json]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Bless this receipt, of a suite or of a load run, instead of measuring; repeatable
    #[arg(long, value_name = "FILE", conflicts_with_all = flags::measure_ids())]
    pub receipt: Vec<PathBuf>,
    /// A change moved the times on purpose: later runs are compared with this session and newer ones alone
    #[arg(long)]
    pub step: bool,
    /// Show what would change, write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write the new baseline here as well; - is stdout, which then has nothing else
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub wait: Wait,
    #[command(flatten)]
    pub workers: Workers,
}

impl TakesKeys for Bless {
    fn keys() -> Vec<Arg> {
        [flags::measure(), flags::one("baselines")].concat()
    }
}

/// From before the baselines are read until they are written no other command may do the same, or one of two sessions would be
/// lost. It is the folder that is locked, so that no file comes beside those that are committed.
pub fn alone(asked: &Bless, folder: &Path) -> Result<Option<File>> {
    // Elsewhere folders are not opened, and two at once are their user's to keep apart.
    if asked.dry_run || !cfg!(unix) {
        return Ok(None);
    }
    let cannot = || format!("{}: cannot be written", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    let file = File::open(folder).with_context(cannot)?;
    let words = || format!("waiting: another command writes baselines in {}", folder.display());
    turn::wait_for(&file, Kind::Alone, &words)?;
    Ok(Some(file))
}

/// Writes the baselines, each where it belongs, unless this is a dry run; gives the exit code.
pub fn write<T: Serialize>(asked: &Bless, refreshed: &BTreeMap<PathBuf, T>, mut written: Written) -> i32 {
    if asked.dry_run {
        output::say("dry run: no baseline was written");
    } else {
        for (path, baseline) in refreshed {
            written.json(Some(path), baseline);
        }
    }
    if let Some(last) = refreshed.values().last() {
        written.json(asked.json.as_deref(), last);
    }
    written.code(0)
}

/// Marks the session that was `created` then as the first behind a step, where it is there; whether it is. Each of `sessions` comes
/// with its mark.
///
/// # Errors
/// A mark that is there, or sessions that are newer than one that is not: they would be taken for ones behind the step.
pub fn is_marked<'a>(sessions: impl Iterator<Item = (&'a str, &'a mut bool)>, created: &str) -> Result<bool> {
    let mut is_newest = true;
    for (known, step) in sessions {
        if known == created {
            ensure!(!*step, "--step: the session of {created} has its step already; leave it as it is");
            *step = true;
            return Ok(true);
        }
        is_newest &= known < created;
    }
    ensure!(is_newest, "--step: it has newer sessions than that of {created}, maybe without the change; measure again");
    Ok(false)
}
