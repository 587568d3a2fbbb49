//! The example as a program.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use crate::client::{get, send};
use crate::engines::{server, written};
use crate::support;

struct Program(Child, SocketAddr);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(arguments: &[&str]) -> Command {
    command_of("serve", arguments)
}

fn command_of(example: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(support::example(example));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn spawn(arguments: &[&str]) -> Program {
    first_line(command(arguments))
}

fn first_line(mut command: Command) -> Program {
    let mut child = command.spawn().expect("starts");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
    let address = line.trim_end().strip_prefix("http://").and_then(|address| address.parse().ok());
    let address = address.unwrap_or_else(|| panic!("the address is the first line, and not {line:?}"));
    Program(child, address)
}

fn signal(program: &Program, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), program.0.id().to_string()]).status();
    assert!(sent.expect("kill starts").success());
}

#[test]
fn it_says_where_it_listens_and_a_signal_ends_it_behind_its_requests() {
    for name in ["TERM", "INT"] {
        let mut program = spawn(&["--port", "0", "--option", "ttft_ms=1", "--option", "itl_ms=1"]);
        assert_eq!(get(program.1, "/v1/models").json()["data"][0]["id"], "timed");
        let body = r#"{"prompt":[1,2,3],"max_tokens":50,"stream":true}"#;
        let mut stream = send(program.1, "POST", "/v1/completions", body);
        assert!(stream.event().is_some());
        signal(&program, name);
        assert_eq!(stream.events().last().map(String::as_str), Some("[DONE]"));
        assert_eq!(program.0.wait().expect("ends").code(), Some(0));
    }
}

#[test]
fn what_an_engine_prints_does_not_come_before_its_address() {
    first_line(command_of("prints", &["--port", "0"]));
}

#[test]
fn its_output_is_the_same_for_the_same_prompt() {
    let program = spawn(&["--port", "0", "--option", "ttft_ms=0", "--option", "itl_ms=0", "--slots", "2"]);
    let body = r#"{"prompt":[4],"max_tokens":6,"stream":false}"#;
    let answer = crate::client::post(program.1, "/v1/completions", body);
    assert_eq!(answer.json()["choices"][0]["text"], written(&crate::engines::alone(&[4], 6)));
}

#[test]
fn what_is_wrong_is_one_line_and_exit_code_2() {
    let taken = server();
    let port = taken.address().port().to_string();
    for (arguments, why) in [
        (vec!["--port", port.as_str()], "is in use; choose another one, or 0 for any free one"),
        (vec!["--port", "0", "--slots", "0"], "at least one"),
        (vec!["--port", "0", "--option", "speed=9"], "no option 'speed'"),
        (vec!["--port", "0", "--option", "ttft_ms"], "--option takes NAME=VALUE"),
        (vec!["--port", "0", "--threads", "0"], "--threads 0"),
    ] {
        let mut child = command(&arguments).spawn().expect("starts");
        let mut said = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
        assert_eq!(child.wait().expect("ends").code(), Some(2), "{said}");
        assert!(said.starts_with("error: ") && said.contains(why) && said.lines().count() == 1, "{said}");
    }
}
