//! Output is verified before time is taken, and time is taken of the right region only.

use std::sync::atomic::{AtomicU64, Ordering};

use infergate::engine::{Engine, EngineInfo, TokenId};
use infergate::measure::{self, InvariantBroken, Sampler};
use infergate_core::case::Case;
use infergate_core::clock::Clock;
use infergate_core::prompt;

use crate::fake::{FakeEngine, FakeScript, VirtualClock};

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
    let prepared = measure::prepare(&mut engine, case, prompt, None).expect("prepares");
    let mut sampler = Sampler::default();
    (0..count).map(|_| sampler.sample(&mut engine, &clock, &prepared, 1).expect("samples")).collect()
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
fn generate_keeps_every_token_time() {
    let script = FakeScript {
        prefill_ns_per_token: MS,
        first_sample_ns: 0,
        step_ns: 2 * MS,
        jitter_ns: vec![0, MS],
        ..FakeScript::default()
    };
    let sample = samples(script, "generate/p10-o4", 1).remove(0);
    assert_eq!((sample.len(), sample[0]), (4, 10 * MS));
    assert!(sample.is_sorted());
}

#[test]
fn a_generation_in_turns_takes_the_same_time_and_pauses_are_no_part_of_it() {
    let script =
        || FakeScript { prefill_ns_per_token: MS, first_sample_ns: 0, step_ns: 2 * MS, ..FakeScript::default() };
    let whole = samples(script(), "generate/p10-o7", 1).remove(0);
    let (mut engine, clock) = fake(script());
    let prompt = prompt::seeded_ids(10, 1, 50_000);
    let prepared = measure::prepare(&mut engine, case("generate/p10-o7"), prompt, None).expect("prepares");
    let mut sampler = Sampler::default();
    for _generation in 0..2 {
        let mut steps_ns = Vec::new();
        for expected in [3, 3, 1] {
            let turn = sampler.advance(&mut engine, &clock, &prepared, 3).expect("advances");
            assert_eq!(turn.len(), expected);
            steps_ns.extend(turn);
            clock.advance_ns(1_000 * MS);
        }
        assert_eq!(steps_ns.iter().sum::<u64>(), whole[6]);
        assert_eq!(steps_ns[0], 10 * MS, "the prompt is part of the first token");
    }
}

#[test]
fn a_decode_step_asked_for_alone_does_not_read_the_prompt_again() {
    let (mut engine, clock) = fake(FakeScript::default());
    let prepared =
        measure::prepare(&mut engine, case("decode/p100"), prompt::seeded_ids(100, 1, 50_000), None).expect("prepares");
    let mut sampler = Sampler::default();
    sampler.sample(&mut engine, &clock, &prepared, 1).expect("samples");
    let before_ns = clock.now_ns();
    sampler.sample(&mut engine, &clock, &prepared, 1).expect("samples");
    assert_eq!(clock.now_ns() - before_ns, FakeScript::default().step_ns);
}

#[test]
fn a_known_output_is_only_begun_and_must_be_said_again() {
    let (mut engine, clock) = fake(FakeScript::default());
    let prompt = prompt::seeded_ids(8, 1, 50_000);
    let prepared = measure::prepare(&mut engine, case("generate/p8-o64"), prompt.clone(), None).expect("prepares");
    let before_ns = clock.now_ns();
    let ids = prepared.output.ids.clone();
    let known = measure::prepare_known(&mut engine, case("generate/p8-o64"), prompt.clone(), ids.clone());
    assert_eq!(known.expect("prepares").output.ids, ids);
    let one_generation_ns = 8 * FakeScript::default().prefill_ns_per_token + 63 * FakeScript::default().step_ns;
    assert!(clock.now_ns() - before_ns < one_generation_ns / 4);

    let mut other = ids.clone();
    other[3] += 1;
    let error =
        measure::prepare_known(&mut engine, case("generate/p8-o64"), prompt.clone(), other).expect_err("differs");
    assert!(error.is::<InvariantBroken>() && error.to_string().contains("output token 4 "), "{error}");
    let error = measure::prepare_known(&mut engine, case("generate/p8-o64"), prompt, ids[..5].to_vec());
    assert!(error.expect_err("too short").to_string().contains("5 tokens instead of 64"));
}

