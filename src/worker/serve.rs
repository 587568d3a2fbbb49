//! The worker's side of the protocol.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{
    Capability, Hello, Ids, Loaded, Measured, MemoryState, PreparedReply, Profile, Reread, Sampling, Wire, hello,
};
use crate::engine::{Engine, EngineFactory, LoadRequest, Pacing, TokenId};
use crate::load::{LevelPlan, LoadLevel};
use crate::measure::{self, Prepared, Sampler};
use crate::{load, memory, profiler};
use infergate_core::case::{Case, Phase};
use infergate_core::clock::Clock;
use infergate_core::process::standard_streams;
use infergate_core::receipt::{AllocationSite, CountedCase, InferenceMemory, LeakSite, TtftParts};
use infergate_core::{build_info, prompt};

/// Answers requests on this process's stdin and stdout until the input ends. Whatever else writes to stdout meanwhile goes to
/// stderr, so that an engine may print.
///
/// # Errors
/// As [`serve`].
pub fn serve_here(factory: &dyn EngineFactory, clock: &dyn Clock) -> Result<()> {
    let (input, output) = standard_streams::take().context("worker: stdin and stdout cannot be taken")?;
    serve(factory, clock, BufReader::new(input), BufWriter::new(output))
}

/// Answers requests from `input` on `output` until the input ends.
///
/// # Errors
/// When input or output break; a request that fails is answered, not returned.
pub fn serve(factory: &dyn EngineFactory, clock: &dyn Clock, input: impl BufRead, output: impl Write) -> Result<()> {
    Wire::new(input, output).serve(&mut Worker { factory, clock, loaded: None })
}

struct Worker<'a> {
    factory: &'a dyn EngineFactory,
    clock: &'a dyn Clock,
    loaded: Option<LoadedEngine>,
}

struct LoadedEngine {
    engine: Box<dyn Engine + Send>,
    prompt_text: Option<String>,
    seed: u64,
    /// Taken by the first `ttft`, which is the cold one.
    load_ns: Option<u64>,
    prepared: Vec<Prepared>,
    /// Runs of the memory phase so far: each asks a prompt of its own.
    runs: u64,
    /// Any request but for samples makes it start anew.
    sampler: Sampler,
}

