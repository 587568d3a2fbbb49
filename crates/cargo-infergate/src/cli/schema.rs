//! `schema`: `infergate.toml` with its defaults.

use anyhow::Result;
use clap::Args;

use super::output;
use crate::config::keys;

/// Print the default infergate.toml
#[derive(Args)]
#[command(after_help = "Example:\n  cargo xtask schema > infergate.toml")]
pub struct Schema {}

pub fn run() -> Result<i32> {
    output::document(&keys::commented_file());
    Ok(0)
}
