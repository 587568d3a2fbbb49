//! What another process writes for people, shown line by line and made harmless: a worker, a build.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::printable::printable_line;

/// A longer line is shown in pieces, so that one without an end takes no memory.
const MOST_LINE_BYTES: u64 = 16 << 10;
/// The words of a process that ended are waited for so long. One that it started may hold the pipe for ever.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reads a pipe in a thread of its own until its end, so that nobody who writes into it has to wait.
#[derive(Debug)]
pub struct Relay {
    ended: Receiver<()>,
}

impl Relay {
    /// Shows each line of `pipe` on stderr: one line, in which neither a terminal nor a CI finds a command.
    pub fn to_stderr(pipe: impl Read + Send + 'static) -> Self {
        Self::start(pipe, |line| {
            let _ = writeln!(std::io::stderr(), "{}", printable_line(line));
        })
    }

    /// Hands each line of `pipe` to `show`, which makes it harmless.
    pub fn start(pipe: impl Read + Send + 'static, mut show: impl FnMut(&str) + Send + 'static) -> Self {
        let (at_the_end, ended) = channel::<()>();
        thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            while let Some(line) = next_line(&mut pipe) {
                show(&line);
            }
            drop(at_the_end);
        });
        Self { ended }
    }

    /// Waits until all is shown that the process wrote, which has ended.
    pub fn finish(&self) {
        let _ = self.ended.recv_timeout(PATIENCE);
    }
}

/// The next line without its end, or as much of it as is read at once; `None` at the end of the pipe.
fn next_line(pipe: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    match pipe.take(MOST_LINE_BYTES).read_until(b'\n', &mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => {
            let text = String::from_utf8_lossy(&line);
            Some(text.strip_suffix('\n').map_or(&*text, |line| line.trim_end_matches('\r')).to_owned())
        }
    }
}
