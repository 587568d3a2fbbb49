//! What a sound measurement looks like. The gate gives no verdict on any other.

use std::collections::BTreeMap;
use std::fmt::Display;

use anyhow::{Result, anyhow, bail, ensure};

use super::limits::MAX_NUMBER;
use super::{CaseRecord, Counter, Output, ProcessSamples, Receipt, Work};
use crate::case::Case;
use crate::engine::EngineInfo;

impl Receipt {
    /// Refuses a run that must not become a session of any baseline.
    ///
    /// # Errors
    /// A run that was cut short, broke an invariant, or cannot be judged.
    pub fn ensure_blessable(&self) -> Result<()> {
        ensure!(!self.partial, "the run was cut short and cannot become a baseline; measure again");
        if let Some(reason) = self.invalid.first() {
            bail!("the run is invalid and cannot become a baseline: {reason}");
        }
        ensure!(!self.cases.is_empty(), "there are no cases in it; measure again");
        self.cases.iter().try_for_each(|case| case.validate(false))
    }
}

impl CaseRecord {
    /// Refuses a record that breaks an invariant: token counts, output and its hash, samples that decrease or took no time.
    /// A run that was cut short (`partial`) may lack samples.
    ///
    /// # Errors
    /// The first invariant that is broken.
    pub fn validate(&self, partial: bool) -> Result<()> {
        validate_samples(self.id, &self.processes, partial)?;
        let id = self.id;
        if let Some(what) = self.work.as_ref().and_then(Work::unsound) {
            bail!("{id}: its work: {what}; measure again");
        }
        validate_exact(self.id, &self.output, &self.counters)
    }
}

/// The first thing that no engine can say of itself.
pub fn unsound_engine(engine: &EngineInfo) -> Option<String> {
    if engine.name.is_empty() || engine.model.is_empty() {
        return Some("engine or model has no name".into());
    }
    let sizes = [
        ("parameters", engine.parameters),
        ("weight_bytes", engine.weight_bytes),
        ("context_tokens", Some(engine.context_tokens as u64)),
        ("vocab_tokens", Some(engine.vocab_tokens as u64)),
    ];
    let (what, number) =
        sizes.into_iter().find_map(|(what, number)| Some((what, number.filter(|n| *n > MAX_NUMBER)?)))?;
    Some(format!("the engine's {what} is {number}, and {MAX_NUMBER} is the most"))
}

/// Refuses an output of the wrong length or with another hash, and counters with their ends exchanged.
///
/// # Errors
/// The first that is broken.
pub fn validate_exact(id: Case, output: &Output, counters: &BTreeMap<String, Counter>) -> Result<()> {
    ensure!(
        id.can_have_ids(output.ids.len()),
        "{id}: output has {} tokens instead of {}; measure again",
        output.ids.len(),
        id.output_tokens()
    );
    ensure!(
        output.sha256 == super::output_sha256(&output.ids),
        "{id}: output ids do not have the SHA-256 beside them; the file was edited"
    );
    ensure!(
        output.top2_margins.is_empty() || output.top2_margins.len() == output.ids.len(),
        "{id}: {} logit margins for {} output tokens; measure again",
        output.top2_margins.len(),
        output.ids.len()
    );
    ensure!(
        output.top2_margins.iter().flatten().all(|margin| margin.is_finite()),
        "{id}: a logit margin is no finite number; measure again"
    );
    if let Some(fingerprint) = &output.fingerprint {
        fingerprint.validate(output.ids.len()).map_err(|error| anyhow!("{id}: {error}"))?;
    }
    validate_counters(id, counters)
}

/// Refuses counters with their ends exchanged.
///
/// # Errors
/// Naming the counter.
pub fn validate_counters(id: impl Display, counters: &BTreeMap<String, Counter>) -> Result<()> {
    for (name, counter) in counters {
        ensure!(
            counter.min <= counter.max && counter.max <= MAX_NUMBER,
            "{id}: counter {name} has its smallest value above its largest, or one that no run gives"
        );
    }
    Ok(())
}

/// Refuses samples of the wrong length, or whose times decrease or are zero. A run that was cut short (`partial`) may lack them.
///
/// # Errors
/// The first that is broken.
pub fn validate_samples(id: Case, processes: &[ProcessSamples], partial: bool) -> Result<()> {
    ensure!(partial || !processes.is_empty(), "{id}: there are no samples; measure again");
    for process in processes {
        let samples = &process.samples_ns;
        ensure!(process.iterations_per_sample > 0, "{id}: a sample of zero iterations; measure again");
        ensure!(!samples.is_empty(), "{id}: a process has no samples; measure again");
        for sample in samples {
            let expected = id.times_in_sample();
            ensure!(
                sample.len() == expected,
                "{id}: a sample has {} token times instead of {expected}; measure again",
                sample.len()
            );
            ensure!(sample.is_sorted(), "{id}: token times decrease within a sample; measure again");
            ensure!(sample.last().is_some_and(|ns| *ns > 0), "{id}: a sample took no time; measure again");
            ensure!(
                sample.last().is_some_and(|ns| *ns <= MAX_NUMBER),
                "{id}: a sample took longer than {MAX_NUMBER} ns (11 days); measure again"
            );
        }
    }
    Ok(())
}
