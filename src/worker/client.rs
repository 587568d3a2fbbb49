//! The other side of the protocol: a worker process, asked line by line.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Hello, Loaded, PROTOCOL, PreparedReply, Reply, Request, WORKER_ARGUMENT};
use crate::case::Case;
use crate::engine::LoadRequest;
use crate::measure::InvariantBroken;
use crate::receipt::{Probes, ProcessSamples, TtftParts};

/// A fresh worker process. It ends when this is dropped.
pub struct Client {
    name: String,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Client {
    /// Starts `program` as a worker. `request` goes into its environment too, for what must be set before it starts.
    ///
    /// # Errors
    /// When it cannot be started or does not speak this protocol.
    pub fn spawn(program: &Path, request: &LoadRequest) -> Result<(Self, Hello)> {
        let name = program.display().to_string();
        let mut command = Command::new(program);
        command.arg(WORKER_ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.env("INFERGATE_MODEL", &request.model).env("INFERGATE_THREADS", request.threads.to_string());
        command.env("INFERGATE_SEED", request.seed.to_string());
        match &request.dtype {
            Some(dtype) => command.env("INFERGATE_DTYPE", dtype),
            None => command.env_remove("INFERGATE_DTYPE"),
        };
        let mut child = command
            .spawn()
            .with_context(|| format!("{name}: the worker cannot be started; build it with `cargo bench --no-run`"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("{name}: the worker has no stdin or stdout");
        };
        let mut client = Self { name, child, input, output: BufReader::new(output) };
        // The version first: the rest of another version's hello may look different.
        let hello: Value = client.ask(&Request::Hello)?;
        ensure!(
            hello["protocol"] == PROTOCOL,
            "{}: speaks worker protocol {} and this infergate {PROTOCOL}; build both with the same infergate",
            client.name,
            hello["protocol"]
        );
        let hello = serde_json::from_value(hello).with_context(|| {
            format!("{}: the worker does not say who it is as protocol {PROTOCOL} asks", client.name)
        })?;
        Ok((client, hello))
    }

    /// Loads the model.
    ///
    /// # Errors
    /// The engine's own, or a worker that died.
    pub fn load(&mut self, request: &LoadRequest, prompt_text: Option<&str>) -> Result<Loaded> {
        self.ask(&Request::Load { request: request.clone(), prompt_text: prompt_text.map(str::to_owned) })
    }

    /// Time to first token; the first after [`load`](Self::load) is cold.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn ttft(&mut self, prompt_tokens: usize) -> Result<TtftParts> {
        self.ask(&Request::Ttft { prompt_tokens })
    }

    /// Verifies a case's output and warms it up.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn prepare(&mut self, case: Case) -> Result<PreparedReply> {
        self.ask(&Request::Prepare { case })
    }

    /// Takes `count` samples of a prepared case.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn sample(&mut self, case: Case, count: usize) -> Result<ProcessSamples> {
        let samples: ProcessSamples = self.ask(&Request::Sample { case, count })?;
        ensure!(samples.samples_ns.len() == count, "{}: the worker gave another number of samples", self.name);
        Ok(samples)
    }

    /// What the hardware gives now.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn probe(&mut self, threads: usize) -> Result<Probes> {
        self.ask(&Request::Probe { threads })
    }

    fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T> {
        let line = serde_json::to_string(request)?;
        if writeln!(self.input, "{line}").and_then(|()| self.input.flush()).is_err() {
            return Err(self.died());
        }
        let mut answer = String::new();
        let read = self.output.read_line(&mut answer).with_context(|| {
            format!("{}: its answer cannot be read; nothing but answers in UTF-8 may go to stdout", self.name)
        })?;
        if read == 0 {
            return Err(self.died());
        }
        let reply: Reply<T> = serde_json::from_str(&answer).with_context(|| {
            format!(
                "{}: the worker wrote something that is not an answer of protocol {PROTOCOL}; nothing but answers may go to stdout",
                self.name
            )
        })?;
        match reply {
            Reply::Ok(value) => Ok(value),
            Reply::Error(text) => Err(anyhow!(text)),
            Reply::Invalid(text) => Err(InvariantBroken(text).into()),
        }
    }

    fn died(&mut self) -> anyhow::Error {
        // It may have closed its end and live on; waiting for that one would take for ever.
        let ended = |child: &mut Child| !matches!(child.try_wait(), Ok(None));
        for _ in 0..20 {
            if ended(&mut self.child) {
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
        if !ended(&mut self.child) {
            return anyhow!("{}: the worker closed its end without ending; answer every request", self.name);
        }
        let how = match self.child.wait() {
            Ok(status) if was_interrupted(status) => return Interrupted(self.name.clone()).into(),
            Ok(status) => status.to_string(),
            Err(_) => "unknown status".into(),
        };
        anyhow!("{}: the worker ended early ({how}); its own words are above", self.name)
    }
}

/// A worker that Ctrl-C ended: the terminal sends it to every process of the command, in no order.
#[derive(Debug)]
pub struct Interrupted(String);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: the worker was interrupted", self.0)
    }
}

impl std::error::Error for Interrupted {}

#[cfg(unix)]
fn was_interrupted(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal().is_some_and(|signal| [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].contains(&signal))
}

#[cfg(not(unix))]
fn was_interrupted(status: ExitStatus) -> bool {
    const STATUS_CONTROL_C_EXIT: u32 = 0xC000_013A;
    status.code() == Some(STATUS_CONTROL_C_EXIT.cast_signed())
}

impl Drop for Client {
    fn drop(&mut self) {
        // Nothing a worker does is worth waiting for; a process that ended already makes this an error without meaning.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
