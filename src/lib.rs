#![doc = include_str!("../README.md")]

#[cfg(feature = "bench")]
pub mod bench;
pub mod build_info;
pub mod case;
#[cfg(feature = "cli")]
pub mod cli;
pub mod clock;
#[cfg(any(feature = "bench", feature = "cli"))]
pub mod config;
pub mod engine;
pub mod gate;
pub mod machine;
pub mod measure;
pub mod memory;
#[cfg(feature = "models")]
pub mod models;
pub mod paired;
pub mod process;
pub mod prompt;
pub mod receipt;
pub mod report;
pub mod stats;
pub mod suite;
pub mod trace;
pub mod worker;
