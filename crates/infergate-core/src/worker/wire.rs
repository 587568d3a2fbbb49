//! Requests in, answers out, a line each: the worker's end of the pipes.

use std::io::{BufRead, Write};

use anyhow::{Context, Result};
use serde_json::Value;

use super::between::Between;
use super::{Answer, Capability, Hello, PROTOCOL, Request};
use crate::machine;
use crate::outcome::InvariantBroken;
use crate::receipt::Build;

/// A worker's two pipes.
pub struct Wire<R, W> {
    input: R,
    output: W,
    /// A request that waits for whoever can answer it.
    pub(super) left: Option<Asked>,
    /// What this process computes while it waits for requests.
    pub(super) between: Between,
}

/// One line from the other side.
pub struct Asked {
    /// Its number, where it has one: the answer repeats it.
    pub id: Option<u64>,
    /// What is asked; an error where it is no request of this protocol.
    pub request: Result<Request>,
}

impl<R: BufRead, W: Write> Wire<R, W> {
    /// Over these two.
    pub fn new(input: R, output: W) -> Self {
        Self { input, output, left: None, between: Between::default() }
    }

    /// The next request; `None` at the end of the input.
    ///
    /// # Errors
    /// When the input breaks.
    pub fn receive(&mut self) -> Result<Option<Asked>> {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.input.read_line(&mut line);
            self.between.end();
            if read.context("worker: reading a request failed")? == 0 {
                return Ok(None);
            }
            if !line.trim().is_empty() {
                break;
            }
        }
        // By way of a value: a tagged enum reads no number from text where a user's graph turns `arbitrary_precision` on.
        let request = serde_json::from_str::<Value>(&line);
        let id = request.as_ref().ok().and_then(|request| request["id"].as_u64());
        let request = request.and_then(serde_json::from_value).context("worker: not a request of this protocol");
        Ok(Some(Asked { id, request }))
    }

    /// The request that waits; `None` once the input has ended.
    pub fn left(&self) -> Option<&Request> {
        self.left.as_ref().and_then(|asked| asked.request.as_ref().ok())
    }

    /// The line of the request that waits.
    pub fn left_line(&self) -> Option<String> {
        let id = self.left.as_ref().and_then(|asked| asked.id);
        self.left().and_then(|request| line(request, id).ok())
    }

    /// Answers the request that waits.
    ///
    /// # Errors
    /// When the output breaks.
    pub fn refuse(&mut self, error: anyhow::Error) -> Result<()> {
        self.left.take().map_or(Ok(()), |asked| self.answer(asked.id, Err(error)))
    }

    /// Answers the request numbered `id`.
    pub(super) fn answer(&mut self, id: Option<u64>, reply: Result<Value>) -> Result<()> {
        let mut answer = Answer { id, ok: None, error: None, invalid: None };
        match reply {
            Ok(value) => answer.ok = Some(value),
            Err(error) if error.is::<InvariantBroken>() => answer.invalid = Some(one_line(&error)),
            Err(error) => answer.error = Some(one_line(&error)),
        }
        serde_json::to_writer(&mut self.output, &answer).context("worker: writing an answer failed")?;
        writeln!(self.output).and_then(|()| self.output.flush()).context("worker: writing an answer failed")
    }
}

/// Who a worker is, and what it can.
pub fn hello(capabilities: &[Capability], build: Build, is_virtual: bool) -> Hello {
    Hello {
        protocol: PROTOCOL,
        capabilities: capabilities.to_vec(),
        clock: is_virtual.then(|| "virtual".to_owned()),
        tool: env!("CARGO_PKG_VERSION").into(),
        machine: machine::detect(),
        build,
    }
}

/// A request as it goes over the wire.
pub fn line(request: &Request, id: Option<u64>) -> serde_json::Result<String> {
    let mut line = serde_json::to_string(request)?;
    if let Some(id) = id {
        // Behind `op`, where a person who reads along looks first.
        line.pop();
        line += &format!(",\"id\":{id}}}");
    }
    line.push('\n');
    Ok(line)
}

/// An error and its causes on one line.
fn one_line(error: &anyhow::Error) -> String {
    format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ")
}
