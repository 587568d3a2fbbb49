//! A table of merges, looked up 64 times for each token of the prompt, as a tokenizer does. The "model" is a sum.

use anyhow::Result;
use hashbrown::HashMap;
use infergate::engine::{Engine, EngineInfo, LoadRequest, TokenId, ensure_fits};

const CONTEXT_TOKENS: usize = 256;
const ENTRIES: u32 = 100_000;
const LOOKUPS: u32 = 64;

struct Vocabulary {
    ranks: HashMap<u32, u32>,
    sum: TokenId,
    tokens: usize,
}

impl Vocabulary {
    fn look_up(&self, id: TokenId) -> TokenId {
        let keys = (0..LOOKUPS).map(|at| (id.wrapping_mul(40_503) + at * 7919) % (2 * ENTRIES));
        keys.filter_map(|key| self.ranks.get(&key)).fold(id, |sum, rank| (sum * 31 + rank) % 65_521)
    }
}

impl Engine for Vocabulary {
    fn info(&self) -> EngineInfo {
        EngineInfo {
            name: "vocabulary".into(),
            version: "1".into(),
            model: "merges".into(),
            dtype: "u32".into(),
            context_tokens: CONTEXT_TOKENS,
            vocab_tokens: 65_521,
            ..EngineInfo::default()
        }
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        ensure_fits(prompt.len() + 1, CONTEXT_TOKENS)?;
        self.tokens = prompt.len() + 1;
        self.sum = prompt.iter().fold(0, |sum, id| (sum + self.look_up(*id)) % 65_521);
        Ok(self.sum)
    }

    fn next(&mut self) -> Result<TokenId> {
        ensure_fits(self.tokens + 1, CONTEXT_TOKENS)?;
        self.tokens += 1;
        self.sum = self.look_up(self.sum + 1);
        Ok(self.sum)
    }
}

/// What the bench targets load.
pub fn load(_request: &LoadRequest) -> Result<Box<dyn Engine + Send>> {
    let ranks = (0..ENTRIES).map(|at| (2 * at, at.wrapping_mul(2_654_435_761) % 65_521)).collect();
    Ok(Box::new(Vocabulary { ranks, sum: 0, tokens: 0 }))
}
