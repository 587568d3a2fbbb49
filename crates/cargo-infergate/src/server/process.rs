//! The server's process: its start, its readiness, its end.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use infergate_core::printable::printable_within;
use infergate_core::process::Group;
use infergate_core::relay::Relay;
use infergate_core::worker::ending;

use crate::config::ServerConfig;
use infergate_build::watcher::{end_children, remove_own_variables};

/// The pause between two checks whether a server is ready, or has ended.
const POLL: Duration = Duration::from_millis(50);
/// The time limit of one check.
const ANSWER: Duration = Duration::from_secs(2);
/// How many times a server whose request failed is checked for its end.
const ENDING_POLLS: usize = 20;
/// How long a server may take to end after SIGTERM.
const END: Duration = Duration::from_secs(5);
/// The most characters that are shown of the last line of its output.
const SHOWN_CHARS: usize = 300;

/// The placeholder in an argument for the port that the server is to listen on.
const PORT: &str = "{port}";

/// A server that is ready. It ends, with all it started, when this is dropped.
pub struct Server {
    process: Group,
    output: Relay,
    last_line: Arc<Mutex<String>>,
    pub address: SocketAddr,
}

impl Server {
    /// Starts it on a free port of this machine, and waits.
    pub fn start(settings: &ServerConfig) -> Result<Self> {
        let ServerConfig { command, ready, ready_s, .. } = settings;
        ensure!(
            command.iter().any(|word| word.contains(PORT)),
            "server.command: no argument holds {PORT}; the server has to listen there"
        );
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|listener| listener.local_addr())
            .context("this machine has no free port")?;
        let port = address.port().to_string();
        let words: Vec<String> = command.iter().map(|word| word.replace(PORT, &port)).collect();
        let (program, arguments) = words.split_first().context("server.command names no program")?;
        let pipe = io::pipe().and_then(|(reader, writer)| Ok((reader, writer.try_clone()?, writer)));
        let (reader, stdout, stderr) = pipe.context("the system has no pipe for the server's output")?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        remove_own_variables(&mut command);
        let process = Group::spawn(&mut command);
        // The pipe ends once only the server holds it.
        drop(command);
        let process = process.with_context(|| format!("server.command: '{program}' cannot be started"))?;
        let last_line = Arc::<Mutex<String>>::default();
        let newest = Arc::clone(&last_line);
        let output = Relay::start(reader, move |line| {
            if !line.trim().is_empty() {
                line.trim().clone_into(&mut newest.lock().unwrap_or_else(PoisonError::into_inner));
            }
        });
        let mut server = Self { process, output, last_line, address };
        let begun = Instant::now();
        loop {
            let is_ready = answers(address, ready);
            // If this server has ended, another one took the port first and answers.
            if let Some(how) = server.ended() {
                bail!("the server ended before it was ready {how}");
            }
            if is_ready {
                return Ok(server);
            }
            ensure!(
                begun.elapsed() < Duration::from_secs(*ready_s),
                "the server does not answer 2xx on {ready} within {ready_s} s{}; see server.ready and server.ready_s",
                server.last_words()
            );
            thread::sleep(POLL);
        }
    }

    /// How it ended by itself, and its last output: `(exit status: 3); its last output: no memory`. `None` while it runs. Also ends the
    /// processes that it left.
    pub fn ended(&mut self) -> Option<String> {
        if !self.process.has_ended() {
            return None;
        }
        let status = self.process.end().ok()?;
        Some(format!("({}){}", ending(status), self.last_words()))
    }

    /// As [`Self::ended`], after a request failed. A connection breaks before the process has ended, and before its starter prints why.
    pub fn ended_soon(&mut self) -> Option<String> {
        (0..ENDING_POLLS).find_map(|poll| {
            if poll > 0 {
                thread::sleep(POLL);
            }
            self.ended()
        })
    }

    /// `; its last output: no memory`, from an output that is not to be trusted.
    fn last_words(&self) -> String {
        self.output.wait();
        let line = self.last_line.lock().unwrap_or_else(PoisonError::into_inner);
        if line.is_empty() {
            return String::new();
        }
        format!("; its last output: {}", printable_within(&line, SHOWN_CHARS))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.ask_to_end(END);
        let _ = self.process.end();
        // Processes in groups of their own. One that cannot be ended here ends with this process.
        let _ = end_children();
    }
}

/// Whether a GET of `path` is answered with 2xx.
fn answers(address: SocketAddr, path: &str) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect_timeout(&address, ANSWER)?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.set_write_timeout(Some(ANSWER))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut line = String::new();
        BufReader::new(stream.take(1024)).read_line(&mut line)?;
        Ok(line.split(' ').nth(1).is_some_and(|status| status.starts_with('2')))
    };
    ask().unwrap_or(false)
}
