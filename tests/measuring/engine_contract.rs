//! The contract check lets good engines through and names the rule a bad one breaks.

#[path = "../../examples/own_engine.rs"]
#[allow(dead_code)]
mod own_engine;

use anyhow::Result;
use infergate::engine::{
    Cost, Engine, EngineFactory, EngineInfo, Event, LoadRequest, RequestId, RoundRobin, Scheduler, Step, TokenId,
    check_contract,
};

use crate::fake::{FakeEngine, FakeScript, VirtualClock};

fn fake(script: FakeScript) -> FakeEngine {
    FakeEngine::new(script, VirtualClock::default())
}

fn check(script: FakeScript) -> Result<(), String> {
    check_contract(&mut fake(script)).map_err(|error| format!("{error:#}"))
}

/// A fake that breaks the one rule it is named after.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    ShortLogits,
    OtherLogits,
    OtherStep,
    ForcesNothing,
    RoomForOne,
    TakesTooMany,
    NeverFinishes,
    OtherTokens,
    CancelsNothing,
    Boundless,
    CostsLess,
}

struct Faulty(FakeEngine, Fault);

impl Engine for Faulty {
    fn info(&self) -> EngineInfo {
        let info = self.0.info();
        if self.1 == Fault::Boundless { EngineInfo { context_tokens: usize::MAX, ..info } } else { info }
    }

    fn cost(&self) -> Option<Cost> {
        let cost = self.0.cost()?;
        Some(if self.1 == Fault::CostsLess { Cost { decode_bytes_fixed: f64::NAN, ..cost } } else { cost })
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        self.0.start(prompt)
    }

    fn next(&mut self) -> Result<TokenId> {
        self.0.next()
    }

    fn last_step(&self) -> Option<Step> {
        let step = self.0.last_step()?;
        Some(Step { token: step.token + TokenId::from(self.1 == Fault::OtherStep), ..step })
    }

    fn logits(&self, out: &mut Vec<f32>) -> bool {
        let there = self.0.logits(out);
        match self.1 {
            Fault::ShortLogits => out.truncate(10),
            Fault::OtherLogits => out[0] = 99.0,
            _ => {}
        }
        there
    }

    fn force(&mut self, token: TokenId) -> Result<bool> {
        if self.1 == Fault::ForcesNothing { Ok(true) } else { self.0.force(token) }
    }

    fn scheduler(&self, requests: usize) -> Result<Box<dyn Scheduler + Send>> {
        let room = match self.1 {
            Fault::RoomForOne => requests - 1,
            Fault::TakesTooMany => requests + 1,
            _ => requests,
        };
        Ok(Box::new(FaultyScheduler(RoundRobin::of(&self.0, room)?, self.1)))
    }
}

struct FaultyScheduler(RoundRobin, Fault);

impl Scheduler for FaultyScheduler {
    fn capacity(&self) -> usize {
        self.0.capacity() - usize::from(self.1 == Fault::TakesTooMany)
    }

    fn in_flight(&self) -> usize {
        self.0.in_flight()
    }

    fn submit(&mut self, prompt: &[TokenId], max_tokens: usize) -> Result<RequestId> {
        self.0.submit(prompt, max_tokens)
    }

    fn step(&mut self) -> Result<Vec<Event>> {
        let mut events = self.0.step()?;
        for event in &mut events {
            event.finished &= self.1 != Fault::NeverFinishes;
            event.token += TokenId::from(self.1 == Fault::OtherTokens && event.index == 3);
        }
        Ok(events)
    }

    fn cancel(&mut self, request: RequestId) -> bool {
        self.1 == Fault::CancelsNothing || self.0.cancel(request)
    }
}

