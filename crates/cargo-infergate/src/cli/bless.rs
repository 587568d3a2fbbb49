//! `bless`: write or refresh this machine class's baseline, of a suite or of a load, after showing what changes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use super::flags::{self, Workers};
use super::machine_lock::{self, Wait};
use super::{bench, compare, files, outputs, preflight};
use crate::config::{Config, Layer};
use crate::machine;
use infergate_build::output;
use infergate_judge::Policy;
use infergate_receipts::{Baseline, Format, LoadBaseline, LoadReceipt, Receipt, Verdict, ensure_writable, read};
use infergate_report::blessing;

/// Add a session to this machine class's baseline
#[derive(Args)]
#[command(args = flags::of_suite(), args = flags::some(&["baselines"]))]
#[command(
    after_help = "Examples:\n  cargo xtask bless\n  cargo xtask bless --receipt target/infergate/receipt.json --dry-run\n\n\
    Time is judged from sessions of 8 days on: those of one day share its luck and count once"
)]
pub struct Bless {
    /// Where the receipt goes [default: target/infergate/receipt.json]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Bless this receipt, of a suite or of a load run, instead of measuring
    #[arg(long, conflicts_with_all = flags::ids_of_suite())]
    receipt: Option<PathBuf>,
    /// A change moved the times on purpose: later runs are compared with this session and newer ones alone
    #[arg(long)]
    step: bool,
    /// Show what would change, write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    workers: Workers,
}

/// Measures or reads, shows, and writes only what is good.
pub fn run(options: &Bless, keys: &Layer) -> Result<i32> {
    let config = Config::here(keys)?;
    if let Some(path) = &options.receipt {
        return if compare::is_load(path)? {
            add(options, &config, &read::<LoadReceipt>(path)?)
        } else {
            add(options, &config, &read::<Receipt>(path)?)
        };
    }
    preflight::baselines(&config)?;
    if !options.dry_run {
        ensure_writable(&config.baselines.join(machine::detect().class).join("baseline.json"))?;
    }
    let out = options.out.as_deref();
    let (receipt, out) = bench::run_suite(&config, out, &options.workers, &options.wait, false, 0)?;
    outputs::receipt(&out, &receipt, receipt.partial);
    add(options, &config, &receipt)
}

/// A run that can become a session of a baseline.
trait Blessable {
    type Baseline: Clone + Format + Serialize;

    /// The name of the file of its baseline.
    fn file_name(&self) -> String;

    /// Its baseline with it; `known` is what that was before. With `step` it is the first session behind a step.
    fn added_to(&self, known: Option<Self::Baseline>, step: bool) -> Result<Self::Baseline>;

    /// The run by the sessions that were there.
    fn compared(&self, before: &Self::Baseline, policy: &Policy) -> Result<Verdict>;

    /// When the sessions began.
    fn sessions(baseline: &Self::Baseline) -> Vec<&str>;
}

/// Both kinds of runs have the same fields and functions under the same names, and no trait in common.
macro_rules! blessable {
    ($run:ty, $baseline:ty, $judge:path) => {
        impl Blessable for $run {
            type Baseline = $baseline;

            fn file_name(&self) -> String {
                <$baseline>::file_name(self)
            }

            fn added_to(&self, known: Option<$baseline>, step: bool) -> Result<$baseline> {
                self.ensure_blessable()?;
                let Some(mut baseline) = known else { return Ok(<$baseline>::from_receipt(self)) };
                if step {
                    // One that is there already is added again, with its step.
                    baseline.sessions.retain(|session| session.created != self.created);
                }
                baseline.ensure_accepts(self)?;
                baseline.add(self, step);
                Ok(baseline)
            }

            fn compared(&self, before: &$baseline, policy: &Policy) -> Result<Verdict> {
                $judge(self, Some(before), policy)
            }

            fn sessions(baseline: &$baseline) -> Vec<&str> {
                baseline.sessions.iter().map(|session| session.created.as_str()).collect()
            }
        }
    };
}

blessable!(Receipt, Baseline, infergate_judge::judge);
blessable!(LoadReceipt, LoadBaseline, infergate_judge::load::judge);

/// Adds a run to its baseline and shows what that changes; then writes the baseline, unless this is a dry run.
fn add<R: Blessable>(options: &Bless, config: &Config, receipt: &R) -> Result<i32> {
    let _alone = alone(options, &config.baselines)?;
    let path = config.baselines.join(receipt.file_name());
    let before: Option<R::Baseline> = files::read_if_there(&path)?;
    let known = before.as_ref().map_or(0, |before| R::sessions(before).len());
    let after = receipt.added_to(before.clone(), options.step);
    let after = after.with_context(|| format!("{}: not blessed", path.display()))?;
    let compared = before.map(|before| receipt.compared(&before, &config.policy)).transpose()?;
    output::report(&blessing::changes(compared.as_ref(), known, &R::sessions(&after), options.step, &path));
    if options.dry_run {
        output::say("dry run: no baseline was written");
    } else {
        outputs::json(Some(&path), &after);
    }
    Ok(0)
}

/// From before the baselines are read until they are written no other command may do the same, or one of two sessions would be
/// lost. It is the folder that is locked, so that no file comes beside those that are committed.
fn alone(options: &Bless, folder: &Path) -> Result<Option<File>> {
    if options.dry_run {
        return Ok(None);
    }
    let cannot = || format!("{}: cannot be written", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    let file = File::open(folder).with_context(cannot)?;
    let message = format!("waiting: another command writes baselines in {}", folder.display());
    machine_lock::wait_for(&file, File::try_lock, &message)?;
    Ok(Some(file))
}
