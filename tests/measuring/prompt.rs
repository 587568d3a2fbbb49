//! Fixed prompts: exactly P tokens, the same every time.

use anyhow::Result;
use infergate::engine::{Engine, EngineInfo, TokenId};
use infergate::measure::fixed_prompt;
use infergate_core::prompt::{TEXT, seeded_ids};

use crate::fake::{FakeEngine, FakeScript, VirtualClock};

/// An engine whose tokens are words; it only tokenizes.
struct Words;

impl Engine for Words {
    fn info(&self) -> EngineInfo {
        EngineInfo { name: "words".into(), model: "words".into(), vocab_tokens: 256, ..EngineInfo::default() }
    }

    fn start(&mut self, _prompt: &[TokenId]) -> Result<TokenId> {
        Ok(0)
    }

    fn next(&mut self) -> Result<TokenId> {
        Ok(0)
    }

    fn tokenize(&self, text: &str) -> Result<Option<Vec<TokenId>>> {
        Ok(Some(text.split_whitespace().map(|word| word.len() as TokenId).collect()))
    }
}

#[test]
fn the_text_is_long_enough_for_the_largest_case_without_repeating() {
    assert!(TEXT.is_ascii());
    assert!(TEXT.split_whitespace().count() >= 1500);
    assert!(TEXT.contains("a White Rabbit with pink eyes ran close by her"));
}

#[test]
fn a_prompt_has_exactly_the_tokens_asked_for() {
    for tokens in [1, 2, 128, 1024] {
        assert_eq!(fixed_prompt(&Words, TEXT, tokens, 0).unwrap().len(), tokens);
    }
    let long = fixed_prompt(&Words, TEXT, 512, 0).unwrap();
    assert_eq!(long[..128], fixed_prompt(&Words, TEXT, 128, 1).unwrap(), "a shorter prompt starts a longer one");
}

#[test]
fn a_short_text_is_repeated() {
    assert_eq!(fixed_prompt(&Words, "a bb ccc", 7, 0).unwrap(), [1, 2, 3, 1, 2, 3, 1]);
    let tokens = 3 * TEXT.split_whitespace().count();
    assert_eq!(fixed_prompt(&Words, TEXT, tokens, 0).unwrap().len(), tokens);
}

#[test]
fn nothing_to_repeat_and_nothing_asked_for_are_refused() {
    assert!(fixed_prompt(&Words, "", 1, 0).unwrap_err().to_string().contains("no tokens"));
    assert!(fixed_prompt(&Words, TEXT, 0, 0).unwrap_err().to_string().contains("zero tokens"));
}

#[test]
fn without_a_tokenizer_the_seed_decides() {
    let fake = FakeEngine::new(FakeScript::default(), VirtualClock::default());
    let ids = fixed_prompt(&fake, TEXT, 64, 7).unwrap();
    assert_eq!(ids, seeded_ids(64, 7, fake.info().vocab_tokens));
    assert_ne!(ids, seeded_ids(64, 8, fake.info().vocab_tokens));
    assert!(ids.iter().all(|id| (*id as usize) < fake.info().vocab_tokens));
}

#[test]
fn seeded_ids_are_the_same_on_every_machine() {
    // SplitMix64 of state 0 begins with 0xe220a8397b1dcdaf.
    assert_eq!(seeded_ids(1, 0, 1 << 16), [0xcdaf]);
    assert_eq!(seeded_ids(3, 0, 1), [0, 0, 0]);
}
