//! `gate --against REV`: base and head in turn, and a verdict that may block a merge.

mod built_bench;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::explain::Explaining;
use super::gate_options::Gate;
use super::settings_policy::GateSettings;
use super::{explain, launched_workers, outputs, pages, preflight};
use crate::config::{BenchTarget, Config};
use crate::paired::run_seed;
use infergate_build::bench_choice::Chosen;
use infergate_build::checkouts::Checkouts;
use infergate_build::edited::Edited;
use infergate_build::workspace::Workspace;
use infergate_build::{bench_choice, git, output};
use infergate_core::receipt::file_word;
use infergate_core::worker::WorkerError;
use infergate_judge::paired::{Policy, fit_to_upload, join, judge, merge, quick_estimates};
use infergate_receipts::{MOST_UPLOADED_BYTES, Note, Outcome, PairedReceipt, read, write_json};
use infergate_report::inputs::Inputs;
use infergate_report::{paired, words};

/// Builds both sides, measures, judges, prints, and gives the exit code of the verdict.
pub fn run(options: &Gate, config: &Config) -> Result<i32> {
    let outcome = if options.receipt.is_empty() { compare(options, config) } else { judge_receipts(options, config) };
    outcome.or_else(exit_code_of)
}

/// Maps an error to the exit code of its outcome: 4 not comparable, 3 invalid. Writes no verdict.
///
/// # Errors
/// Any other error.
pub fn exit_code_of(error: anyhow::Error) -> Result<i32> {
    let outcome = match WorkerError::find(&error) {
        Some(WorkerError::NotComparable(_)) => Outcome::NotComparable,
        Some(WorkerError::Invalid(_)) => Outcome::Invalid,
        Some(WorkerError::Interrupted(_)) => bail!("interrupted before the first block; nothing was measured"),
        _ => return Err(error),
    };
    output::error(&error);
    Ok(outcome.exit_code())
}

/// A paired gate: takes the settings from base and the bench targets from head's workspace, builds both sides, measures every target, joins
/// the receipts into one suite, then judges and writes it.
fn compare(gate: &Gate, config: &Config) -> Result<i32> {
    let flags = &gate.paired;
    let out = gate.out.clone().unwrap_or_else(|| config.measured.target_folder().join("paired.json"));
    // `--quick` writes nothing.
    if !flags.quick {
        outputs::remove_previous(&out)?;
    }
    let revision = flags.against.as_deref();
    let mut settings = settings(gate, config)?;
    // Base's settings decide which cases there are.
    let is_of_benches = !flags.is_of_servers() && settings.config.worker.command.is_empty() && flags.base_bin.is_none();
    let here = Path::new(".");
    preflight::check(&settings.config)?;
    let wanted_bench = settings.config.bench.clone();
    let workspace = is_of_benches.then(|| Workspace::load(here)).transpose()?;
    let mut chosen = match &workspace {
        Some(workspace) => bench_choice::choose(&wanted_bench, workspace)?,
        None => Chosen::one(wanted_bench.clone()),
    };
    let benches = chosen.benches.clone();
    let config = &mut settings.config;
    config.bench.clone_from(benches.first().context("there is no bench target")?);
    git::make_ignored(&config.measured.target_folder())?;
    if !chosen.are_criterion_or_divan {
        preflight::targets(config, !is_of_benches)?;
    } else if !std::mem::take(&mut config.policy.targets).is_empty() {
        // The file may be for an engine, too, whose targets these are.
        let text = "targets are not judged: criterion and divan benches have none of their metrics";
        settings.notes.push(Note::from(text));
    }
    let checkouts = Checkouts::default();
    if let (Some(head), Some(revision)) = (&workspace, revision) {
        let base = checkouts.of(revision, &config.build_request())?.workspace();
        let removed = base.map(|base| bench_choice::removed_targets(&chosen, &wanted_bench, &base, head));
        chosen.skipped.extend(removed.unwrap_or_default());
    }
    chosen.skipped.iter().for_each(|line| output::status_escaped(line));
    let explaining = (!flags.no_explain).then(|| {
        let edited = revision.and_then(|revision| Edited::between(here, revision, None).ok());
        Explaining { named: flags.explain.clone(), edited }
    });
    config.policy.allow_output_change = flags.allow_output_change;
    let mut failed = built_bench::FailedTargets::default();
    let built_benches = built_bench::of_benches(gate, &settings, (&benches, &checkouts), &mut failed)?;
    let place = |bench: &BenchTarget| match benches.len() {
        1 => out.clone(),
        _ => out.with_extension(format!("{}.json", file_word(&bench.name()))),
    };
    let measured = built_bench::measure_all(built_benches, flags.budget, place, explaining.as_ref(), &mut failed)?;
    let receipt = joined(measured, failed, chosen)?;
    explain::print_unmatched(&receipt, &flags.explain);
    if flags.quick {
        output::print_verdict(&paired::quick(&receipt, &quick_estimates(&receipt)));
        return Ok(if receipt.partial { Outcome::Partial.exit_code() } else { 0 });
    }
    let exit_code = conclude(gate, receipt, &settings.config.policy, Some(&out))?;
    if benches.len() > 1 && out.is_file() {
        // It holds the blocks of all of them.
        benches.iter().for_each(|bench| drop(fs::remove_file(place(bench))));
    }
    Ok(exit_code)
}

