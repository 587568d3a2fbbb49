//! Connections: how many there are at once, and how long one may be silent.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep};

/// The system has no room for a further connection: it may have some a little later.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// What a client may take of the server.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at once. Further ones wait in the system until one ends.
    pub connections: usize,
    /// How long a client may take to send the head of a request, the first or the next one, or to take what it is sent.
    pub silence: Duration,
}

/// Serves `router` on `listener` until `stop`, and then the requests in flight to their ends.
pub async fn serve(listener: TcpListener, router: Router, limits: Limits, stop: impl Future<Output = ()>) {
    let room = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
    let (told, stopped) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = accept(&listener, &room) => accepted,
        };
        match accepted {
            Ok((stream, place)) => {
                drop(connections.spawn(connection(stream, router.clone(), limits.silence, stopped.clone(), place)));
            }
            Err(error) if is_of_the_client(error.kind()) => {}
            Err(_) => sleep(AGAIN_AFTER).await,
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    drop(told);
    while connections.join_next().await.is_some() {}
}

async fn accept(listener: &TcpListener, room: &Arc<Semaphore>) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    // It is never closed.
    let place = room.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    // A token is a small packet, and must not wait for the answer to the one before.
    let _ = stream.set_nodelay(true);
    Ok((stream, place))
}

fn is_of_the_client(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset)
}

async fn connection(
    stream: TcpStream,
    router: Router,
    silence: Duration,
    mut stopped: watch::Receiver<()>,
    _place: OwnedSemaphorePermit,
) {
    let stream = Watched { stream, silence, since: Box::pin(sleep(silence)), is_waiting: false };
    let mut http = http1::Builder::new();
    // For the next request, too: a connection that is kept open and silent ends by it.
    http.timer(TokioTimer::new()).header_read_timeout(silence);
    let mut serving = pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    tokio::select! {
        _ = &mut serving => return,
        _ = stopped.changed() => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}

/// A stream that breaks where the other side takes nothing of what it is sent.
struct Watched {
    stream: TcpStream,
    silence: Duration,
    since: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl Watched {
    /// What became of an attempt to write; an error where attempts have waited for too long.
    fn watch<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.is_waiting = false;
            return written;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.since.as_mut().reset(Instant::now() + self.silence);
        }
        ready!(self.since.as_mut().poll(context));
        Poll::Ready(Err(ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
