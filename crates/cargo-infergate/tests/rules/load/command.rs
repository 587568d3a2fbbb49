//! `cargo infergate load`, as a user runs it.

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;

use infergate_core::load::FailureClass;
use infergate_receipts::{LoadReceipt, read};
use tempfile::TempDir;

use crate::load::faults::{answer, next_request, server};
use crate::load::script::HEAD;

pub struct Place {
    pub folder: TempDir,
}

impl Place {
    pub fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        std::fs::create_dir(folder.path().join(".git")).expect("the search for infergate.toml ends here");
        Self { folder }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-infergate"));
        command
            .current_dir(self.folder.path())
            .args(["infergate", "load"])
            .args(arguments)
            .env_remove("CARGO_TARGET_DIR")
            .env("KEY", "SECRET")
            // It waits for nobody else on this machine.
            .env("INFERGATE_LOCK", self.folder.path().join(".git/lock"));
        command
    }

    pub fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let Output { status, stdout, stderr } = self.command(arguments).output().expect("it starts");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (status.code(), text(stdout), text(stderr))
    }

    pub fn receipt(&self, name: &str) -> LoadReceipt {
        read(&self.folder.path().join(name)).expect("a receipt")
    }

    #[track_caller]
    pub fn refused(&self, arguments: &[&str]) -> String {
        let (code, said, error) = self.run(arguments);
        assert_eq!((code, said.as_str()), (Some(2), ""), "{error}");
        assert!(error.starts_with("error: "), "{error}");
        error
    }
}

pub fn polite() -> String {
    answers(true)
}

/// A server that answers requests with the key alone, or those without it.
fn answers(with_key: bool) -> String {
    let port = server(move |_, connection| {
        while let Some(request) = next_request(connection) {
            let known = request.contains("authorization: Bearer SECRET") == with_key;
            let refused = "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n".to_owned();
            let _ = connection.write_all(if known { answer(4) } else { refused }.as_bytes());
        }
    });
    format!("http://127.0.0.1:{port}")
}

const SMALL: [&str; 6] =
    ["--model=m", "--users=1,2", "--requests=40", "--input-tokens=8", "--output-tokens=4", "--seed=3"];

/// The server answers at once: its gaps are below what the client can see, and the run says so.
#[test]
fn a_run_keeps_a_receipt_shows_its_tables_and_says_what_it_cannot_know() {
    let place = Place::new();
    let url = polite();
    let (code, said, error) =
        place.run(&[&["--target", &url, "--api-key-env=KEY", "--out=load.json"], &SMALL[..]].concat());
    assert_eq!(code, Some(3), "{said}{error}");
    let receipt = place.receipt("load.json");
    assert!(!receipt.partial && !receipt.invalid.is_empty(), "{:?}", receipt.invalid);
    assert_eq!((receipt.levels.len(), receipt.audits.len(), receipt.seed), (2, 2, 3));
    for level in &receipt.levels {
        assert_eq!(level.requests.iter().filter(|record| record.measured).count(), 40);
        assert!(level.requests.len() > 40, "warm-up");
        assert!(level.requests.iter().all(|record| record.failure.is_none() && record.chunk_ns.len() == 4));
    }
    for words in ["Time to first token", "Self-audit before the run", "verdict: invalid (exit 3)"] {
        assert!(said.contains(words), "{words} is not in {said}");
    }
    let text = std::fs::read_to_string(place.folder.path().join("load.json")).expect("a receipt");
    for shown in [&said, &error, &text] {
        assert!(!shown.contains("SECRET"), "{shown}");
    }
    assert!(error.contains("plain, 1 user") && error.contains("receipt: load.json"), "{error}");
}

#[test]
fn a_server_that_refuses_every_request_ends_the_run_with_its_words_printed_clean() {
    let place = Place::new();
    let port = server(|_, connection| {
        while next_request(connection).is_some() {
            let text = "{\"error\":{\"message\":\"\\u001b[2JNumber of choices SECRET\"}}";
            let head = format!("HTTP/1.1 400 No\r\nContent-Length: {}\r\n\r\n", text.len());
            let _ = connection.write_all((head + text).as_bytes());
        }
    });
    let target = format!("--target=http://127.0.0.1:{port}");
    let flags = ["--model=m", "--users=1,2", "--requests=1", "--input-tokens=8", "--output-tokens=4"];
    let (code, said, error) =
        place.run(&[&[target.as_str(), "--api-key-env=KEY", "--out=load.json"], &flags[..]].concat());
    assert_eq!((code, said.as_str()), (Some(2), ""), "{error}");
    let lines: Vec<&str> = error.lines().filter(|line| line.contains("Number of choices")).collect();
    assert_eq!(lines, ["the server says: \\u{1b}[2JNumber of choices [hidden]"], "{error}");
    assert!(error.contains("\nerror: target 1: status 400: the server refused the request"), "{error}");
    assert!(!place.folder.path().join("load.json").exists(), "it has measured nothing");
    assert!(!error.contains("SECRET") && !error.contains('\u{1b}'), "{error}");
}

