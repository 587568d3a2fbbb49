//! What can be refused before anything is built: minutes of compiling should not end at a misspelt path.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use infergate_core::case::{Case, full_grid, gate_suite, select};
use infergate_core::config::looks_like_a_path;
use infergate_core::receipt::file_word;

use super::files::entries;
use crate::config::{BenchTarget, Config};
use infergate_judge::ensure_targets_name;
use infergate_receipts::{Baseline, Subject, read};

/// Refuses a model file that is not there, and a prompt that cannot be read.
pub fn check(config: &Config) -> Result<()> {
    let model = &config.measured.model;
    ensure!(
        !looks_like_a_path(model) || Path::new(model).exists(),
        "model '{model}': there is no such file or folder; name one, or a spec such as synthetic:gpt2"
    );
    config.measured.own_prompt_text().map(drop)
}

/// Refuses a target that no case of the run can meet. Where the worker is `given`, or a bench target of the team's own, only it knows its
/// cases.
pub fn targets(config: &Config, given: bool) -> Result<()> {
    let known = possible_cases(&config.measured.cases);
    if known.is_err() && (given || config.bench.target != BenchTarget::default().target) {
        return Ok(());
    }
    ensure_targets_name(&config.policy.targets, &known?.into_iter().map(Subject::from).collect::<Vec<_>>())
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

/// Reads every baseline: a run should not end at one that cannot be read.
pub fn baselines(config: &Config) -> Result<()> {
    let is_json = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "json");
    for class in entries(&config.baselines)?.iter().filter(|class| class.is_dir()) {
        entries(class)?.iter().filter(is_json).try_for_each(|path| read::<Baseline>(path).map(drop))?;
    }
    Ok(())
}

/// Where the calibration of a machine class and a model is kept.
pub fn calibration_file(config: &Config, class: &str, engine: &infergate_core::engine::EngineInfo) -> PathBuf {
    calibration_folder(config, class).join(format!("{}-{}.json", file_word(&engine.name), file_word(&engine.model)))
}

/// Where those of a machine class are.
pub fn calibration_folder(config: &Config, class: &str) -> PathBuf {
    config.baselines.join(file_word(class)).join("calibration")
}
