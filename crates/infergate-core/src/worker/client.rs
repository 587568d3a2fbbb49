//! The other side of the protocol: a worker process, asked line by line.
//!
//! What reads answers is `#[inline]`, here, in the requests and in the memory phase: it is compiled where it is called, and a bench
//! target, which only answers, does not wait for a quarter of this crate.

use std::collections::BTreeMap;
use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::pipe::{Event, Pipes};
use super::wire::line;
use super::{
    Answer, Capability, Hello, Honesty, PROTOCOL, Request, Timeouts, WORKER_ARGUMENT, WorkerError, WorkerFile,
};
use super::{ensure_not, exit};
use crate::case::Case;
use crate::engine::LoadRequest;
use crate::process::Group;
use crate::receipt::Idle;
use crate::relay::Relay;

/// How often the wait for an answer looks whether the user wants it to end.
const LOOK: Duration = Duration::from_millis(100);

/// Bytes that a program may print before it is a worker: what its `main` says before the first `Criterion`, or before `divan::main()`.
const MOST_PRINTED_BYTES: usize = 1 << 20;

/// A worker has so long to remove what it made once its input has ended.
const END: Duration = Duration::from_secs(2);
/// One behind another program has so long to end processes of its own: a server may take five seconds, and is killed then.
const END_OF_STARTED: Duration = Duration::from_secs(8);

static VIRTUAL_CLOCKS: AtomicBool = AtomicBool::new(false);

/// From now on a worker of this process that says its clock is virtual may report any time. For tests of a gate, which run
/// engines that take no time: a gate that judges an engine must not call it.
pub fn trust_virtual_clocks() {
    VIRTUAL_CLOCKS.store(true, Ordering::Relaxed);
}

/// A fresh worker process. It ends when this is dropped, with what it started in its process group.
pub struct Client<'a> {
    pub(super) name: String,
    process: Group,
    pipes: Pipes,
    /// What it says to people.
    words: Option<Relay>,
    capabilities: Vec<Capability>,
    /// The limits of its answers, with what was seen of them.
    pub timeouts: Timeouts,
    cancelled: &'a AtomicBool,
    /// It starts processes of its own, which it has to end.
    has_child: bool,
    /// As [`Program::lingers`](super::Program::lingers).
    lingers: Arc<AtomicBool>,
    /// The number of the request last sent.
    last_id: u64,
    pub(super) honesty: Honesty,
    pub(super) virtual_clock: bool,
    /// It was ended, and nothing is left of it.
    is_over: bool,
    /// What it said last of itself between requests.
    pub(super) idle: Option<Idle>,
    /// Put in front of the names of its benches.
    pub(super) bench_prefix: Option<String>,
    /// By our name of a bench, the worker's own; empty where they are the same.
    pub(super) own_names: BTreeMap<Case, Case>,
}

/// The part of a hello that every protocol has.
#[derive(Deserialize)]
struct Spoken {
    protocol: u32,
}

/// The line that answers a request.
struct Said {
    text: String,
    /// The request's.
    id: Option<u64>,
    waited: Duration,
}

impl<'a> Client<'a> {
    /// Starts `file` as a worker, whose hello then says what it was built of. `request` goes into its environment too, for what must
    /// be set before it starts. No answer takes longer than `timeouts` says, and none is waited for once `cancelled` is set.
    ///
    /// # Errors
    /// When it cannot be started or does not speak this protocol.
    #[inline]
    pub fn spawn(
        file: &WorkerFile,
        request: &LoadRequest,
        timeouts: Timeouts,
        cancelled: &'a AtomicBool,
    ) -> Result<(Self, Hello), WorkerError> {
        ensure_not(cancelled)?;
        file.ensure_unchanged()?;
        let name = file.program().name().into_owned();
        let mut process = Group::spawn(&mut command(file, request)).map_err(|error| {
            WorkerError::Unusable(format!(
                "{name}: the worker cannot be started; build it with `cargo bench --no-run` ({error})"
            ))
        })?;
        let (Some(input), Some(output), words) = process.take_pipes() else {
            return Err(WorkerError::Unusable(format!("{name}: the worker has no stdin or stdout")));
        };
        let mut client = Self {
            name,
            process,
            pipes: Pipes::new(input, output),
            words: words.map(Relay::to_stderr),
            capabilities: Vec::new(),
            timeouts,
            cancelled,
            has_child: file.program().launcher.is_some(),
            lingers: Arc::clone(&file.program().lingers),
            last_id: 0,
            honesty: Honesty::default(),
            virtual_clock: false,
            is_over: false,
            idle: None,
            bench_prefix: file.program().bench_prefix.clone(),
            own_names: BTreeMap::new(),
        };
        let mut hello = client.hello()?;
        file.complete(&mut hello.build);
        // A program may start itself again before it answers.
        file.ensure_unchanged()?;
        Ok((client, hello))
    }

