//! The file formats of judging: baselines, paired receipts, calibrations and verdicts; those of measuring, from
//! [`infergate_core::receipt`], and those of load, from [`infergate_load::receipt`].
//!
//! Raw samples are kept and whatever can be derived is derived. Unknown fields are ignored, a newer major version is
//! refused. Missing is `null`.

// Only the command links it.
#![allow(missing_docs)]

mod accept;
mod baseline;
mod calibration;
mod clause;
mod evidence;
mod explained;
mod outputs;
mod paired;
mod pull_request;
mod reason;
pub mod shell;
mod target;
mod verdict;
pub mod window;

use std::path::Path;

use anyhow::Result;
use schemars::{Schema, schema_for};

pub use accept::*;
pub use baseline::*;
pub use calibration::*;
pub use clause::clause;
pub use evidence::*;
pub use explained::*;
pub use infergate_core::memory::leak::{MemoryEvidence, MemoryMeasure};
pub use infergate_core::outcome::Outcome;
pub use infergate_core::receipt::*;
pub use infergate_load::receipt::*;
pub use outputs::*;
pub use paired::*;
pub use pull_request::*;
pub use reason::*;
pub use target::*;
pub use verdict::*;
pub use window::{LoadCase, WindowAnswers, WindowRecord, WindowTimes};

/// Schema name of a [`Baseline`].
pub const BASELINE_SCHEMA: &str = "infergate.baseline/1";

impl Format for Verdict {
    const SCHEMA: &'static str = VERDICT_SCHEMA;
}

/// A file of either kind, for commands that take both.
#[derive(Debug, Clone, PartialEq)]
pub enum ReceiptOrBaseline {
    /// One run.
    Receipt(Box<Receipt>),
    /// Sessions over time.
    Baseline(Box<Baseline>),
}

/// Reads and checks a receipt or a baseline, whichever it is.
pub fn read_receipt_or_baseline(path: &Path) -> Result<ReceiptOrBaseline> {
    Ok(match schema_of(path)?.as_str() {
        BASELINE_SCHEMA => ReceiptOrBaseline::Baseline(Box::new(read(path)?)),
        _ => ReceiptOrBaseline::Receipt(Box::new(read(path)?)),
    })
}

/// The JSON Schema of [`VerdictFile`].
pub fn verdict_schema() -> Schema {
    schema_for!(VerdictFile)
}
