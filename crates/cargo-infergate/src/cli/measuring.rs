//! A paired run as the command line starts it: with this machine's calibration, the cases that run changed code, the layout and the budget.

use std::time::Instant;

use anyhow::Result;

use super::outputs::Kept;
use super::{files, preflight};
use crate::config::Config;
use crate::coverage;
use crate::paired::{PairedRequest, PairedRun, Program, TimedBuilds};
use infergate_build::code::Changed;
use infergate_build::sources::Sources;
use infergate_build::{output, progress};
use infergate_core::progress::Progress;
use infergate_judge::paired::{QUICK_BLOCKS, block_noise, false_failure_rate, of_another_setup, open_cases};
use infergate_receipts::{Calibration, Note, PairedReceipt, Took};
use infergate_report::{units::many, words};

/// The request to compare these programs by `config`.
///
/// # Errors
/// A prompt file that cannot be read.
pub fn request(config: &Config, base: Program, head: Program) -> Result<PairedRequest> {
    Ok(PairedRequest {
        cases: config.measured.cases.clone(),
        prompt_text: config.measured.own_prompt_text()?,
        limits: config.limits(),
        drift_tolerance: config.policy.drift_tolerance,
        built_with: config.bench.built_with(),
        ..PairedRequest::new(base, head, config.measured.load_request())
    })
}

/// Runs the pilot, skips cases that run no changed code, lays both sides out alike, then measures blocks until every case is settled or the
/// run ends early. `--quick` skips tracing and layout. Without `changed` nothing is traced, without `sources` nothing is laid out. Keeps
/// each block in `kept` as soon as it is measured. Gives the receipt, whose notes have this gate's false-failure rate, and the builds that
/// were timed.
pub fn measure(
    request: &PairedRequest,
    config: &Config,
    sources: Option<&Sources>,
    changed: Option<&Changed>,
    kept: Option<&Kept<'_>>,
) -> Result<(PairedReceipt, TimedBuilds)> {
    let begun = Instant::now();
    let line = progress::Line::default();
    let mut show = |step: &Progress| line.show(step);
    let mut run = PairedRun::begin(request, &mut show)?;
    let calibration = find_calibration(config, run.receipt())?;
    if let Some(calibration) = calibration.as_ref().filter(|it| of_another_setup(it, run.receipt()).is_none()) {
        run.take_noise_of_calibration(&block_noise(calibration));
    }
    let step = |label: &str| Progress { label: label.to_owned(), done_steps: 0, total_steps: 1 };
    // The same code, or a shard without cases, has nothing to time.
    let is_timed = |run: &PairedRun| run.receipt().timed().next().is_some();
    if let Some(changed) = changed.filter(|_| !request.quick && run.receipt().code.is_some() && is_timed(&run)) {
        show(&step("finding the cases that run changed code"));
        let runs = coverage::functions_run(&run.receipt().cases, request, changed)?;
        run.drop_cases_that_run_nothing_changed(runs);
    }
    let pilot_ns = begun.elapsed().as_nanos() as u64;
    let mut not_alike = None;
    if let Some(sources) = sources.filter(|_| !request.quick && is_timed(&run)) {
        show(&step("laying out both sides alike"));
        run.lay_out(|| {
            let alike = sources.alike((&request.base, &request.head), request.load.seed)?;
            Ok(alike.map_err(|why| not_alike = Some(why)).ok())
        })?;
    }
    let builds_ns = begun.elapsed().as_nanos() as u64 - pilot_ns;
    let (broken, found) = (&run.receipt().broken, &run.receipt().notes[request.notes.len()..]);
    // If nothing is timed, the verdict follows at once and says it.
    for message in broken.iter().cloned().chain(found.iter().map(words::note)).filter(|_| is_timed(&run)) {
        line.above(|| output::status_escaped(&message));
    }
    let all = open_cases(run.receipt());
    let dropped = all.len() - run.fit_to_budget(&all).len();
    if dropped > 0 {
        let text = format!("--budget: too short for {}; they are not timed", many(dropped, "case"));
        line.above(|| output::status_escaped(&text));
    }
    let look = |receipt: &PairedReceipt| {
        if request.quick {
            let is_open = receipt.blocks.len() < QUICK_BLOCKS;
            return receipt.timed().filter(|_| is_open).map(|case| case.id).collect();
        }
        if let Some(kept) = kept.filter(|_| !receipt.blocks.is_empty()) {
            kept.keep(&PairedReceipt { partial: true, ..receipt.clone() });
        }
        open_cases(receipt)
    };
    let builds = run.builds();
    let mut receipt = run.run(&look, &mut show)?;
    let timing_ns = begun.elapsed().as_nanos() as u64 - pilot_ns - builds_ns;
    receipt.took = Took { builds_ns, pilot_ns, timing_ns, ..Took::default() };
    if !request.quick {
        receipt.notes.extend(not_alike.map(Note::from));
        // Outputs and counts are exact: only times can fail falsely.
        if !receipt.blocks.is_empty() {
            receipt.notes.push(false_failure_rate(calibration.as_ref(), &receipt));
        }
    }
    Ok((receipt, builds))
}

/// This machine class's calibration of this model, for any number of threads; `None` if there is none.
///
/// # Errors
/// Fails if the file exists and cannot be read.
pub fn find_calibration(config: &Config, receipt: &PairedReceipt) -> Result<Option<Calibration>> {
    files::read_if_there(&preflight::calibration_file(config, &receipt.machine.class, &receipt.head.engine))
}