    #[inline]
    fn hello(&mut self) -> Result<Hello, WorkerError> {
        let said = self.say(&Request::Hello)?;
        // The rest of another protocol's hello may look different.
        let Spoken { protocol } = self.answer(&said)?;
        if protocol != PROTOCOL {
            return Err(WorkerError::NotComparable(format!(
                "{}: speaks worker protocol {protocol}, and this infergate {PROTOCOL}; build both with the same infergate",
                self.name
            )));
        }
        let hello: Hello = self.answer(&said)?;
        self.capabilities.clone_from(&hello.capabilities);
        self.virtual_clock = hello.clock.as_deref() == Some("virtual") && VIRTUAL_CLOCKS.load(Ordering::Relaxed);
        Ok(hello)
    }

    /// The number of its process, or of the launcher's.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Whether the worker says that it can.
    pub fn can(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }

    /// What it computed between requests so far, by its last answer with times; `None` where that does not say.
    pub fn idle(&self) -> Option<Idle> {
        self.idle
    }

    /// The answer to `request`, and how long it was waited for.
    pub(super) fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<(T, Duration), WorkerError> {
        let said = self.say(request)?;
        let answer = self.answer(&said)?;
        self.timeouts.saw(request, said.waited);
        Ok((answer, said.waited))
    }

    /// Sends `request` and waits for the line that answers it.
    fn say(&mut self, request: &Request) -> Result<Said, WorkerError> {
        if let Some(needed) = request.capability().filter(|needed| !self.can(*needed)) {
            let word = serde_json::to_string(&needed).unwrap_or_default();
            return Err(WorkerError::Refused(format!(
                "{}: the worker does not know {word}; build it with a newer infergate",
                self.name
            )));
        }
        let is_first = matches!(request, Request::Hello);
        match self.pipes.events.try_recv() {
            Err(TryRecvError::Empty) => {}
            Ok(Event::Line { text, .. }) if is_first && is_printed(&text) => {}
            Ok(Event::Line { .. }) => return Err(self.broken("wrote a line that nobody asked for")),
            Ok(event) => return Err(self.no_line(event)),
            Err(TryRecvError::Disconnected) => return Err(self.died()),
        }
        let id = (!is_first && self.can(Capability::RequestId)).then(|| self.last_id + 1);
        self.last_id = id.unwrap_or(self.last_id);
        let limit = self.timeouts.limit(request);
        let start = Instant::now();
        self.pipes.send(line(request, id).map_err(|error| WorkerError::Failed(error.into()))?);
        let text = self.wait(start, limit, if is_first { MOST_PRINTED_BYTES } else { 0 })?;
        Ok(Said { text, id, waited: start.elapsed() })
    }

    /// The value in an answer.
    fn answer<T: DeserializeOwned>(&self, said: &Said) -> Result<T, WorkerError> {
        let answer: Answer<T> = serde_json::from_str(&said.text).map_err(|error| {
            self.broken(&format!("wrote something that is not an answer of protocol {PROTOCOL} ({error})"))
        })?;
        if answer.id != said.id {
            return Err(self.broken("answered another request than the one that was asked"));
        }
        match (answer.ok, answer.error, answer.invalid) {
            (Some(value), None, None) => Ok(value),
            (None, Some(text), None) => Err(WorkerError::Refused(text)),
            (None, None, Some(text)) => Err(WorkerError::Invalid(text)),
            _ => Err(self.broken("gave an answer that is not one of `ok`, `error` and `invalid`")),
        }
    }

