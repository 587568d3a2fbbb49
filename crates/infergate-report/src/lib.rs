//! Reports for people. They read receipts and verdicts; they never measure and never judge.

// Only the command links it.
#![allow(missing_docs)]

pub mod blessing;
pub mod calibration;
pub mod checkup;
pub mod export;
pub mod figures;
pub mod inputs;
pub mod load;
pub mod model;
pub mod paired;
pub mod svg;
pub mod terminal;
pub mod topics;
pub mod units;
pub mod verdict_file;
pub mod words;
