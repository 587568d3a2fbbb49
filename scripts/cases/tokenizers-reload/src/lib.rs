//! A server that clones its tokenizer for each request, as one does that gives each connection its own. The "model" is a sum.

use std::str::FromStr;

use anyhow::{Result, anyhow};
use infergate::engine::{Engine, EngineInfo, LoadRequest, TokenId, ensure_fits};
use tokenizers::Tokenizer;

const CONTEXT_TOKENS: usize = 256;

/// A byte-pair model of a few letters.
const TOKENIZER: &str = r#"{
    "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
    "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
    "model": {
        "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
        "fuse_unk": false, "byte_fallback": false,
        "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "ab": 4, "cd": 5, "abcd": 6},
        "merges": ["a b", "c d", "ab cd"]
    }
}"#;

struct Server {
    tokenizer: Tokenizer,
    sum: TokenId,
    tokens: usize,
}

impl Engine for Server {
    fn info(&self) -> EngineInfo {
        EngineInfo {
            name: "clones".into(),
            version: "1".into(),
            model: "sum".into(),
            dtype: "u8".into(),
            context_tokens: CONTEXT_TOKENS,
            vocab_tokens: 256,
            ..EngineInfo::default()
        }
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        ensure_fits(prompt.len() + 1, CONTEXT_TOKENS)?;
        let own = self.tokenizer.clone();
        let text: Vec<&str> = prompt.iter().map(|id| ["ab", "cd", "abcd", "dcba"][*id as usize % 4]).collect();
        let encoded = own.encode(text.join(" "), false).map_err(|error| anyhow!("{error}"))?;
        self.sum = encoded.get_ids().iter().sum::<u32>() % 256;
        self.tokens = prompt.len();
        self.next()
    }

    fn next(&mut self) -> Result<TokenId> {
        ensure_fits(self.tokens + 1, CONTEXT_TOKENS)?;
        self.tokens += 1;
        self.sum = (self.sum * 31 + 7) % 256;
        Ok(self.sum)
    }
}

/// What the bench targets load.
pub fn load(_request: &LoadRequest) -> Result<Box<dyn Engine + Send>> {
    let tokenizer = Tokenizer::from_str(TOKENIZER).map_err(|error| anyhow!("{error}"))?;
    Ok(Box::new(Server { tokenizer, sum: 0, tokens: 0 }))
}
