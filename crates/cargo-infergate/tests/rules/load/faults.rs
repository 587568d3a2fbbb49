//! Servers on loopback that fail in every way.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use infergate_core::load::{Arrivals, FailureClass, RequestRecord, Stop};
use infergate_load::api::body::Api;
use infergate_load::client::Client;
use infergate_load::client::dial::Network;
use infergate_load::client::endpoint::{Endpoint, Limits};
use infergate_load::client::url::Url;
use infergate_load::plan::LoadPlan;
use infergate_load::targets::live::Live;

use crate::load::runner::plan;
use crate::load::script::{END, HEAD, chunk, template};

/// Reads one request; `None` at the end of the connection.
pub fn next_request(connection: &mut TcpStream) -> Option<String> {
    let mut kept = Vec::new();
    let mut byte = [0; 1];
    while !kept.ends_with(b"\r\n\r\n") {
        if connection.read(&mut byte).ok()? == 0 {
            return None;
        }
        kept.push(byte[0]);
    }
    let head = String::from_utf8(kept).ok()?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()?;
    let mut body = vec![0; length];
    connection.read_exact(&mut body).ok()?;
    Some(head + &String::from_utf8(body).ok()?)
}

/// A server that does `act` with each connection, the number of which it is given. It ends with the test.
pub fn server(act: impl Fn(usize, &mut TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let act = Arc::new(act);
    thread::spawn(move || {
        for (number, connection) in listener.incoming().flatten().enumerate() {
            let (act, mut connection) = (act.clone(), connection);
            thread::spawn(move || act(number, &mut connection));
        }
    });
    port
}

/// A whole answer of `tokens` tokens, at once.
pub fn answer(tokens: usize) -> String {
    let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n".repeat(tokens);
    let usage =
        format!("data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":5,\"completion_tokens\":{tokens}}}}}\n\n");
    HEAD.to_owned() + &chunk(&(piece + &usage + "data: [DONE]\n\n")) + END
}

/// `count` requests of 4 tokens by `users` users.
fn load(url: &str, users: u32, count: u64, limits: Limits) -> Vec<RequestRecord> {
    let url = Url::parse(url, Api::Completions).expect("a URL");
    let dial = Box::new(Network::new(&url).expect("an address"));
    let endpoint = Endpoint::new(dial, &url, None, template(), limits).expect("an endpoint");
    let plan = LoadPlan { warm_up_requests: 0, ..plan(Arrivals::Closed { users }, Stop::Requests { count }) };
    let client = Client::new(vec![endpoint]).expect("a client");
    let level = client.run_level(&plan, &Arc::new(Live::default())).level;
    let measured: Vec<RequestRecord> = level.requests.into_iter().filter(|record| record.measured).collect();
    assert_eq!(measured.len() as u64, count, "and others behind them");
    measured
}

fn at(port: u16) -> Vec<RequestRecord> {
    load(&format!("http://127.0.0.1:{port}"), 1, 1, Limits { attempts: 1, ..Limits::default() })
}

#[track_caller]
fn class(records: &[RequestRecord]) -> FailureClass {
    records[0].failure.as_ref().expect("it failed").class
}

#[test]
fn no_server_is_no_connection() {
    let closed = TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("an address").port();
    assert_eq!(class(&at(closed)), FailureClass::Connect);
}

#[test]
fn a_reset_within_the_stream_is_a_cut_stream() {
    let port = server(|_, connection| {
        // What is not read makes the close a reset.
        let _ = connection.read(&mut [0; 10]);
        let _ =
            connection.write_all((HEAD.to_owned() + &chunk("data: {\"choices\":[{\"text\":\"a\"}]}\n\n")).as_bytes());
    });
    assert_eq!(class(&at(port)), FailureClass::CutStream);
}

#[test]
fn a_server_that_is_gone_after_some_requests_fails_the_others() {
    let port = server(|number, connection| {
        while number == 0 && next_request(connection).is_some() {
            let _ = connection.write_all(answer(4).as_bytes());
        }
    });
    let records = load(&format!("http://127.0.0.1:{port}"), 2, 20, Limits { attempts: 1, ..Limits::default() });
    let (failed, completed): (Vec<_>, Vec<_>) = records.iter().partition(|record| record.failure.is_some());
    assert!(!failed.is_empty() && !completed.is_empty(), "{} and {}", failed.len(), completed.len());
    assert!(failed.iter().all(|record| record.user != completed[0].user));
}

#[cfg(feature = "tls")]
#[test]
fn a_server_without_tls_is_no_tls_session() {
    let port = server(|_, connection| {
        let _ = connection.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        let _ = connection.read(&mut [0; 1000]);
    });
    let records = load(&format!("https://127.0.0.1:{port}"), 1, 1, Limits { attempts: 1, ..Limits::default() });
    assert_eq!(class(&records), FailureClass::Tls);
}
