//! How a connection is made: over the network, or, in tests, in memory.

use std::future::Future;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::pin::Pin;

use anyhow::{Context as _, Result};
use infergate_core::load::Failure;
use tokio::net::TcpStream;

use crate::api::failures::of_connect;
use crate::client::kernel_time::{ReceiveDelays, timed};
use crate::client::stream::Stream;
#[cfg(feature = "tls")]
use crate::client::tls::Tls;
use crate::client::url::Url;

/// A connection that is being made.
pub type Dialling<'a> = Pin<Box<dyn Future<Output = Result<Box<dyn Stream>, Failure>> + 'a>>;

/// Makes connections to one server.
pub trait Dial {
    /// A new connection.
    fn dial(&self) -> Dialling<'_>;

    /// How long what was read lay in the system, over all its connections; `None` where there is no system.
    fn receive_delays(&self) -> Option<&ReceiveDelays> {
        None
    }
}

/// Connections over TCP, with TLS for `https`. The name was looked up once, before the run: no lookup is timed.
pub struct Network {
    addresses: Vec<SocketAddr>,
    delays: ReceiveDelays,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

impl Network {
    /// To the server of `url`.
    pub fn new(url: &Url) -> Result<Self> {
        let place = format!("{}:{}", url.host, url.port);
        let addresses: Vec<_> = (&*url.host, url.port)
            .to_socket_addrs()
            .with_context(|| format!("{place}: this host is not known"))?
            .collect();
        #[cfg(not(feature = "tls"))]
        anyhow::ensure!(
            !url.is_tls,
            "{place}: this build has no TLS; install cargo-infergate, or build it with --features tls"
        );
        Ok(Self {
            addresses,
            delays: ReceiveDelays::default(),
            #[cfg(feature = "tls")]
            tls: if url.is_tls { Some(Tls::new(&url.host)?) } else { None },
        })
    }
}

impl Dial for Network {
    fn dial(&self) -> Dialling<'_> {
        Box::pin(async {
            let connection = TcpStream::connect(&*self.addresses).await.map_err(|error| of_connect(&error))?;
            // A request goes out when it is written, not when more follows.
            connection.set_nodelay(true).map_err(|error| of_connect(&error))?;
            let connection = timed(connection, &self.delays);
            #[cfg(feature = "tls")]
            if let Some(tls) = &self.tls {
                return tls.over(connection).await;
            }
            Ok(connection)
        })
    }

    fn receive_delays(&self) -> Option<&ReceiveDelays> {
        Some(&self.delays)
    }
}

/// Lets this process open as many connections as the system ever allows it: each user needs one. Where that is refused,
/// connections beyond the limit fail, and say so.
pub fn raise_connection_limit() {
    // SAFETY: both calls read or fill a value of this process's own.
    unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}
