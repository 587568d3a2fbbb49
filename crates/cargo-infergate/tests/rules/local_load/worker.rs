//! Levels from a worker process, and answers that cannot be.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use infergate::engine::LoadRequest;
use infergate::load::run_level;
use infergate_core::load::{Arrivals, LevelPlan, LoadLevel, Stop, Window};
use infergate_core::worker::{Client, Timeouts, WorkerError, WorkerFile};
use infergate_receipts::{LoadBaseline, LoadReceipt, Outcome, Verdict, read, write_json};

use crate::fake::{FakeEngine, FakeScript, VirtualClock};
use crate::local_load::engines::{NEVER, plan};
use crate::support;

/// `load --target local:MODEL` on the fake that serves, in an empty folder.
fn load(folder: &Path, model: &str, worker: &Path, more: &[&str]) -> Assert {
    fs::create_dir_all(folder.join(".git")).expect("the search for infergate.toml ends here");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-infergate"));
    command.current_dir(folder).args([
        "infergate",
        "load",
        "--target",
        &format!("local:{model}"),
        "--out",
        "load.json",
    ]);
    command.arg("--worker").arg(worker).args(["--input-tokens=8", "--output-tokens=4"]).args(more);
    // An engine of these tests takes no time.
    command.env("INFERGATE_VIRTUAL_CLOCK", "1").env("INFERGATE_LOCK", folder.join(".git/lock")).assert()
}

fn stdout(assert: &Assert) -> String {
    String::from_utf8_lossy(&assert.get_output().stdout).into_owned()
}

fn error(assert: Assert) -> String {
    let stderr = String::from_utf8_lossy(&assert.code(2).get_output().stderr).into_owned();
    stderr.lines().last().unwrap_or_default().to_owned()
}

/// Runs on the fake are the same to the nanosecond.
#[test]
fn a_run_is_judged_by_the_baseline_at_the_usual_place_in_the_usual_folder_or_another() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    let run = |more: &[&str]| {
        load(folder, "fake", &support::example("fake_load"), &[&["--users=4", "--requests=40"], more].concat())
    };
    let last = |said: &Assert| stdout(said).lines().last().unwrap_or_default().to_owned();
    let verdict = |name: &str| read::<Verdict>(&folder.join(name)).expect("a verdict");
    assert!(!stdout(&run(&[]).success()).contains("verdict"), "nothing to judge by");
    let alone = run(&["--require-baseline", "--json=verdict.json"]).code(4);
    assert!(last(&alone).contains("not comparable (exit 4)"), "{alone}");
    assert_eq!(verdict("verdict.json").verdict, Outcome::NotComparable);

    let mut session = read::<LoadReceipt>(&folder.join("load.json")).expect("a receipt");
    let mut baseline = LoadBaseline::from_receipt(&session);
    for day in 2..=8 {
        session.created = format!("2026-01-{day:02}T00:00:00Z");
        baseline.add(&session, false);
    }
    let usual = folder.join("baselines").join(LoadBaseline::file_name(&session));
    write_json(&usual, &baseline).expect("a file");
    let same = run(&["--json=verdict.json"]).success();
    assert!(
        last(&same).starts_with("verdict: pass (exit 0): 1 load level, none slower by more than "),
        "{}",
        last(&same)
    );
    let tables = stdout(&same);
    assert!(tables.contains("Time to first token") && tables.contains("within limit"), "{tables}");

    for level in baseline.sessions.iter_mut().flat_map(|session| &mut session.levels) {
        level.ttft_p50_ns = level.ttft_p50_ns.map(|ns| ns / 2.0);
    }
    let faster = folder.join("faster").join(LoadBaseline::file_name(&session));
    write_json(&faster, &baseline).expect("a file");
    let slower = run(&["--baselines=faster", "--json=verdict.json"]).code(1);
    let expected = "verdict: regressed (exit 1): load:plain/4 users TTFT +100 % (";
    assert!(last(&slower).starts_with(expected), "{}", last(&slower));
    assert_eq!(verdict("verdict.json").exit_code, 1);
}

