//! The same client over HTTP/2, against hyper's own server in memory.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::TokioIo;
use infergate_core::load::{FailureClass, RequestRecord};
use infergate_load::api::body::Api;
use infergate_load::client::dial::{Dial, Dialling};
use infergate_load::client::request::{Endpoint, Limits};
use infergate_load::client::stamped::RunClock;
use infergate_load::client::stream::{Http, Stream};
use infergate_load::client::url::Url;
use infergate_load::target::live::Live;
use tokio::io::duplex;
use tokio::task::spawn_local;
use tokio::time::{Sleep, sleep};

use crate::load::script::{in_made_up_time, wanted};

const MS: u64 = 1_000_000;

#[derive(Clone)]
struct SameThread;

impl<F: Future + 'static> Executor<F> for SameThread {
    fn execute(&self, future: F) {
        spawn_local(async move {
            future.await;
        });
    }
}

/// Events 20 ms apart.
struct Events {
    left: Vec<&'static str>,
    next: Pin<Box<Sleep>>,
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        if self.next.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        self.next = Box::pin(sleep(Duration::from_millis(20)));
        let event = self.left.remove(0);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(event.as_bytes())))))
    }
}

struct Server;

async fn answer(request: Request<Incoming>) -> Result<Response<Events>, Infallible> {
    assert_eq!(request.version(), Version::HTTP_2);
    assert_eq!(request.uri().to_string(), "http://server/v1/completions");
    let token = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n";
    let left = vec![token, token, token, "data: [DONE]\n\n"];
    let response = Response::new(Events { left, next: Box::pin(sleep(Duration::from_millis(100))) });
    let (mut head, body) = response.into_parts();
    head.headers.insert("content-type", hyper::header::HeaderValue::from_static("text/event-stream"));
    Ok(Response::from_parts(head, body))
}

impl Dial for Server {
    fn dial(&self) -> Dialling<'_> {
        let (client, server) = duplex(1 << 20);
        spawn_local(async move {
            drop(http2::Builder::new(SameThread).serve_connection(TokioIo::new(server), service_fn(answer)).await);
        });
        Box::pin(async move {
            let stream: Box<dyn Stream> = Box::new(client);
            Ok(stream)
        })
    }
}

#[test]
fn tokens_have_the_times_at_which_they_were_sent_and_the_connection_is_used_again() {
    in_made_up_time(async {
        let url = Url::parse("http://server", Api::Completions).expect("a URL");
        let endpoint = Endpoint::new(Box::new(Server), Http::Two, &url, None, wanted(), Limits::default());
        let endpoint = endpoint.expect("an endpoint");
        let (clock, live) = (RunClock::start(), Arc::new(Live::default()));
        let mut connection = None;
        for round in 0..3 {
            let start_ns = clock.now_ns();
            let mut record = RequestRecord { scheduled_ns: start_ns, sent_ns: start_ns, ..RequestRecord::default() };
            let body = endpoint.wanted.body("1", 3);
            let outcome = endpoint.request(body, 3, &mut connection, &mut record, (clock, &live)).await;
            assert_eq!(outcome, Ok(()));
            let after: Vec<u64> = record.chunk_ns.iter().map(|ns| (ns - start_ns) / MS).collect();
            assert_eq!(after, [100, 120, 140], "round {round}");
            assert_eq!(record.connected_ns.is_some(), round == 0);
        }
    });
}

#[test]
fn a_server_of_the_other_version_is_a_failure() {
    let script = crate::load::script::Script::new([crate::load::script::answer(1, 1, 1)]);
    let limits = Limits { request: Duration::from_secs(1), ..Limits::default() };
    let failure = in_made_up_time(async {
        let url = Url::parse("http://server", Api::Completions).expect("a URL");
        let endpoint = Endpoint::new(Box::new(script), Http::Two, &url, None, wanted(), limits).expect("an endpoint");
        let mut record = RequestRecord::default();
        let body = endpoint.wanted.body("1", 3);
        endpoint.request(body, 3, &mut None, &mut record, (RunClock::start(), &Live::default())).await
    });
    let class = failure.expect_err("it failed").class;
    assert!(
        matches!(class, FailureClass::CutStream | FailureClass::MalformedStream | FailureClass::Timeout),
        "{class:?}"
    );
}
