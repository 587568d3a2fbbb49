//! The worker's side of the protocol.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::standard_streams;
use super::{
    Capability, CountedTokens, Loaded, PreparedReply, Request, SampleReply, TextReply, TurnReply, Wire, hello, to_answer,
};
use crate::case::{Case, Phase};
use crate::clock::Clock;
use crate::engine::{Engine, EngineFactory, Pacing, TokenId};
use crate::measure::{self, Prepared, Sampler};
use crate::{build_info, load, memory, prompt};

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
    let mut worker = Worker { factory, clock, loaded: None };
    let mut wire = Wire::new(input, output);
    while let Some(asked) = wire.receive()? {
        let reply = asked.request.and_then(|request| worker.answer(request));
        wire.answer(asked.id, reply)?;
    }
    Ok(())
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
    /// Any request but for samples makes it start anew.
    sampler: Sampler,
}

impl Worker<'_> {
    fn answer(&mut self, request: Request) -> Result<Value> {
        match request {
            Request::Hello => {
                to_answer(&hello(&Capability::of_engines(), build_info::build(), self.clock.is_virtual()))
            }
            Request::Load { request, prompt_text } => {
                let start_ns = self.clock.now_ns();
                let engine = self.factory.load(&request)?;
                let load_ns = self.clock.now_ns() - start_ns;
                let reply = Loaded { engine: engine.info(), load_ns, devices: engine.devices(), benches: Vec::new() };
                let seed = request.seed;
                self.loaded = Some(LoadedEngine {
                    engine,
                    prompt_text,
                    seed,
                    load_ns: Some(load_ns),
                    prepared: Vec::new(),
                    sampler: Sampler::default(),
                });
                to_answer(&reply)
            }
            Request::Ttft { prompt_tokens } => {
                let clock = self.clock;
                let loaded = self.loaded()?;
                loaded.sampler.forget();
                let prompt = loaded.prompt(prompt_tokens)?;
                let load_ns = loaded.load_ns.take();
                to_answer(&measure::ttft_parts(loaded.engine.as_mut(), clock, &prompt, load_ns)?)
            }
            Request::Prepare { case, known, feed } => {
                let prepared = self.loaded()?.prepare(case, known, feed.as_deref())?;
                to_answer(&PreparedReply { output: prepared.output.clone(), work: prepared.work, throughput: None })
            }
            Request::Sample { case, count, iterations, slowdown } => {
                let clock = self.clock;
                let loaded = self.loaded()?;
                loaded.sampler.slow_down(slowdown)?;
                let samples_ns = loaded.sample(clock, case, count, iterations)?;
                to_answer(&SampleReply { samples_ns })
            }
            Request::Turn { case, tokens, slowdown } => {
                let clock = self.clock;
                let loaded = self.loaded()?;
                loaded.sampler.slow_down(slowdown)?;
                to_answer(&TurnReply { step_ns: loaded.turn(clock, case, tokens)? })
            }
            Request::Memory { case: None } => to_answer(&memory::state()),
            Request::Memory { case: Some(case) } => {
                let (engine, prepared) = self.loaded()?.once_more(case)?;
                memory::run_once(engine, prepared)?;
                to_answer(&memory::state())
            }
            Request::Inference { case } => {
                let (engine, prepared) = self.loaded()?.once_more(case)?;
                to_answer(&memory::inference(engine, prepared)?)
            }
            Request::Count { case, repeats } => {
                let (engine, prepared) = self.loaded()?.once_more(case)?;
                to_answer(&memory::count(engine, prepared, repeats)?)
            }
            Request::Locate { case, runs } => {
                let (engine, prepared) = self.loaded()?.once_more(case)?;
                to_answer(&memory::locate(engine, prepared, runs)?)
            }
            Request::Text { ids } => to_answer(&TextReply { text: self.loaded()?.engine.detokenize(&ids)? }),
            Request::LoadLevel { plan } => {
                let clock = self.clock;
                let loaded = self.loaded()?;
                loaded.sampler.forget();
                // Whoever asks ends this process when the level is not wanted any more.
                to_answer(&load::run_level(loaded.engine.as_mut(), clock, &plan, &AtomicBool::new(false))?)
            }
            Request::CountTokens { texts } => to_answer(&self.loaded()?.count_tokens(&texts)?),
            Request::Window { .. } => bail!("worker: a window of load is a server's, and this is an engine"),
        }
    }

    fn loaded(&mut self) -> Result<&mut LoadedEngine> {
        self.loaded.as_mut().context("worker: no model is loaded; send load first")
    }
}

impl LoadedEngine {
    fn prompt(&self, tokens: usize) -> Result<Vec<TokenId>> {
        let text = self.prompt_text.as_deref().unwrap_or(prompt::TEXT);
        measure::fixed_prompt(self.engine.as_ref(), text, tokens, self.seed)
    }

    fn prepare(&mut self, case: Case, known: Option<Vec<TokenId>>, feed: Option<&[TokenId]>) -> Result<&Prepared> {
        ensure!(case.phase() != Phase::Bench, "worker: there is no bench called '{case}' here; this is an engine's");
        case.ensure_fits(self.engine.info().context_tokens)?;
        let prompt = self.prompt(case.prompt_tokens())?;
        let prepared = match known {
            Some(known) => measure::prepare_known(self.engine.as_mut(), case, prompt, known)?,
            None => measure::prepare_beside(self.engine.as_mut(), case, prompt, feed)?,
        };
        self.sampler.forget();
        self.prepared.retain(|known| known.case != case);
        self.prepared.push(prepared);
        self.prepared.last().context("just pushed")
    }

    /// The engine and a prepared case, for work that is not timed.
    fn once_more(&mut self, case: Case) -> Result<(&mut dyn Engine, &Prepared)> {
        self.sampler.forget();
        Ok((self.engine.as_mut(), find(&self.prepared, case)?))
    }

    fn count_tokens(&self, texts: &[String]) -> Result<CountedTokens> {
        let count = |text: &String| -> Result<u64> {
            let ids = self.engine.tokenize(text)?;
            Ok(ids.context("this model has no tokenizer, so tokens of a text cannot be counted by it")?.len() as u64)
        };
        Ok(CountedTokens { tokens: texts.iter().map(count).collect::<Result<_>>()? })
    }

    fn sample(&mut self, clock: &dyn Clock, case: Case, count: usize, iterations: usize) -> Result<Vec<Vec<u64>>> {
        ensure!(count > 0, "worker: zero samples of {case} were asked for; ask for at least one");
        let prepared = find(&self.prepared, case)?;
        (0..count).map(|_| self.sampler.sample(self.engine.as_mut(), clock, prepared, iterations)).collect()
    }

    fn turn(&mut self, clock: &dyn Clock, case: Case, tokens: usize) -> Result<Vec<u64>> {
        let prepared = find(&self.prepared, case)?;
        ensure!(
            tokens >= case.output_tokens() || self.engine.info().pacing == Pacing::Stepwise,
            "worker: a part of {case} was asked for, and this engine goes on by itself; ask for whole samples"
        );
        self.sampler.advance(self.engine.as_mut(), clock, prepared, tokens)
    }
}

fn find(prepared: &[Prepared], case: Case) -> Result<&Prepared> {
    let found = prepared.iter().find(|known| known.case == case);
    found.with_context(|| format!("worker: {case} is not prepared; send prepare first"))
}
