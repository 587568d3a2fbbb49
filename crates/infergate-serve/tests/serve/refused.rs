//! What no engine is asked for: each is one line in OpenAI's form, and the server goes on.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use infergate::engine::fake::FakeScript;
use infergate_serve::{Server, Settings};

use crate::client::{Answer, get, post};
use crate::engines::{fake, server};

fn completions(address: SocketAddr, body: &str) -> Answer {
    post(address, "/v1/completions", body)
}

#[track_caller]
fn refused(answer: &Answer, status: u16, why: &str) {
    let message = answer.refusal();
    assert_eq!(answer.status, status, "{message}");
    assert!(message.contains(why) && message.lines().count() == 1 && !message.ends_with('.'), "{message}");
}

#[test]
fn requests_that_cannot_be_served_are_400() {
    let server = server();
    let address = server.address();
    for (body, why) in [
        ("{", "it is not JSON"),
        ("", "it is not JSON"),
        ("[]", "a field is missing or of another type"),
        (r#"{"max_tokens":1}"#, "a field is missing"),
        (r#"{"prompt":7}"#, "of another type"),
        (r#"{"prompt":[1],"max_tokens":-1}"#, "of another type"),
        (r#"{"prompt":[-1]}"#, "of another type"),
        (r#"{"prompt":[1],"ignore_eos":"yes"}"#, "of another type"),
        (r#"{"prompt":""}"#, "the prompt has no tokens"),
        (r#"{"prompt":[]}"#, "the prompt has no tokens"),
        (r#"{"prompt":["a","b"]}"#, "one prompt a request"),
        (r#"{"prompt":[[1],[2]]}"#, "one prompt a request"),
        (r#"{"prompt":[50000]}"#, "ids are below 50000"),
        (r#"{"prompt":[1],"max_tokens":0}"#, "zero output tokens"),
        (r#"{"prompt":[1],"n":2}"#, "one completion a request"),
        (r#"{"prompt":[1],"best_of":2}"#, "one completion a request"),
        (r#"{"prompt":[1],"echo":true}"#, "leave `echo` out"),
        (r#"{"prompt":[1],"stop":"x"}"#, "leave `stop` out"),
    ] {
        refused(&completions(address, body), 400, why);
    }
    let chat = |body: &str| post(address, "/v1/chat/completions", body);
    refused(&chat(r#"{"messages":[]}"#), 400, "there are no messages");
    refused(&chat(r#"{"prompt":"a"}"#), 400, "a field is missing");
    let picture = r#"{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}"#;
    refused(&chat(picture), 400, "only parts of type text");
    assert_eq!(get(address, "/health").status, 200);
}

#[test]
fn a_request_beyond_the_context_has_the_code_that_clients_look_for() {
    let server = server();
    for body in [
        r#"{"prompt":[1],"max_tokens":1024}"#.to_owned(),
        r#"{"prompt":[1],"max_tokens":18446744073709551615}"#.to_owned(),
        format!(r#"{{"prompt":"{}","max_tokens":24}}"#, "a".repeat(1001)),
    ] {
        let answer = completions(server.address(), &body);
        refused(&answer, 400, "do not fit the model's context of 1024");
        let error = &answer.json()["error"];
        assert_eq!((&error["code"], &error["param"]), (&"context_length_exceeded".into(), &"prompt".into()));
    }
    assert_eq!(completions(server.address(), r#"{"prompt":[1],"max_tokens":1023}"#).status, 200);
}

#[test]
fn another_model_or_page_is_404_and_another_method_405() {
    let server = server();
    let answer = completions(server.address(), r#"{"model":"gpt-4","prompt":[1]}"#);
    refused(&answer, 404, "ask for 'fake'");
    assert_eq!(answer.json()["error"]["code"], "model_not_found");
    refused(&get(server.address(), "/v1/embeddings"), 404, "/v1/completions");
    refused(&get(server.address(), "/v1/completions"), 405, "POST completions");
}

#[test]
fn a_body_that_is_too_long_is_refused_unread() {
    let engine = Box::new(fake(FakeScript::default()));
    let server = Server::start(engine, Settings { body_limit_bytes: 1000, ..Settings::default() }).expect("serves");
    let body = |letters: usize| format!(r#"{{"prompt":"{}","max_tokens":1}}"#, "a".repeat(letters));
    assert_eq!(completions(server.address(), &body(900)).status, 200);
    let answer = completions(server.address(), &body(1001));
    assert_eq!(answer.status, 413, "{}", answer.body);
    answer.refusal();
}

#[test]
fn what_is_no_http_ends_its_own_connection_alone() {
    let server = server();
    for garbage in
        [&b"\x16\x03\x01\x02\x00"[..], b"GET\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\ncontent-length: x\r\n\r\n"]
    {
        let mut stream = TcpStream::connect(server.address()).expect("listens");
        stream.write_all(garbage).expect("goes out");
        stream.shutdown(std::net::Shutdown::Write).expect("half closed");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(get(server.address(), "/health").status, 200);
}

#[test]
fn a_server_for_nobody_or_on_a_taken_port_does_not_start() {
    let start = |settings: Settings| {
        let error = Server::start(Box::new(fake(FakeScript::default())), settings).err().expect("refused");
        let line = format!("{error:#}");
        assert_eq!(line.lines().count(), 1, "{line}");
        line
    };
    assert!(start(Settings { slots: 0, ..Settings::default() }).contains("at least one"));
    let server = server();
    let port = server.address().port();
    let line = start(Settings { port, ..Settings::default() });
    assert!(line.contains(&format!("port {port} of 127.0.0.1 is in use")), "{line}");
    let elsewhere = Settings { host: "192.0.2.1".parse().expect("an address"), ..Settings::default() };
    assert!(start(elsewhere).contains("cannot listen on 192.0.2.1"));
}