#[test]
fn a_sample_of_many_iterations_reads_the_clock_seldom_and_stays_near_its_context() {
    for (id, looks) in [("prefill/p8", 2), ("decode/p8", 2 * 7)] {
        for rewinds in [true, false] {
            let clock = CountingClock::default();
            let script = FakeScript {
                step_ns: 131,
                prefill_ns_per_token: 10,
                first_sample_ns: 0,
                rewinds,
                ..FakeScript::default()
            };
            let mut engine = FakeEngine::new(script, clock.time.clone());
            let prepared =
                measure::prepare(&mut engine, case(id), prompt::seeded_ids(8, 1, 50_000), None).expect("prepares");
            let sample = Sampler::default().sample(&mut engine, &clock, &prepared, 100).expect("samples");
            assert_eq!(sample, [if id == "prefill/p8" { 100 * 80 } else { 100 * 131 }], "{id} {rewinds}");
            assert_eq!(clock.looks.load(Ordering::Relaxed), looks, "100 iterations of {id}");
        }
    }
}

#[test]
fn steps_behind_the_first_must_repeat_too() {
    let clock = VirtualClock::default();
    let mut engine = Forgetful { engine: FakeEngine::new(FakeScript::default(), clock.clone()), steps: 0 };
    let prepared =
        measure::prepare(&mut engine, case("decode/p8"), prompt::seeded_ids(8, 1, 50_000), None).expect("prepares");
    let mut sampler = Sampler::default();
    sampler.sample(&mut engine, &clock, &prepared, 16).expect("the first time nothing is known");
    let error = sampler.sample(&mut engine, &clock, &prepared, 16).expect_err("differs");
    assert!(error.is::<InvariantBroken>() && error.to_string().contains("output token 12 "), "{error}");
}

/// A virtual clock that counts how often it is read.
#[derive(Default)]
struct CountingClock {
    time: VirtualClock,
    looks: AtomicU64,
}

impl Clock for CountingClock {
    fn now_ns(&self) -> u64 {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.time.now_ns()
    }

    fn spin_until_ns(&self, ns: u64) {
        self.time.spin_until_ns(ns);
    }
}

/// Says another eleventh token after the prompt's first each time.
struct Forgetful {
    engine: FakeEngine,
    steps: u32,
}

impl Engine for Forgetful {
    fn info(&self) -> EngineInfo {
        self.engine.info()
    }

    fn start(&mut self, prompt: &[TokenId]) -> anyhow::Result<TokenId> {
        self.steps = 0;
        self.engine.start(prompt)
    }

    fn next(&mut self) -> anyhow::Result<TokenId> {
        self.steps += 1;
        let token = self.engine.next()?;
        Ok(if self.steps % 100 == 11 { token + self.steps } else { token })
    }

    fn rewind(&mut self) -> anyhow::Result<bool> {
        self.steps = self.steps.next_multiple_of(100);
        self.engine.rewind()
    }
}

#[test]
fn an_engine_that_changes_its_mind_while_timed_is_invalid() {
    let clock = VirtualClock::default();
    let mut steady = FakeEngine::new(FakeScript::default(), clock.clone());
    let prompt = prompt::seeded_ids(8, 1, 50_000);
    let prepared = measure::prepare(&mut steady, case("generate/p8-o8"), prompt, None).expect("prepares");
    let mut other = FakeEngine::new(FakeScript { output_salt: 5, ..FakeScript::default() }, clock.clone());
    let error = Sampler::default().sample(&mut other, &clock, &prepared, 1).expect_err("must notice");
    assert!(error.is::<InvariantBroken>(), "{error}");
}

