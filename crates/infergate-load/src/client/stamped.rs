//! A connection whose reads are stamped: each time bytes arrive the clock is read before anything looks at them.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// The run's clock: nanoseconds since it began, the runtime's time, so that tests can make it up.
#[derive(Debug, Clone, Copy)]
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
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// The instant `ns` after the run began.
    pub fn at(self, ns: u64) -> Instant {
        self.origin + std::time::Duration::from_nanos(ns)
    }
}

/// When a connection's reads gave bytes. hyper hands over what one read gave before it reads again, as long as connection and
/// reader share a thread: what is taken from a body came with the last read.
#[derive(Debug, Default)]
pub struct ReadTimes {
    first_ns: Cell<Option<u64>>,
    last_ns: Cell<u64>,
}

impl ReadTimes {
    /// Forgets the first read: the next answer has its own.
    pub fn restart(&self) {
        self.first_ns.set(None);
    }

    /// When the answer's first byte came.
    pub fn first_ns(&self) -> Option<u64> {
        self.first_ns.get()
    }

    /// When the last bytes came.
    pub fn last_ns(&self) -> u64 {
        self.last_ns.get()
    }

    fn seen(&self, now_ns: u64) {
        if self.first_ns.get().is_none() {
            self.first_ns.set(Some(now_ns));
        }
        self.last_ns.set(now_ns);
    }
}

/// A connection that stamps its reads.
pub struct Stamped<S> {
    inner: S,
    clock: RunClock,
    times: Rc<ReadTimes>,
}

impl<S> Stamped<S> {
    /// `inner`, whose reads `times` will know.
    pub fn new(inner: S, clock: RunClock, times: Rc<ReadTimes>) -> Self {
        Self { inner, clock, times }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stamped<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.inner).poll_read(context, buffer);
        if outcome.is_ready() && buffer.filled().len() > before {
            self.times.seen(self.clock.now_ns());
        }
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stamped<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
