//! tokenizer.json, read part by part into the tokenizers crate.
//!
//! The crate's own reader makes a tree of all of the file first, and panics over merges that make a longer token than any.
//! Here the counts of the file's entries are taken first, and what would fill the memory is refused.

use std::fmt;

use anyhow::{Result, bail, ensure};
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::value::RawValue;
use tokenizers::models::bpe::{BPE, Merges, Vocab};
use tokenizers::{AddedToken, DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper, Tokenizer};

use super::{one_line, room};

/// The largest tokenizer.json that is read; published ones have up to 40 MB.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// How text is cut and put together: a few kilobytes. The crate keeps sixty bytes for each of them.
const MAX_REST_BYTES: usize = 64 << 10;

/// The large parts of the file. The others are small.
#[derive(Deserialize)]
struct Parts<'a> {
    #[serde(borrow)]
    model: &'a RawValue,
    #[serde(borrow, default)]
    added_tokens: Option<&'a RawValue>,
}

/// How text is cut before merging, and put together again. Cutting to a length and filling up would change prompt lengths, and is
/// passed over.
#[derive(Deserialize)]
struct Steps {
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    normalizer: Option<NormalizerWrapper>,
    #[serde(default)]
    pre_tokenizer: Option<PreTokenizerWrapper>,
    #[serde(default)]
    post_processor: Option<PostProcessorWrapper>,
    #[serde(default)]
    decoder: Option<DecoderWrapper>,
}

/// How many entries the model has.
#[derive(Deserialize)]
struct Outline {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    vocab: Entries,
    merges: Entries,
}

#[derive(Deserialize)]
struct Model {
    #[serde(default)]
    dropout: Option<f32>,
    #[serde(default)]
    unk_token: Option<String>,
    #[serde(default)]
    continuing_subword_prefix: Option<String>,
    #[serde(default)]
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    fuse_unk: Option<bool>,
    #[serde(default)]
    byte_fallback: Option<bool>,
    #[serde(default)]
    ignore_merges: Option<bool>,
    vocab: Vocab,
    #[serde(deserialize_with = "merges")]
    merges: Merges,
}

#[derive(Deserialize)]
struct Added {
    content: String,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
    normalized: bool,
    special: bool,
}

/// The tokenizer in `json`.
///
/// # Errors
/// What is damaged or missing, another model than BPE, more entries than a file of its length has.
pub fn read(json: &str) -> Result<Tokenizer> {
    let parts: Parts<'_> = serde_json::from_str(json).map_err(one_line)?;
    let (model, added) = (parts.model.get(), parts.added_tokens.map_or("null", RawValue::get));
    let rest = json.len() - model.len() - added.len();
    ensure!(rest <= MAX_REST_BYTES, "what is not its tokens has {rest} bytes, more than {MAX_REST_BYTES}");
    let outline: Outline = serde_json::from_str(model).map_err(one_line)?;
    if let Some(kind) = outline.kind.filter(|kind| kind != "BPE") {
        bail!("its model is of the type {kind}, and only BPE is read here");
    }
    let added: Option<Vec<Added>> = serde_json::from_str(added).map_err(one_line)?;
    let added = added.unwrap_or_default();
    let letters = added.iter().map(|token| token.content.len()).sum();
    // Each text of the model is kept in two tables at the most.
    room::ensure(outline.vocab.0, outline.merges.0, 2 * model.len(), (added.len(), letters), json.len() as u64)?;
    build(serde_json::from_str(json).map_err(one_line)?, model, added)
}

fn build(steps: Steps, model: &str, added: Vec<Added>) -> Result<Tokenizer> {
    if let Some(version) = steps.version.filter(|version| version != "1.0") {
        bail!("its version is {version}, and 1.0 is read here");
    }
    let mut tokenizer = Tokenizer::new(serde_json::from_str::<Model>(model).map_err(one_line)?.build()?);
    tokenizer.with_normalizer(steps.normalizer).map_err(one_line)?;
    tokenizer.with_pre_tokenizer(steps.pre_tokenizer);
    tokenizer.with_post_processor(steps.post_processor);
    tokenizer.with_decoder(steps.decoder);
    tokenizer.add_tokens(added.into_iter().map(Added::token)).map_err(one_line)?;
    Ok(tokenizer)
}

impl Added {
    fn token(self) -> AddedToken {
        let Self { content, single_word, lstrip, rstrip, normalized, special } = self;
        AddedToken { content, single_word, lstrip, rstrip, normalized, special }
    }
}

impl Model {
    fn build(self) -> Result<BPE> {
        let prefix = self.continuing_subword_prefix.as_deref().unwrap_or_default().len();
        let mut builder = BPE::builder()
            .fuse_unk(self.fuse_unk.unwrap_or_default())
            .byte_fallback(self.byte_fallback.unwrap_or_default())
            .ignore_merges(self.ignore_merges.unwrap_or_default());
        if let Some(dropout) = self.dropout {
            builder = builder.dropout(dropout);
        }
        if let Some(unknown) = self.unk_token {
            builder = builder.unk_token(unknown);
        }
        if let Some(prefix) = self.continuing_subword_prefix {
            builder = builder.continuing_subword_prefix(prefix);
        }
        if let Some(suffix) = self.end_of_word_suffix {
            builder = builder.end_of_word_suffix(suffix);
        }
        room::bpe(builder, self.vocab, self.merges, prefix)
    }
}

/// How many entries a list or a map has; nothing of them is kept.
struct Entries(usize);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Count).map(Self)
    }
}

struct Count;

impl<'de> Visitor<'de> for Count {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or a map")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<usize, A::Error> {
        let mut entries = 0;
        while list.next_element::<IgnoredAny>()?.is_some() {
            entries += 1;
        }
        Ok(entries)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<usize, A::Error> {
        let mut entries = 0;
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            entries += 1;
        }
        Ok(entries)
    }
}

/// `"a b"`, or `["a", "b"]` where tokens may have spaces in them.
fn merges<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Merges, D::Error> {
    struct Pair((String, String));
    struct PairVisitor;
    struct Pairs;

    impl<'de> Visitor<'de> for PairVisitor {
        type Value = (String, String);

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("two tokens")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            let (left, right) = text.split_once(' ').ok_or_else(|| E::custom("a merge is not of two tokens"))?;
            if right.contains(' ') {
                return Err(E::custom("a merge is not of two tokens"));
            }
            Ok((left.to_owned(), right.to_owned()))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            match (list.next_element()?, list.next_element()?, list.next_element::<IgnoredAny>()?) {
                (Some(left), Some(right), None) => Ok((left, right)),
                _ => Err(A::Error::custom("a merge is not of two tokens")),
            }
        }
    }

    impl<'de> Deserialize<'de> for Pair {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(PairVisitor).map(Self)
        }
    }

    impl<'de> Visitor<'de> for Pairs {
        type Value = Merges;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of merges")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Merges, A::Error> {
            let mut merges = Merges::new();
            while let Some(Pair(merge)) = list.next_element()? {
                merges.push(merge);
            }
            Ok(merges)
        }
    }

    deserializer.deserialize_seq(Pairs)
}
