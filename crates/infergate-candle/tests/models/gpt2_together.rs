//! GPT-2 serves several requests in one pass, and each gets what it would get alone, to the last bit.

use std::collections::HashMap;

use crate::common::fixture;
use crate::gpt2::{MODELS, cases, config, greedy, load, load_from, logits, tensors};
use candle_core::DType;
use infergate::engine::{Engine, EngineFactory, EngineInfo, RequestId, Scheduler, TokenId, check_contract};
use infergate_candle::decoder::Decoder;
use infergate_candle::digest::Digest;
use infergate_candle::gpt2::{Gpt2, Gpt2Scheduler};
use infergate_candle::{Candle, CandleEngine};
use proptest::prelude::*;

/// A sequence that runs alone, beside the request it is compared with.
struct Alone {
    model: Box<dyn Decoder>,
    pending: Vec<TokenId>,
}

/// Steps once; every event must be what its sequence gives alone, and so must the logits behind it.
fn step_and_compare(scheduler: &mut Gpt2Scheduler, alone: &mut HashMap<RequestId, Alone>) {
    let in_flight = scheduler.in_flight();
    assert_eq!(step(scheduler, alone), in_flight, "one token for every request");
}

/// As [`step_and_compare`], where some requests may have to wait. How many tokens there were.
fn step(scheduler: &mut Gpt2Scheduler, alone: &mut HashMap<RequestId, Alone>) -> usize {
    let events = scheduler.step().unwrap();
    for event in &events {
        let own = alone.get_mut(&event.request).unwrap();
        let expected = logits(own.model.as_mut(), &own.pending);
        if let Some(logits) = scheduler.logits(event.request) {
            assert_eq!(logits, expected, "token {} of {:?}", event.index, event.request);
        }
        assert_eq!(event.token, greedy(&expected), "token {} of {:?}", event.index, event.request);
        own.pending = vec![event.token];
    }
    events.len()
}

fn submit(
    scheduler: &mut Gpt2Scheduler,
    model: &Gpt2,
    alone: &mut HashMap<RequestId, Alone>,
    prompt: &[TokenId],
    max_tokens: usize,
) -> RequestId {
    let request = scheduler.submit(prompt, max_tokens).unwrap();
    alone.insert(request, Alone { model: model.fork().unwrap(), pending: prompt.to_vec() });
    request
}

#[test]
fn requests_that_join_one_after_the_other_get_the_numbers_they_get_alone() {
    for name in MODELS {
        let cases = cases(name);
        for threads in [1, 2, 3] {
            let model = load(name, threads);
            let mut scheduler = model.serve(cases.len()).unwrap();
            let mut alone = HashMap::new();
            let mut given = HashMap::new();
            for case in &cases {
                let output = &case.output_ids;
                let request = submit(&mut scheduler, &model, &mut alone, &case.prompt_ids, output.len());
                given.insert(request, output);
                // The next one's prompt is read beside tokens of those before it.
                step_and_compare(&mut scheduler, &mut alone);
            }
            while scheduler.in_flight() > 0 {
                step_and_compare(&mut scheduler, &mut alone);
            }
            for (request, output) in given {
                assert_eq!(alone[&request].pending, output[output.len() - 1..], "{name}, {threads} threads");
            }
        }
    }
}

#[test]
fn long_prompts_are_read_in_turn_beside_the_tokens_of_those_before_them() {
    let model = load("gpt2-new", 2);
    let mut scheduler = model.serve(4).unwrap();
    let mut alone = HashMap::new();
    for request in 0..4 {
        let prompt: Vec<TokenId> = (0..300).map(|i| (i * 7 + request) % 96).collect();
        submit(&mut scheduler, &model, &mut alone, &prompt, 8);
    }
    let tokens: Vec<usize> = (0..5).map(|_| step(&mut scheduler, &mut alone)).collect();
    assert_eq!(tokens, [1, 2, 3, 4, 4]);
}

