//! Models' files that nobody meant well: no door takes more memory than its file's length allows, whatever is in it. What damaged
//! files do else is tested in `properties.rs`.
//!
//! `PROPTEST_CASES=100000` tries as many damaged files of each kind.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../../tests/support/hostile.rs"]
mod hostile;
mod properties;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use common::fixture;
use common::gguf::{GgufFile, Value};
use hostile::{inputs, survives, within_memory};
use infergate_candle::gguf::Gguf;
use infergate_candle::local;
use infergate_candle::safetensors::SafeTensorFiles;
use infergate_candle::tokenizer::Text;
use tempfile::TempDir;

#[global_allocator]
static COUNTING: hostile::Counting = hostile::Counting;

const MIB: usize = 1 << 20;

type Door = fn(&Path) -> Result<()>;

const CONFIG: (&str, Door) = ("config.json", |path| local::architecture(&local::read_config(path)?).map(drop));
const INDEX: (&str, Door) = ("model.safetensors.index.json", |path| local::shards(path).map(drop));
const TOKENIZER: (&str, Door) = ("tokenizer.json", |path| Text::from_file(path).map(drop));
const SAFETENSORS: (&str, Door) = ("model.safetensors", |path| SafeTensorFiles::open(vec![path.to_owned()]).map(drop));
const GGUF: (&str, Door) = ("model.gguf", |path| {
    let mut file = Gguf::open(path)?;
    let tokenizer = Text::from_gguf(&mut file.content).map(drop);
    tokenizer.and(file.config().map(drop))
});

/// Sends `content` through a door.
fn send((name, door): (&str, Door), folder: &TempDir, content: &[u8]) -> Result<()> {
    let path: PathBuf = folder.path().join(name);
    fs::write(&path, content)?;
    // One line, as where models are loaded.
    within_memory(name, content.len(), || door(&path)).map_err(|error| anyhow::anyhow!("{error:#}"))
}

fn filled(before: &str, entry: impl Fn(usize) -> String, after: &str, bytes: usize) -> Vec<u8> {
    let mut text = before.to_owned();
    let mut entries = 0;
    while text.len() < bytes {
        text += &entry(entries);
        entries += 1;
        text.push(',');
    }
    text.pop();
    (text + after).into_bytes()
}

/// What trees of values take most for: many of the smallest.
const DENSE: [&str; 8] = ["{\"\":0}", "[]", "{}", "0", "\"\"", "[0]", "[[]]", "{\"a\":[0]}"];

#[test]
fn json_of_the_smallest_values() {
    let folder = TempDir::new().expect("a folder");
    let doors: [(_, &[&str]); 4] = [
        (CONFIG, &["{\"model_type\":\"llama\",\"x\":", "{\"rope_scaling\":"]),
        (INDEX, &["{\"weight_map\":", "{\"metadata\":"]),
        (
            TOKENIZER,
            &[
                "{\"model\":{\"vocab\":{},\"merges\":",
                "{\"model\":{\"vocab\":{},\"merges\":[],\"x\":",
                "{\"added_tokens\":",
                "{\"version\":\"1.0\",\"model\":{\"vocab\":{},\"merges\":[]},\"normalizer\":",
                "{\"version\":\"1.0\",\"model\":{\"vocab\":{},\"merges\":[]},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":",
                "{\"version\":\"1.0\",\"model\":{\"vocab\":{},\"merges\":[]},\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":",
                "{\"version\":\"1.0\",\"model\":{\"vocab\":{},\"merges\":[]},\"decoder\":",
            ],
        ),
        (SAFETENSORS, &["{\"a\":", "{\"__metadata__\":"]),
    ];
    for (door, beginnings) in doors {
        for beginning in beginnings {
            let ends: String = beginning
                .matches('{')
                .count()
                .checked_sub(beginning.matches('}').count())
                .map_or_else(String::new, |open| "}".repeat(open));
            for dense in DENSE {
                for bytes in [60 << 10, 120 << 10, 500 << 10, 3 * MIB] {
                    let text = filled(&format!("{beginning}["), |_| dense.to_owned(), &format!("]{ends}"), bytes);
                    let _ = send(door, &folder, &as_file(door.0, text));
                    let text = filled(
                        &format!("{beginning}{{"),
                        |at| format!("\"{at:x}\":{dense}"),
                        &format!("}}{ends}"),
                        bytes,
                    );
                    let _ = send(door, &folder, &as_file(door.0, text));
                }
            }
        }
    }
}

