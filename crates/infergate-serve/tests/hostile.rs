//! Requests that nobody meant well: each is answered, the server goes on, and none takes more memory than its length allows.
//!
//! `PROPTEST_CASES=100000` tries as many damaged ones.

#[path = "serve/client.rs"]
#[allow(dead_code, reason = "shared with the tests called serve")]
mod client;
#[path = "../../../tests/support/hostile.rs"]
mod hostile;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use client::{get, post};
use hostile::{Random, damaged, inputs, within_memory_of_all};
use infergate::clock::VirtualClock;
use infergate::engine::FakeEngine;
use infergate::engine::fake::FakeScript;
use infergate_serve::{Server, Settings};

#[global_allocator]
static COUNTING: hostile::Counting = hostile::Counting;

const BODIES: [&[u8]; 6] = [
    br#"{"prompt":"Once upon a time","max_tokens":4,"model":"fake","temperature":0.5,"stop":null}"#,
    br#"{"prompt":[1,2,3],"max_tokens":3,"stream":true,"stream_options":{"include_usage":true}}"#,
    br#"{"prompt":[[4,5]],"n":1,"ignore_eos":true,"stop":[]}"#,
    br#"{"prompt":["one"],"max_completion_tokens":2}"#,
    br#"{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":null}],"max_tokens":2}"#,
    br#"{"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}],"max_tokens":2,"stream":true}"#,
];

fn server() -> Server {
    let script = FakeScript { context_tokens: 256, ..FakeScript::default() };
    let engine = FakeEngine::new(script, VirtualClock::default());
    // A damaged head may promise more than comes.
    let settings = Settings { silence: Duration::from_millis(200), ..Settings::default() };
    Server::start(Box::new(engine), settings).expect("serves")
}

/// Sends `head` and `body` as they are, and gives what comes back.
fn raw(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    // It may answer and close before all of it is there.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn damaged_bodies_and_heads() {
    let server = server();
    let address = server.address();
    let mut served = 0;
    for seed in 0..inputs() {
        let mut random = Random(seed.into());
        let body = damaged(&BODIES, &mut random);
        let path = ["completions", "chat/completions"][random.below(2)];
        let mut request = format!(
            "POST /v1/{path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend(&body);
        // One in eight has a damaged head, too.
        let request = if seed % 8 == 0 { damaged(&[&request], &mut random) } else { request };
        let answer = raw(address, &request);
        let sound = answer.is_empty()
            || ["200", "400", "404", "405", "408", "413", "414", "431", "501"].iter().any(|status| {
                answer.starts_with(&format!("HTTP/1.1 {status} ")) || answer.starts_with(&format!("HTTP/1.0 {status} "))
            });
        assert!(sound, "seed {seed}: {answer}");
        served += u32::from(answer.contains(" 200 OK"));
        if seed % 500 == 0 {
            assert_eq!(get(address, "/health").status, 200, "seed {seed}");
        }
    }
    println!("{served} of {} damaged requests were served", inputs());
    let health = get(address, "/health").json();
    assert_eq!((&health["in_flight"], &health["waiting"]), (&0.into(), &0.into()), "{health}");
}

#[test]
fn bodies_of_the_smallest_values() {
    let server = server();
    for dense in ["{\"\":0}", "[]", "{}", "0", "\"\"", "[0]", "{\"role\":\"\"}", "{\"type\":\"text\"}"] {
        let junk = vec![dense; ((8 << 20) - 100) / (dense.len() + 1)].join(",");
        for (path, body) in [
            ("/v1/completions", format!("{{\"prompt\":[{junk}]}}")),
            ("/v1/completions", format!("{{\"prompt\":[[{junk}]]}}")),
            ("/v1/completions", format!("{{\"prompt\":\"a\",\"stop\":[{junk}]}}")),
            ("/v1/completions", format!("{{\"prompt\":\"a\",\"x\":[{junk}]}}")),
            ("/v1/chat/completions", format!("{{\"messages\":[{junk}]}}")),
            ("/v1/chat/completions", format!("{{\"messages\":[{{\"role\":\"user\",\"content\":[{junk}]}}]}}")),
        ] {
            let answer = within_memory_of_all(path, body.len(), || post(server.address(), path, &body));
            assert!([200, 400].contains(&answer.status), "{} {}", answer.status, answer.body);
        }
    }
}
