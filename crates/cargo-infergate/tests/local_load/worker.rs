//! Levels from a worker process, and answers that cannot be.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cargo_infergate::load_local::{self, LocalRequest, closed_levels};
use infergate::clock::VirtualClock;
use infergate::engine::fake::FakeScript;
use infergate::engine::{FakeEngine, LoadRequest};
use infergate::load::{Arrivals, LevelPlan, LoadLevel, RequestShape, Spacing, Stop, run_level};
use infergate::progress::Progress;
use infergate::worker::{Client, Patience, Request, WorkerError, WorkerFile, trust_virtual_clocks};

use crate::engines::{NEVER, plan};
use crate::support;

const SHAPE: RequestShape = RequestShape { prompt_tokens: 8, output_tokens: 4, shared_prefix_tokens: 0 };

fn request(model: &str, levels: Vec<LevelPlan>) -> LocalRequest {
    let load = LoadRequest { model: model.into(), ..LoadRequest::default() };
    LocalRequest { worker: support::example("fake_load"), commit: None, dirty: None, load, levels }
}

#[test]
fn every_level_is_run_in_turn() {
    trust_virtual_clocks();
    let mut labels = Vec::new();
    let mut note = |progress: &Progress| labels.push((progress.label.clone(), progress.done_steps));
    let run =
        load_local::run(&request("fake", closed_levels(&[1, 4], 5, &[SHAPE], 1)), &mut note, &NEVER).expect("runs");
    assert!(!run.partial);
    assert_eq!(run.engine.name, "fake");
    assert_eq!(run.build.worker_sha256.as_ref().map(String::len), Some(64));
    let seen: Vec<_> = run
        .levels
        .iter()
        .map(|(plan, level)| (plan.slots, level.records.len(), level.largest_batch, level.compared))
        .collect();
    assert_eq!(seen, [(1, 5, 1, 3), (4, 20, 4, 3)]);
    let prompts_differ = run.levels[0].1.records[0].output_sha256 != run.levels[1].1.records[0].output_sha256;
    assert!(prompts_differ, "no level measures what another one left in a cache");
    let said: Vec<(&str, usize)> = labels.iter().map(|(label, done)| (label.as_str(), *done)).collect();
    assert_eq!(said, [("loading", 0), ("warming up", 0), ("1 user", 0), ("4 users", 1)]);
}

#[test]
fn what_cannot_be_served_is_said_in_one_line() {
    trust_virtual_clocks();
    let error = |model: &str, levels: Vec<LevelPlan>| {
        let error = load_local::run(&request(model, levels), &mut |_| {}, &NEVER).expect_err("fails");
        assert_eq!(error.to_string().lines().count(), 1);
        error
    };
    let levels = || closed_levels(&[3], 2, &[SHAPE], 1);
    let changed = error("fake:changes", levels());
    assert!(matches!(changed, WorkerError::Invalid(_)), "{changed}");
    assert!(changed.to_string().starts_with("3 users: request") && changed.to_string().contains("must not change"));
    assert!(error("fake:alone", levels()).to_string().contains("room for one sequence"));
    assert!(error("fake", Vec::new()).to_string().contains("without levels"));
    let long = RequestShape { prompt_tokens: 1024, ..SHAPE };
    assert!(error("fake", closed_levels(&[1], 1, &[long], 1)).to_string().starts_with("level 1: 1028 tokens"));
    let failed = load_local::run(&request("fake:fails", levels()), &mut |_| {}, &NEVER).expect("answers");
    assert_eq!(failed.levels[0].1.cut_short.as_deref(), Some("the fake engine failed at step 4"));
}

#[test]
fn an_old_worker_is_refused_in_a_sentence() {
    let worker = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/workers/protocol-2.sh");
    let request = LocalRequest { worker, ..request("m", closed_levels(&[1], 1, &[SHAPE], 1)) };
    let error = load_local::run(&request, &mut |_| {}, &NEVER).expect_err("refused");
    assert!(matches!(error, WorkerError::Refused(_)), "{error:?}");
    assert!(error.to_string().contains("build it with a newer infergate"), "{error}");
}

#[test]
fn a_run_that_is_ended_keeps_its_levels() {
    trust_virtual_clocks();
    let cancelled = AtomicBool::new(false);
    let mut end_at_second = |progress: &Progress| {
        if progress.done_steps == 1 {
            cancelled.store(true, Ordering::Relaxed);
        }
    };
    let run =
        load_local::run(&request("fake", closed_levels(&[1, 2, 3], 2, &[SHAPE], 1)), &mut end_at_second, &cancelled)
            .expect("keeps");
    assert!(run.partial);
    assert_eq!(run.levels.len(), 1);
}