#[test]
fn a_broken_rule_of_the_wide_door_is_named() {
    for (fault, expected) in [
        (Fault::ShortLogits, "logits: gave 10 of them for a vocabulary of 50000"),
        (Fault::OtherLogits, "its logit is not the largest"),
        (Fault::OtherStep, "last_step: says token"),
        (Fault::ForcesNothing, "force: the forced token was not the one that was appended"),
        (Fault::RoomForOne, "scheduler: room for 1 where 2 were requested"),
        (Fault::TakesTooMany, "submit: took more than the 2 requests there is room for"),
        (Fault::NeverFinishes, "step: token 6 is wrong about being the last"),
        (Fault::OtherTokens, "step: token 4 differs from the one the engine gives alone"),
        (Fault::CancelsNothing, "cancel: did not free the slot"),
        (Fault::Boundless, "info: the engine's context_tokens is 18446744073709551615"),
        (Fault::CostsLess, "cost: each amount must be a number from zero"),
    ] {
        let script = FakeScript { logits_off_by: Some(0.0), ..FakeScript::default() };
        let error = check_contract(&mut Faulty(fake(script), fault)).expect_err(expected);
        assert!(format!("{error:#}").contains(expected), "{error:#}");
    }
}

#[test]
fn requests_take_turns_a_token_each() {
    let engine = fake(FakeScript::default());
    let mut scheduler = engine.scheduler(2).expect("the fake can fork");
    let (one, two) = (scheduler.submit(&[1], 3).expect("room"), scheduler.submit(&[2], 2).expect("room"));
    let mut turns = Vec::new();
    while scheduler.in_flight() > 0 {
        turns.extend(scheduler.step().expect("steps"));
    }
    let turns: Vec<_> = turns.iter().map(|event| (event.request, event.index, event.finished)).collect();
    assert_eq!(turns, [(one, 0, false), (two, 0, false), (one, 1, false), (two, 1, true), (one, 2, true)]);
}

#[test]
fn a_scheduler_that_fails_has_nothing_in_flight_and_goes_on() {
    let engine = fake(FakeScript { fails_at_step: Some(1), ..FakeScript::default() });
    let mut scheduler = engine.scheduler(2).expect("the fake can fork");
    scheduler.submit(&[1], 9).expect("room");
    scheduler.submit(&[2], 9).expect("room");
    let failed = (0..20).any(|_| scheduler.step().is_err());
    assert!(failed && scheduler.in_flight() == 0);
    scheduler.submit(&[1], 1).expect("every slot is free again");
    assert_eq!(scheduler.step().expect("one token needs no step").len(), 1);
}

#[test]
fn an_engine_that_cannot_fork_serves_one_request_at_a_time() {
    let engine = own_engine::load.load(&LoadRequest::default()).expect("loads");
    let error = engine.scheduler(2).map(|_| ()).expect_err("it has one sequence");
    assert_eq!(error.to_string(), "byte-sum cannot run a second sequence over the same weights");
    let error = RoundRobin::of(&fake(FakeScript::default()), 0).map(|_| ()).expect_err("nothing to take turns with");
    assert!(error.to_string().contains("at least one"), "{error}");
}

#[test]
fn the_fake_keeps_the_contract_whatever_it_can() {
    assert_eq!(check(FakeScript::default()), Ok(()));
    assert_eq!(check(FakeScript { rewinds: false, ..FakeScript::default() }), Ok(()));
    assert_eq!(check(FakeScript { forces: false, logits_off_by: Some(0.01), ..FakeScript::default() }), Ok(()));
}

#[test]
fn a_foreign_engine_of_forty_lines_keeps_it() {
    let request = LoadRequest { model: "bytes".into(), ..LoadRequest::default() };
    let mut engine = own_engine::load.load(&request).expect("loads");
    check_contract(engine.as_mut()).expect("keeps the contract");
}

#[test]
fn broken_rules_are_named() {
    let unrepeatable = check(FakeScript { unrepeatable: true, ..FakeScript::default() });
    assert!(unrepeatable.is_err_and(|error| error.contains("decoding must be greedy")));
    let leaking = check(FakeScript { leaks_cache: true, ..FakeScript::default() });
    assert!(leaking.is_err_and(|error| error.starts_with("start:")));
    let failing = check(FakeScript { fails_at_step: Some(2), ..FakeScript::default() });
    assert!(failing.is_err_and(|error| error.contains("next failed though the context has room")));
}
