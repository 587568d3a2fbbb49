//! The end of a server: what is in flight ends, nothing new begins.

use std::net::TcpStream;
use std::time::Duration;

use infergate_serve::Settings;

use crate::client::send;
use crate::engines::{Gate, Gated, server, start};

const STREAM: &str = r#"{"prompt":[1,2,3],"max_tokens":4,"stream":true}"#;

#[test]
fn a_stream_in_flight_is_served_to_its_end() {
    let gate = Gate::default();
    let server = start(Gated::new(&gate), Settings::default());
    let address = server.address();
    let mut stream = send(address, "POST", "/v1/completions", STREAM);
    gate.let_through(1);
    assert!(stream.event().is_some());
    let stopping = std::thread::spawn(move || server.stop());
    // Nobody is let in any more while the stream is still open.
    while TcpStream::connect(address).is_ok() {
        std::thread::yield_now();
    }
    gate.let_through(3);
    let events = stream.events();
    assert_eq!((events.len(), events.last().map(String::as_str)), (4, Some("[DONE]")));
    stopping.join().expect("no panic").expect("stops");
}

#[test]
fn what_does_not_end_in_time_is_cut() {
    let gate = Gate::default();
    let server = start(Gated::new(&gate), Settings { drain: Duration::ZERO, ..Settings::default() });
    let mut stream = send(server.address(), "POST", "/v1/completions", STREAM);
    gate.let_through(1);
    assert!(stream.event().is_some());
    server.stop().expect("stops");
    let events = stream.events();
    assert!(!events.iter().any(|event| event == "[DONE]"), "{events:?}");
    // The engine's thread waits for its next token; it must not wait for ever.
    gate.let_through(usize::MAX / 2);
}

#[test]
fn a_server_with_nothing_to_do_ends_at_once() {
    let idle = server();
    // A connection that is open and asks for nothing does not hold it up.
    let open = TcpStream::connect(idle.address()).expect("listens");
    idle.stop().expect("stops");
    drop(open);
    drop(server());
}
