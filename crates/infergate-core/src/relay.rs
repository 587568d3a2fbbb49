//! What another process writes for people, shown line by line and made harmless: a worker, a build.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::printable::printable_line;

/// A longer line is shown in pieces, so that one without an end takes no memory.
const MOST_LINE_BYTES: u64 = 16 << 10;
/// The words of a process that ended are waited for so long. One that it started may hold the pipe for ever.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// So many lines of all workers are shown: a gate starts dozens of processes, and each may write the same.
const MOST_SHOWN: usize = 200;
/// The last lines that are kept of a process beyond those, for when it fails.
const KEPT: usize = 30;

static SHOWN: AtomicUsize = AtomicUsize::new(0);

/// What can be done where a program of a checkout, or its build, says in `line` that a file is not there.
pub fn missing_file(line: &str) -> Option<&'static str> {
    let is_missing =
        ["No such file or directory", "kind: NotFound", "(os error 2)"].iter().any(|words| line.contains(words));
    // A linker that is not installed is said in the same words.
    (is_missing && !line.contains("linker"))
        .then_some("a file that git ignores is in no checkout until infergate.toml names it: [bench] carry = [...]")
}

/// Reads a pipe in a thread of its own until its end, so that nobody who writes into it has to wait.
#[derive(Debug)]
pub struct Relay {
    ended: Receiver<()>,
    kept: Arc<Mutex<Kept>>,
}

/// What is kept of a process for when it fails.
#[derive(Debug, Default)]
struct Kept {
    /// The last lines that were not shown.
    lines: VecDeque<String>,
    hint: Option<&'static str>,
}

impl Relay {
    /// Shows each line of `pipe` on stderr: one line, in which neither a terminal nor a CI finds a command. The lines of all workers
    /// together are limited; beyond that the last ones of a process are shown where it [`finish`](Self::finish)es.
    pub fn to_stderr(pipe: impl Read + Send + 'static) -> Self {
        let kept = Arc::<Mutex<Kept>>::default();
        let own = Arc::clone(&kept);
        let relay = Self::start(pipe, move |line| {
            let mut own = locked(&own);
            own.hint = own.hint.or_else(|| missing_file(line));
            match SHOWN.fetch_add(1, Relaxed) {
                before if before < MOST_SHOWN => say(line),
                before => {
                    if before == MOST_SHOWN {
                        say("more of what the programs write is not shown, but for the last lines of one that fails");
                    }
                    if own.lines.len() == KEPT {
                        own.lines.pop_front();
                    }
                    own.lines.push_back(line.to_owned());
                }
            }
        });
        Self { kept, ..relay }
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
        Self { ended, kept: Arc::default() }
    }

    /// Waits until all is read that the process wrote, which has ended.
    pub fn wait(&self) {
        let _ = self.ended.recv_timeout(LAST_WORDS);
    }

    /// The same of one that failed: its last lines are shown where they were not.
    pub fn finish(&self) {
        self.wait();
        locked(&self.kept).lines.drain(..).for_each(|line| say(&line));
    }

    /// What can be done about what it said, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        locked(&self.kept).hint
    }
}

fn locked(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", printable_line(line));
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
