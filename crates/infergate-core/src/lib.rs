//! What the measured side and the judging side of infergate share: cases, traces, receipts, the worker protocol and its
//! client, and the statistics and the rule of the memory phase. It runs no engine and gives no verdict on time.

pub mod as_text;
pub mod build_info;
pub mod case;
pub mod clock;
pub mod config;
pub mod engine;
pub mod iterations;
pub mod load;
pub mod lock;
pub mod machine;
pub mod memory;
pub mod metric;
pub mod outcome;
pub mod printable;
pub mod process;
pub mod progress;
pub mod prompt;
pub mod receipt;
pub mod relay;
pub mod sha256;
pub mod splitmix;
pub mod stats;
pub mod text_file;
pub mod trace;
pub mod worker;
