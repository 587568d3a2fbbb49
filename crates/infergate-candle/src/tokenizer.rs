//! [`Text`]: text to tokens and back, from tokenizer.json or from GGUF metadata.

mod sentencepiece;

use std::path::Path;

use anyhow::{Context, Error, Result, anyhow, bail};
use candle_core::quantized::gguf_file::{Content, Value};
use tokenizers::decoders::byte_level::ByteLevel as ByteLevelDecoder;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::unicode::NFC;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{AddedToken, SplitDelimiterBehavior, Tokenizer};

use crate::engine::Tokenize;
use infergate::engine::TokenId;

/// A model's tokenizer. It adds no special tokens and drops none.
pub struct Text {
    tokenizer: Tokenizer,
}

/// GGUF token types (`llama_token_type` in llama.cpp): tokens matched as a whole, before anything else.
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;

/// Contractions, words with the sign before them, digits (in place of `DIGITS`), signs, line ends, spaces.
const WORDS: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|DIGITS| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

impl Text {
    /// Reads a tokenizer.json.
    ///
    /// # Errors
    /// When the file cannot be read or is no tokenizer.
    pub fn from_file(path: &Path) -> Result<Self> {
        let tokenizer = Tokenizer::from_file(path).map_err(one_line);
        Self::new(tokenizer.with_context(|| format!("the tokenizer {} is damaged; download it again", path.display()))?)
    }

    /// Builds the tokenizer a GGUF file describes, whose lists it takes out of `content`. `Ok(None)`: it describes none.
    ///
    /// # Errors
    /// When the description is damaged, or of a kind not known here: wrong tokens are worse than none.
    pub fn from_gguf(content: &mut Content) -> Result<Option<Self>> {
        let kind = match content.metadata.get("tokenizer.ggml.model") {
            None => return Ok(None),
            Some(Value::String(kind)) if kind == "none" || kind == "no_vocab" => return Ok(None),
            Some(Value::String(kind)) => kind.clone(),
            Some(_) => bail!("the GGUF metadata tokenizer.ggml.model is not a text"),
        };
        let tokens = take_strings(content, "tokenizer.ggml.tokens")?;
        let types = types(content)?;
        // Control tokens and those of the model's maker are found in a text before it is cut.
        let whole: Vec<AddedToken> =
            tokens.iter().zip(&types).filter_map(|(token, kind)| added(token, *kind)).collect();
        let mut tokenizer = match kind.as_str() {
            "gpt2" => byte_level(content, tokens)?,
            "llama" => sentencepiece::tokenizer(content, tokens, &types)?,
            other => bail!(
                "tokenizer.ggml.model `{other}` is not supported, only `gpt2` and `llama` are; use the model's safetensors and tokenizer.json"
            ),
        };
        tokenizer.add_tokens(whole).map_err(one_line)?;
        Self::new(tokenizer).map(Some)
    }

    fn new(mut tokenizer: Tokenizer) -> Result<Self> {
        // A tokenizer.json may ask for cutting and filling up, which would change prompt lengths.
        tokenizer.with_truncation(None).map_err(one_line)?;
        tokenizer.with_padding(None);
        Ok(Self { tokenizer })
    }
}

impl Tokenize for Text {
    fn tokenize(&self, text: &str) -> Result<Vec<TokenId>> {
        let encoding = self.tokenizer.encode(text, false).map_err(one_line).context("the text cannot be tokenized")?;
        Ok(encoding.get_ids().to_vec())
    }

    fn detokenize(&self, tokens: &[TokenId]) -> Result<String> {
        self.tokenizer.decode(tokens, false).map_err(one_line).context("the tokens cannot be turned into text")
    }
}

fn added(token: &str, kind: i32) -> Option<AddedToken> {
    match kind {
        CONTROL => Some(AddedToken::from(token, true)),
        USER_DEFINED => Some(AddedToken::from(token, false).normalized(false)),
        _ => None,
    }
}

