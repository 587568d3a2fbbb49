//! The example server, which `load` is tried on.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::example;

struct Server(Child, SocketAddr);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(arguments: &[&str]) -> Server {
    let mut command = Command::new(example("serve"));
    let mut child = command.args(["--port", "0"]).args(arguments).stdout(Stdio::piped()).spawn().expect("starts");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
    let address = line.trim_end().strip_prefix("http://").and_then(|address| address.parse().ok());
    let address = address.unwrap_or_else(|| panic!("the first line is the address, and not {line:?}"));
    Server(child, address)
}

impl Server {
    fn send(&self, method: &str, path: &str, body: &Value) -> TcpStream {
        let mut stream = TcpStream::connect(self.1).expect("connects");
        let body = body.to_string();
        let length = body.len();
        write!(stream, "{method} {path} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}").expect("sends");
        stream
    }

    /// The status and the body of the response.
    fn ask(&self, method: &str, path: &str, body: &Value) -> (String, String) {
        let mut response = String::new();
        self.send(method, path, body).read_to_string(&mut response).expect("answers");
        let (head, body) = response.split_once("\r\n\r\n").expect("a head");
        (head.split(' ').nth(1).expect("a status").to_owned(), body.to_owned())
    }

    fn json(&self, method: &str, path: &str, body: &Value) -> (String, Value) {
        let (status, body) = self.ask(method, path, body);
        let value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
        (status, value)
    }
}

#[test]
fn an_answer_is_the_same_streamed_and_whole_alone_and_beside_others() {
    let server = start(&["--model", "synthetic:tiny", "--slots", "4"]);
    let request = |stream: bool| json!({ "messages": [{ "role": "user", "content": "Hi" }], "max_tokens": 6, "stream": stream, "stream_options": { "include_usage": true } });
    let (status, whole) = server.json("POST", "/v1/chat/completions", &request(false));
    assert_eq!(status, "200", "{whole}");
    let text = whole["choices"][0]["message"]["content"].as_str().expect("text");
    assert_eq!(text.split_whitespace().count(), 6, "{whole}");
    assert_eq!(whole["usage"]["completion_tokens"], 6);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let (status, body) = server.ask("POST", "/v1/chat/completions", &request(true));
                assert_eq!(status, "200", "{body}");
                let mut events: Vec<&str> =
                    body.split("\n\n").filter_map(|event| event.strip_prefix("data: ")).collect();
                assert_eq!(events.pop(), Some("[DONE]"), "{body}");
                let events: Vec<Value> =
                    events.iter().map(|event| serde_json::from_str(event).expect("JSON")).collect();
                let pieces = events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str());
                assert_eq!(pieces.collect::<String>(), text);
                assert_eq!(events[5]["choices"][0]["finish_reason"], "length");
                assert_eq!(events[6]["usage"], whole["usage"]);
                assert_eq!(events.len(), 7);
            });
        }
    });
}

#[test]
fn a_server_with_set_times_serves_as_many_as_it_has_places_for() {
    let server = start(&["--timed", "3600000,1", "--slots", "1", "--queue", "0"]);
    let request = json!({ "prompt": "abc", "max_tokens": 2, "stream": true });
    let mut waits = server.send("POST", "/v1/completions", &request);
    let mut head = [0; 12];
    waits.read_exact(&mut head).expect("a head");
    assert_eq!(&head, b"HTTP/1.0 200");
    let (status, refused) = server.json("POST", "/v1/completions", &request);
    assert_eq!(status, "429", "{refused}");
}

#[test]
fn it_names_its_model_and_what_is_wrong_with_a_request() {
    let server = start(&["--timed", "1,1"]);
    let (_, models) = server.json("GET", "/v1/models", &Value::Null);
    assert_eq!(models["data"][0]["id"], "timed");
    assert_eq!(server.ask("GET", "/health", &Value::Null).0, "200");
    for (request, reason) in [
        (json!({ "prompt": "abc", "max_tokens": 32_768 }), "do not fit the model's context of 32768"),
        (json!({ "prompt": [4_000_000_000_u32] }), "outside the vocabulary"),
        (json!({ "max_tokens": 2 }), "no prompt"),
    ] {
        let (status, body) = server.json("POST", "/v1/completions", &request);
        let message = body["error"]["message"].as_str().expect("a message");
        assert!(status == "400" && message.contains(reason), "{status}: {message}");
    }
}
