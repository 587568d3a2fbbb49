//! Two builds of a server: `gate --against REV --server`, and two that run already.
#![cfg(unix)]

use std::collections::HashSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use infergate_receipts::{Outcome, Verdict, VerdictRow, read};

use crate::repositories::{commit, empty_repository};
use crate::sandbox::{Sandbox, error, stderr, stdout};
use crate::support;

/// A repository whose server is the one with set token times, told `base` in the commit and `head` in the working tree.
fn repository(base: &str, head: &str) -> Sandbox {
    let sandbox = empty_repository();
    let script = |options: &str| {
        let serve = support::example("serve");
        format!("#!/bin/sh\nexec '{}' --port \"$1\" --timed 2,{options}\n", serve.display())
    };
    sandbox.write(
        "infergate.toml",
        "[server]\ncommand = ['sh', 'start.sh', '{port}']\nmodel = 'timed'\n[[scenario]]\nname = 'chat'\ninput_tokens = 8\noutput_tokens = 4\n",
    );
    sandbox.write("start.sh", &script(base));
    commit(&sandbox, ".gitignore", "target\n", "base");
    sandbox.write("start.sh", &script(head));
    sandbox
}

fn gate(sandbox: &Sandbox, more: &[&str]) -> assert_cmd::assert::Assert {
    let cache = Sandbox::new();
    let folder = format!("--base-folder={}", cache.path("base").display());
    sandbox.run(&[&["gate", "--against=HEAD", "--server", &folder], more].concat())
}

/// A launcher may put its workers in a session of their own.
#[cfg(target_os = "linux")]
#[test]
fn memory_is_that_of_all_that_a_server_started() {
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec 3<&0; setsid sh -c 'echo ready; read line <&3' & wait"]);
    let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
    let mut ready = String::new();
    BufReader::new(shell.stdout.take().expect("its output")).read_line(&mut ready).expect("a line");
    let seen = cargo_infergate::server::memory::of_started(shell.id());
    assert_eq!(seen.threads, Some(1), "{seen:?}");
    assert!(seen.rss_bytes > Some(0), "{seen:?}");
    drop(shell.stdin.take());
    shell.wait().expect("both end");
}

/// A server that answers each body with these texts, in one write.
fn serving(says: impl FnMut(&str) -> Vec<String> + Send + 'static) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let says = Arc::new(Mutex::new(says));
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let says = says.clone();
            std::thread::spawn(move || answer(connection, &says));
        }
    });
    format!("http://{address}")
}

fn answer(connection: TcpStream, says: &Mutex<impl FnMut(&str) -> Vec<String>>) -> Option<()> {
    let mut connection = BufReader::new(connection);
    while let Some(body) = body(&mut connection) {
        let texts = (*says.lock().ok()?)(&body);
        let events = texts.iter().map(|text| piece(text)).collect::<String>() + "data: [DONE]\n\n";
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {}\r\n\r\n", events.len());
        connection.get_mut().write_all((head + &events).as_bytes()).ok()?;
    }
    None
}

fn piece(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

/// The body of the next request; `None` at the end of the connection.
fn body(connection: &mut BufReader<TcpStream>) -> Option<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if connection.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}

/// A server that says `word` and then its own: another one where it was asked the same just before, as from a cache.
fn with_cache(word: &'static str) -> String {
    let mut last = String::new();
    serving(move |body| {
        let second = if last == body { "cached" } else { "computed" };
        body.clone_into(&mut last);
        vec![word.to_owned(), second.to_owned()]
    })
}

/// Base's table asks for more tokens: its server would say another text.
#[test]
fn both_servers_are_asked_what_heads_scenario_says() {
    let sandbox = repository("1", "1");
    let own = fs::read_to_string(sandbox.path("infergate.toml")).expect("settings");
    commit(&sandbox, "infergate.toml", &own.replace("output_tokens = 4", "output_tokens = 9"), "longer");
    sandbox.write("infergate.toml", &own);
    let said = gate(&sandbox, &["--quick", "--cases=*/ttft"]);
    let report = stdout(&said);
    assert!(report.contains("quick look, no verdict") && !report.contains("output changed"), "{said}");
}