/// GPT-2's kind of tokenizer: bytes written as letters, merged.
fn byte_level(content: &mut Content, tokens: Vec<String>) -> Result<Tokenizer> {
    let pre = match content.metadata.get("tokenizer.ggml.pre") {
        Some(Value::String(pre)) => pre.clone(),
        _ => bail!("the GGUF metadata has no tokenizer.ggml.pre, so its text cannot be cut into tokens with certainty"),
    };
    let cut = cut(&pre)?;
    let merges = take_strings(content, "tokenizer.ggml.merges")?;
    let vocab: Vocab = tokens.into_iter().zip(0..).collect();
    let merges = merges
        .into_iter()
        .map(|merge| merge.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())))
        .collect::<Option<Vec<_>>>()
        .context("the GGUF metadata tokenizer.ggml.merges has an entry that is no pair")?;
    let builder = BPE::builder().ignore_merges(pre == "llama-bpe").vocab_and_merges(vocab, merges);
    let bpe = builder.build().map_err(one_line).context("the GGUF metadata's tokenizer is damaged")?;
    let mut tokenizer = Tokenizer::new(bpe);
    if pre == "qwen2" {
        tokenizer.with_normalizer(Some(NFC)).map_err(one_line)?;
    }
    tokenizer.with_pre_tokenizer(Some(Sequence::new(cut)));
    tokenizer.with_decoder(Some(ByteLevelDecoder::default()));
    Ok(tokenizer)
}

/// The steps that cut text into words for the byte-level BPE that GGUF calls `pre`.
fn cut(pre: &str) -> Result<Vec<PreTokenizerWrapper>> {
    let bytes = |words: bool| PreTokenizerWrapper::from(ByteLevel::new(false, true, words));
    let words = |digits: &str| {
        let pattern = SplitPattern::Regex(WORDS.replace("DIGITS", digits));
        Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map(PreTokenizerWrapper::from).map_err(one_line)
    };
    Ok(match pre {
        "gpt-2" => vec![bytes(true)],
        "smollm" => vec![Digits::new(true).into(), bytes(true)],
        "llama-bpe" => vec![words(r"\p{N}{1,3}")?, bytes(false)],
        "qwen2" => vec![words(r"\p{N}")?, bytes(false)],
        other => bail!(
            "the pre-tokenizer `{other}` is not known, and guessing would give wrong tokens; known are gpt-2, smollm, llama-bpe, qwen2. Use the model's safetensors and tokenizer.json"
        ),
    })
}

/// GGUF's type of each token; none where the file does not say.
fn types(content: &mut Content) -> Result<Vec<i32>> {
    let number = |value: &Value| value.to_i32().ok().or_else(|| i32::try_from(value.to_u32().ok()?).ok());
    let types = match content.metadata.remove("tokenizer.ggml.token_type") {
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) => list.iter().map(number).collect(),
        Some(_) => None,
    };
    types.context("the GGUF metadata tokenizer.ggml.token_type is not a list of numbers")
}

/// The list of texts under `key`, which `content` has no more: a vocabulary that is there twice takes twice the memory.
fn take_strings(content: &mut Content, key: &str) -> Result<Vec<String>> {
    let list = match content.metadata.remove(key) {
        Some(Value::Array(list)) => list,
        Some(_) => bail!("the GGUF metadata {key} is not a list"),
        None => bail!("the GGUF metadata has no {key}"),
    };
    let text = |value: Value| match value {
        Value::String(text) => Some(text),
        _ => None,
    };
    let texts: Option<Vec<String>> = list.into_iter().map(text).collect();
    texts.with_context(|| format!("the GGUF metadata {key} has an entry that is no text"))
}

/// An error of the tokenizers crate, without line breaks.
pub(super) fn one_line(error: impl std::fmt::Display) -> Error {
    anyhow!("{}", error.to_string().lines().collect::<Vec<_>>().join(" "))
}
