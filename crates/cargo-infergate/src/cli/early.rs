//! What can be refused before anything is built: minutes of compiling should not end at a misspelt path.

use std::path::Path;

use anyhow::{Result, ensure};
use infergate_core::case::{Case, full_grid, gate_suite, select};
use infergate_core::config::looks_like_a_path;

use super::{calibrate, flags};
use crate::config::{BenchTarget, Config};
use crate::machine;
use crate::receipt::{Baseline, Calibration, Target, read};

/// Refuses a model file that is not there, and a prompt that cannot be read.
pub fn check(config: &Config) -> Result<()> {
    let model = &config.measured.model;
    ensure!(
        !looks_like_a_path(model) || Path::new(model).exists(),
        "model '{model}': there is no such file or folder; name one, or a spec such as synthetic:gpt2"
    );
    config.measured.prompt_text().map(drop)
}

/// Refuses a target that no case of the run can meet. Where the worker is `given`, of criterion, or a bench target of the team's own,
/// only it knows its cases.
pub fn targets(config: &Config, given: bool) -> Result<()> {
    let known = possible_cases(&config.measured.cases);
    if known.is_err() && (given || config.bench.target != BenchTarget::default().target) {
        return Ok(());
    }
    let cases = known?;
    config.policy.targets.iter().try_for_each(|target| names_one_of(target, &cases))
}

/// Every case a run of `patterns` may have. Which of a pattern's it has depends on the model's context.
fn possible_cases(patterns: &[String]) -> Result<Vec<Case>> {
    if patterns.is_empty() {
        return Ok(gate_suite());
    }
    // A long generation takes another one's place where the context holds it, so that no grid has them all.
    let mut known = gate_suite();
    for case in [1024, usize::MAX].into_iter().flat_map(full_grid) {
        if !known.contains(&case) {
            known.push(case);
        }
    }
    select(patterns, &known)
}

fn names_one_of(target: &Target, cases: &[Case]) -> Result<()> {
    ensure!(
        cases.iter().any(|case| target.names(&(*case).into())),
        "target '{target}' names no case of this run; take it out of `targets`, or measure more --cases"
    );
    Ok(())
}

/// Reads every baseline of this machine class: a run should not end at one that cannot be read.
pub fn baselines(config: &Config) -> Result<()> {
    for path in flags::json_files(&config.baselines.join(machine::detect().class))? {
        read::<Baseline>(&path)?;
    }
    Ok(())
}

/// As [`baselines`], of the calibrations.
pub fn calibrations(config: &Config) -> Result<()> {
    for path in flags::json_files(&calibrate::folder(config, &machine::detect().class))? {
        read::<Calibration>(&path)?;
    }
    Ok(())
}
