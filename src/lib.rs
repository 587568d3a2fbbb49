//! infergate
pub mod case;
pub mod clock;
pub mod engine;
pub mod gate;
#[cfg(feature = "models")]
pub mod models;
pub mod prompt;
pub mod receipt;
pub mod stats;
pub mod trace;
#[cfg(feature = "cli")]
pub mod cli {
    pub fn main(_a: std::env::ArgsOs) -> i32 {
        0
    }
}
