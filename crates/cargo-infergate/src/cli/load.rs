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
use infergate::load::{Arrivals, Stop};
use infergate::process::this_program;

use super::{flags as common, output, outputs, progress};
use crate::load::Target;
use crate::load::audit::audit;
use crate::load::cpu::raise_connection_limit;
use crate::load::judge;
use crate::load::live::Live;
use crate::load::plan::REQUEST_WEIGHT;
use crate::load::script_server::{self, Script};
use crate::load::slo::{Limit, meets, next_users};
use crate::load::summary::summarise;
use crate::machine;
use crate::receipt::{LOAD_SCHEMA, LoadReceipt, Outcome, timestamp, write_json};
use crate::report;
use drawer::Drawer;
use settings::{Loads, Settings};

pub use flags::command;
pub use settings::scenarios_of;

/// What a receipt has room for, in pieces of output: it could not be read again beyond 128 MiB.
const MAX_KEPT: u64 = 8_000_000;

/// Measures, keeps what there is after every level, prints what it says.
pub fn run(matches: &ArgMatches) -> Result<i32> {
    let folder = env::current_dir().context("the current folder cannot be read")?;
    let named = target::named(matches)?;
    let cancelled = progress::cancelled_by_ctrl_c()?;
    let targets = named.len();
    let mut target = target::open(matches, named, &cancelled)?;
    let settings = Settings::from(matches, &folder, targets, target.as_ref())?;
    let out = match common::path(matches, "out") {
        Some(out) => out,
        None => default_out()?,
    };
    raise_connection_limit();
    let mut receipt = begin(&settings, target.as_ref());
    let drawer = Drawer::start();
    let levels = match &settings.loads {
        Loads::All(loads) => loads.len(),
        Loads::UntilSlo { most } => most.ilog2() as usize + 1,
    };
    let mut run = Run {
        settings: &settings,
        target: target.as_mut(),
        receipt: &mut receipt,
        out: &out,
        drawer: &drawer,
        cancelled: &cancelled,
        room: MAX_KEPT,
        done: 0,
        total: levels * settings.scenarios.len(),
    };
    let outcome = run.measure();
    drop(drawer);
    outcome?;
    if target.has_client() && receipt.audits.is_empty() && !receipt.levels.is_empty() {
        receipt.notes.push("the client's error is not known: this system has no clock that two processes share".into());
    }
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
        limits: settings.limits.clone(),
        scenarios: settings.scenarios.clone(),
        audits: Vec::new(),
        levels: Vec::new(),
    }
}

/// A run that is going on.
struct Run<'a> {
    settings: &'a Settings,
    target: &'a mut dyn Target,
    receipt: &'a mut LoadReceipt,
    out: &'a Path,
    drawer: &'a Drawer,
    cancelled: &'a Arc<AtomicBool>,
    /// What the receipt still has room for, in pieces of output.
    room: u64,
    /// Levels done, and how many there will be at most.
    done: usize,
    total: usize,
}

impl Run<'_> {
    fn measure(&mut self) -> Result<()> {
        for scenario in 0..self.settings.scenarios.len() {
            match &self.settings.loads {
                Loads::All(loads) => {
                    for arrivals in loads {
                        self.level(scenario, *arrivals)?;
                    }
                }
                Loads::UntilSlo { most } => self.search(scenario, *most)?,
            }
        }
        Ok(())
    }

    /// Levels of more and more users until the limits are missed, then of those between.
    fn search(&mut self, scenario: usize, most: u32) -> Result<()> {
        let limits: Vec<Limit> =
            self.settings.limits.iter().copied().filter(|limit| limit.percentile.is_some()).collect();
        let mut tried = Vec::new();
        while let Some(users) = next_users(&tried, most) {
            self.level(scenario, Arrivals::Closed { users })?;
            let Some(level) = self.receipt.levels.last().filter(|_| !self.is_cancelled()) else { break };
            let Some(met) = meets(&summarise(level), &limits) else {
                self.receipt
                    .notes
                    .push(format!("{users} users: too few requests for these limits; give more --requests"));
                break;
            };
            tried.push((users, met));
        }
        Ok(())
    }

    /// Runs one level, after the client's accuracy under it is known; nothing once the run was asked to end.
    fn level(&mut self, scenario: usize, arrivals: Arrivals) -> Result<()> {
        let is_known = self.receipt.audits.iter().any(|audit| audit.arrivals == arrivals);
        if self.target.has_client() && !is_known && !self.is_cancelled() {
            let live = self.show(&format!("self-audit, {}", judge::load(&arrivals)), None);
            self.receipt.audits.extend(audit(&this_program()?, arrivals, self.settings.seed, &live)?);
        }
        if self.is_cancelled() {
            return Ok(());
        }
        let plan = self.settings.level(scenario, arrivals, self.done, self.room);
        let label = format!("{}, {}", plan.shape.name, judge::load(&arrivals));
        let live = self.show(&label, Some(plan.stop));
        let outcome = self.target.run_level(&plan, &live)?;
        if outcome.is_full {
            self.receipt
                .notes
                .push(format!("{label}: ended early, because the receipt holds no more; measure less in a run"));
        }
        let seen = live.seen();
        self.room = self.room.saturating_sub(seen.pieces + REQUEST_WEIGHT * seen.issued);
        self.receipt.levels.push(outcome.level);
        self.done += 1;
        write_json(self.out, self.receipt)
    }

    fn show(&self, label: &str, stop: Option<Stop>) -> Arc<Live> {
        let live = Arc::new(Live::new(self.cancelled.clone()));
        self.drawer.show(label, &live, stop, (self.done, self.total));
        live
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
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
