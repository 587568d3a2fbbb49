//! `doctor`: what makes this machine noisy, and what to do about it.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::outputs;
use crate::machine::doctor;
use infergate_build::output;
use infergate_core::machine;
use infergate_receipts::{CHECKUP_SCHEMA, Checkup};
use infergate_report::checkup;

/// Show what makes this machine noisy
#[derive(Args)]
#[command(after_help = "Examples:\n  cargo xtask doctor\n  cargo xtask doctor --json doctor.json")]
pub struct Doctor {
    /// Write the findings here; - is stdout, which then has nothing else
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Looks, prints. Noise is advice, not a failure.
pub fn run(options: &Doctor) -> Result<i32> {
    let checkup = Checkup { schema: CHECKUP_SCHEMA, machine: machine::detect(), findings: doctor::examine() };
    output::report(&checkup::text(&checkup));
    outputs::json(options.json.as_deref(), &checkup);
    Ok(0)
}