    /// The line that comes within `limit` of `start`. So many bytes may be printed before it, and are passed over.
    fn wait(&mut self, start: Instant, limit: Duration, mut printed_bytes: usize) -> Result<String, WorkerError> {
        let mut has_ended = false;
        loop {
            if self.cancelled.load(Ordering::Relaxed) {
                self.end();
                return Err(WorkerError::by_user());
            }
            let left = limit.saturating_sub(start.elapsed());
            match self.pipes.events.recv_timeout(LOOK.min(left)) {
                Ok(Event::Line { text, .. }) if text.len() < printed_bytes && is_printed(&text) => {
                    printed_bytes -= text.len() + 1;
                }
                Ok(Event::Line { text, more: false }) => return Ok(text),
                Ok(Event::Line { .. }) => return Err(self.broken("wrote more than one line for one request")),
                Ok(event) => return Err(self.no_line(event)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.died()),
                // What it started may hold its output open. What it said itself came between the two looks.
                Err(RecvTimeoutError::Timeout) if has_ended => return Err(self.died()),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Err(self.hangs(limit)),
                Err(RecvTimeoutError::Timeout) => has_ended = self.process.has_ended(),
            }
        }
    }

    fn no_line(&mut self, event: Event) -> WorkerError {
        match event {
            Event::Unreadable(why) => self.broken(&format!("wrote what cannot be read ({why})")),
            Event::Line { .. } | Event::Closed => self.died(),
        }
    }

    /// The protocol was broken: what is said on stdout from here on means nothing.
    pub(super) fn broken(&self, how: &str) -> WorkerError {
        WorkerError::Unusable(format!("{}: the worker {how}; nothing but answers may go to stdout", self.name))
    }

    fn hangs(&mut self, limit: Duration) -> WorkerError {
        let _ = self.kill();
        // Its last words come before what is said about it.
        if let Some(words) = &self.words {
            words.finish();
        }
        WorkerError::Unusable(format!(
            "{}: the worker gave no answer within {:.0} s and was ended; look for what it waits for",
            self.name,
            limit.as_secs_f64()
        ))
    }

    /// Ends it. At the end of its input it has a moment to remove what it made; an engine is not waited for when the user wants an end.
    fn end(&mut self) {
        let may_tidy = self.can(Capability::WarmUp) || !self.cancelled.load(Ordering::Relaxed);
        if may_tidy {
            self.ends_by_itself();
        }
        let _ = self.kill();
    }

    fn ends_by_itself(&mut self) -> bool {
        self.pipes.close();
        if !self.lingers.load(Ordering::Relaxed) {
            self.process.wait_for(self.time_to_end());
        }
        let ended = self.process.has_ended();
        self.lingers.fetch_or(!ended, Ordering::Relaxed);
        ended
    }

    fn time_to_end(&self) -> Duration {
        if self.has_child { END_OF_STARTED } else { END }
    }

    /// Ends it. How, where it did not end by itself, or not well: all it was asked for it has answered.
    pub fn finish(mut self) -> Option<String> {
        let waits = !self.lingers.load(Ordering::Relaxed);
        let ended = self.ends_by_itself();
        let status = self.kill();
        self.is_over = true;
        match status {
            _ if !ended => waits.then(|| format!("it did not end within {:.0} s", self.time_to_end().as_secs_f64())),
            Ok(status) if !status.success() => Some(exit::ending(status)),
            _ => None,
        }
    }

    /// Ends it now. One that was started behind another program has that to tell first.
    fn kill(&mut self) -> io::Result<ExitStatus> {
        if self.has_child {
            self.process.ask_to_end(END_OF_STARTED);
        }
        let status = self.process.end();
        if let Some(words) = &self.words {
            words.wait();
        }
        status
    }

    fn died(&mut self) -> WorkerError {
        exit::reason(&self.name, &mut self.process, self.words.as_ref(), self.cancelled)
    }
}

/// Whether a line is no answer, which is an object of JSON's.
fn is_printed(line: &str) -> bool {
    !line.starts_with('{')
}

fn command(file: &WorkerFile, request: &LoadRequest) -> Command {
    let mut command = file.command();
    command.arg(WORKER_ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // An error that takes a stack for itself is slower, allocates, and holds the lock that the search for a leak's place needs.
    command.env("RUST_LIB_BACKTRACE", "0");
    command.env("INFERGATE_MODEL", &request.model).env("INFERGATE_THREADS", request.threads.to_string());
    command.env("INFERGATE_SEED", request.seed.to_string());
    let options = request.options.iter().map(|(name, value)| format!("{name}={value}"));
    command.env("INFERGATE_OPTIONS", options.collect::<Vec<_>>().join(","));
    match &request.dtype {
        Some(dtype) => command.env("INFERGATE_DTYPE", dtype),
        None => command.env_remove("INFERGATE_DTYPE"),
    };
    command
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.end();
        }
    }
}
