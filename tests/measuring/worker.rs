//! What a worker may do wrong is one line and an end, never a wait without end, a wrong number or a full memory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use infergate::engine::LoadRequest;
use infergate_core::case::Case;
use infergate_core::worker::{Client, Hello, Sampling, Timeouts, WorkerError, WorkerFile, trust_virtual_clocks};

static NEVER: AtomicBool = AtomicBool::new(false);

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workers").join(format!("{name}.sh"))
}

fn case(id: &str) -> Case {
    id.parse().expect("a case id")
}

fn spawn_at(program: &Path, model: &str, timeouts: Timeouts) -> Result<(Client<'static>, Hello), WorkerError> {
    let load = LoadRequest { model: model.into(), ..LoadRequest::default() };
    Client::spawn(&WorkerFile::open(program)?, &load, timeouts, &NEVER)
}

fn spawn(name: &str) -> Client<'static> {
    spawn_at(&script(name), "m", Timeouts::default()).expect("says hello").0
}

fn load(client: &mut Client) -> Result<(), WorkerError> {
    client.load(&LoadRequest { model: "m".into(), ..LoadRequest::default() }, None).map(|_| ())
}

/// What becomes of a worker that says hello and then does what a shell is told, by `commands`.
fn after_hello(commands: &str) -> Client<'static> {
    spawn_at(&script("told"), commands, Timeouts::default()).expect("says hello").0
}

/// The answer to `load` of an engine with such a context.
fn loaded(context_tokens: u64) -> String {
    format!(
        r#"{{"ok":{{"engine":{{"name":"s","version":"1","model":"m","dtype":"none","context_tokens":{context_tokens},"vocab_tokens":9}},"load_ns":1}}}}"#
    )
}

/// The one line of an error that must be a broken protocol.
#[track_caller]
fn broken<T>(result: Result<T, WorkerError>) -> String {
    match result {
        Err(WorkerError::Unusable(text)) => {
            assert!(text.lines().count() == 1 && !text.contains('\u{1b}') && !text.ends_with('.'), "{text}");
            text
        }
        Err(other) => panic!("another error: {other:?}"),
        Ok(_) => panic!("no error"),
    }
}

#[test]
fn a_worker_that_says_hello_and_then_nothing_is_ended_after_its_limit() {
    let short = Timeouts { first: Duration::from_millis(50), ..Timeouts::default() };
    let (mut client, _) = spawn_at(&script("silent"), "m", short.clone()).expect("says hello");
    let error = load(&mut client).expect_err("hangs");
    assert!(matches!(error, WorkerError::Unusable(_)) && error.to_string().contains("was ended"), "{error}");
    // Nor does a request wait that is too long for the pipe of a worker that does not read.
    let (mut client, _) = spawn_at(&script("silent"), "m", short).expect("says hello");
    let prompt = "x".repeat(1 << 20);
    let error = client.load(&LoadRequest::default(), Some(&prompt)).expect_err("hangs");
    assert!(matches!(error, WorkerError::Unusable(_)) && error.to_string().contains("was ended"), "{error}");
}

#[test]
fn an_interruption_ends_the_wait_at_once() {
    let cancelled = AtomicBool::new(false);
    let file = WorkerFile::open(&script("silent")).expect("a file");
    let (mut client, _) =
        Client::spawn(&file, &LoadRequest::default(), Timeouts::default(), &cancelled).expect("says hello");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| load(&mut client));
        cancelled.store(true, Ordering::Relaxed);
        let error = waiting.join().expect("no panic").expect_err("cancelled");
        assert!(matches!(error, WorkerError::Interrupted(_)), "{error}");
    });
}

#[test]
fn a_line_without_end_takes_no_memory() {
    let text = broken(load(&mut spawn("endless-line")));
    assert!(text.contains("longer than 16 MiB"), "{text}");
}

#[test]
fn an_answer_nobody_asked_for_is_not_taken_for_the_next_one() {
    let text = broken(spawn_at(&script("two-answers"), "m", Timeouts::default()));
    assert!(text.contains("more than one line"), "{text}");
    let text = broken(load(&mut spawn("other-request")));
    assert!(text.contains("another request"), "{text}");
}

#[test]
fn a_worker_that_closes_its_output_is_not_waited_for() {
    let mut client = spawn("leaves");
    load(&mut client).expect("loads");
    let error = client.memory(None).expect_err("gone");
    assert!(
        matches!(error, WorkerError::Unusable(_)) && error.to_string().contains("ended before it answered"),
        "{error:?}"
    );
}

#[test]
fn a_dead_worker_is_noticed_though_what_it_started_holds_its_output_open() {
    let error = load(&mut after_hello("read -r _; sleep 1000 & kill -KILL $$")).expect_err("killed");
    assert!(matches!(&error, WorkerError::Unusable(why) if why.contains("signal: 9")), "{error:?}");
}

