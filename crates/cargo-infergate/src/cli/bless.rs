//! `bless`: write or refresh this machine class's baseline, of a suite or of a load, after showing what changes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{Arg, Args};
use serde::Serialize;

use super::bench::{self, How};
use super::flags::{self, Keys, TakesKeys, Workers};
use super::machine_lock::{self, Kind, Wait};
use super::outputs::{self, Written};
use super::{load_gate, output, preflight};
use crate::config::Config;
use crate::machine;
use infergate_receipts::{Baseline, LoadBaseline, LoadReceipt, Receipt, ensure_writable, read};
use infergate_report::blessing;

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
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Bless this receipt, of a suite or of a load run, instead of measuring; repeatable
    #[arg(long, conflicts_with_all = flags::measure_ids())]
    pub receipt: Vec<PathBuf>,
    /// A change moved the times on purpose: later runs are compared with this session and newer ones alone
    #[arg(long)]
    pub step: bool,
    /// Show what would change, write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write the new baseline here as well; - is stdout, which then has nothing else
    #[arg(long)]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub wait: Wait,
    #[command(flatten)]
    pub workers: Workers,
}

impl TakesKeys for Bless {
    fn keys() -> Vec<Arg> {
        [flags::measure(), flags::some(&["baselines"])].concat()
    }
}

/// Measures or reads, shows, and writes only when every receipt is good.
pub fn run(options: &Bless) -> Result<i32> {
    let Bless { out, receipt: given, step, dry_run, json, wait, keys, workers } = options;
    outputs::begin(
        &[
            ("--receipt", &given[..]),
            ("--worker", workers.worker.as_slice()),
            ("--memory-worker", workers.memory_worker.as_slice()),
        ],
        out.as_deref(),
        json.as_deref(),
    )?;
    let config = keys.config()?;
    if let Some(first) = given.first()
        && load_gate::is_load(first)?
    {
        return bless_load(options, &config);
    }
    let mut written = Written::default();
    let mut receipts: Vec<Receipt> = match given.is_empty() {
        false => given.iter().map(|path| read::<Receipt>(path)).collect::<Result<_>>()?,
        true => {
            preflight::baselines(&config)?;
            if !dry_run {
                ensure_writable(&config.baselines.join(machine::detect().class).join("baseline.json"))?;
            }
            let measured = bench::measure(&config, How { out: out.as_deref(), workers, wait, keep_text: false }, 0)?;
            bench::keep(&measured.out, &measured.receipt, &mut written);
            vec![measured.receipt]
        }
    };
    receipts.sort_by(|a, b| a.created.cmp(&b.created));
    receipts.iter().try_for_each(Receipt::ensure_blessable)?;
    let _alone = alone(options, &config.baselines)?;
    let mut refreshed: BTreeMap<PathBuf, Baseline> = BTreeMap::new();
    for receipt in &receipts {
        let path = config.baselines.join(Baseline::file_name(&receipt.machine.class, &receipt.engine));
        let is_first = !refreshed.contains_key(&path);
        let before = match refreshed.remove(&path) {
            Some(before) => Some(before),
            None => flags::is_there(&path).then(|| read::<Baseline>(&path)).transpose()?,
        };
        let after = added(before.as_ref(), receipt, *step && is_first, &path)?;
        output::report(&blessing::changes(before.as_ref(), &after, receipt, &config.policy, &path));
        refreshed.insert(path, after);
    }
    Ok(write(options, &refreshed, written))
}

fn added(before: Option<&Baseline>, receipt: &Receipt, step: bool, path: &Path) -> Result<Baseline> {
    let Some(before) = before else { return Ok(Baseline::from_receipt(receipt)) };
    let not_blessed = || format!("{}: not blessed", path.display());
    before.ensure_accepts(receipt).with_context(not_blessed)?;
    let mut after = before.clone();
    let steps = after.sessions.iter_mut().map(|session| (session.created.as_str(), &mut session.step));
    if step && is_marked(steps, &receipt.created).with_context(not_blessed)? {
        return Ok(after);
    }
    ensure!(
        before.sessions.iter().all(|session| session.created != receipt.created),
        "{}: the session of {} is in it already; measure a new one",
        path.display(),
        receipt.created
    );
    after.add(receipt, step);
    Ok(after)
}

/// From before the baselines are read until they are written no other command may do the same, or one of two sessions would be
/// lost. It is the folder that is locked, so that no file comes beside those that are committed.
fn alone(options: &Bless, folder: &Path) -> Result<Option<File>> {
    // Elsewhere folders are not opened, and two at once are their user's to keep apart.
    if options.dry_run || !cfg!(unix) {
        return Ok(None);
    }
    let cannot = || format!("{}: cannot be written", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    let file = File::open(folder).with_context(cannot)?;
    let message = format!("waiting: another command writes baselines in {}", folder.display());
    machine_lock::wait_for(&file, Kind::Alone, &message)?;
    Ok(Some(file))
}

/// Writes the baselines, each where it belongs, unless this is a dry run; gives the exit code.
fn write<T: Serialize>(options: &Bless, refreshed: &BTreeMap<PathBuf, T>, mut written: Written) -> i32 {
    if options.dry_run {
        output::say("dry run: no baseline was written");
    } else {
        for (path, baseline) in refreshed {
            written.json(Some(path), baseline);
        }
    }
    if let Some(last) = refreshed.values().last() {
        written.json(options.json.as_deref(), last);
    }
    written.code(0)
}

/// Marks the session that was `created` then as the first behind a step, where it is there; whether it is. Each of `sessions` comes
/// with its mark.
///
/// # Errors
/// A mark that is there, or sessions that are newer than one that is not: they would be taken for ones behind the step.
fn is_marked<'a>(sessions: impl Iterator<Item = (&'a str, &'a mut bool)>, created: &str) -> Result<bool> {
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

/// `bless --receipt`: each receipt as a session.
fn bless_load(options: &Bless, config: &Config) -> Result<i32> {
    let mut receipts: Vec<LoadReceipt> = options.receipt.iter().map(|path| read(path)).collect::<Result<_>>()?;
    receipts.sort_by(|a, b| a.created.cmp(&b.created));
    receipts.iter().try_for_each(LoadReceipt::ensure_blessable)?;
    let _alone = alone(options, &config.baselines)?;
    let mut refreshed: BTreeMap<PathBuf, LoadBaseline> = BTreeMap::new();
    for receipt in &receipts {
        let path = config.baselines.join(LoadBaseline::file_name(receipt));
        let is_first = !refreshed.contains_key(&path);
        let before = match refreshed.remove(&path) {
            Some(before) => Some(before),
            None => flags::is_there(&path).then(|| read::<LoadBaseline>(&path)).transpose()?,
        };
        let after = added_load(before.as_ref(), receipt, options.step && is_first)
            .with_context(|| format!("{}: not blessed", path.display()))?;
        output::report(&blessing::load_changes(before.as_ref(), &after, &path));
        refreshed.insert(path, after);
    }
    Ok(write(options, &refreshed, Written::default()))
}

fn added_load(before: Option<&LoadBaseline>, receipt: &LoadReceipt, step: bool) -> Result<LoadBaseline> {
    let after = match before {
        None => LoadBaseline::from_receipt(receipt),
        Some(before) => {
            let mut after = before.clone();
            let steps = after.sessions.iter_mut().map(|session| (session.created.as_str(), &mut session.step));
            if !(step && is_marked(steps, &receipt.created)?) {
                before.ensure_accepts(receipt)?;
                after.add(receipt, step);
            }
            after
        }
    };
    Ok(after)
}
