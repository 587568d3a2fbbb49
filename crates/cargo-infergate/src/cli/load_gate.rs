//! Load receipts in the commands that bless and judge.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::flags::Keys;
use super::outputs::Written;
use super::sessions::{self, Bless};
use super::{flags, output, pages};
use crate::config::Config;
use infergate_judge::load::{compare as compare_runs, judge};
use infergate_receipts::{LOAD_BASELINE_SCHEMA, LOAD_SCHEMA, LoadBaseline, LoadReceipt, Verdict, read, schema_of};
use infergate_report::blessing;
use infergate_report::inputs::Inputs;

/// Whether the file at `path` is a load receipt or a baseline of them.
pub fn is_load(path: &Path) -> Result<bool> {
    Ok([LOAD_SCHEMA, LOAD_BASELINE_SCHEMA].contains(&schema_of(path)?.as_str()))
}

/// `compare`: a load receipt with another one, or with a load baseline.
pub fn compare(config: &Config, base: &Path, head: &Path, json: Option<&Path>) -> Result<i32> {
    let head: LoadReceipt = read(head)?;
    let verdict = match schema_of(base)?.as_str() {
        LOAD_BASELINE_SCHEMA => judge(&head, Some(&read(base)?), &config.policy)?,
        _ => compare_runs(&read(base)?, &head, &config.policy)?,
    };
    let mut written = Written::default();
    let code = show(&verdict, Some(&head), json, &mut written);
    Ok(written.code(code))
}

/// `gate --receipt`: a load receipt against the baseline of its machine class.
pub fn gate(config: &Config, receipt: &Path, json: Option<&Path>, folder: Option<&Path>) -> Result<i32> {
    let receipt: LoadReceipt = read(receipt)?;
    let verdict = judge(&receipt, usual(config, &receipt)?.as_ref(), &config.policy)?;
    let mut written = Written::default();
    let code = show(&verdict, Some(&receipt), json, &mut written);
    if let Some(folder) = folder {
        let inputs = Inputs { load: Some(receipt), verdict: Some(verdict), ..pages::inputs() };
        written.note(pages::usual(folder, &inputs));
    }
    Ok(written.code(code))
}

/// `bless --receipt`: each receipt as a session.
pub fn bless(asked: &Bless, config: &Config) -> Result<i32> {
    let mut receipts: Vec<LoadReceipt> = asked.receipt.iter().map(|path| read(path)).collect::<Result<_>>()?;
    receipts.sort_by(|a, b| a.created.cmp(&b.created));
    receipts.iter().try_for_each(LoadReceipt::ensure_blessable)?;
    let _alone = sessions::alone(asked, &config.baselines)?;
    let mut refreshed: BTreeMap<PathBuf, LoadBaseline> = BTreeMap::new();
    for receipt in &receipts {
        let path = config.baselines.join(LoadBaseline::file_name(receipt));
        let is_first = !refreshed.contains_key(&path);
        let before = match refreshed.remove(&path) {
            Some(before) => Some(before),
            None => flags::is_there(&path).then(|| read::<LoadBaseline>(&path)).transpose()?,
        };
        let after = added(before.as_ref(), receipt, asked.step && is_first)
            .with_context(|| format!("{}: not blessed", path.display()))?;
        output::report(&blessing::load_changes(before.as_ref(), &after, &path));
        refreshed.insert(path, after);
    }
    Ok(sessions::write(asked, &refreshed, Written::default()))
}

fn added(before: Option<&LoadBaseline>, receipt: &LoadReceipt, step: bool) -> Result<LoadBaseline> {
    let after = match before {
        None => LoadBaseline::from_receipt(receipt),
        Some(before) => {
            let mut after = before.clone();
            let steps = after.sessions.iter_mut().map(|session| (session.created.as_str(), &mut session.step));
            if !(step && sessions::is_marked(steps, &receipt.created)?) {
                before.ensure_accepts(receipt)?;
                after.add(receipt, step);
            }
            after
        }
    };
    Ok(after)
}

/// What `load` judges its run by.
#[cfg(feature = "load")]
pub struct LoadGate {
    config: Config,
    baseline: Option<LoadBaseline>,
    json: Option<PathBuf>,
    /// A verdict is wanted, also without a baseline.
    is_asked: bool,
}

#[cfg(feature = "load")]
impl LoadGate {
    /// Reads the baseline of `--baseline`, before anything is measured. A verdict is wanted where `is_asked`, and where one is named.
    pub fn new(config: Config, baseline: Option<&Path>, json: Option<PathBuf>, is_asked: bool) -> Result<Self> {
        let baseline: Option<LoadBaseline> = baseline.map(read).transpose()?;
        let is_asked = is_asked || baseline.is_some() || json.is_some();
        Ok(Self { config, baseline, json, is_asked })
    }

    /// Finds the usual baseline of a run that begins as `receipt`, where none was given.
    pub fn find(&mut self, receipt: &LoadReceipt) -> Result<()> {
        if !receipt.shards.is_empty() {
            ensure!(
                !self.is_asked,
                "one shard of a load gets no verdict; leave out --baseline, --require-baseline and --json, put the shards \
                 together with `cargo xtask load merge`, and compare that receipt"
            );
            return Ok(());
        }
        if self.baseline.is_none() {
            self.baseline = usual(&self.config, receipt)?;
        }
        Ok(())
    }

    /// Whether there is something to judge by, or a verdict is wanted all the same.
    pub fn judges(&self) -> bool {
        self.baseline.is_some() || self.is_asked
    }

    /// Shows and writes the verdict on `receipt` and gives its exit code; `None` where there is nothing to judge by.
    pub fn finish(&self, receipt: &LoadReceipt, written: &mut Written) -> Result<Option<i32>> {
        if !self.judges() {
            return Ok(None);
        }
        let verdict = judge(receipt, self.baseline.as_ref(), &self.config.policy)?;
        Ok(Some(show(&verdict, None, self.json.as_deref(), written)))
    }
}

/// The baseline at the usual place, where there is one.
fn usual(config: &Config, receipt: &LoadReceipt) -> Result<Option<LoadBaseline>> {
    let path = config.baselines.join(LoadBaseline::file_name(receipt));
    flags::is_there(&path).then(|| read(&path)).transpose()
}

/// Prints and writes a verdict, below what was measured where that was not printed before; gives its exit code.
fn show(verdict: &Verdict, measured: Option<&LoadReceipt>, json: Option<&Path>, written: &mut Written) -> i32 {
    let header = measured
        .map_or_else(String::new, |receipt| format!("\n{}\n", infergate_report::terminal::load_targets(receipt)));
    output::print_verdict(&(header + &infergate_report::terminal::load_verdict(verdict)));
    pages::verdict(&Inputs { verdict: Some(verdict.clone()), ..pages::inputs() }, json, written);
    verdict.exit_code
}

/// Targets name cases. Those of `infergate.toml` are a suite's.
pub fn ensure_no_targets<C>(keys: &Keys<C>) -> Result<()> {
    ensure!(
        !keys.has("targets"),
        "--targets: they limit the cases of a suite; limits of a load run are --slo and --until-slo of `cargo xtask load`"
    );
    Ok(())
}
