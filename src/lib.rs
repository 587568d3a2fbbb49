#![doc = include_str!("../README.md")]

#[cfg(feature = "bench")]
pub mod bench;
pub mod build_info;
pub mod case;
pub mod clock;
pub mod config;
#[cfg(feature = "bench")]
pub mod criterion;
pub mod engine;
pub mod json;
pub mod load;
pub mod lock;
pub mod machine;
pub mod measure;
pub mod memory;
pub mod outcome;
pub mod printable;
pub mod process;
pub mod progress;
pub mod prompt;
pub mod receipt;
pub mod relay;
pub mod stats;
pub mod text_file;
pub mod trace;
pub mod worker;

/// The examples of docs/ENGINE.md are compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/ENGINE.md")]
struct EnginePage;