#[test]
fn servers_are_taken_in_turn_and_each_has_to_say_the_same() {
    let sandbox = Sandbox::new();
    let flags = |side: &str, words: [&'static str; 2]| words.map(|word| format!("--{side}-url={}", with_cache(word)));
    let (base, head) = (flags("base", ["one", "one"]), flags("head", ["one", "other"]));
    let urls = [&*base[0], &base[1], &head[0], &head[1]];
    // Their answers come in one write.
    let said = sandbox.run(&[&["gate"], &urls[..]].concat()).code(2);
    assert!(error(said).contains("pieces all at once, so they have no times"));
    let said = sandbox.run(&[&["gate", "--cases=*/ttft", "--out=paired.json"], &urls[..]].concat()).code(3);
    // The first block asked the first of each side, the second the second.
    let receipt = sandbox.receipt();
    assert_eq!((receipt.servers, receipt.blocks.len()), (Some(2), 1), "{}", stdout(&said));
    assert!(stdout(&said).contains("verdict: invalid (exit 3)"), "{}", stdout(&said));
}

/// A server whose answer is made of the prompt. One that `changes` says another one where it is asked again, but for the first prompt
/// that is.
fn that_says_the_prompt(changes: bool) -> String {
    let (mut asked, mut first) = (HashSet::new(), None);
    serving(move |body| {
        let is_again = !asked.insert(body.to_owned()) && *first.get_or_insert(body.to_owned()) != body;
        let word = |at: usize| {
            let mut hasher = DefaultHasher::new();
            (body, at, changes && is_again).hash(&mut hasher);
            format!("{:x} ", hasher.finish())
        };
        (0..4).map(word).collect()
    })
}

/// The prompts that windows repeat are asked twice of each: one that is not deterministic is no changed output.
#[test]
fn a_server_that_is_not_deterministic_is_told_so_before_it_is_under_load() {
    let sandbox = Sandbox::new();
    let (base, head) = (that_says_the_prompt(true), that_says_the_prompt(true));
    let urls = [format!("--base-url={base}"), format!("--head-url={head}")];
    let said = sandbox.run(&["gate", &urls[0], &urls[1], "--users=3", "--server-window-s=0.3", "--quick"]).code(3);
    assert!(stderr(&said).contains("the same prompt gives another text in another request"), "{}", stderr(&said));
}

/// Servers that run already are asked the same prompts, those that windows repeat among them.
#[test]
fn equal_servers_that_run_already_say_the_same_under_load() {
    let sandbox = Sandbox::new();
    let (base, head) = (that_says_the_prompt(false), that_says_the_prompt(false));
    let urls = [format!("--base-url={base}"), format!("--head-url={head}")];
    let load = ["--users=3", "--server-window-s=1", "--memory-runs=20", "--budget=15s", "--out=paired.json"];
    let said = sandbox.run(&[&["gate", &urls[0], &urls[1]], &load[..]].concat());
    assert!(!stdout(&said).contains("output changed"), "{}", stdout(&said));
    assert!(sandbox.path("paired.json").is_file(), "{}", stderr(&said));
    let receipt = sandbox.receipt();
    assert!(!receipt.blocks.is_empty(), "{}", stdout(&said));
    let mut answers = receipt.blocks.iter().flat_map(|block| &block.windows).map(|window| window.answers);
    assert!(answers.all(|seen| seen.repeated > 0 && seen.changed == 0), "{}", stdout(&said));
}

/// Ends once its child has a connection, which answers in its place.
const TAKEN_PORT: &str = r#"import os, socket, sys
reading, writing = os.pipe()
parent = os.getpid()
if os.fork():
    os.read(reading, 1)
    os._exit(0)
answering, _ = socket.create_server(("127.0.0.1", int(sys.argv[1]))).accept()
os.write(writing, b"1")
while os.getppid() == parent:
    pass
answering.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
"#;

#[test]
fn another_server_on_its_port_does_not_answer_for_one_that_has_ended() {
    let sandbox = repository("1", "1");
    let script = sandbox.write("taken.py", TAKEN_PORT);
    let line = error(gate(&sandbox, &[&format!("--server-command=python3,{},{{port}}", script.display())]));
    assert!(line.contains("the server ended before it was ready (exit status: 0)"), "{line}");
}

/// Short windows, for times that no busy machine hides.
const UNDER_LOAD: &[&str] = &["--users=3", "--server-window-s=0.3", "--memory-runs=20"];

#[test]
fn many_users_show_a_server_whose_tokens_come_late() {
    let sandbox = repository("1", "15");
    let more = [UNDER_LOAD, &["--json=verdict.json", "--out=paired.json", "--report=report"]].concat();
    let said = gate(&sandbox, &more).code(1);
    let report = stdout(&said);
    assert!(report.contains("chat/3-users/token") && report.contains("tok/s"), "{report}");
    let verdict = read::<Verdict>(&sandbox.path("verdict.json")).expect("a verdict");
    assert_eq!(verdict.verdict, Outcome::Regressed);
    let times: Vec<&VerdictRow> = verdict.rows.iter().filter(|row| row.time().is_some()).collect();
    let names: Vec<String> = times.iter().map(|row| row.subject.to_string()).collect();
    let wanted = ["token", "ttft-p90", "itl-p90", "longest-gap"].map(|name| format!("chat/3-users/{name}"));
    assert_eq!(names, wanted, "single requests are not timed then");
    assert!(times.iter().any(|row| row.outcome == Outcome::Regressed));
    let counters: Vec<&VerdictRow> =
        verdict.rows.iter().filter(|row| row.subject.to_string() == "load:chat/3 users").collect();
    assert_eq!(counters.iter().map(|row| row.outcome).collect::<Vec<_>>(), [Outcome::Pass; 4]);
    let receipt = sandbox.receipt();
    let memory = receipt.memory.as_ref().map(|memory| (memory.partial, memory.asked_runs));
    assert_eq!(memory, Some((false, 20)), "{:?}", receipt.broken);
    let answers = receipt.blocks.iter().flat_map(|block| &block.windows).map(|window| window.answers);
    assert!(answers.into_iter().all(|seen| seen.compared_bytes > 0 && seen.repeated > 0 && seen.changed == 0));
    let sides = |at: usize| receipt.blocks[at].windows.iter().map(|window| window.side).collect::<Vec<_>>();
    let first = receipt.blocks[0].ran_first;
    assert_eq!(sides(0), [first, first.other(), first.other(), first]);
    assert!(receipt.blocks.iter().flat_map(|block| &block.windows).all(|window| window.output_tokens > 0));
    for file in ["comment.md", "report.html"] {
        let text = std::fs::read_to_string(sandbox.path("report").join(file)).expect(file);
        assert!(text.contains("chat/3-users/token") && text.contains("system time per token"), "{file}");
    }
}

/// No file has room for its output.
#[test]
fn the_last_words_of_a_server_that_prints_much_are_shown() {
    let sandbox = repository("1", "1");
    sandbox.write("start.sh", "ulimit -f 1; yes | head -c 1000000; echo no memory; exit 3\n");
    let line = error(gate(&sandbox, &[]));
    assert!(line.contains("(exit status: 3); its last output: no memory"), "{line}");
}

#[test]
fn a_server_that_dies_is_named_with_its_last_words() {
    let sandbox = repository("1", "1");
    let serve = support::example("serve");
    let script = format!(
        "'{}' --port \"$1\" --timed 200,20 & sleep 2; kill -9 $!; wait $!; printf 'out of \\033[2Jmemory\\n'; exit 3\n",
        serve.display()
    );
    sandbox.write("start.sh", &script);
    let line = error(gate(&sandbox, UNDER_LOAD));
    assert!(line.contains("head: "), "{line}");
    assert!(line.contains("the server ended") && line.contains("its last output: out of \\u{1b}[2Jmemory"), "{line}");
}
