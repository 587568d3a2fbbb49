//! Load receipts in the commands that bless and judge.

use std::path::Path;

use anyhow::{Result, ensure};

use super::{files, pages};
use crate::config::{Config, Layer};
use infergate_build::output;
use infergate_judge::load::{compare as compare_runs, judge};
use infergate_receipts::{LOAD_BASELINE_SCHEMA, LOAD_SCHEMA, LoadBaseline, LoadReceipt, Verdict, read, schema_of};
use infergate_report::inputs::Inputs;
use infergate_report::{terminal, topics};

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
    Ok(conclude(head, verdict, json, None))
}

/// `gate --receipt`: a load receipt against the baseline of its machine class.
pub fn gate(config: &Config, receipt: &Path, json: Option<&Path>, folder: Option<&Path>) -> Result<i32> {
    let receipt: LoadReceipt = read(receipt)?;
    let verdict = judge(&receipt, usual_baseline(config, &receipt)?.as_ref(), &config.policy)?;
    Ok(conclude(receipt, verdict, json, folder))
}

/// Prints a verdict on a run that was measured before, writes it and its report; gives the exit code.
fn conclude(receipt: LoadReceipt, verdict: Verdict, json: Option<&Path>, folder: Option<&Path>) -> i32 {
    let measured = Inputs { load: Some(receipt), ..pages::inputs() };
    output::print_verdict(&terminal::verdict(&topics::subject(&measured), &verdict, ""));
    pages::conclude(&Inputs { verdict: Some(verdict), ..measured }, json, folder)
}

/// The baseline at the usual place, where there is one.
pub fn usual_baseline(config: &Config, receipt: &LoadReceipt) -> Result<Option<LoadBaseline>> {
    files::read_if_there(&config.baselines.join(LoadBaseline::file_name(receipt)))
}

/// Targets name cases. Those of `infergate.toml` are a suite's.
pub fn ensure_no_targets(keys: &Layer) -> Result<()> {
    ensure!(
        keys.get("targets").is_none(),
        "--targets: they limit the cases of a suite; limits of a load run are --targets, --slo and --until-slo of `cargo xtask load`"
    );
    Ok(())
}
