//! A full server says so, and a client that is gone keeps nobody waiting.

use std::net::SocketAddr;

use infergate_serve::Settings;
use serde_json::{Value, json};

use crate::client::{Coming, ask, get, post, send};
use crate::engines::{Gate, Gated, alone, start, written};

const STREAM: &str = r#"{"prompt":[1,2,3],"max_tokens":3,"stream":true}"#;

fn stream(address: SocketAddr) -> Coming {
    send(address, "POST", "/v1/completions", STREAM)
}

/// Asks until the server says that it is as busy as `wanted`.
fn wait_for(address: SocketAddr, wanted: &Value) {
    loop {
        let health = get(address, "/health").json();
        if ["in_flight", "waiting"].iter().all(|count| health[count] == wanted[count]) {
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn requests_wait_for_a_slot_and_beyond_the_queue_they_are_refused() {
    let gate = Gate::default();
    let server = start(Gated::new(&gate), Settings { slots: 1, queue: 1, ..Settings::default() });
    let first = stream(server.address());
    wait_for(server.address(), &json!({ "in_flight": 1, "waiting": 0 }));
    let second = stream(server.address());
    // The first one's token lets the engine look for others; then two places are taken.
    gate.let_through(1);
    wait_for(server.address(), &json!({ "in_flight": 1, "waiting": 1 }));
    for path in ["/v1/completions", "/v1/chat/completions"] {
        let body = r#"{"prompt":[9],"messages":[{"role":"user","content":"Hi"}]}"#;
        let refused = post(server.address(), path, body);
        assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")), "{}", refused.body);
        assert!(refused.refusal().contains("full"), "{}", refused.body);
        assert_eq!(refused.json()["error"]["code"], "rate_limit_exceeded");
    }
    gate.let_through(100);
    for served in [first, second] {
        let events = served.events();
        assert_eq!((events.len(), events.last().map(String::as_str)), (4, Some("[DONE]")));
    }
    assert_eq!(post(server.address(), "/v1/completions", r#"{"prompt":[9]}"#).status, 200);
}

#[test]
fn a_place_is_free_as_soon_as_its_request_ended() {
    let gate = Gate::default();
    gate.let_through(usize::MAX);
    let server = start(Gated::new(&gate), Settings { slots: 1, queue: 0, ..Settings::default() });
    for _ in 0..100 {
        let answer = post(server.address(), "/v1/completions", r#"{"prompt":[1],"max_tokens":1}"#);
        assert_eq!(answer.status, 200, "{}", answer.body);
        let events = stream(server.address()).events();
        assert_eq!(events.last().map(String::as_str), Some("[DONE]"));
    }
}

#[test]
fn a_client_that_leaves_frees_its_slot() {
    let gate = Gate::default();
    let server = start(Gated::new(&gate), Settings { slots: 1, queue: 0, ..Settings::default() });
    let body = r#"{"prompt":[1,2,3],"max_tokens":1000,"stream":true}"#;
    let mut leaving = send(server.address(), "POST", "/v1/completions", body);
    gate.let_through(1);
    assert!(leaving.event().is_some());
    drop(leaving);
    freed(server.address(), &gate);
    // The same for one that wants the whole answer at once.
    let whole = r#"{"prompt":[1,2,3],"max_tokens":1000}"#;
    let leaving = ask(server.address(), "POST", "/v1/completions", whole);
    wait_for(server.address(), &json!({ "in_flight": 1, "waiting": 0 }));
    drop(leaving);
    freed(server.address(), &gate);
    gate.let_through(1000);
    let answer = post(server.address(), "/v1/completions", r#"{"prompt":[5],"max_tokens":2}"#);
    assert_eq!(answer.json()["choices"][0]["text"], written(&alone(&[5], 2)));
}

/// Few tokens pass until the server sees that nobody reads them; never the other 999.
fn freed(address: SocketAddr, gate: &Gate) {
    let mut let_through = 1;
    while get(address, "/health").json()["in_flight"] == 1 {
        gate.let_through(1);
        let_through += 1;
        assert!(let_through < 900, "the request is still served");
    }
}

#[test]
fn a_client_that_leaves_the_queue_frees_its_place() {
    let gate = Gate::default();
    let server = start(Gated::new(&gate), Settings { slots: 1, queue: 1, ..Settings::default() });
    let body = r#"{"prompt":[1,2,3],"max_tokens":1000,"stream":true}"#;
    let first = send(server.address(), "POST", "/v1/completions", body);
    wait_for(server.address(), &json!({ "in_flight": 1, "waiting": 0 }));
    let leaving = stream(server.address());
    gate.let_through(1);
    wait_for(server.address(), &json!({ "in_flight": 1, "waiting": 1 }));
    drop(leaving);
    // The first request goes on, and soon the place behind it can be had again.
    let mut let_through = 1;
    while get(server.address(), "/health").json()["waiting"] == 1 {
        gate.let_through(1);
        let_through += 1;
        assert!(let_through < 900, "the place is still kept");
    }
    let next = stream(server.address());
    gate.let_through(2000);
    for served in [first, next] {
        assert_eq!(served.events().last().map(String::as_str), Some("[DONE]"));
    }
}