#[test]
fn the_engine_serves_by_it_and_keeps_the_contract() {
    let mut engine = Candle.load(&crate::common::request("synthetic:tiny", None)).unwrap();
    check_contract(engine.as_mut()).unwrap();
    let mut scheduler = engine.scheduler(3).unwrap();
    for prompt in [[1, 2], [3, 4], [5, 6]] {
        scheduler.submit(&prompt, 4).unwrap();
    }
    assert_eq!(scheduler.step().unwrap().len(), 3, "taking turns would give one");
    assert!(engine.scheduler(0).is_err());
    let refusal = engine.scheduler(1 << 40).err().unwrap().to_string();
    assert!(refusal.contains("room for 1099511627776 requests") && refusal.contains("GiB are free"), "{refusal}");
}

#[test]
fn an_engine_without_a_scheduler_of_its_own_takes_turns() {
    let engine = Candle.load(&crate::common::request(fixture("llama"), None)).unwrap();
    let mut scheduler = engine.scheduler(2).unwrap();
    scheduler.submit(&[1, 2], 2).unwrap();
    scheduler.submit(&[3, 4], 2).unwrap();
    assert_eq!(scheduler.step().unwrap().len(), 1);
}

#[test]
fn what_cannot_be_served_is_refused_and_what_fails_ends_everything() {
    let model = load("gpt2-new", 2);
    let mut scheduler = model.serve(2).unwrap();
    assert!(scheduler.submit(&[96], 1).unwrap_err().to_string().contains("vocabulary"));
    assert!(scheduler.submit(&[1; 300], 85).unwrap_err().to_string().contains("context of 384"));
    scheduler.submit(&[1; 300], 84).unwrap();
    scheduler.submit(&[1], 1).unwrap();
    assert!(scheduler.submit(&[1], 1).unwrap_err().to_string().contains("2 slots"));

    let mut tensors = tensors("gpt2-new");
    let nan = (tensors["transformer.ln_f.weight"].clone() * f64::NAN).unwrap();
    tensors.insert("transformer.ln_f.weight".into(), nan);
    let broken = load_from(&config("gpt2-new"), tensors, DType::F32, 2).unwrap();
    let info = EngineInfo { context_tokens: 384, vocab_tokens: 96, ..EngineInfo::default() };
    let engine = CandleEngine::new(Box::new(broken), info, None, Digest::of_recipe("broken"));
    let mut scheduler = engine.scheduler(2).unwrap();
    scheduler.submit(&[1, 2], 3).unwrap();
    scheduler.submit(&[1], 3).unwrap();
    assert!(scheduler.step().unwrap_err().to_string().contains("NaN"));
    assert_eq!(scheduler.in_flight(), 0);
    assert!(scheduler.step().unwrap().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, rng_seed: proptest::test_runner::RngSeed::Fixed(5), failure_persistence: None, ..ProptestConfig::default() })]

    /// Any order of joining, stepping and leaving.
    #[test]
    fn any_traffic_gives_the_same_numbers(
        actions in proptest::collection::vec((0..5_u8, 1..90_usize, 1..6_usize), 8..24),
        threads in 1..4_usize,
    ) {
        let model = load("gpt2-new", threads);
        let mut scheduler = model.serve(3).unwrap();
        let mut alone = HashMap::new();
        for (action, prompt_tokens, max_tokens) in actions {
            let free = scheduler.in_flight() < scheduler.capacity();
            match action {
                0 | 1 if free => {
                    let prompt: Vec<TokenId> = (0..prompt_tokens).map(|i| (i * 7 + max_tokens) as TokenId % 96).collect();
                    submit(&mut scheduler, &model, &mut alone, &prompt, max_tokens);
                }
                2 => {
                    let some = alone.keys().copied().min_by_key(|request| (request.0 * 7919) % 31);
                    let was = scheduler.in_flight();
                    if some.is_some_and(|request| scheduler.cancel(request)) {
                        prop_assert_eq!(scheduler.in_flight() + 1, was);
                    }
                }
                _ => step_and_compare(&mut scheduler, &mut alone),
            }
        }
    }
}
