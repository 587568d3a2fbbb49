//! Clients that say nothing, take nothing, or are too many: each costs a connection for a while, and nobody else a token.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use infergate_serve::{Server, Settings};

use crate::client::{ask, get, post, send};
use crate::engines::{Gate, Reader, start};

/// A test that waits for ever would tell nobody anything.
const LIMIT: Duration = Duration::from_secs(120);

fn impatient() -> Server {
    start(
        crate::engines::fake(Default::default()),
        Settings { silence: Duration::from_millis(200), ..Settings::default() },
    )
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    stream.set_write_timeout(Some(LIMIT)).expect("a limit");
    stream
}

/// All that comes until the server closes the connection.
fn until_closed(mut stream: TcpStream) -> String {
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
    String::from_utf8_lossy(&said).into_owned()
}

#[test]
fn a_connection_without_a_whole_request_ends() {
    let server = impatient();
    let address = server.address();
    for beginning in ["", "POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-le"] {
        let mut stream = connect(address);
        stream.write_all(beginning.as_bytes()).expect("goes out");
        let said = until_closed(stream);
        assert!(!said.contains("200 OK"), "{said}");
    }
    let mut stream = connect(address);
    stream.write_all(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{").expect("goes out");
    let said = until_closed(stream);
    assert!(said.starts_with("HTTP/1.1 408") && said.contains("did not arrive in time"), "{said}");
    // One that is kept open after its answer, too.
    let mut stream = connect(address);
    stream.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n").expect("goes out");
    assert!(until_closed(stream).contains("200 OK"));
    assert_eq!(get(address, "/health").status, 200);
}

/// It asks on and on and reads nothing: the answers wait on the server, until it takes them back.
#[test]
fn a_client_that_reads_nothing_is_let_go() {
    let server = impatient();
    let mut stream = connect(server.address());
    let requests = "GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n".repeat(1_000);
    let error = loop {
        if let Err(error) = stream.write_all(requests.as_bytes()) {
            break error;
        }
    };
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
    assert_eq!(get(server.address(), "/health").status, 200);
}

#[test]
fn more_connections_than_there_may_be_wait() {
    let server = start(crate::engines::fake(Default::default()), Settings { connections: 1, ..Settings::default() });
    let address = server.address();
    let mut first = connect(address);
    first.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n").expect("goes out");
    let mut byte = [0];
    first.read_exact(&mut byte).expect("an answer");
    let mut second = ask(address, "GET", "/health", "");
    second.set_read_timeout(Some(Duration::from_millis(200))).expect("a limit");
    let early = second.read(&mut byte).expect_err("there is no answer yet");
    assert!(matches!(early.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{early}");
    drop(first);
    second.set_read_timeout(Some(LIMIT)).expect("a limit");
    assert!(until_closed(second).contains("200 OK"));
}

/// Bodies are kept until they are whole. Whoever announces one has room for it, and all together have no more than there is.
#[test]
fn bodies_that_do_not_arrive_take_no_more_than_their_room() {
    let server = start(crate::engines::fake(Default::default()), Settings::default());
    let address = server.address();
    let limit = Settings::default().body_limit_bytes;
    let announced = |stream: &mut TcpStream| {
        let head = format!(
            "POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {limit}\r\nexpect: 100-continue\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("goes out");
        let mut said = [0; 12];
        stream.read_exact(&mut said).expect("an answer");
        String::from_utf8_lossy(&said).into_owned()
    };
    let mut streams: Vec<TcpStream> = (0..33).map(|_| connect(address)).collect();
    let said: Vec<String> = streams.iter_mut().map(announced).collect();
    assert!(said[..32].iter().all(|said| said == "HTTP/1.1 100"), "256 MiB: {said:?}");
    assert_eq!(said[32], "HTTP/1.1 429");
    assert_eq!(post(address, "/v1/completions", LONG).status, 429);
    assert_eq!(get(address, "/health").status, 200);
}

const LONG: &str = r#"{"prompt":"a long prompt","max_tokens":2}"#;

/// A server of so many slots that reads a prompt for as long as its gate is closed; how many it has begun to read, and the answer
/// to the one that it reads.
fn reading(slots: usize, gate: &Gate) -> (Server, Arc<AtomicUsize>, TcpStream) {
    let engine = Reader::new(gate);
    let read = engine.read.clone();
    let server = start(engine, Settings { slots, queue: 0, ..Settings::default() });
    let answer = ask(server.address(), "POST", "/v1/completions", LONG);
    while read.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    (server, read, answer)
}

#[test]
fn streams_go_on_while_a_prompt_is_read() {
    let gate = Gate::default();
    let (server, _, long) = reading(2, &gate);
    let stream = r#"{"prompt":[1,2,3],"max_tokens":20,"stream":true}"#;
    let events = send(server.address(), "POST", "/v1/completions", stream).events();
    assert_eq!((events.len(), events.last().map(String::as_str)), (21, Some("[DONE]")), "{events:?}");
    gate.let_through(1);
    assert!(until_closed(long).contains("200 OK"));
}

#[test]
fn a_prompt_has_its_place_before_it_is_read() {
    let gate = Gate::default();
    let (server, read, long) = reading(1, &gate);
    let refused = post(server.address(), "/v1/completions", LONG);
    assert_eq!((refused.status, read.load(Ordering::Relaxed)), (429, 1), "{}", refused.body);
    // Nor does it give its place away by leaving: it is still being read.
    drop(long);
    assert_eq!(post(server.address(), "/v1/completions", LONG).status, 429);
    gate.let_through(usize::MAX);
    let mut answer = post(server.address(), "/v1/completions", LONG);
    while answer.status == 429 {
        answer = post(server.address(), "/v1/completions", LONG);
    }
    assert_eq!(answer.status, 200, "{}", answer.body);
}

#[test]
fn a_prompt_that_cannot_fit_is_not_read() {
    let gate = Gate::default();
    let engine = Reader::new(&gate);
    let read = engine.read.clone();
    let server = start(engine, Settings::default());
    // No token has more than 128 bytes.
    let prompt = "x".repeat(64 * 128 + 1);
    let answer = post(server.address(), "/v1/completions", &format!("{{\"prompt\":\"{prompt}\"}}"));
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (400, &"context_length_exceeded".into()),
        "{}",
        answer.body
    );
    assert_eq!(read.load(Ordering::Relaxed), 0);
}
