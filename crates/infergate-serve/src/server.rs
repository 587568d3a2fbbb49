//! The server: where it listens, how it begins, how it ends.

use std::future::Future;
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use infergate::engine::Engine;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot};

use crate::connections::{self, Limits};
use crate::engine_thread::{self, Status};
use crate::routes::{self, App};
use crate::text::Text;

/// Connections that the system keeps until they are accepted: hundreds of users may come at once.
const BACKLOG: u32 = 4096;

/// How to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Address to listen on.
    pub host: IpAddr,
    /// Port to listen on; 0 takes any free one.
    pub port: u16,
    /// Requests that are served at once.
    pub slots: usize,
    /// Requests that wait for a slot. Further ones get status 429.
    pub queue: usize,
    /// How long requests in flight may go on once the server is told to stop.
    pub drain: Duration,
    /// Longest body of a request, bytes.
    pub body_limit_bytes: usize,
    /// Connections at once. Further ones wait until one ends.
    pub connections: usize,
    /// How long a client may take to send a request's head or its body, or to take what it is sent.
    pub silence: Duration,
}

impl Default for Settings {
    /// Any free port of this machine alone, 8 slots, 64 that wait, 30 s to drain, 8 MiB, 1,000 connections, 60 s of silence.
    fn default() -> Self {
        Self {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            slots: 8,
            queue: 64,
            drain: Duration::from_secs(30),
            body_limit_bytes: 8 << 20,
            connections: 1_000,
            silence: Duration::from_secs(60),
        }
    }
}

/// A server in this process, on threads of its own. It stops when this is dropped.
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Server {
    /// Starts to serve `engine`. When this returns, requests are answered.
    ///
    /// # Errors
    /// A port in use, an engine that cannot serve so many requests.
    pub fn start(engine: Box<dyn Engine + Send>, settings: Settings) -> Result<Self> {
        let bound = bind(&settings)?;
        let address = bound.address()?;
        let service = Service::new(engine, &settings)?;
        let (stop, stopped) = oneshot::channel();
        let told = async {
            // Dropped is told, too.
            let _ = stopped.await;
        };
        let thread = thread::Builder::new().name("serve".into()).spawn(move || bound.run(service, &settings, told))?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no further connection, lets the requests in flight end, and ends.
    ///
    /// # Errors
    /// A server that broke.
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        drop(self.stop.take());
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(ended) => ended.map_err(|_| anyhow!("the server's thread panicked; its words are above"))?,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// A port that is taken, and the runtime that will serve it.
pub struct Bound {
    runtime: Runtime,
    listener: TcpListener,
}

/// Takes the port.
///
/// # Errors
/// A port in use or an address that is not this machine's, in one line.
pub fn bind(settings: &Settings) -> Result<Bound> {
    let address = SocketAddr::new(settings.host, settings.port);
    // HTTP has one thread, the engine its own.
    let runtime = Builder::new_current_thread().enable_all().build().context("the server cannot be started")?;
    let listener = {
        let _inside = runtime.enter();
        listen(address)
    };
    let listener = listener.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => {
            anyhow!("port {} of {} is in use; choose another one, or 0 for any free one", address.port(), address.ip())
        }
        _ => anyhow!("cannot listen on {address}: {error}; choose an address and a port of this machine"),
    })?;
    Ok(Bound { runtime, listener })
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// An engine at work, and the pages in front of it.
struct Service {
    app: Arc<App>,
    engine: JoinHandle<()>,
}

impl Service {
    fn new(engine: Box<dyn Engine + Send>, settings: &Settings) -> Result<Self> {
        ensure!(settings.slots > 0, "a server without slots serves nobody; give it at least one");
        ensure!(settings.connections > 0, "a server without connections serves nobody; give it at least one");
        ensure!(!settings.silence.is_zero(), "no client can send a request in no time; give it a second or more");
        let scheduler = engine.scheduler(settings.slots)?;
        let info = engine.info();
        let text = Arc::new(Text::new(engine)?);
        let status = Arc::new(Status::default());
        let (jobs, incoming) = mpsc::channel();
        let at_work = status.clone();
        let engine = thread::Builder::new()
            .name("engine".into())
            .spawn(move || engine_thread::work(scheduler, incoming, at_work))
            .context("the engine's thread cannot be started")?;
        let places = settings.slots.saturating_add(settings.queue).min(Semaphore::MAX_PERMITS);
        let app = Arc::new(App {
            model: info.model,
            context_tokens: info.context_tokens,
            text,
            jobs,
            places: Arc::new(Semaphore::new(places)),
            room: routes::room(),
            body_limit_bytes: settings.body_limit_bytes,
            silence: settings.silence,
            status,
            requests: AtomicU64::new(0),
        });
        Ok(Self { app, engine })
    }
}

impl Bound {
    fn address(&self) -> Result<SocketAddr> {
        self.listener.local_addr().context("the system does not say where the server listens")
    }

    /// Serves until `stop`, then lets what is in flight end.
    fn run(self, service: Service, settings: &Settings, stop: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        let Self { runtime, listener } = self;
        let Service { app, engine } = service;
        let status = app.status.clone();
        let router = routes::router(app);
        let limits = Limits { connections: settings.connections, silence: settings.silence };
        let drain = settings.drain;
        let served = runtime.block_on(async move {
            let (begin, begun) = oneshot::channel();
            let told = async move {
                stop.await;
                let _ = begin.send(());
            };
            let late = async move {
                let _ = begun.await;
                tokio::time::sleep(drain).await;
            };
            tokio::select! {
                () = connections::serve(listener, router, limits, told) => true,
                () = late => false,
            }
        });
        // Ends the connections that are left, and with the last one the engine's work.
        drop(runtime);
        status.ending.store(true, Ordering::Relaxed);
        if served {
            engine.join().map_err(|_| anyhow!("the engine panicked; its words are above"))?;
        }
        Ok(())
    }
}

/// Serves `engine` until Ctrl-C or SIGTERM, after its address was written to `out`. A second signal ends the process at once.
///
/// # Errors
/// As [`Server::start`].
pub fn run_until_signal(
    bound: Bound,
    engine: Box<dyn Engine + Send>,
    settings: &Settings,
    mut out: impl Write,
) -> Result<()> {
    let service = Service::new(engine, settings)?;
    let mut signals = {
        let _inside = bound.runtime.enter();
        Signals::new().context("signals cannot be waited for")?
    };
    writeln!(out, "http://{}", bound.address()?).and_then(|()| out.flush()).context("cannot write to stdout")?;
    eprintln!("serving '{}'; Ctrl-C ends it", infergate_core::printable::printable(&service.app.model));
    let told = async move {
        signals.next().await;
        eprintln!("requests in flight are served to their end; Ctrl-C again ends at once");
        tokio::spawn(async move {
            signals.next().await;
            std::process::exit(130);
        });
    };
    bound.run(service, settings, told)
}

/// What asks a program to end.
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        #[cfg(unix)]
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate())?,
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        #[cfg(not(unix))]
        drop(tokio::signal::ctrl_c().await);
    }
}
