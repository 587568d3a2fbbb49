//! The hidden command between the gate and a server.

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use infergate_load::api::body::{Api, Wanted};

use crate::server::Start;
use crate::server::worker::{self, Job, Where};

/// The hidden command that measures a server.
#[derive(Args)]
pub struct ServerWorker {
    #[arg(long)]
    scenarios: String,
    #[arg(long)]
    api: String,
    #[arg(long)]
    model: String,
    #[arg(long)]
    ready: String,
    #[arg(long)]
    ready_s: u64,
    #[arg(long)]
    check_output: bool,
    #[arg(long)]
    ignore_eos: bool,
    #[arg(long)]
    url: Option<String>,
    #[arg(long)]
    users: Option<u32>,
    // The word that makes any program a worker comes behind all others.
    #[arg(long = infergate_core::worker::WORKER_ARGUMENT.trim_start_matches('-'))]
    _is_worker: bool,
    #[arg(last = true)]
    command: Vec<String>,
}

pub fn serve(asked: ServerWorker) -> Result<i32> {
    let mut command = asked.command;
    if command.last().is_some_and(|word| word == infergate_core::worker::WORKER_ARGUMENT) {
        command.pop();
    }
    let ready_within = Duration::from_secs(asked.ready_s);
    let server = match asked.url {
        Some(url) => Where::Running(url),
        None => Where::Started(Start { command, ready: asked.ready, ready_within }),
    };
    let wanted = Wanted {
        api: if asked.api == Api::Completions.name() { Api::Completions } else { Api::Chat },
        model: asked.model,
        limit_field: "max_tokens",
        ignore_eos: asked.ignore_eos,
        min_tokens: asked.ignore_eos,
        usage: true,
    };
    let scenarios = serde_json::from_str(&asked.scenarios).context("the scenarios cannot be read")?;
    worker::serve(Job { server, wanted, scenarios, check_output: asked.check_output, users: asked.users })?;
    Ok(0)
}
