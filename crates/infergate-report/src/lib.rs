//! Reports for people. They read receipts and verdicts; they never measure and never judge.

// Only the command links it.
#![allow(missing_docs)]

pub mod blessing;
pub mod calibration;
pub mod checkup;
pub mod export;
mod figures;
pub mod inputs;
mod load;
pub mod model;
pub mod paired;
mod svg;
pub mod terminal;
pub mod topics;
pub mod units;
pub mod verdict_file;
pub mod words;
