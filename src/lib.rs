#![doc = include_str!("../README.md")]

#[cfg(feature = "bench")]
pub mod bench;
pub mod build_info;
pub mod case;
pub mod clock;
pub mod config;
pub mod engine;
pub mod gate;
pub mod machine;
pub mod measure;
#[cfg(feature = "models")]
pub mod models;
pub mod process;
pub mod prompt;
pub mod receipt;
pub mod stats;
pub mod suite;
pub mod trace;
pub mod worker;
#[cfg(feature = "cli")]
pub mod cli {
    pub fn main(_a: std::env::ArgsOs) -> i32 {
        0
    }
}
