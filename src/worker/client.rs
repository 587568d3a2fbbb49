//! The other side of the protocol: a worker process, asked line by line.

use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Hello, Loaded, MemoryState, PROTOCOL, PreparedReply, Reply, Request, TurnReply, WORKER_ARGUMENT};
use crate::case::Case;
use crate::engine::{LoadRequest, TokenId};
use crate::measure::InvariantBroken;
use crate::receipt::{CountedCase, InferenceMemory, LeakSite, ProcessSamples, TtftParts};

/// A worker says who it is before it does anything that takes time.
const HELLO_LIMIT: Duration = Duration::from_secs(60);

/// A fresh worker process. It ends when this is dropped.
pub struct Client {
    name: String,
    child: Child,
    input: ChildStdin,
    answers: Receiver<io::Result<String>>,
    time_limit: Option<Duration>,
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
        let options = request.options.iter().map(|(name, value)| format!("{name}={value}"));
        command.env("INFERGATE_OPTIONS", options.collect::<Vec<_>>().join(","));
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
        let mut client = Self { name, child, input, answers: lines(output), time_limit: Some(HELLO_LIMIT) };
        // The version first: the rest of another version's hello may look different.
        let hello: Value = client.ask(&Request::Hello)?;
        client.time_limit = None;
        if hello["protocol"] != PROTOCOL {
            let text = format!(
                "{}: speaks worker protocol {} and this infergate {PROTOCOL}; build both with the same infergate",
                client.name, hello["protocol"]
            );
            return Err(NotComparable(text).into());
        }
        let hello = serde_json::from_value(hello).with_context(|| {
            format!("{}: the worker does not say who it is as protocol {PROTOCOL} asks", client.name)
        })?;
        Ok((client, hello))
    }

    /// From now on an answer that takes longer is an error, and the worker is ended: it hangs.
    pub fn set_time_limit(&mut self, limit: Option<Duration>) {
        self.time_limit = limit;
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

    /// Verifies a case's output and warms it up; with the output of an earlier process in `known` it only warms up.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn prepare(&mut self, case: Case, known: Option<Vec<TokenId>>) -> Result<PreparedReply> {
        self.ask(&Request::Prepare { case, known })
    }

    /// Takes `count` samples of a prepared case.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn sample(&mut self, case: Case, count: usize) -> Result<ProcessSamples> {
        self.sample_slowed(case, count, 0.0)
    }

    /// As [`sample`](Self::sample), from an engine made slower by the fraction `slowdown`.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn sample_slowed(&mut self, case: Case, count: usize, slowdown: f64) -> Result<ProcessSamples> {
        let samples: ProcessSamples = self.ask(&Request::Sample { case, count, slowdown })?;
        ensure!(samples.samples_ns.len() == count, "{}: the worker gave another number of samples", self.name);
        Ok(samples)
    }

    /// Up to `tokens` further tokens of one generation of a prepared case: the time of each, nanoseconds.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn turn(&mut self, case: Case, tokens: usize, slowdown: f64) -> Result<Vec<u64>> {
        let reply: TurnReply = self.ask(&Request::Turn { case, tokens, slowdown })?;
        ensure!(
            (1..=tokens).contains(&reply.step_ns.len()),
            "{}: the worker gave {} tokens where 1 to {tokens} were asked for",
            self.name,
            reply.step_ns.len()
        );
        Ok(reply.step_ns)
    }

    /// The worker's memory now, or after one more run of a prepared case.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn memory(&mut self, case: Option<Case>) -> Result<MemoryState> {
        self.ask(&Request::Memory { case })
    }

    /// What one generation of a prepared case takes.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn inference(&mut self, case: Case) -> Result<InferenceMemory> {
        self.ask(&Request::Inference { case })
    }

    /// Exact counters of a prepared case.
    ///
    /// # Errors
    /// As [`load`](Self::load); a worker that does not count.
    pub fn count(&mut self, case: Case, repeats: usize) -> Result<CountedCase> {
        self.ask(&Request::Count { case, repeats })
    }

    /// Where what outlives its run was allocated.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn locate(&mut self, case: Case, runs: usize) -> Result<Vec<LeakSite>> {
        self.ask(&Request::Locate { case, runs })
    }

    fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T> {
        let mut line = serde_json::to_string(request)?;
        // In one piece: what a worker keeps of a line that comes in two would show in its heap.
        line.push('\n');
        if self.input.write_all(line.as_bytes()).and_then(|()| self.input.flush()).is_err() {
            return Err(self.died());
        }
        let answer = match self.time_limit {
            None => self.answers.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(limit) => self.answers.recv_timeout(limit),
        };
        let answer = match answer {
            Err(RecvTimeoutError::Disconnected) => return Err(self.died()),
            Err(RecvTimeoutError::Timeout) => return Err(self.hangs()),
            Ok(line) => line.with_context(|| {
                format!("{}: its answer cannot be read; nothing but answers in UTF-8 may go to stdout", self.name)
            })?,
        };
        let reply: Reply<T> = serde_json::from_str(&answer).with_context(|| {
            format!(
                "{}: the worker wrote something that is not an answer of protocol {PROTOCOL}; nothing but answers may go to stdout",
                self.name
            )
        })?;
        match reply {
            Reply::Ok(value) => Ok(value),
            Reply::Error(text) => Err(Refused(text).into()),
            Reply::Invalid(text) => Err(InvariantBroken(text).into()),
        }
    }

    fn hangs(&mut self) -> anyhow::Error {
        let _ = self.child.kill();
        let limit_s = self.time_limit.unwrap_or_default().as_secs_f64();
        anyhow!(
            "{}: the worker gave no answer within {limit_s:.0} s and was ended; look for what it waits for",
            self.name
        )
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
            Ok(status) if interrupted(status) => return Interrupted(self.name.clone()).into(),
            Ok(status) if was_killed(status) => format!("{status}; if nobody killed it, the system was out of memory"),
            Ok(status) => status.to_string(),
            Err(_) => "unknown status".into(),
        };
        anyhow!("{}: the worker ended early ({how}); its own words are above", self.name)
    }
}

/// The lines of `output`, read by a thread of their own so that an answer can be waited for with a limit.
fn lines(output: ChildStdout) -> Receiver<io::Result<String>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            let broken = line.is_err();
            if sender.send(line).is_err() || broken {
                break;
            }
        }
    });
    receiver
}

/// The worker's own answer that it cannot, in its words.
#[derive(Debug)]
pub struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// The two cannot be compared, and why: a verdict of its own (exit 4), not a failed run.
#[derive(Debug)]
pub struct NotComparable(pub String);

impl fmt::Display for NotComparable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotComparable {}

/// A worker that Ctrl-C ended: the terminal sends it to every process of the command, in no order.
#[derive(Debug)]
pub struct Interrupted(String);

impl Interrupted {
    /// What a run ends with that its user cancelled between two requests.
    pub fn by_user() -> Self {
        Self("the run".into())
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: interrupted", self.0)
    }
}

impl std::error::Error for Interrupted {}

/// Whether a process ended because its user ended it.
#[cfg(unix)]
pub fn interrupted(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal().is_some_and(|signal| [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].contains(&signal))
}

#[cfg(unix)]
fn was_killed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal() == Some(libc::SIGKILL)
}

#[cfg(not(unix))]
fn was_killed(_status: ExitStatus) -> bool {
    false
}

/// Whether a process ended because its user ended it.
#[cfg(not(unix))]
pub fn interrupted(status: ExitStatus) -> bool {
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