#[test]
fn a_baseline_that_cannot_be_used_is_refused_before_anything_is_measured() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    let (fake, out) = (support::example("fake_load"), folder.join("load.json"));
    load(folder, "fake", &fake, &["--users=1", "--requests=20"]).success();
    let receipt = read::<LoadReceipt>(&out).expect("a receipt");
    let usual = folder.join("baselines").join(LoadBaseline::file_name(&receipt));
    fs::create_dir_all(usual.parent().expect("a folder")).expect("a folder");
    fs::write(&usual, "{\"schema\": \"infergate.load-baseline/1\", \"sessions\": 3}").expect("a file");
    assert!(error(load(folder, "fake", &fake, &[])).contains("not a usable file"));
    assert!(!out.exists());
}

#[test]
fn what_cannot_be_served_is_said_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let fake = support::example("fake_load");
    let failed = |model: &str, more: &[&str]| error(load(folder.path(), model, &fake, more));
    let broken = load(folder.path(), "fake:fails", &fake, &["--users=3"]).code(3);
    assert!(
        stdout(&broken).contains("the engine was cut short: the fake engine failed at step 4"),
        "{}",
        stdout(&broken)
    );
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/workers/silent.sh");
    assert!(error(load(folder.path(), "m", &old, &[])).contains("build it with a newer infergate"));
    assert!(failed("fake", &["--model=x"]).contains("stands behind local:"));
    assert!(failed("fake", &["--target=other=http://127.0.0.1:1"]).contains("told apart by names"));
}

/// A plan, and an answer to it that takes a microsecond: six measured requests and one behind them.
fn sound() -> (LevelPlan, LoadLevel) {
    let clock = VirtualClock::default();
    let script = FakeScript { prefill_ns_per_token: 1, step_ns: 1, first_sample_ns: 1, ..FakeScript::default() };
    let plan = plan(Arrivals::Closed { users: 2 }, Stop::Requests { count: 6 }, 2);
    let mut engine = FakeEngine::new(script, clock.clone());
    let level = run_level(&mut engine, &clock, &plan).expect("runs");
    (plan, level)
}

/// What the asking side says of a worker that answers `level`.
fn ask(plan: &LevelPlan, level: &LoadLevel) -> Result<LoadLevel, WorkerError> {
    let folder = tempfile::tempdir().expect("a folder");
    let answer = folder.path().join("answer.json");
    let line = serde_json::json!({ "ok": level }).to_string();
    fs::write(&answer, format!("{line}\n")).expect("writable");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/workers/level.sh");
    let load = LoadRequest { model: answer.display().to_string(), ..LoadRequest::default() };
    let (mut client, _) = Client::spawn(&WorkerFile::open(&script)?, &load, Timeouts::default(), &NEVER)?;
    client.load(&load, None)?;
    client.load_level(plan)
}

#[test]
fn a_sound_answer_is_taken_as_it_is() {
    let (plan, level) = sound();
    assert_eq!(ask(&plan, &level).expect("taken"), level);
}

#[test]
fn answers_that_cannot_be_are_refused() {
    let (plan, good) = sound();
    let refused = |change: &dyn Fn(&mut LoadLevel), why: &str| {
        let mut level = good.clone();
        change(&mut level);
        let error = ask(&plan, &level).expect_err(why);
        let text = error.to_string();
        assert!(matches!(error, WorkerError::Unusable(_)) && text.contains(why), "{error:?} where {why}");
        assert!(!text.chars().any(char::is_control), "{text:?}");
    };
    refused(&|level| level.records[1].chunk_ns.reverse(), "times that go back");
    refused(&|level| level.records[1].sent_ns = u64::MAX, "times that go back");
}

#[test]
fn a_level_that_took_longer_than_the_wait_cannot_be_true() {
    let (plan, mut level) = sound();
    level.records[5].ended_ns = u64::MAX;
    level.steady = Some(Window { from_ns: 0, to_ns: u64::MAX });
    let error = ask(&plan, &level).expect_err("cannot be true");
    assert!(matches!(error, WorkerError::Invalid(_)) && error.to_string().contains("clock"), "{error:?}");
}