/// The settings of this gate; for servers also those of their scenarios. Prints at once what head changes of them.
fn settings(gate: &Gate, config: &Config) -> Result<GateSettings> {
    let mut settings = GateSettings::against(gate.paired.against.as_deref(), gate, config)?;
    settings.notes.iter().for_each(|note| output::status_escaped(&words::note(note)));
    if gate.paired.is_of_servers() {
        settings.notes.extend(launched_workers::notes(config));
        let measured = &mut settings.config.measured;
        measured.memory.case = launched_workers::memory_case(config)?;
        measured.seed = run_seed(measured.seed);
    }
    Ok(settings)
}

/// The receipts of all bench targets as one suite, with the targets that failed, were skipped or, with `is_cut`, not begun.
fn joined(
    (receipts, is_cut): (Vec<PairedReceipt>, bool),
    failed: built_bench::FailedTargets,
    chosen: Chosen,
) -> Result<PairedReceipt> {
    let mut receipt = join(receipts)?;
    receipt.partial |= is_cut;
    receipt.broken.extend(failed.in_head);
    receipt.notes.extend(failed.in_base.into_iter().chain(chosen.skipped).map(Note::from));
    if chosen.benches.len() > 1 {
        // All that were requested, so that the same flags request them again.
        let names: Vec<&str> = chosen.benches.iter().map(|bench| bench.target.as_str()).collect();
        (receipt.base.engine.model, receipt.head.engine.model) = (names.join(","), names.join(","));
        if !receipt.partial {
            receipt.share.take_if(|share| share.of == 1);
        }
    }
    Ok(receipt)
}

/// `gate --receipt`: judges what was measured before, the shards of one suite together, by the settings that it was measured by:
/// base's, unless head's were chosen.
///
/// # Errors
/// Receipts that cannot be read, or are not the shards of one gate; a folder whose repository does not have base.
fn judge_receipts(gate: &Gate, config: &Config) -> Result<i32> {
    let receipts = gate.receipt.iter().map(|path| read::<PairedReceipt>(path)).collect::<Result<Vec<_>>>()?;
    let receipt = if receipts.len() == 1 { join(receipts) } else { merge(receipts) }?;
    let by_base = receipt.terms.as_ref().is_some_and(|terms| !terms.by_head);
    let base = receipt.base.build.commit.as_deref().filter(|_| by_base);
    let settings = GateSettings::against(base, gate, config)
        .context("base's settings judge this receipt; judge it in a clone of the repository that has base's commit")?;
    let allow_output_change = gate.paired.allow_output_change;
    conclude(gate, receipt, &Policy { allow_output_change, ..settings.config.policy }, None)
}

/// Judges, prints, and writes the receipt (medians only if it is too large), the verdict and the report.
fn conclude(gate: &Gate, receipt: PairedReceipt, policy: &Policy, out: Option<&Path>) -> Result<i32> {
    let verdict = judge(&receipt, policy);
    // Before anything is written, which may fail.
    output::print_verdict(&paired::verdict(&receipt, &verdict));
    if let Some(out) = out {
        output::status_escaped(&paired::took(&receipt.took));
        let kept = fit_to_upload(receipt.clone(), MOST_UPLOADED_BYTES).and_then(|receipt| write_json(out, &receipt));
        if outputs::is_written(kept) {
            output::status_escaped(&format!("receipt: {}", out.display()));
        }
    }
    let inputs = Inputs { paired: Some(receipt), verdict: Some(verdict), ..pages::inputs() };
    Ok(pages::conclude(&inputs, gate.json.as_deref(), gate.report.as_deref()))
}
