//! The tokenizer of Llama 2 and its kin, which GGUF stores as SentencePiece's tokens with scores.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use candle_core::quantized::gguf_file::{Content, Value};
use tokenizers::Tokenizer;
use tokenizers::decoders::DecoderWrapper;
use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::sequence::Sequence as Decoders;
use tokenizers::decoders::strip::Strip;
use tokenizers::models::bpe::{BPE, Merges, Vocab};
use tokenizers::normalizers::{NormalizerWrapper, Prepend, Replace, Sequence as Normalizers};

use super::one_line;

/// SentencePiece writes spaces so.
const SPACE: &str = "\u{2581}";

/// GGUF's type of the token for what is unknown.
const UNKNOWN: i32 = 2;

/// The tokenizer over `tokens`.
///
/// # Errors
/// When scores or the unknown token are missing.
pub fn tokenizer(content: &mut Content, tokens: Vec<String>, types: &[i32]) -> Result<Tokenizer> {
    let scores: Option<Vec<f32>> = match content.metadata.remove("tokenizer.ggml.scores") {
        Some(Value::Array(list)) => list.iter().map(|value| value.to_f32().ok()).collect(),
        _ => None,
    };
    let scores = scores.context("the GGUF metadata has no list of numbers tokenizer.ggml.scores")?;
    ensure!(
        scores.len() == tokens.len() && scores.iter().all(|s| !s.is_nan()),
        "the GGUF metadata tokenizer.ggml.scores does not have one number for each token"
    );
    let unknown = types.iter().position(|&t| t == UNKNOWN).and_then(|id| tokens.get(id));
    let unknown = unknown.context("the GGUF metadata's tokenizer has no unknown token")?;
    let builder = BPE::builder().unk_token(unknown.clone()).fuse_unk(true).byte_fallback(true);
    let merges = merges(&tokens, &scores);
    let vocab: Vocab = tokens.into_iter().zip(0..).collect();
    let bpe = builder
        .vocab_and_merges(vocab, merges)
        .build()
        .map_err(one_line)
        .context("the GGUF metadata's tokenizer is damaged")?;
    let mut tokenizer = Tokenizer::new(bpe);
    // SentencePiece's dummy prefix: a text starts as if a space stood before it.
    let prefixed = !matches!(content.metadata.get("tokenizer.ggml.add_space_prefix"), Some(Value::Bool(false)));
    let spaces: NormalizerWrapper = Replace::new(" ", SPACE).map_err(one_line)?.into();
    let prefix = prefixed.then(|| NormalizerWrapper::from(Prepend::new(SPACE.to_owned())));
    tokenizer
        .with_normalizer(Some(Normalizers::new(prefix.into_iter().chain([spaces]).collect())))
        .map_err(one_line)?;
    let mut decoders: Vec<DecoderWrapper> = vec![
        Replace::new(SPACE, " ").map_err(one_line)?.into(),
        ByteFallback::default().into(),
        Fuse::default().into(),
    ];
    if prefixed {
        decoders.push(Strip::new(' ', 1, 0).into());
    }
    tokenizer.with_decoder(Some(Decoders::new(decoders)));
    Ok(tokenizer)
}

/// The pairs of tokens that make a token, the best score first: what SentencePiece joins, in its order.
fn merges(tokens: &[String], scores: &[f32]) -> Merges {
    let ids: HashMap<&str, usize> = tokens.iter().enumerate().map(|(id, token)| (token.as_str(), id)).collect();
    let mut pairs = Vec::new();
    for (token, score) in tokens.iter().zip(scores) {
        for (at, _) in token.char_indices().skip(1) {
            let (left, right) = token.split_at(at);
            if let (Some(l), Some(r)) = (ids.get(left), ids.get(right)) {
                pairs.push((*score, *l, *r));
            }
        }
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    pairs.into_iter().map(|(_, l, r)| (tokens[l].clone(), tokens[r].clone())).collect()
}