/// 192.0.2.1 is an address of documentation: nothing is asked there, because the key is refused first, or it cannot be reached.
#[test]
fn a_key_goes_over_plain_http_to_this_machine_alone() {
    let place = Place::new();
    let other =
        ["--target=http://192.0.2.1:9/v1?key=SECRET", "--model=m", "--api-key-env=KEY", "--users=1", "--requests=1"];
    let error = place.refused(&other);
    assert!(
        error.trim_end().ends_with(
            "--target http://192.0.2.1:9/v1/chat/completions: over plain http everybody on the way could read the API key; \
             write https://, or say --key-over-http"
        ),
        "{error}"
    );
    let (code, said, error) =
        place.run(&[&other[..], &["--key-over-http", "--timeout=100ms", "--attempts=1"]].concat());
    assert_eq!(code, Some(3), "{said}{error}");
}

#[test]
fn a_key_goes_to_its_target_alone() {
    let place = Place::new();
    let (with_key, without) = (format!("--target=P/A={}", answers(true)), format!("--target=B={}", answers(false)));
    let both = [&with_key, &without, "--model=m", "--input-tokens=8", "--output-tokens=4"];
    let error = place.refused(&[&both[..], &["--api-key-env=KEY"]].concat());
    assert!(error.contains("write NAME=... with the name of the one it belongs to"), "{error}");
    assert!(place.refused(&[&both[1..], &["--target=http://127.0.0.1:1"]].concat()).contains("NAME=URL for each"));
    assert!(place.refused(&[&both[..], &[&with_key]].concat()).contains("two are named P/A"));
    let (code, said, _) = place.run(
        &[&both[..], &["--api-key-env=P/A=KEY", "--price=B=1,2.5", "--users=2", "--requests=20", "--out=o.json"]]
            .concat(),
    );
    assert!(code.is_some_and(|code| code != 2), "{said}");
    let prices: Vec<Option<f64>> =
        place.receipt("o.json").targets.iter().map(|target| Some(target.price()?.output_per_million)).collect();
    assert_eq!(prices, [None, Some(2.5)], "a price belongs to one target too");
    for record in &place.receipt("o.json").levels[0].requests {
        assert_eq!(record.failure.as_ref().and_then(|failure| failure.status), None);
    }
}

/// It would be one that nobody gave.
#[test]
fn a_flag_that_another_one_leaves_without_effect_is_refused() {
    let (place, target) = (Place::new(), ["--target=http://127.0.0.1:1", "--model=m"]);
    for flags in [["--users=2", "--rate=1"], ["--users=2", "--max-users=8"], ["--dataset=none", "--shared-prefix=8"]] {
        let error = place.refused(&[target, flags].concat());
        assert!(error.contains("cannot be used with") || error.contains("required arguments"), "{error}");
    }
}

/// As deploy/slurm-array.sbatch makes it. Two users are too few, which is looked at once the time was read.
#[test]
fn the_common_start_of_tasks_of_slurm_is_a_time() {
    let file = include_str!("../../../../../deploy/slurm-array.sbatch");
    let date = file.split_once("START_AT=$(").and_then(|(_, rest)| rest.split_once(')')).expect("a command").0;
    let start = Command::new("sh").args(["-c", date]).output().expect("it starts").stdout;
    let start = format!("--start-at={}", String::from_utf8(start).expect("UTF-8").trim());
    let error = Place::new().refused(&["--target=http://127.0.0.1:1", "--model=m", "--shard=1/3", "--users=2", &start]);
    assert!(error.contains("fewer than the 3 shards"), "{error}");
}

/// A server that never answers, and Ctrl-C while all users wait for it.
#[cfg(unix)]
#[test]
fn ctrl_c_keeps_a_partial_receipt_and_never_passes() {
    let place = Place::new();
    let (waits, waiting) = mpsc::channel();
    let port = server(move |_, connection| {
        if next_request(connection).is_some_and(|request| request.contains("\"m\"")) {
            let _ = connection.write_all(HEAD.as_bytes());
            let _ = waits.send(());
        }
        while next_request(connection).is_some() {}
    });
    let url = format!("http://127.0.0.1:{port}");
    let mut command =
        place.command(&["--target", &url, "--model=m", "--users=20", "--input-tokens=8", "--output-tokens=4"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    for _ in 0..20 {
        waiting.recv().expect("every user waits");
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(killed.success());
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("readable");
    let mut report = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut report).expect("readable");
    assert_eq!(child.wait().expect("it ends").code(), Some(3), "{said}{report}");
    assert!(report.contains("verdict: partial (exit 3)"), "{report}");
    let receipt = place.receipt("target/infergate/load.json");
    assert!(receipt.partial);
    let level = &receipt.levels[0];
    assert_eq!(level.requests.len(), 20);
    let cancelled = |class: FailureClass| class == FailureClass::Cancelled;
    assert!(level.requests.iter().all(|r| r.failure.as_ref().is_some_and(|failure| cancelled(failure.class))));
}