#[test]
fn a_worker_may_remove_what_it_made_at_the_end_of_its_input_and_one_that_does_not_end_is_not_waited_for_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let left = folder.path().join("left");
    let tidies = format!("read -r _; : > '{0}'; echo '{1}'; cat > /dev/null; rm '{0}'", left.display(), loaded(64));
    let mut client = after_hello(&tidies);
    load(&mut client).expect("loads");
    assert!(left.exists());
    drop(client);
    assert!(!left.exists(), "it was not waited for");

    let lingers = |program: &Path| {
        let file = WorkerFile::open(program).expect("a file");
        let request = LoadRequest { model: "fake:".into(), ..LoadRequest::default() };
        drop(Client::spawn(&file, &request, Timeouts::default(), &NEVER).expect("says hello"));
        file.program().lingers.load(Ordering::Relaxed)
    };
    assert!(lingers(&script("silent")));
    assert!(!lingers(&crate::support::example("fake_engine")), "an engine in Rust ends with its input");
}

#[test]
fn what_no_receipt_may_hold_is_refused_before_anything_is_measured() {
    let text = broken(load(&mut after_hello(&format!("read -r _; echo '{}'", loaded(u64::MAX)))));
    assert!(text.contains("context_tokens is 18446744073709551615") && text.contains("Engine::info"), "{text}");
}

#[test]
fn a_newer_worker_is_asked_for_what_both_know() {
    let mut client = spawn("newer");
    load(&mut client).expect("loads");
    assert_eq!(client.prepare(case("decode/p1"), None).expect("prepares").output.ids, [7, 7]);
    assert_eq!(client.sample(case("decode/p1"), Sampling::of(1, 1)).expect("samples").samples_ns, [[100]]);
    let error = client.turn(case("generate/p1-o2"), 2).expect_err("it does not list that");
    assert!(
        matches!(error, WorkerError::Refused(_)) && error.to_string().contains("does not know \"turn\""),
        "{error}"
    );
}

#[test]
fn answers_of_another_size_or_shape_are_refused() {
    let mut client = spawn("unsound");
    load(&mut client).expect("loads");
    assert!(broken(client.prepare(case("decode/p1"), None)).contains("3 output tokens"));
    assert!(broken(client.sample(case("decode/p1"), Sampling::of(3, 1))).contains("4 samples"));
    assert!(broken(client.sample(case("decode/p1"), Sampling::of(4, 1))).contains("with 0 times"));
    assert!(broken(client.turn(case("generate/p1-o2"), 2)).contains("0 tokens"));
    assert!(broken(client.memory(None)).contains("one of `ok`, `error` and `invalid`"));
}

#[test]
fn an_output_that_is_not_the_one_of_an_earlier_process_is_invalid() {
    let mut client = spawn("newer");
    load(&mut client).expect("loads");
    client.prepare(case("decode/p1"), Some(vec![7, 7])).expect("the same");
    let error = client.prepare(case("decode/p1"), Some(vec![7, 8])).expect_err("another");
    let text = error.to_string();
    assert!(matches!(error, WorkerError::Invalid(_)) && text.contains("decode/p1: output token 2"), "{text}");
}

#[test]
fn times_that_nobody_waited_for_are_invalid() {
    let mut client = spawn("unsound");
    load(&mut client).expect("loads");
    for error in [
        client.sample(case("decode/p1"), Sampling::of(1, 1)).map(drop),
        client.sample(case("decode/p1"), Sampling::of(2, 1)).map(drop),
        client.ttft(1).map(drop),
    ] {
        let error = error.expect_err("cannot be true");
        assert!(matches!(error, WorkerError::Invalid(_)) && error.to_string().contains("clock"), "{error:?}");
    }
}

#[test]
fn an_engine_may_print() {
    trust_virtual_clocks();
    let (mut client, _) =
        spawn_at(&crate::support::example("fake_engine"), "fake:prints", Timeouts::default()).expect("says hello");
    let load = LoadRequest { model: "fake:prints".into(), ..LoadRequest::default() };
    client.load(&load, None).expect("loads");
    client.prepare(case("generate/p8-o8"), None).expect("prepares");
    let samples = client.sample(case("decode/p8"), Sampling::of(2, 1)).expect_err("was not prepared");
    assert!(matches!(samples, WorkerError::Refused(_)), "{samples}");
    assert_eq!(client.sample(case("generate/p8-o8"), Sampling::of(2, 3)).expect("samples").samples_ns.len(), 2);
}

#[test]
fn a_file_that_is_rebuilt_shows_and_one_that_is_touched_does_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("worker");
    fs::write(&path, "one build").expect("writable");
    let file = WorkerFile::open(&path).expect("a file");
    assert_eq!(file.sha256().len(), 64);
    file.ensure_unchanged().expect("the same");
    fs::remove_file(&path).expect("removable");
    assert!(file.ensure_unchanged().is_err(), "it is gone");
    fs::write(&path, "one build").expect("writable");
    file.ensure_unchanged().expect("the same bytes");
    let file = WorkerFile::open(&path).expect("a file");
    let modified = || fs::metadata(&path).and_then(|metadata| metadata.modified()).expect("a time");
    let before = modified();
    // The system's clock for files goes in steps.
    while modified() == before {
        fs::write(&path, "two build").expect("writable");
    }
    let written = File::options().write(true).open(&path);
    written.and_then(|written| written.set_modified(before)).expect("its time is set back");
    let error = file.ensure_unchanged().expect_err("as long, and other bytes").to_string();
    assert!(error.contains("rebuilt"), "{error}");
    for (bad, why) in [(folder.path().join("none"), "cargo bench --no-run"), (folder.path().into(), "no regular file")]
    {
        let error = WorkerFile::open(&bad).expect_err("no file").to_string();
        assert!(error.contains(why), "{error}");
    }
}
