//! `load`: a server under load.

mod drawer;
mod flags;
mod settings;
mod target;

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result};
use clap::{Arg, ArgMatches, Command, value_parser};
use infergate::config::Config as Measured;
use infergate::process::this_program;

use super::{flags as common, output, outputs, progress};
use crate::load::Target;
use crate::load::audit::audit;
use crate::load::cpu::raise_connection_limit;
use crate::load::judge;
use crate::load::live::Live;
use crate::load::script_server::{self, Script};
use crate::machine;
use crate::receipt::{LOAD_SCHEMA, LoadReceipt, Outcome, timestamp, write_json};
use crate::report;
use drawer::Drawer;
use settings::Settings;

pub use flags::command;

/// Measures, keeps what there is after every level, prints what it says.
pub fn run(matches: &ArgMatches) -> Result<i32> {
    let folder = env::current_dir().context("the current folder cannot be read")?;
    let named = target::named(matches)?;
    let settings = Settings::from(matches, &folder, named.len())?;
    let mut target = target::open(matches, named, settings.shared_prefix_tokens)?;
    let out = match common::path(matches, "out") {
        Some(out) => out,
        None => default_out()?,
    };
    let cancelled = progress::cancelled_by_ctrl_c()?;
    raise_connection_limit();
    let mut receipt = begin(&settings, target.as_ref());
    let drawer = Drawer::start();
    let outcome = measure(&settings, target.as_mut(), &mut receipt, &out, &drawer, &cancelled);
    drop(drawer);
    outcome?;
    receipt.partial = cancelled.load(Ordering::Relaxed);
    receipt.invalid = judge::reasons(&receipt);
    write_json(&out, &receipt)?;
    output::report(&report::load::text(&receipt));
    output::say(&format!("receipt: {}", out.display()));
    Ok(exit_code(&receipt))
}

fn default_out() -> Result<PathBuf> {
    let out = Measured::default().target_folder().join("load.json");
    outputs::fresh(&out)?;
    Ok(out)
}

fn exit_code(receipt: &LoadReceipt) -> i32 {
    if receipt.partial {
        Outcome::Partial.exit_code()
    } else if !receipt.invalid.is_empty() {
        Outcome::Invalid.exit_code()
    } else {
        Outcome::Pass.exit_code()
    }
}

fn begin(settings: &Settings, target: &dyn Target) -> LoadReceipt {
    LoadReceipt {
        schema: LOAD_SCHEMA.into(),
        created: timestamp(),
        partial: true,
        invalid: Vec::new(),
        notes: settings.notes.clone(),
        tool: env!("CARGO_PKG_VERSION").into(),
        machine: machine::detect(),
        targets: target.records(),
        seed: settings.seed,
        prompt_seed: settings.prompt_seed,
        scenarios: settings.scenarios.clone(),
        audits: Vec::new(),
        levels: Vec::new(),
    }
}

fn measure(
    settings: &Settings,
    target: &mut dyn Target,
    receipt: &mut LoadReceipt,
    out: &Path,
    drawer: &Drawer,
    cancelled: &Arc<AtomicBool>,
) -> Result<()> {
    let mut loads = Vec::new();
    for level in &settings.levels {
        if !loads.contains(&level.arrivals) {
            loads.push(level.arrivals);
        }
    }
    let total = loads.len() + settings.levels.len();
    let program = this_program()?;
    for (done, arrivals) in loads.iter().enumerate() {
        let live = Arc::new(Live::new(cancelled.clone()));
        drawer.show(&format!("self-audit, {}", judge::load(arrivals)), &live, None, (done, total));
        receipt.audits.extend(audit(&program, *arrivals, settings.seed, &live)?);
        if live.is_cancelled() {
            return Ok(());
        }
    }
    if receipt.audits.is_empty() {
        receipt.notes.push("the client's error is not known: this system has no clock that two processes share".into());
    }
    for (done, level) in settings.levels.iter().enumerate() {
        let live = Arc::new(Live::new(cancelled.clone()));
        let label = format!("{}, {}", level.shape.name, judge::load(&level.arrivals));
        drawer.show(&label, &live, Some(level.stop), (loads.len() + done, total));
        let outcome = target.run_level(level, &live)?;
        if outcome.is_full {
            let pieces = level.max_pieces;
            receipt.notes.push(format!("{label}: ended early, {pieces} pieces of output are kept of a level at most"));
        }
        receipt.levels.push(outcome.level);
        if live.is_cancelled() {
            return Ok(());
        }
        write_json(out, receipt)?;
    }
    Ok(())
}

/// The hidden command that is the self-audit's server.
pub fn script_server_command() -> Command {
    let number = |name: &'static str| Arg::new(name).required(true).value_parser(value_parser!(u64));
    let tokens = Arg::new("tokens").required(true).value_parser(value_parser!(u32).range(1..=100_000));
    Command::new(script_server::COMMAND).hide(true).args([number("ttft-ns"), number("itl-ns"), tokens])
}

/// Runs it.
pub fn script_server(matches: &ArgMatches) -> Result<i32> {
    let number = |name: &str| matches.get_one::<u64>(name).copied().unwrap_or_default();
    let output_tokens = matches.get_one::<u32>("tokens").copied().unwrap_or(1);
    script_server::run(Script { ttft_ns: number("ttft-ns"), itl_ns: number("itl-ns"), output_tokens })?;
    Ok(0)
}
