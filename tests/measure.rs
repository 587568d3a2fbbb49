//! Output is verified before time is taken, and time is taken of the right region only.

use infergate::case::Case;
use infergate::clock::VirtualClock;
use infergate::engine::fake::FakeScript;
use infergate::engine::{Engine, FakeEngine};
use infergate::measure::{self, InvariantBroken, Sampler};
use infergate::prompt;
use infergate::trace::Trace;

const MS: u64 = 1_000_000;

fn fake(script: FakeScript) -> (FakeEngine, VirtualClock) {
    let clock = VirtualClock::default();
    (FakeEngine::new(script, clock.clone()), clock)
}

fn case(id: &str) -> Case {
    id.parse().expect("a case id")
}

fn samples(script: FakeScript, id: &str, count: usize) -> Vec<Vec<u64>> {
    let (mut engine, clock) = fake(script);
    let case = case(id);
    let prompt = prompt::seeded_ids(case.prompt_tokens(), 1, 50_000);
    let prepared = measure::prepare(&mut engine, case, prompt).expect("prepares");
    let mut sampler = Sampler::new(&mut engine, &clock, &prepared);
    (0..count).map(|_| sampler.sample().expect("samples")).collect()
}

#[test]
fn prefill_times_the_prompt_up_to_the_first_token() {
    let script = FakeScript { prefill_ns_per_token: MS, first_sample_ns: 7, ..FakeScript::default() };
    assert_eq!(samples(script, "prefill/p128", 2), vec![vec![128 * MS + 7]; 2]);
}

#[test]
fn decode_times_one_step_and_not_the_way_there() {
    let script = FakeScript { step_ns: 3 * MS, ..FakeScript::default() };
    assert_eq!(samples(script, "decode/p128", 40), vec![vec![3 * MS]; 40]);
}

#[test]
fn decode_without_rewind_stays_near_its_context() {
    let script = FakeScript { step_ns: 3 * MS, rewinds: false, context_tokens: 132, ..FakeScript::default() };
    assert_eq!(samples(script, "decode/p128", 40), vec![vec![3 * MS]; 40], "never runs into the end of the context");
}

#[test]
fn generate_keeps_every_token_time() {
    let script = FakeScript {
        prefill_ns_per_token: MS,
        first_sample_ns: 0,
        step_ns: 2 * MS,
        jitter_ns: vec![0, MS],
        ..FakeScript::default()
    };
    let sample = samples(script, "generate/p10-o4", 1).remove(0);
    let trace = Trace::new(sample).expect("a trace");
    assert_eq!(trace.ttft_ns(), Some(10 * MS));
    assert_eq!(trace.itl_ns().len(), 3);
    assert_eq!(trace.itl_ns().iter().sum::<u64>() + 10 * MS, trace.e2e_ns().expect("has tokens"));
}

#[test]
fn an_engine_that_does_not_repeat_itself_is_invalid_before_time_is_taken() {
    for id in ["prefill/p8", "decode/p8", "generate/p8-o8"] {
        let (mut engine, clock) = fake(FakeScript { unrepeatable: true, ..FakeScript::default() });
        let prompt = prompt::seeded_ids(8, 1, 50_000);
        let error = measure::prepare(&mut engine, case(id), prompt).expect_err("must refuse");
        assert!(error.is::<InvariantBroken>(), "{error}");
        assert!(error.to_string().starts_with(&format!("{id}: output token 1 ")), "{error}");
        let _ = clock;
    }
}

#[test]
fn an_engine_that_changes_its_mind_while_timed_is_invalid() {
    let clock = VirtualClock::default();
    let mut steady = FakeEngine::new(FakeScript::default(), clock.clone());
    let prompt = prompt::seeded_ids(8, 1, 50_000);
    let prepared = measure::prepare(&mut steady, case("generate/p8-o8"), prompt).expect("prepares");
    let mut other = FakeEngine::new(FakeScript { output_salt: 5, ..FakeScript::default() }, clock.clone());
    let error = Sampler::new(&mut other, &clock, &prepared).sample().expect_err("must notice");
    assert!(error.is::<InvariantBroken>(), "{error}");
}

#[test]
fn a_case_beyond_the_context_is_refused_before_anything_runs() {
    let (mut engine, clock) = fake(FakeScript::default());
    let prompt = prompt::seeded_ids(1000, 1, 50_000);
    let error = measure::prepare(&mut engine, case("generate/p1000-o25"), prompt).expect_err("does not fit");
    assert_eq!(
        error.to_string(),
        "generate/p1000-o25 needs 1025 tokens and the model's context has 1024; choose a shorter prompt or fewer output tokens"
    );
    assert_eq!(infergate::clock::Clock::now_ns(&clock), 0);
}

#[test]
fn time_to_first_token_adds_up_from_its_parts() {
    let (mut engine, clock) =
        fake(FakeScript { prefill_ns_per_token: MS, first_sample_ns: 9, ..FakeScript::default() });
    let prompt = prompt::seeded_ids(16, 1, 50_000);
    let parts = measure::ttft_parts(&mut engine, &clock, &prompt, Some(5 * MS)).expect("measures");
    assert_eq!((parts.load_ns, parts.tokenize_ns), (Some(5 * MS), None));
    assert_eq!((parts.prefill_ns, parts.first_sample_ns), (16 * MS, Some(9)));
    assert_eq!(parts.ttft_ns(), 21 * MS + 9);
}

#[test]
fn work_grows_with_prompt_and_output() {
    let (mut engine, _) = fake(FakeScript::default());
    let work = |engine: &mut FakeEngine, id: &str| {
        let case = case(id);
        let prompt = prompt::seeded_ids(case.prompt_tokens(), 1, 50_000);
        measure::prepare(engine, case, prompt).expect("prepares").work.expect("the fake knows its cost")
    };
    let cost = engine.cost().expect("the fake knows its cost");
    assert_eq!(work(&mut engine, "decode/p128").bytes, cost.decode_bytes(128));
    assert_eq!(work(&mut engine, "prefill/p128").flops, cost.prefill_flops(128));
    let generate = work(&mut engine, "generate/p128-o3");
    assert_eq!(generate.bytes, cost.decode_bytes(128) + cost.decode_bytes(129));
    assert_eq!(generate.flops, cost.prefill_flops(128));
}
