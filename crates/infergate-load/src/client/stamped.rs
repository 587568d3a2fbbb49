//! A connection whose reads are stamped: each time bytes arrive the clock is read before anything looks at them.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;

use tokio::io::AsyncRead as _;
use tokio::time::Instant;

use crate::client::stream::{ReadBy, Stream};

/// The run's clock: nanoseconds since it began, the runtime's time, so that tests can make it up.
#[derive(Clone, Copy)]
pub struct RunClock {
    origin: Instant,
}

impl RunClock {
    /// A run that begins now.
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Nanoseconds since the run began.
    pub fn now_ns(self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// The instant `ns` after the run began.
    pub fn at(self, ns: u64) -> Instant {
        self.origin + std::time::Duration::from_nanos(ns)
    }
}

/// When a connection's reads gave bytes. hyper hands over what one read gave before it reads again, as long as connection and
/// reader share a thread: what is taken from a body came with the last read.
#[derive(Default)]
pub struct ReadTimes {
    /// When the answer's first byte came: `None` is set before each answer.
    pub first_ns: Cell<Option<u64>>,
    /// When the last bytes came.
    pub last_ns: Cell<u64>,
}

/// `connection`, whose reads `times` will know.
pub fn stamped(connection: Box<dyn Stream>, clock: RunClock, times: Rc<ReadTimes>) -> impl Stream {
    ReadBy::new(connection, move |connection, context, buffer| {
        let before = buffer.filled().len();
        let outcome = Pin::new(connection).poll_read(context, buffer);
        if outcome.is_ready() && buffer.filled().len() > before {
            times.last_ns.set(clock.now_ns());
            times.first_ns.set(times.first_ns.get().or(Some(times.last_ns.get())));
        }
        outcome
    })
}
