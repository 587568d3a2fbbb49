//! What a connection is made of: bytes in both directions.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// A connection with a way of its own to read.
pub struct ReadBy<S, F> {
    inner: S,
    read: F,
}

impl<S, F> ReadBy<S, F>
where
    F: FnMut(&mut S, &mut Context<'_>, &mut ReadBuf<'_>) -> Poll<io::Result<()>>,
{
    /// `inner`, read by `read`, which does what [`AsyncRead::poll_read`] does.
    pub fn new(inner: S, read: F) -> Self {
        Self { inner, read }
    }
}

impl<S: Unpin, F> AsyncRead for ReadBy<S, F>
where
    F: FnMut(&mut S, &mut Context<'_>, &mut ReadBuf<'_>) -> Poll<io::Result<()>> + Unpin,
{
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { inner, read } = &mut *self;
        read(inner, context, buffer)
    }
}

impl<S: AsyncWrite + Unpin, F: Unpin> AsyncWrite for ReadBy<S, F> {
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