/// A header of safetensors has its length before it.
fn as_file(name: &str, text: Vec<u8>) -> Vec<u8> {
    if name != SAFETENSORS.0 {
        return text;
    }
    [&(text.len() as u64).to_le_bytes()[..], &text].concat()
}

fn tokenizer(vocab: &str, merges: &str, added: &str) -> Vec<u8> {
    format!(
        "{{\"version\":\"1.0\",\"added_tokens\":[{added}],\"model\":{{\"type\":\"BPE\",\"vocab\":{{{vocab}}},\"merges\":[{merges}]}}}}"
    )
    .into_bytes()
}

fn joined(count: usize, entry: impl Fn(usize) -> String) -> String {
    (0..count).map(entry).collect::<Vec<_>>().join(",")
}

/// Sound but for their size: tables have just grown, entries are as small as can be.
#[test]
fn tokenizers_of_the_smallest_tokens() {
    let folder = TempDir::new().expect("a folder");
    for count in [30_000, 57_345, 114_689, 229_377, 500_000] {
        let vocab = joined(count, |id| format!("\"{id:x}\":{id}"));
        let base = "\"a\":0,\"b\":1,\"ab\":2";
        let merges = [joined(count, |_| "\"a b\"".into()), joined(count, |_| "[\"a\",\"b\"]".into())];
        let added = |count: usize| {
            joined(count, |id| {
                format!(
                    "{{\"id\":{id},\"content\":\"{id:x}\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":{},\"special\":true}}",
                    id % 2 == 0
                )
            })
        };
        let _ = send(TOKENIZER, &folder, &tokenizer(&vocab, "", ""));
        for merges in &merges {
            let _ = send(TOKENIZER, &folder, &tokenizer(base, merges, ""));
            let _ = send(TOKENIZER, &folder, &tokenizer(&(vocab.clone() + ",\"zz\":1"), merges, ""));
        }
        let _ = send(TOKENIZER, &folder, &tokenizer(base, "", &added(count / 10)));
        let one = |letter: &str| {
            format!(
                "{{\"id\":9,\"content\":\"{}\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":true,\"special\":true}}",
                letter.repeat(count)
            )
        };
        let _ = send(TOKENIZER, &folder, &tokenizer(base, "", &one("x")));
    }
}

/// Of the sizes that published models have: 50,257 tokens with 50,000 merges in 1.4 MB (GPT-2), 128,256 with 280,147 in 9 MB
/// (Llama 3), 151,643 with 151,387 in 7 MB (Qwen2). Their texts are made up here, as long as those.
#[test]
fn published_sizes_are_read() {
    let folder = TempDir::new().expect("a folder");
    let token = |id: usize| format!("t{id:06x}");
    for (tokens, merges, newline) in
        [(50_257, 50_000, ""), (128_256, 280_147, "\n      "), (151_643, 151_387, "\n      ")]
    {
        let vocab =
            joined(tokens, |id| format!("{newline}\"{}\":{id}", token(id))) + ",\"aaaa\":0,\"bbbb\":1,\"aaaabbbb\":2";
        let merges = joined(merges, |_| format!("{newline}\"aaaa bbbb\""));
        send(TOKENIZER, &folder, &tokenizer(&vocab, &merges, "")).expect("is read");
    }
    let texts = |count: usize, text: &dyn Fn(usize) -> String| Value::Texts((0..count).map(text).collect());
    let file = GgufFile::default()
        .with("tokenizer.ggml.model", Value::Text("gpt2".into()))
        .with("tokenizer.ggml.pre", Value::Text("llama-bpe".into()))
        .with(
            "tokenizer.ggml.tokens",
            texts(128_256, &|id| ["aaaa", "bbbb", "aaaabbbb"].get(id).map_or_else(|| token(id), |&text| text.into())),
        )
        .with(
            "tokenizer.ggml.token_type",
            Value::Numbers((0..128_256).map(|id| if id < 128_000 { 1 } else { 3 }).collect()),
        )
        .with("tokenizer.ggml.merges", texts(280_147, &|_| "aaaa bbbb".into()));
    let path = folder.path().join("llama3.gguf");
    fs::write(&path, file.bytes()).expect("a file");
    let mut open = Gguf::open(&path).expect("is read");
    within_memory("GGUF", file.bytes().len(), || Text::from_gguf(&mut open.content)).expect("is read");
}

