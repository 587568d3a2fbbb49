//! The flags of a serving program, and its `main`.

use std::net::IpAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use infergate::engine::{EngineFactory, LoadRequest};
use infergate_core::config::{Config, Settings as _};
use infergate_core::printable::printable;
use infergate_core::process::{self, standard_streams};

use crate::server::{self, Settings};

/// Serves a model to OpenAI clients. Its address is one line on stdout once it is ready.
///
/// What is not given here comes from infergate.toml and its environment variables, as for a bench target.
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
struct Arguments {
    /// The model spec; what it means is the engine's business
    #[arg(long)]
    model: Option<String>,
    /// Compute type, for example f32
    #[arg(long)]
    dtype: Option<String>,
    /// Threads to compute with
    #[arg(long)]
    threads: Option<usize>,
    /// Seed of synthetic weights
    #[arg(long)]
    seed: Option<u64>,
    /// What else the engine understands; can be given again
    #[arg(long, value_name = "NAME=VALUE")]
    option: Vec<String>,
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// Port to listen on; 0 takes any free one
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Requests that are served at once
    #[arg(long, default_value_t = 8)]
    slots: usize,
    /// Requests that wait for a slot; further ones get status 429
    #[arg(long, default_value_t = 64)]
    queue: usize,
    /// Seconds that requests in flight have to end in, once the server is told to stop
    #[arg(long, default_value_t = 30)]
    drain_s: u64,
    /// Longest body of a request
    #[arg(long, default_value_t = 8 << 20)]
    body_limit_bytes: usize,
    /// Connections at once; further ones wait until one ends
    #[arg(long, default_value_t = 1_000)]
    connections: usize,
    /// Seconds that a client may take to send a request's head or its body, or to take what it is sent
    #[arg(long, default_value_t = 60)]
    silence_s: u64,
}

/// The whole of a serving program's `main`. Errors go to stderr as one line; exit code 2 then.
pub fn main(factory: &dyn EngineFactory) -> ExitCode {
    match run(factory, Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", printable(&format!("{error:#}")));
            ExitCode::from(2)
        }
    }
}

fn run(factory: &dyn EngineFactory, arguments: Arguments) -> Result<()> {
    let request = arguments.load_request()?;
    let settings = arguments.settings();
    process::ensure_environment(&factory.environment(&request))?;
    // An engine may print: the first line on stdout is the address all the same.
    let (_, out) = standard_streams::take().context("stdin and stdout cannot be taken")?;
    // First, so that a port in use costs no minutes of loading.
    let listener = server::bind(&settings)?;
    let engine = factory.load(&request)?;
    server::run_until_signal(listener, engine, &settings, out)
}

impl Arguments {
    fn load_request(&self) -> Result<LoadRequest> {
        let folder = std::env::current_dir().context("the current folder cannot be read")?;
        let mut request = Config::load(&folder)?.load_request();
        request.model = self.model.clone().unwrap_or(request.model);
        request.dtype = self.dtype.clone().or(request.dtype);
        request.threads = self.threads.unwrap_or(request.threads);
        request.seed = self.seed.unwrap_or(request.seed);
        if request.threads == 0 {
            bail!("--threads 0 cannot compute anything; give at least 1");
        }
        for option in &self.option {
            // Its value can be a secret.
            let pair = option.split_once('=').filter(|(name, _)| !name.trim().is_empty());
            let (name, value) = pair.context("--option takes NAME=VALUE, and one has no name or no value")?;
            request.options.insert(name.trim().to_owned(), value.to_owned());
        }
        Ok(request)
    }

    fn settings(&self) -> Settings {
        Settings {
            host: self.host,
            port: self.port,
            slots: self.slots,
            queue: self.queue,
            drain: Duration::from_secs(self.drain_s),
            body_limit_bytes: self.body_limit_bytes,
            connections: self.connections,
            silence: Duration::from_secs(self.silence_s),
        }
    }
}