/// A plan, and an answer to it that takes a microsecond.
fn sound() -> (LevelPlan, LoadLevel) {
    let clock = VirtualClock::default();
    let script = FakeScript { prefill_ns_per_token: 1, step_ns: 1, first_sample_ns: 1, ..FakeScript::default() };
    let plan = plan(Arrivals::Closed { users: 2 }, Stop::Requests { count: 6 }, 2);
    let mut engine = FakeEngine::new(script, clock.clone());
    let level = run_level(&mut engine, &clock, &plan, &NEVER).expect("runs");
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
    let (mut client, _) = Client::spawn(&WorkerFile::open(&script)?, &load, Patience::default(), &NEVER)?;
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
        assert!(matches!(error, WorkerError::Protocol(_)) && text.contains(why), "{error:?} where {why}");
        assert!(!text.chars().any(char::is_control), "{text:?}");
    };
    refused(&|level| level.slots = 3, "3 slots where 2 were asked for");
    refused(&|level| level.largest_batch = 3, "a batch of 3 in 2 slots");
    refused(&|level| drop(level.records.pop()), "5 requests where 6 were asked for");
    refused(&|level| level.records.push(level.records[5].clone()), "7 requests where 6 were asked for");
    refused(&|level| level.compared = 2, "2 outputs compared of 6");
    refused(&|level| level.compared = 7, "7 outputs compared of 6");
    refused(&|level| level.cut_short = Some("\u{1b}[2J".into()), "control characters");
    refused(&|level| level.records[1].request = 2, "request 1 says that it is number 2");
    refused(&|level| level.records[1].scenario = 1, "request 1 is of another scenario");
    refused(&|level| level.records[1].user = 2, "is of user 2 of 2");
    refused(&|level| level.records[1].input_tokens = None, "has another prompt");
    refused(&|level| level.records[1].output_tokens = Some(3), "another number of tokens");
    refused(&|level| level.records[1].chunk_ns.truncate(1), "another number of tokens");
    refused(&|level| level.records[1].chunk_tokens = vec![1, 1], "another number of tokens");
    refused(
        &|level| {
            level.records[1].chunk_ns.pop();
            level.records[1].output_tokens = Some(1);
        },
        "has 1 tokens where 2 were asked for",
    );
    refused(&|level| level.records[1].output_sha256 = Some("ABC".into()), "no SHA-256");
    refused(&|level| level.records[1].chunk_ns.reverse(), "times that go back");
    refused(&|level| level.records[1].sent_ns = u64::MAX, "times that go back");
    refused(&|level| level.records[5].scheduled_ns = 0, "begins before its user was free");
    refused(&|level| level.records[1].first_byte_ns = Some(1), "times of a network");
}

#[test]
fn a_level_that_took_longer_than_the_wait_cannot_be_true() {
    let (plan, mut level) = sound();
    level.records[5].ended_ns = u64::MAX;
    let error = ask(&plan, &level).expect_err("cannot be true");
    assert!(matches!(error, WorkerError::Invalid(_)) && error.to_string().contains("clock"), "{error:?}");
}

#[test]
fn the_wait_for_a_level_follows_its_plan_and_the_levels_before() {
    let level = |users, count| LevelPlan {
        compared: 0,
        scenarios: vec![SHAPE],
        ..plan(Arrivals::Closed { users }, Stop::Requests { count }, users)
    };
    let asked = |plan: LevelPlan| Request::LoadLevel { plan };
    let mut patience = Patience::default();
    let first = patience.limit(&asked(level(8, 1000)));
    assert_eq!(first, Duration::from_secs(30 * 60), "nothing is known yet");
    // 12 tokens in 12 seconds.
    patience.saw(&asked(level(1, 1)), Duration::from_secs(12));
    assert_eq!(patience.limit(&asked(level(8, 1000))), Duration::from_secs(120_000), "ten times 12,000 tokens");
    assert_eq!(patience.limit(&asked(LevelPlan { compared: 10, ..level(8, 1000) })), Duration::from_secs(121_200));
    let open =
        LevelPlan { arrivals: Arrivals::Open { requests_per_s: 0.5, spacing: Spacing::Constant }, ..level(1, 10) };
    assert_eq!(patience.limit(&asked(open)), Duration::from_secs(1200 + 20));
    let by_time = LevelPlan { stop: Stop::Duration { ns: 60_000_000_000 }, ..level(2, 1) };
    assert_eq!(patience.limit(&asked(by_time)), Duration::from_secs(240 + 60));
}
