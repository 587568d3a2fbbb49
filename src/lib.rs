//! infergate
pub mod clock;
pub mod engine;
#[cfg(feature = "models")]
pub mod models;
#[cfg(feature = "models")]
pub mod process;
pub mod prompt;
#[cfg(feature = "cli")]
pub mod cli {
    pub fn main(_a: std::env::ArgsOs) -> i32 {
        0
    }
}
