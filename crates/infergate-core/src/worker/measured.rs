//! The loop that every worker answers in, over what it measures.

use std::io::{BufRead, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, to_value};

use super::between::is_timed;
use super::{
    CountedTokens, Hello, Loaded, MemoryState, PreparedReply, Profile, Request, Reread, SampleReply, Sampling,
    TextReply, TurnReply, Wire,
};
use crate::case::Case;
use crate::engine::{LoadRequest, TokenId};
use crate::load::{LevelPlan, LoadLevel, LoadWindow, WindowPlan};
use crate::receipt::{AllocationSite, CountedCase, Idle, InferenceMemory, LeakSite, TtftParts};

/// The ids of an output, where they are given.
pub type Ids = Option<Vec<TokenId>>;

/// What a worker measures: a method for each [`Request`]. What it does not list in its hello stays as it is here, and says so.
pub trait Measured {
    /// Who the worker is, and what it can.
    fn hello(&self) -> Result<Hello> {
        cannot()
    }

    /// Whether `request` has to wait for somebody else to answer it.
    fn leaves(&self, _request: &Request) -> bool {
        false
    }

    /// Refuses a request that nothing here is about.
    ///
    /// # Errors
    /// Why not, in one sentence.
    fn check(&self, _request: &Request) -> Result<()> {
        Ok(())
    }

    /// An error as it is answered: what is behind the worker may explain it.
    fn explain(&mut self, error: anyhow::Error) -> anyhow::Error {
        error
    }

    /// Answers [`Request::Load`].
    fn load(&mut self, _request: &LoadRequest, _prompt_text: Option<String>) -> Result<Loaded> {
        cannot()
    }

    /// Answers [`Request::Ttft`].
    fn ttft(&mut self, _prompt_tokens: usize) -> Result<TtftParts> {
        cannot()
    }

    /// Answers [`Request::Prepare`].
    fn prepare(&mut self, _: Case, _known: Ids, _feed: Ids) -> Result<PreparedReply> {
        cannot()
    }

    /// Answers [`Request::Sample`]: at least one sample, of at least one iteration.
    fn sample(&mut self, _case: Case, _: Sampling) -> Result<Vec<Vec<u64>>> {
        cannot()
    }

    /// Answers [`Request::Turn`].
    fn turn(&mut self, _case: Case, _tokens: usize) -> Result<Vec<u64>> {
        cannot()
    }

    /// Answers [`Request::Memory`].
    fn memory(&mut self, _case: Option<Case>) -> Result<MemoryState> {
        cannot()
    }

    /// Answers [`Request::Inference`].
    fn inference(&mut self, _case: Case) -> Result<InferenceMemory> {
        cannot()
    }

    /// Answers [`Request::Count`].
    fn count(&mut self, _case: Case, _repeats: usize) -> Result<CountedCase> {
        cannot()
    }

    /// Answers [`Request::Locate`].
    fn locate(&mut self, _case: Case, _runs: usize) -> Result<Vec<LeakSite>> {
        cannot()
    }

    /// Answers [`Request::Sites`].
    fn sites(&mut self, _case: Case) -> Result<Vec<AllocationSite>> {
        cannot()
    }

    /// Answers [`Request::Profile`]: at least one sample, of at least one iteration.
    fn profile(&mut self, _case: Case, _count: usize, _iterations: usize, _file: &Path) -> Result<Profile> {
        cannot()
    }

    /// Answers [`Request::Text`].
    fn text(&mut self, _ids: &[TokenId]) -> Result<Option<String>> {
        cannot()
    }

    /// Answers [`Request::Reread`].
    fn reread(&mut self, _case: Case, _count: usize, _skip: usize) -> Result<Reread> {
        cannot()
    }

    /// Answers [`Request::LoadLevel`].
    fn load_level(&mut self, _plan: &LevelPlan) -> Result<LoadLevel> {
        cannot()
    }

    /// Answers [`Request::Window`].
    fn window(&mut self, _case: Case, _plan: WindowPlan) -> Result<LoadWindow> {
        cannot()
    }

    /// Answers [`Request::CountTokens`].
    fn count_tokens(&mut self, _texts: &[String]) -> Result<Vec<u64>> {
        cannot()
    }
}

fn cannot<T>() -> Result<T> {
    bail!("worker: cannot do this; its hello says what it can")
}

impl<R: BufRead, W: Write> Wire<R, W> {
    /// Answers with `measured` until the input ends, or until a request comes that it leaves: then that one is in
    /// [`left`](Self::left), and the first that is answered next.
    ///
    /// # Errors
    /// When input or output break; a request that fails is answered, not returned.
    pub fn serve(&mut self, measured: &mut dyn Measured) -> Result<()> {
        loop {
            if self.left.is_none() {
                self.left = self.receive()?;
            }
            match self.left.take_if(|asked| !asked.request.as_ref().is_ok_and(|request| measured.leaves(request))) {
                None => return Ok(()),
                Some(asked) => {
                    let is_timed = asked.request.as_ref().is_ok_and(is_timed);
                    let idle = self.between.sum();
                    let reply = asked.request.and_then(|request| answer(measured, request, idle));
                    self.answer(asked.id, reply.map_err(|error| measured.explain(error)))?;
                    self.between.begin(is_timed);
                }
            }
        }
    }
}

fn answer(measured: &mut dyn Measured, request: Request, idle: Option<Idle>) -> Result<Value> {
    measured.check(&request)?;
    let reply = match request {
        Request::Hello => to_value(measured.hello()?),
        Request::Load { request, prompt_text } => to_value(measured.load(&request, prompt_text)?),
        Request::Ttft { prompt_tokens } => to_value(measured.ttft(prompt_tokens)?),
        Request::Prepare { case, known, feed } => to_value(measured.prepare(case, known, feed)?),
        Request::Sample { case, sampling } => {
            to_value(SampleReply { samples_ns: measured.sample(case, sampling)?, idle })
        }
        Request::Turn { case, tokens } => to_value(TurnReply { step_ns: measured.turn(case, tokens)?, idle }),
        Request::Memory { case } => to_value(measured.memory(case)?),
        Request::Inference { case } => to_value(measured.inference(case)?),
        Request::Count { case, repeats } => to_value(measured.count(case, repeats)?),
        Request::Locate { case, runs } => to_value(measured.locate(case, runs)?),
        Request::Sites { case } => to_value(measured.sites(case)?),
        Request::Profile { case, count, iterations, file } => {
            to_value(measured.profile(case, count, iterations, &file)?)
        }
        Request::Reread { case, count, skip } => to_value(measured.reread(case, count, skip)?),
        Request::Text { ids } => to_value(TextReply { text: measured.text(&ids)? }),
        Request::LoadLevel { plan } => to_value(measured.load_level(&plan)?),
        Request::Window { case, plan } => to_value(measured.window(case, plan)?),
        Request::CountTokens { texts } => to_value(CountedTokens { tokens: measured.count_tokens(&texts)? }),
    };
    reply.context("worker: an answer cannot be written as JSON")
}
