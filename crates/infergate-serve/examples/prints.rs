//! An engine that prints while it loads, as many do, behind a server whose first line is its address all the same.

use std::process::ExitCode;

use anyhow::Result;
use infergate::engine::{Engine, LoadRequest};

fn load(request: &LoadRequest) -> Result<Box<dyn Engine + Send>> {
    println!("loading");
    infergate_serve::timed::load(request)
}

fn main() -> ExitCode {
    infergate_serve::main(&load)
}
