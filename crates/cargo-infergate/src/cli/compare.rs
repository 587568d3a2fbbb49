//! `compare`: judges a file that was measured before by another one.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::Args;

use super::{flags, pages};
use crate::config::Config;
use infergate_build::output;
use infergate_judge::{compare, load};
use infergate_receipts::{LOAD_BASELINE_SCHEMA, LOAD_SCHEMA, LoadReceipt, read, read_receipt_or_baseline, schema_of};
use infergate_report::inputs::Inputs;
use infergate_report::{terminal, topics, words};

/// Compare a receipt with another one or a baseline, and decide
#[derive(Args)]
#[command(args = flags::flags_named(&["require_baseline", "drift_tolerance", "counter_tolerance", "targets"]))]
#[command(after_help = "Examples:\n  cargo xtask compare before.json after.json\n  \
    cargo xtask compare baselines/CLASS/candle-synthetic-gpt2.json target/infergate/receipt.json\n  \
    cargo xtask compare load-before.json load-after.json")]
pub struct Compare {
    /// Receipt or baseline to compare with
    base: PathBuf,
    /// Receipt to judge
    head: PathBuf,
    /// Write the verdict here; - is stdout, which then has nothing else
    #[arg(long)]
    json: Option<PathBuf>,
}

pub fn run(options: &Compare, config: &Config) -> Result<i32> {
    let Compare { base, head, json } = options;
    let (subject, verdict, measured) = if is_load(base)? || is_load(head)? {
        ensure!(
            config.flags.get("targets").is_none(),
            "--targets: they limit the cases of a suite; limits of a load run are --targets, --slo and --until-slo of `cargo xtask load`"
        );
        let head: LoadReceipt = read(head)?;
        let verdict = match schema_of(base)?.as_str() {
            LOAD_BASELINE_SCHEMA => load::judge(&head, Some(&read(base)?), &config.policy)?,
            _ => load::compare(&read(base)?, &head, &config.policy)?,
        };
        let measured = Inputs { load: Some(head.into()), ..pages::inputs() };
        (topics::subject(&measured), verdict, measured)
    } else {
        let (base, head) = (read_receipt_or_baseline(base)?, read(head)?);
        (words::subject::subject(&head), compare(&base, &head, &config.policy)?, pages::inputs())
    };
    output::print_verdict(&terminal::verdict(&subject, &verdict, ""));
    Ok(pages::conclude(&Inputs { verdict: Some(verdict), ..measured }, json.as_deref(), None))
}

/// Whether the file at `path` is a load receipt or a baseline of them.
pub fn is_load(path: &Path) -> Result<bool> {
    Ok([LOAD_SCHEMA, LOAD_BASELINE_SCHEMA].contains(&schema_of(path)?.as_str()))
}
