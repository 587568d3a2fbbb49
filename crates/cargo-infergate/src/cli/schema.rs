//! `schema`: `infergate.toml` with its defaults.

use anyhow::Result;
use clap::Args;

use super::output;

/// Print the default infergate.toml
#[derive(Args)]
#[command(after_help = "Example:\n  cargo xtask schema > infergate.toml")]
pub struct Schema {}

pub fn run() -> Result<i32> {
    output::document(include_str!("../../templates/infergate.toml"));
    Ok(0)
}
