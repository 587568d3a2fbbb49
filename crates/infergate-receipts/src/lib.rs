//! The file formats of judging: baselines, paired receipts, calibrations and verdicts; those of measuring, from
//! [`infergate_core::receipt`], and those of load, from [`infergate_load::receipt`].
//!
//! Raw samples are kept and whatever can be derived is derived. Unknown fields are ignored, a newer major version is
//! refused. Missing is `null`.

// Only the command links it.
#![allow(missing_docs)]

mod accept;
mod alike;
mod allocated;
mod baseline;
mod bisection;
mod built_with;
mod calibration;
mod checkup;
mod clause;
mod code;
mod demo;
mod evidence;
mod explained;
mod init;
mod other_length;
mod paired;
mod paired_case;
mod pull_request;
mod reason;
mod share;
pub mod shell;
mod side;
mod summary;
mod target;
mod took;
mod verdict;
mod verdict_file;
pub mod window;

use std::path::Path;

use anyhow::{Result, bail};
use schemars::{Schema, schema_for};

pub use accept::{Accept, MAX_ACCEPTS, NoEffect, OUTPUT, Terms, UpTo, covers, validate_accepts};
pub use alike::AlikeRecord;
pub use allocated::{Allocated, AllocatedPlace, MOST_PLACES};
pub use baseline::{Baseline, ExactRecord, Session, SessionCase};
pub use bisection::{BISECTION_SCHEMA, Bisection, BisectionEnd, BisectionStep};
pub use built_with::BuiltWith;
pub use calibration::{CALIBRATION_SCHEMA, Calibration, CalibrationGate};
pub use checkup::{CHECKUP_SCHEMA, Checkup, Finding, PairedSight, Sight};
pub use clause::clause;
pub use code::{CodeRecord, CodeRuns};
pub use demo::{DEMO_SCHEMA, Demo, DemoChange};
pub use evidence::{
    Against, CONTEXT_TOKENS, CounterEvidence, Evidence, Interval, MemoryEvidence, OutputComparison, OutputEvidence,
    Shown, Statistic, TargetEvidence, TimeEvidence, Unit, VOCAB_TOKENS,
};
pub use explained::{
    CalledFunction, Explained, ExplainedFrame, ExplainedFunction, MOST_CALLED, MOST_FRAMES, MOST_FUNCTIONS, Moved,
};
pub use infergate_core::memory::leak::{RandomLeak, Witness};
pub use infergate_core::outcome::Outcome;
pub use infergate_core::receipt::*;
pub use infergate_load::receipt::*;
pub use init::{INIT_SCHEMA, Init, InitChange, InitFile};
pub use other_length::OtherLength;
pub use paired::{BlockCase, BlockRecord, Means, PAIRED_SCHEMA, PairedReceipt, SideRecord, log_ratios};
pub use paired_case::{MeanTest, PairedCase};
pub use pull_request::{MOST_UPLOADED_BYTES, parse_uploaded, read_uploaded};
pub use reason::{BlocksWorse, Note, Reason, Remedy};
pub use share::ShareRecord;
pub use side::Side;
pub use summary::{LiveGates, Noise, SUMMARY_SCHEMA, Share, Summary};
pub use target::{Target, TargetMetric};
pub use took::Took;
pub use verdict::{VERDICT_SCHEMA, Verdict, VerdictRow};
pub use verdict_file::{Failure, VerdictFile};
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
    match schema_of(path)?.as_str() {
        RECEIPT_SCHEMA => Ok(ReceiptOrBaseline::Receipt(Box::new(read(path)?))),
        BASELINE_SCHEMA => Ok(ReceiptOrBaseline::Baseline(Box::new(read(path)?))),
        schema => bail!(
            "{}: not a usable file: its schema is {schema} and {RECEIPT_SCHEMA} or {BASELINE_SCHEMA} is needed; give another file, update infergate, or measure again",
            path.display()
        ),
    }
}

/// The JSON Schemas of the files that other tools read, with their names.
pub fn json_schemas() -> [(&'static str, Schema); 2] {
    [("verdict-1.schema.json", schema_for!(VerdictFile)), ("paired-1.schema.json", schema_for!(PairedReceipt))]
}
