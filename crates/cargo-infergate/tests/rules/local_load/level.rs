//! A level with prompts of its own, and outputs that are compared.

use std::collections::BTreeSet;

use infergate::engine::Engine;
use infergate::load::run_level;
use infergate_core::load::{Arrivals, LevelPlan, LoadLevel, RequestShape, Stop};

use crate::fake::{FakeEngine, FakeScript, VirtualClock};
use crate::local_load::engines::{BatchEngine, MS, plan, script};

fn closed(users: u32, count: u64) -> LevelPlan {
    plan(Arrivals::Closed { users }, Stop::Requests { count }, users)
}

fn run(engine: &mut dyn Engine, clock: &VirtualClock, plan: &LevelPlan) -> anyhow::Result<LoadLevel> {
    run_level(engine, clock, plan)
}

fn measured(level: &LoadLevel) -> usize {
    level.records.iter().filter(|record| record.measured).count()
}

fn batch(changes: bool) -> (BatchEngine, VirtualClock) {
    let clock = VirtualClock::default();
    let fake = FakeEngine::new(script(), clock.clone());
    (BatchEngine { fake, clock: clock.clone(), changes, margin: None }, clock)
}

#[test]
fn a_level_says_how_many_outputs_were_computed_again() {
    let clock = VirtualClock::default();
    let mut engine = FakeEngine::new(script(), clock.clone());
    let level = run(&mut engine, &clock, &closed(2, 8)).expect("runs");
    assert_eq!((measured(&level), level.batch.compared, level.batch.slots, level.batch.largest_batch), (8, 3, 2, 2));
    assert_eq!(
        (level.batch.batches, level.batch.kv_bytes_per_request, level.batch.cut_short),
        (Some(false), None, None)
    );
    let (mut engine, clock) = batch(false);
    let level = run(&mut engine, &clock, &LevelPlan { compared: 100, ..closed(4, 8) }).expect("runs");
    assert_eq!(
        (level.records.len(), level.batch.compared, level.batch.batches),
        (8, 8, None),
        "no more than there are"
    );
    // Two steps of 10 ms for each of two rounds, whatever is computed alone afterwards.
    assert!(level.records.iter().all(|record| record.ended_ns <= 40 * MS));
}

#[test]
fn a_near_tie_may_end_otherwise_in_a_batch() {
    for (dtype, margin, behind, is_called) in [
        ("bf16", 0.0, 1, false),
        ("bf16", 0.125, 1, false),
        ("bf16", 0.25, 1, true),
        ("bf16", 0.0, 2, true),
        ("f32", 0.0, 1, false),
        ("f32", 1e-4, 1, true),
        ("q4_1", 0.25, 1, true),
    ] {
        let (mut engine, clock) = batch(true);
        engine.margin = Some((dtype, margin, behind));
        let ran = run(&mut engine, &clock, &closed(3, 6));
        assert_eq!(ran.is_err(), is_called, "{dtype} {margin}");
        assert!(ran.is_err() || ran.is_ok_and(|level| level.batch.compared == 3));
    }
}

#[test]
fn prompts_are_unique_unless_a_prefix_is_shared() {
    let shape = RequestShape { prompt_tokens: 16, output_tokens: 2, shared_prefix_tokens: 0 };
    let mut plan = LevelPlan { scenarios: vec![shape], ..closed(1, 1) };
    let prompts: BTreeSet<_> = (0..1000).map(|request| plan.prompt(request, 50_000)[..2].to_vec()).collect();
    assert_eq!(prompts.len(), 1000, "not even their beginnings");
    assert_eq!(plan.prompt(3, 50_000), plan.prompt(3, 50_000));
    let other = LevelPlan { seed: 2, ..plan.clone() };
    assert_ne!(plan.prompt(3, 50_000), other.prompt(3, 50_000));

    plan.scenarios = vec![RequestShape { shared_prefix_tokens: 10, ..shape }, shape];
    let (first, third) = (plan.prompt(0, 50_000), plan.prompt(2, 50_000));
    assert_eq!(first[..10], third[..10]);
    assert_ne!(first[10..], third[10..]);
    assert_ne!(first[..10], plan.prompt(1, 50_000)[..10]);
    assert!((0..50).all(|request| plan.prompt(request, 9).iter().all(|id| *id < 9)));
}

#[test]
fn users_go_on_with_their_conversations() {
    let plan = LevelPlan { turns: 3, turn_tokens: 5, compared: 100, ..closed(2, 8) };
    let clock = VirtualClock::default();
    let level = run(&mut FakeEngine::new(script(), clock.clone()), &clock, &plan).expect("runs");
    let tokens: Vec<_> = level.records.iter().map(|record| (record.user, record.input_tokens)).collect();
    let expected = [(0, 4), (1, 4), (0, 9), (1, 9), (0, 14), (1, 14), (0, 4), (1, 4)];
    assert_eq!(tokens[..8], expected.map(|(user, tokens)| (user, Some(tokens))));
    let prompt = |request| plan.prompt(request, 50_000);
    assert!(prompt(2).starts_with(&prompt(0)) && prompt(4).starts_with(&prompt(2)), "each turn goes on");
    assert_ne!(prompt(0), prompt(1), "a user's own");
    assert_ne!(prompt(0), prompt(6), "and the next one is another");
    assert!(plan.validate(16).is_ok() && plan.validate(15).is_err(), "the last turn has to fit");
}

#[test]
fn scenarios_are_taken_in_turn() {
    let shape = |prompt_tokens, output_tokens| RequestShape { prompt_tokens, output_tokens, shared_prefix_tokens: 0 };
    let plan = LevelPlan { scenarios: vec![shape(4, 2), shape(8, 1), shape(2, 3)], ..closed(2, 8) };
    let clock = VirtualClock::default();
    let level = run(&mut FakeEngine::new(script(), clock.clone()), &clock, &plan).expect("runs");
    let seen: Vec<_> =
        level.records.iter().map(|record| (record.scenario, record.input_tokens, record.output_tokens)).collect();
    assert_eq!(seen[..4], [(0, Some(4), Some(2)), (1, Some(8), Some(1)), (2, Some(2), Some(3)), (0, Some(4), Some(2))]);
}

#[test]
fn a_level_by_time_ends_before_its_answer_is_too_long() {
    let clock = VirtualClock::default();
    // A request takes a nanosecond a token, so that an hour would hold billions of them.
    let fast = FakeScript { prefill_ns_per_token: 1, step_ns: 1, first_sample_ns: 0, ..FakeScript::default() };
    let shape = RequestShape { prompt_tokens: 1, output_tokens: 1000, shared_prefix_tokens: 0 };
    let stop = Stop::Duration { ns: 3_600_000 * MS };
    let plan = LevelPlan { scenarios: vec![shape], compared: 0, ..plan(Arrivals::Closed { users: 1 }, stop, 1) };
    let fast = FakeScript { context_tokens: 2048, ..fast };
    let level = run(&mut FakeEngine::new(fast, clock.clone()), &clock, &plan).expect("runs");
    assert!(level.batch.cut_short.as_deref().is_some_and(|why| why.contains("15 MiB")), "{:?}", level.batch.cut_short);
    let bytes = serde_json::to_string(&level).expect("JSON").len() as u64;
    assert!(bytes < infergate_core::load::MOST_ANSWER_BYTES, "{bytes}");
    assert!(level.records.len() > 500);
}
