//! `doctor`: what makes this machine noisy, what to do about it, how small a change it can see.

use std::fs;
use std::path::Path;

use anyhow::Result;
use clap::{ArgMatches, Command};

use super::{flags, output};
use crate::config::Config;
use crate::gate::{stored_limit, summary_ns};
use crate::machine::{self, doctor};
use crate::receipt::{Baseline, read_baseline, write_json};
use crate::report::checkup::{self, Checkup, Sight};

/// Its flags.
pub fn command() -> Command {
    Command::new("doctor")
        .about("Say what makes this machine noisy, what to do about it, and how small a change it can see")
        .args(flags::judge())
        .arg(flags::json("Write the findings here"))
        .after_help("Examples:\n  cargo xtask doctor\n  cargo xtask doctor --json doctor.json")
}

/// Looks, prints. Noise is advice, not a failure.
pub fn run(matches: &ArgMatches) -> Result<i32> {
    let config = flags::config(matches)?;
    let machine = machine::detect();
    let sight = sight(&config, &machine.class)?;
    let checkup = Checkup { machine, findings: doctor::examine(), sight };
    if let Some(json) = flags::path(matches, "json") {
        write_json(&json, &checkup)?;
    }
    output::report(&checkup::text(&checkup, config.policy.min_sessions));
    Ok(0)
}

fn sight(config: &Config, class: &str) -> Result<Vec<Sight>> {
    let Ok(files) = fs::read_dir(config.baselines.join(class)) else { return Ok(Vec::new()) };
    let mut paths: Vec<_> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let mut sight = Vec::new();
    for path in paths {
        sight.extend(sight_of(&read_baseline(&path)?, &path, config));
    }
    Ok(sight)
}

fn sight_of(baseline: &Baseline, path: &Path, config: &Config) -> Vec<Sight> {
    let of_case = |id| {
        let cases = baseline.sessions.iter().flat_map(|session| &session.cases).filter(|case| case.id == id);
        let summaries: Vec<f64> = cases.filter_map(|case| summary_ns(&case.processes)).collect();
        let limit = stored_limit(&summaries, baseline.exact.len(), &config.policy);
        Sight {
            baseline: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            case: id.to_string(),
            sessions: summaries.len(),
            ratio: limit.map(|limit| limit.limit.exp()),
        }
    };
    baseline.exact.iter().map(|record| of_case(record.id)).collect()
}
