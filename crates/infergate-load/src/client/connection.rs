//! An open connection, over HTTP/1.1 or HTTP/2, used by one request at a time.

use std::io;
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response, Version};
use hyper_util::rt::TokioIo;
use infergate_core::load::{Failure, FailureClass};
use tokio::task::spawn_local;

use crate::api::failures::failure;
use crate::client::stamped::{ReadTimes, RunClock, stamped};
use crate::client::stream::{Http, Stream};

/// The largest head of an answer, bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;

enum Sender {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

/// An open connection.
pub struct Connection {
    sender: Sender,
    /// When its reads gave bytes.
    pub times: Rc<ReadTimes>,
}

/// Tasks of a connection run where its requests do, or its reads would not be stamped for the answers they are part of.
#[derive(Clone)]
struct SameThread;

impl<F: Future + 'static> hyper::rt::Executor<F> for SameThread {
    fn execute(&self, future: F) {
        spawn_local(async move {
            future.await;
        });
    }
}

impl Connection {
    /// Over `stream`, whose reads are stamped by `clock` from now on.
    pub async fn over(stream: Box<dyn Stream>, http: Http, clock: RunClock) -> Result<Self, Failure> {
        let times = Rc::new(ReadTimes::default());
        let io = TokioIo::new(stamped(stream, clock, times.clone()));
        // The connection's own task ends with its sender. Whoever waits for an answer is told the same errors.
        let sender = match http {
            Http::One => {
                let handshake = http1::Builder::new().max_buf_size(MAX_HEAD_BYTES).handshake(io).await;
                let (sender, connection) = handshake.map_err(of_http)?;
                spawn_local(async move { drop(connection.await) });
                Sender::One(sender)
            }
            Http::Two => {
                let mut builder = http2::Builder::new(SameThread);
                builder.max_header_list_size(MAX_HEAD_BYTES as u32);
                let (sender, connection) = builder.handshake(io).await.map_err(of_http)?;
                spawn_local(async move { drop(connection.await) });
                Sender::Two(sender)
            }
        };
        Ok(Self { sender, times })
    }

    /// Waits until the answer before has been cleared away. `false`: the server closed the connection.
    pub async fn is_ready(&mut self) -> bool {
        match &mut self.sender {
            Sender::One(sender) => sender.ready().await.is_ok(),
            Sender::Two(sender) => sender.ready().await.is_ok(),
        }
    }

    /// When the first byte of an answer came whose head is there. Over HTTP/2 the server may have said something else before,
    /// so that it is the read that completed the head.
    pub fn first_byte_ns(&self) -> Option<u64> {
        match self.sender {
            Sender::One(_) => self.times.first_ns.get(),
            Sender::Two(_) => Some(self.times.last_ns.get()),
        }
    }

    /// Sends a request and gives the head of its answer.
    pub async fn send(&mut self, mut request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        match &mut self.sender {
            Sender::One(sender) => sender.send_request(request).await,
            Sender::Two(sender) => {
                *request.version_mut() = Version::HTTP_2;
                sender.send_request(request).await
            }
        }
    }
}

/// What hyper says, before or within an answer.
pub fn of_http(error: hyper::Error) -> Failure {
    if error.is_parse() {
        return failure(FailureClass::MalformedStream, "the answer is no HTTP, or its head is larger than 64 KiB");
    }
    let reset = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<io::Error>());
    match reset {
        Some(error) => failure(FailureClass::CutStream, format!("the connection broke: {}", error.kind())),
        None => failure(FailureClass::CutStream, "the connection was closed before the answer ended"),
    }
}
