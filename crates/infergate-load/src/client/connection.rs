//! An open connection, over HTTP/1.1, used by one request at a time.

use std::io;
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use infergate_core::load::{Failure, FailureClass};
use tokio::task::spawn_local;

use crate::api::failures::failure;
use crate::client::stamped::{ReadTimes, RunClock, stamped};
use crate::client::stream::Stream;

/// The largest head of an answer, bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// An open connection.
pub struct Connection {
    /// Sends a request, once the answer before has been read.
    pub sender: http1::SendRequest<Full<Bytes>>,
    /// When its reads gave bytes.
    pub times: Rc<ReadTimes>,
}

impl Connection {
    /// Over `stream`, whose reads are stamped by `clock` from now on.
    pub async fn over(stream: Box<dyn Stream>, clock: RunClock) -> Result<Self, Failure> {
        let times = Rc::new(ReadTimes::default());
        let io = TokioIo::new(stamped(stream, clock, times.clone()));
        let handshake = http1::Builder::new().max_buf_size(MAX_HEAD_BYTES).handshake(io).await;
        let (sender, connection) = handshake.map_err(of_http)?;
        // The connection's own task ends with its sender. Whoever waits for an answer is told the same errors.
        spawn_local(async move { drop(connection.await) });
        Ok(Self { sender, times })
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
