//! The two ends of a worker's pipes, each with a thread of its own, so that no worker can block the one who asks.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

/// The longest line that is read. The largest answer of a sound worker, 200 generations of 256 tokens, is below 1 MiB.
pub const MOST_LINE_BYTES: u64 = 16 << 20;

/// What comes from a worker.
#[derive(Debug)]
pub enum Event {
    /// A line, and whether more stood behind it already.
    Line {
        /// Without its end.
        text: String,
        /// There is more than one answer.
        more: bool,
    },
    /// A line that is longer than [`MOST_LINE_BYTES`], or not UTF-8, and why.
    Unreadable(String),
    /// The worker closed its output or its input, mostly by ending.
    Closed,
}

/// Both ends.
pub struct Pipes {
    requests: Sender<String>,
    /// What the worker says.
    pub events: Receiver<Event>,
}

impl Pipes {
    /// Starts the threads. They end with the worker or with this.
    pub fn new(input: ChildStdin, output: ChildStdout) -> Self {
        // One line waits at the most: a worker that writes on and on is held up, and takes no memory here.
        let (events, answers) = sync_channel(1);
        let (requests, lines) = channel::<String>();
        let broken = events.clone();
        thread::spawn(move || write(input, &lines, &broken));
        thread::spawn(move || read(output, &events));
        Self { requests, events: answers }
    }

    /// Hands no further line over: the worker's input ends.
    pub fn close(&mut self) {
        self.requests = channel().0;
    }

    /// Hands a line over; a worker that does not read it shows by not answering.
    pub fn send(&self, line: String) {
        // A writer that is gone has said `Closed`.
        let _ = self.requests.send(line);
    }
}

fn write(mut input: ChildStdin, lines: &Receiver<String>, events: &SyncSender<Event>) {
    for line in lines {
        // In one piece: what a worker keeps of a line that comes in two would show in its heap.
        if input.write_all(line.as_bytes()).and_then(|()| input.flush()).is_err() {
            let _ = events.send(Event::Closed);
            return;
        }
    }
}

fn read(output: impl Read, events: &SyncSender<Event>) {
    let mut reader = BufReader::with_capacity(1 << 16, output);
    loop {
        let event = next_line(&mut reader).unwrap_or_else(|error| Event::Unreadable(error.to_string()));
        let last = !matches!(event, Event::Line { .. });
        if events.send(event).is_err() || last {
            return;
        }
    }
}

/// The next line of `reader`. A last line without an end was cut off and is none.
pub fn next_line<R: Read>(reader: &mut BufReader<R>) -> io::Result<Event> {
    let mut line = Vec::new();
    reader.by_ref().take(MOST_LINE_BYTES + 1).read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        let long = line.len() as u64 > MOST_LINE_BYTES;
        return Ok(if long {
            Event::Unreadable(format!("a line is longer than {} MiB", MOST_LINE_BYTES >> 20))
        } else {
            Event::Closed
        });
    }
    line.pop();
    Ok(match String::from_utf8(line) {
        Ok(text) => Event::Line { text, more: !reader.buffer().is_empty() },
        Err(_) => Event::Unreadable("a line is not UTF-8".into()),
    })
}
