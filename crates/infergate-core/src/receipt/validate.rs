//! What a sound receipt looks like, whether it was read from a file or made here.

use std::collections::BTreeMap;
use std::fmt::Display;

use anyhow::{Result, anyhow, bail, ensure};

use super::limits::{MAX_CASES, MAX_NOTES, MAX_NUMBER, MAX_PROCESSES, MAX_RATE, MAX_SAMPLES, at_most, in_range};
use super::{CaseRecord, Counter, MemoryRecord, Output, ProbePair, ProcessSamples, Receipt, TtftParts, Work};
use crate::case::Case;
use crate::engine::EngineInfo;

impl Receipt {
    /// Refuses a receipt that cannot be judged.
    ///
    /// # Errors
    /// The first thing that is missing, of the wrong count, zero, or edited.
    pub fn validate(&self) -> Result<()> {
        let broken = self.partial || !self.invalid.is_empty();
        ensure!(broken || !self.cases.is_empty(), "there are no cases in it; measure again");
        at_most(self.cases.len(), MAX_CASES, "cases")?;
        at_most(self.invalid.len(), MAX_NOTES, "broken invariants")?;
        in_range(self.wall_ns, "the time the run took")?;
        validate_probes(self.probes.as_ref())?;
        validate_starts("cold", &self.cold)?;
        validate_starts("warm", &self.warm)?;
        validate_distinct(self.cases.iter().map(|case| case.id))?;
        for case in &self.cases {
            case.validate(self.partial)?;
        }
        self.memory.as_ref().map_or(Ok(()), MemoryRecord::validate)?;
        validate_counters("the model", &self.held)?;
        validate_engine(&self.engine)
    }

    /// Refuses a run that must not become a session of any baseline.
    ///
    /// # Errors
    /// A run that was cut short, broke an invariant, or cannot be judged.
    pub fn ensure_blessable(&self) -> Result<()> {
        ensure!(!self.partial, "the run was cut short and cannot become a baseline; measure again");
        if let Some(reason) = self.invalid.first() {
            bail!("the run is invalid and cannot become a baseline: {reason}");
        }
        self.validate()
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

/// Refuses what no engine can say of itself.
///
/// # Errors
/// Naming the first of it.
pub fn validate_engine(engine: &EngineInfo) -> Result<()> {
    unsound_engine(engine).map_or(Ok(()), |what| Err(anyhow!("{what}; measure again")))
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
        ("number of settings", Some(engine.settings.len() as u64)),
    ];
    let most = |what: &str| if what.ends_with("settings") { MAX_NOTES as u64 } else { MAX_NUMBER };
    let (what, number) =
        sizes.into_iter().find_map(|(what, number)| Some((what, number.filter(|n| *n > most(what))?)))?;
    Some(format!("the engine's {what} is {number}, and {} is the most", most(what)))
}

fn validate_starts(name: &str, starts: &[TtftParts]) -> Result<()> {
    at_most(starts.len(), MAX_PROCESSES, format_args!("{name} starts"))?;
    for parts in starts {
        let times = [parts.load_ns, parts.tokenize_ns, Some(parts.prefill_ns), parts.first_sample_ns];
        in_range(times.into_iter().flatten().chain([parts.prompt_tokens as u64]), format_args!("{name} start"))?;
    }
    Ok(())
}

/// Refuses probes that are no rates.
///
/// # Errors
/// When one is not finite or not above zero.
pub fn validate_probes(probes: Option<&ProbePair>) -> Result<()> {
    let Some(probes) = probes else { return Ok(()) };
    for probe in [Some(probes.before), probes.after, probes.best].into_iter().flatten() {
        let rates = [probe.memory_read_bytes_per_s, probe.matrix_flops_per_s, probe.scalar_ops_per_s];
        ensure!(
            rates.iter().all(|rate| *rate > 0.0 && *rate <= MAX_RATE),
            "a probe is not a positive number; measure again"
        );
    }
    Ok(())
}

/// Refuses a case that is there twice.
///
/// # Errors
/// Naming it.
pub fn validate_distinct(ids: impl Iterator<Item = Case>) -> Result<()> {
    let mut seen = Vec::new();
    for id in ids {
        ensure!(!seen.contains(&id), "{id}: is there twice; the file was edited");
        seen.push(id);
    }
    Ok(())
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
    at_most(counters.len(), MAX_NOTES, format_args!("counters of {id}"))?;
    for (name, counter) in counters {
        in_range([counter.max], format_args!("{id}: counter {name}"))?;
        ensure!(counter.min <= counter.max, "{id}: counter {name} has its smallest value above its largest");
    }
    Ok(())
}

/// Refuses samples of the wrong length, or whose times decrease or are zero. A run that was cut short (`partial`) may lack them.
///
/// # Errors
/// The first that is broken.
pub fn validate_samples(id: Case, processes: &[ProcessSamples], partial: bool) -> Result<()> {
    ensure!(partial || !processes.is_empty(), "{id}: there are no samples; measure again");
    at_most(processes.len(), MAX_PROCESSES, format_args!("processes of {id}"))?;
    for process in processes {
        let samples = &process.samples_ns;
        ensure!(process.iterations_per_sample > 0, "{id}: a sample of zero iterations; measure again");
        ensure!(!samples.is_empty(), "{id}: a process has no samples; measure again");
        at_most(samples.len(), MAX_SAMPLES, format_args!("samples of {id} in a process"))?;
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
