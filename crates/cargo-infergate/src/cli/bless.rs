//! `bless`: write or refresh this machine class's baseline, of a suite or of a load, after showing what changes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::flags::{self, Workers};
use super::machine_lock::{self, Wait};
use super::{bench, compare, files, outputs, preflight};
use crate::config::Config;
use infergate_build::output;
use infergate_core::machine;
use infergate_receipts::{Baseline, LoadBaseline, LoadReceipt, Receipt, ensure_writable, read};
use infergate_report::blessing;

/// Add a session to this machine class's baseline
#[derive(Args)]
#[command(args = flags::of_suite(), args = flags::flags_named(&["baselines"]))]
#[command(
    after_help = "Examples:\n  cargo xtask bless\n  cargo xtask bless --receipt target/infergate/receipt.json\n\n\
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
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    workers: Workers,
}

/// Measures or reads, shows, and writes only what is good.
pub fn run(options: &Bless, config: &Config) -> Result<i32> {
    if let Some(path) = &options.receipt {
        return if compare::is_load(path)? {
            add_load(options, config, &read(path)?)
        } else {
            add_suite(options, config, &read(path)?)
        };
    }
    preflight::baselines(config)?;
    ensure_writable(&config.baselines.join(machine::detect().class).join("baseline.json"))?;
    let out = options.out.as_deref();
    let (receipt, out) = bench::run_suite(config, out, &options.workers, &options.wait, false, 0)?;
    outputs::receipt(&out, &receipt, receipt.partial);
    add_suite(options, config, &receipt)
}

/// Both kinds of runs have the same fields and functions under the same names, and no trait in common.
macro_rules! add_session {
    ($name:ident, $run:ty, $baseline:ty, $judge:path) => {
        /// Adds a run to its baseline, shows what that changes, and writes the baseline.
        fn $name(options: &Bless, config: &Config, run: &$run) -> Result<i32> {
            let _lock = lock_baselines(&config.baselines)?;
            let path = config.baselines.join(<$baseline>::file_name(run));
            let not_blessed = || format!("{}: not blessed", path.display());
            run.ensure_blessable().with_context(not_blessed)?;
            let before: Option<$baseline> = files::read_if_there(&path)?;
            let after = match before.clone() {
                None => <$baseline>::from_receipt(run),
                Some(mut baseline) => {
                    if options.step {
                        let times = || baseline.sessions.iter().map(|session| &session.created);
                        ensure!(
                            times().any(|known| *known == run.created) || times().all(|known| *known < run.created),
                            "--step: it has newer sessions than that of {}, maybe without the change; measure again",
                            run.created
                        );
                        // A session that is there already is added again, with its step.
                        baseline.sessions.retain(|session| session.created != run.created);
                    }
                    baseline.ensure_accepts(run).with_context(not_blessed)?;
                    baseline.add(run, options.step);
                    baseline
                }
            };
            let known = before.as_ref().map_or(0, |before| before.sessions.len());
            let compared = before.map(|before| $judge(run, Some(&before), &config.policy)).transpose()?;
            let created: Vec<&str> = after.sessions.iter().map(|session| &*session.created).collect();
            output::report(&blessing::changes(compared.as_ref(), known, &created, options.step, &path));
            outputs::json(Some(&path), &after);
            Ok(0)
        }
    };
}

add_session!(add_suite, Receipt, Baseline, infergate_judge::judge);
add_session!(add_load, LoadReceipt, LoadBaseline, infergate_judge::load::judge);

/// Locks the baselines from before they are read until they are written, or one of two sessions would be lost. The folder itself is
/// locked, so that there is no lock file among those that are committed.
fn lock_baselines(folder: &Path) -> Result<File> {
    let cannot = || format!("{}: cannot be written", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    let file = File::open(folder).with_context(cannot)?;
    let message = format!("waiting: another command writes baselines in {}", folder.display());
    machine_lock::wait_for(&file, File::try_lock, &message)?;
    Ok(file)
}