#[test]
fn a_case_beyond_the_context_is_refused_before_anything_runs() {
    let (mut engine, clock) = fake(FakeScript::default());
    let prompt = prompt::seeded_ids(1000, 1, 50_000);
    let error = measure::prepare(&mut engine, case("generate/p1000-o25"), prompt, None).expect_err("does not fit");
    assert_eq!(
        error.to_string(),
        "generate/p1000-o25 needs 1025 tokens and the model's context has 1024; choose a shorter prompt or fewer output tokens"
    );
    assert_eq!(clock.now_ns(), 0);
}

#[test]
fn every_case_keeps_sixteen_positions_even_one_of_a_single_token() {
    for id in ["prefill/p8", "decode/p8", "generate/p8-o40"] {
        let (mut engine, _) = fake(FakeScript { logits_off_by: Some(0.0), ..FakeScript::default() });
        let prepared =
            measure::prepare(&mut engine, case(id), prompt::seeded_ids(8, 1, 50_000), None).expect("prepares");
        let output = prepared.output;
        assert_eq!(output.ids.len(), case(id).output_tokens(), "the output stays what is timed");
        let fingerprint = output.fingerprint.as_ref().expect("a fingerprint");
        assert_eq!((fingerprint.steps.len(), &fingerprint.fed), (16, &None), "{id}");
        assert_eq!(output.path().len(), case(id).output_tokens().max(16));
        let ends = fingerprint.steps.first().zip(fingerprint.steps.last());
        let ends = ends.map(|(first, last)| (first.position, last.position));
        assert_eq!(ends, Some((0, output.path().len() - 1)), "{id}");
        let best: Vec<u32> = fingerprint.steps.iter().map(|step| step.top[0].0).collect();
        let said: Vec<u32> = fingerprint.steps.iter().map(|step| output.path()[step.position]).collect();
        assert_eq!(best, said, "{id}");
    }
}

#[test]
fn an_engine_without_logits_keeps_sixteen_ids_and_fewer_where_the_context_ends() {
    let ids = |context_tokens: usize| {
        let (mut engine, _) = fake(FakeScript { context_tokens, ..FakeScript::default() });
        let prepared = measure::prepare(&mut engine, case("decode/p8"), prompt::seeded_ids(8, 1, 50_000), None);
        let output = prepared.expect("prepares").output;
        assert!(output.fingerprint.as_ref().is_some_and(|fingerprint| fingerprint.steps.is_empty()));
        output.path()
    };
    assert_eq!(ids(1024).len(), 16);
    assert_eq!(ids(13), ids(1024)[..5]);
    assert_eq!(ids(10), ids(1024)[..2]);
}

#[test]
fn an_engine_follows_the_output_of_another_one_and_still_says_its_own() {
    let prompt = prompt::seeded_ids(8, 1, 50_000);
    let script = |output_salt| FakeScript { logits_off_by: Some(0.0), output_salt, ..FakeScript::default() };
    let (mut base, _) = fake(script(0));
    let base = measure::prepare(&mut base, case("generate/p8-o8"), prompt.clone(), None).expect("prepares").output;
    let (mut head, _) = fake(script(1));
    let alone = measure::prepare(&mut head, case("generate/p8-o8"), prompt.clone(), None).expect("prepares").output;
    let path = base.path();
    let beside = measure::prepare(&mut head, case("generate/p8-o8"), prompt.clone(), Some(&path));
    let beside = beside.expect("prepares").output;
    assert_eq!((&beside.ids, &beside.sha256), (&alone.ids, &alone.sha256));
    assert_eq!(beside.path(), path[..15], "what was appended: the last token never is");
    assert_ne!(alone.path()[..15], path[..15]);

    let (mut same, _) = fake(script(0));
    let same = measure::prepare(&mut same, case("generate/p8-o8"), prompt.clone(), Some(&path));
    assert_eq!(same.expect("prepares").output, base, "whoever says the same is not led");

    let (mut deaf, _) = fake(FakeScript { forces: false, ..script(1) });
    let deaf = measure::prepare(&mut deaf, case("generate/p8-o8"), prompt, Some(&path)).expect("prepares");
    assert_eq!(deaf.output, alone, "an engine that cannot be led follows its own words");
}
