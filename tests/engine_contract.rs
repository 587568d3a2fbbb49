//! The contract check lets good engines through and names the rule a bad one breaks.

#[path = "../examples/own_engine.rs"]
#[allow(dead_code)]
mod own_engine;

use infergate::clock::VirtualClock;
use infergate::engine::fake::FakeScript;
use infergate::engine::{EngineFactory, FakeEngine, LoadRequest, check_contract};

fn check(script: FakeScript) -> Result<(), String> {
    check_contract(&mut FakeEngine::new(script, VirtualClock::default())).map_err(|error| format!("{error:#}"))
}

#[test]
fn the_fake_keeps_the_contract_with_and_without_rewind() {
    assert_eq!(check(FakeScript::default()), Ok(()));
    assert_eq!(check(FakeScript { rewinds: false, ..FakeScript::default() }), Ok(()));
}

#[test]
fn a_foreign_engine_of_forty_lines_keeps_it() {
    let request = LoadRequest { model: "bytes".into(), dtype: None, threads: 1, seed: 1 };
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
