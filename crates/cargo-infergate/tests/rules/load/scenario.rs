//! Scenarios, and how they are made to fit.

use infergate_load::plan::prompt::prompt;
use infergate_receipts::Scenario;
use proptest::prelude::*;

#[test]
fn a_small_context_makes_them_smaller_and_says_so() {
    let agent = &Scenario::defaults()[3];
    let (small, note) = agent.scaled("--context", 1024);
    assert!(small.longest_tokens() <= 1024 * 9 / 10 && small.turns == 4, "{small:?}");
    let is = "agent: shortened from 2048 tokens in, 128 more a turn and 64 out to fit --context (1024)";
    assert!(note.expect("a sentence").starts_with(is));
    assert_eq!(agent.scaled("--context", 8192), (agent.clone(), None));
}

proptest! {
    #[test]
    fn every_scenario_fits_every_context(input in 1_u32..100_000, output in 1_u32..10_000, turns in 1_u32..9, more in 0_u32..500, context in 16_u32..10_000) {
        let scenario = Scenario { turns, turn_tokens: more, ..Scenario::plain("any", input, output) };
        let (scaled, _) = scenario.scaled("--context", context);
        prop_assert!(scaled.longest_tokens() <= context);
        prop_assert!(scaled.input_tokens > 0 && scaled.output_tokens > 0);
    }

    #[test]
    fn a_longer_prompt_begins_with_a_shorter_one(words in 1_u32..200, more in 0_u32..50, shared in 0_u32..300, seed: u64, conversation: u64) {
        let (short, long) = (prompt(words, shared.min(words), 1, seed, conversation), prompt(words + more, shared.min(words), 1, seed, conversation));
        prop_assert!(long.starts_with(&short));
        prop_assert_eq!(long.split(' ').count(), (words + more) as usize);
    }
}
