//! Reports for people. They read receipts and verdicts; they never measure and never judge.

pub mod blessing;
pub mod calibration;
pub mod checkup;
pub mod demo;
pub mod init;
pub mod load;
pub mod memory;
pub mod paired;
pub mod sparkline;
pub mod table;
pub mod terminal;
pub mod units;
pub mod words;
