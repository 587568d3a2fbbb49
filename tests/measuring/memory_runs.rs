//! What the runs of the memory phase ask: other prompts, so that what is kept for each shows, and the known one now and then.

use std::collections::HashSet;

use infergate::engine::{Engine, EngineInfo, TokenId};
use infergate::{measure, memory};
use infergate_core::case::Case;

use crate::fake::{FakeEngine, VirtualClock};

/// Keeps what it was asked.
struct Asked {
    engine: FakeEngine,
    prompts: Vec<Vec<TokenId>>,
    /// Says something else once it was asked another prompt.
    remembers: bool,
}

impl Engine for Asked {
    fn info(&self) -> EngineInfo {
        self.engine.info()
    }

    fn start(&mut self, prompt: &[TokenId]) -> anyhow::Result<TokenId> {
        let said = self.engine.start(prompt)?;
        let is_other = self.remembers && self.prompts.iter().any(|asked| asked != prompt);
        self.prompts.push(prompt.to_vec());
        Ok(if is_other { said ^ 1 } else { said })
    }

    fn next(&mut self) -> anyhow::Result<TokenId> {
        self.engine.next()
    }
}

/// What so many runs ask where `prompt` is the known one.
fn asked(remembers: bool, prompt: &[TokenId], runs: u64) -> anyhow::Result<Vec<Vec<TokenId>>> {
    let engine = FakeEngine::new(Default::default(), VirtualClock::default());
    let mut engine = Asked { engine, prompts: Vec::new(), remembers };
    let case: Case = format!("generate/p{}-o4", prompt.len()).parse().expect("a case");
    let prepared = measure::prepare(&mut engine, case, prompt.to_vec(), None).expect("prepares");
    engine.prompts.clear();
    for run in 0..runs {
        memory::run_once(&mut engine, &prepared, run)?;
    }
    Ok(engine.prompts)
}

#[test]
fn nine_of_ten_runs_ask_a_prompt_that_no_other_asks() {
    for prompt in [vec![5, 900, 5, 7, 900, 5, 7, 7], vec![0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]] {
        let runs = asked(false, &prompt, 400).expect("runs");
        let (known, new): (Vec<_>, Vec<_>) = (0..).zip(runs).partition(|(run, _)| run % 10 == 0);
        assert!(known.iter().all(|(_, asked)| *asked == prompt));
        let different: HashSet<&Vec<TokenId>> = new.iter().map(|(_, asked)| asked).collect();
        assert_eq!(different.len(), 360);
        let is_alike = |asked: &Vec<TokenId>| asked.len() == prompt.len() && asked.iter().all(|id| prompt.contains(id));
        assert!(
            different.iter().all(|asked| **asked != prompt && is_alike(asked)),
            "no token that is not in the prompt"
        );
    }
}

#[test]
fn an_engine_that_changes_between_its_runs_is_found_by_the_known_prompt() {
    asked(true, &[1, 2, 3], 10).expect("what other prompts are answered is not known");
    let error = asked(true, &[1, 2, 3], 11).expect_err("the eleventh run asks the known one");
    assert!(error.is::<measure::InvariantBroken>(), "{error}");
}