#[test]
fn gguf_of_the_smallest_values() {
    let folder = TempDir::new().expect("a folder");
    let base = |kind: &str| {
        GgufFile::default()
            .with("tokenizer.ggml.model", Value::Text(kind.into()))
            .with("tokenizer.ggml.pre", Value::Text("gpt-2".into()))
    };
    for count in [30_000, 57_345, 114_689, 500_000, 2_000_000] {
        let short = |id: usize| format!("{id:x}");
        let texts = |text: &dyn Fn(usize) -> String| Value::Texts((0..count).map(text).collect());
        let few = || Value::Texts(vec!["a".into(), "b".into(), "ab".into()]);
        let empty = GgufFile::default().with("x", texts(&|_| String::new()));
        let numbers = GgufFile::default().with("x", Value::Numbers(vec![0; count]));
        let tokens = base("gpt2")
            .with("tokenizer.ggml.tokens", texts(&short))
            .with("tokenizer.ggml.merges", Value::Texts(Vec::new()));
        let merges =
            base("gpt2").with("tokenizer.ggml.tokens", few()).with("tokenizer.ggml.merges", texts(&|_| "a b".into()));
        let whole = tokens.clone().with("tokenizer.ggml.token_type", Value::Numbers(vec![3; count]));
        for file in [empty, numbers, tokens, merges, whole] {
            let _ = send(GGUF, &folder, &file.bytes());
        }
        // Bytes: one each in the file.
        let mut bytes = GgufFile::default().with("x", Value::Numbers(vec![])).bytes();
        let place = bytes.windows(4).position(|four| four == 5_u32.to_le_bytes()).expect("an array of i32");
        bytes[place..place + 4].copy_from_slice(&0_u32.to_le_bytes());
        bytes[place + 4..place + 12].copy_from_slice(&(count as u64).to_le_bytes());
        bytes.truncate(place + 12);
        bytes.resize(place + 12 + count, 1);
        let _ = send(GGUF, &folder, &bytes);
    }
    // Each begins all that come after it: half a million pairs of a thousand tokens.
    let tokens: Vec<String> = (1..=1_000).map(|letters| "a".repeat(letters)).chain(["<unk>".into()]).collect();
    let types = (0..=1_000).map(|id| if id == 1_000 { 2 } else { 1 }).collect();
    let pairs = base("llama")
        .with("tokenizer.ggml.scores", Value::Floats(vec![0.0; tokens.len()]))
        .with("tokenizer.ggml.token_type", Value::Numbers(types))
        .with("tokenizer.ggml.tokens", Value::Texts(tokens));
    let error = send(GGUF, &folder, &pairs.bytes()).expect_err("would fill the memory");
    assert!(error.to_string().contains("would fill the memory"), "{error}");
}

#[test]
fn damaged_files() {
    let folder = TempDir::new().expect("a folder");
    let read = |name: &str| fs::read(fixture(name)).expect("a fixture");
    let damaged = |door: (&str, Door), names: &[&str]| {
        let files: Vec<Vec<u8>> = names.iter().map(|name| read(name)).collect();
        let sound: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
        let path = folder.path().join(door.0);
        let taken = survives(door.0, &sound, |bytes| {
            fs::write(&path, bytes)?;
            door.1(&path).map_err(|error| anyhow::anyhow!("{error:#}"))
        });
        println!("{}: {taken} of {} damaged inputs were read", door.0, inputs());
    };
    damaged(CONFIG, &["llama/config.json", "qwen3/config.json", "gpt2-new/config.json"]);
    damaged(INDEX, &["qwen2/model.safetensors.index.json"]);
    damaged(TOKENIZER, &["tokenizer/gpt-2.json", "llama/tokenizer.json"]);
    damaged(SAFETENSORS, &["llama/model.safetensors"]);
    damaged(GGUF, &["llama/model.gguf", "qwen2/model.gguf", "qwen3/model.gguf"]);
}