impl Measured for Worker<'_> {
    fn hello(&self) -> Result<Hello> {
        Ok(hello(&Capability::of_engines(), build_info::build(), self.clock.is_virtual()))
    }

    fn load(&mut self, request: &LoadRequest, prompt_text: Option<String>) -> Result<Loaded> {
        let start_ns = self.clock.now_ns();
        let engine = self.factory.load(request)?;
        let load_ns = self.clock.now_ns() - start_ns;
        measure::ensure_reads(engine.as_ref(), prompt_text.as_deref())?;
        let (devices, cost) = (engine.devices(), engine.cost());
        let reply = Loaded { engine: engine.info(), load_ns, devices, cost, benches: Vec::new() };
        self.loaded = Some(LoadedEngine {
            engine,
            prompt_text,
            seed: request.seed,
            load_ns: Some(load_ns),
            prepared: Vec::new(),
            runs: 0,
            sampler: Sampler::default(),
        });
        Ok(reply)
    }

    fn ttft(&mut self, prompt_tokens: usize) -> Result<TtftParts> {
        let clock = self.clock;
        let loaded = self.loaded()?;
        loaded.sampler.forget();
        let cold = match loaded.load_ns.take() {
            Some(load_ns) => {
                let text = loaded.prompt_text();
                let tokenize_ns = measure::first_tokenize_ns(loaded.engine.as_ref(), clock, text, prompt_tokens)?;
                Some(measure::Cold { load_ns, tokenize_ns })
            }
            None => None,
        };
        let prompt = loaded.prompt(prompt_tokens)?;
        measure::ttft_parts(loaded.engine.as_mut(), clock, &prompt, cold)
    }

    fn prepare(&mut self, case: Case, known: Ids, feed: Ids) -> Result<PreparedReply> {
        let loaded = self.loaded()?;
        ensure!(case.phase() != Phase::Bench, "worker: there is no bench called '{case}' here; this is an engine's");
        case.ensure_fits(loaded.engine.info().context_tokens)?;
        let prompt = loaded.prompt(case.prompt_tokens())?;
        let engine = loaded.engine.as_mut();
        let prepared = match known {
            Some(known) => measure::prepare_known(engine, case, prompt, known)?,
            None => measure::prepare(engine, case, prompt, feed.as_deref())?,
        };
        let (output, work) = (prepared.output.clone(), prepared.work);
        loaded.sampler.forget();
        loaded.prepared.retain(|known| known.case != case);
        loaded.prepared.push(prepared);
        Ok(PreparedReply { output, work, throughput: None, counted_tokens: None })
    }

    fn sample(&mut self, case: Case, Sampling { count, iterations, .. }: Sampling) -> Result<Vec<Vec<u64>>> {
        let clock = self.clock;
        let LoadedEngine { engine, prepared, sampler, .. } = self.loaded()?;
        let prepared = find(prepared, case)?;
        (0..count).map(|_| sampler.sample(engine.as_mut(), clock, prepared, iterations)).collect()
    }

    fn turn(&mut self, case: Case, tokens: usize) -> Result<Vec<u64>> {
        let clock = self.clock;
        let LoadedEngine { engine, prepared, sampler, .. } = self.loaded()?;
        let prepared = find(prepared, case)?;
        ensure!(
            tokens >= case.output_tokens() || engine.info().pacing == Pacing::Stepwise,
            "worker: a part of {case} was requested, and this engine goes on by itself; ask for whole samples"
        );
        sampler.advance(engine.as_mut(), clock, prepared, tokens)
    }

    fn memory(&mut self, case: Option<Case>) -> Result<MemoryState> {
        if let Some(case) = case {
            let loaded = self.loaded()?;
            let run = loaded.begin_runs(1);
            let (engine, prepared) = loaded.once_more(case)?;
            memory::run_once(engine, prepared, run)?;
        }
        Ok(memory::state())
    }

    fn inference(&mut self, case: Case) -> Result<InferenceMemory> {
        let (engine, prepared) = self.loaded()?.once_more(case)?;
        memory::inference(engine, prepared)
    }

    fn count(&mut self, case: Case, repeats: usize) -> Result<CountedCase> {
        let (engine, prepared) = self.loaded()?.once_more(case)?;
        memory::count(engine, prepared, repeats)
    }

    fn locate(&mut self, case: Case, runs: usize) -> Result<Vec<LeakSite>> {
        let loaded = self.loaded()?;
        let first_run = loaded.begin_runs(runs.saturating_add(1));
        let (engine, prepared) = loaded.once_more(case)?;
        memory::locate(engine, prepared, first_run, runs)
    }

    fn sites(&mut self, case: Case) -> Result<Vec<AllocationSite>> {
        let (engine, prepared) = self.loaded()?.once_more(case)?;
        memory::allocations(engine, prepared)
    }

    fn profile(&mut self, case: Case, count: usize, iterations: usize, file: &Path) -> Result<Profile> {
        profiler::profile(file, &mut || self.sample(case, Sampling::of(count, iterations)))
    }

    fn reread(&mut self, case: Case, count: usize, skip: usize) -> Result<Reread> {
        let clock = self.clock;
        let (engine, prepared) = self.loaded()?.once_more(case)?;
        let (known_ns, new_ns) = measure::reread(engine, clock, &prepared.prompt, count, skip)?;
        Ok(Reread { known_ns, new_ns })
    }

    fn text(&mut self, ids: &[TokenId]) -> Result<Option<String>> {
        self.loaded()?.engine.detokenize(ids)
    }

    fn load_level(&mut self, plan: &LevelPlan) -> Result<LoadLevel> {
        let clock = self.clock;
        let loaded = self.loaded()?;
        loaded.sampler.forget();
        load::run_level(loaded.engine.as_mut(), clock, plan)
    }

    fn count_tokens(&mut self, texts: &[String]) -> Result<Vec<u64>> {
        let engine = &self.loaded()?.engine;
        let count = |text: &String| -> Result<u64> {
            let ids = engine.tokenize(text)?;
            Ok(ids.context("this model has no tokenizer, so tokens of a text cannot be counted by it")?.len() as u64)
        };
        texts.iter().map(count).collect()
    }
}

impl Worker<'_> {
    fn loaded(&mut self) -> Result<&mut LoadedEngine> {
        self.loaded.as_mut().context("worker: no model is loaded; send load first")
    }
}

impl LoadedEngine {
    fn prompt_text(&self) -> &str {
        self.prompt_text.as_deref().unwrap_or(prompt::TEXT)
    }

    fn prompt(&self, tokens: usize) -> Result<Vec<TokenId>> {
        measure::fixed_prompt(self.engine.as_ref(), self.prompt_text(), tokens, self.seed)
    }

    /// The number of the first of `runs` further runs of the memory phase.
    fn begin_runs(&mut self, runs: usize) -> u64 {
        let first = self.runs;
        self.runs = first.saturating_add(runs as u64);
        first
    }

    /// The engine and a prepared case, for work that is not timed.
    fn once_more(&mut self, case: Case) -> Result<(&mut dyn Engine, &Prepared)> {
        self.sampler.forget();
        Ok((self.engine.as_mut(), find(&self.prepared, case)?))
    }
}

fn find(prepared: &[Prepared], case: Case) -> Result<&Prepared> {
    let found = prepared.iter().find(|known| known.case == case);
    found.with_context(|| format!("worker: {case} is not prepared; send prepare first"))
}
