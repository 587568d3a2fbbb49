//! Whatever a model's file holds, its parser gives a value or one line: nothing panics, and nothing is allocated for what is
//! only claimed. Valid files are damaged, or the file is random.
//!
//! The same inputs at each run; with `PROPTEST_CASES` set, as many others as it says.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::{copy_of, fixture, request};
use infergate::engine::EngineFactory;
use infergate_candle::Candle;
use infergate_candle::tokenizer::Text;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};
use tempfile::TempDir;

const CASES: u32 = 2_000;

fn config() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: asked.unwrap_or(CASES),
        rng_seed: if asked.is_some() { RngSeed::Random } else { RngSeed::Fixed(9) },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// One damage to a file.
#[derive(Debug, Clone)]
enum Damage {
    /// A number written somewhere, in so many bytes.
    Number(Index, u64, usize),
    /// A piece written once more, where it is or elsewhere.
    Copy(Index, Index, usize),
    Remove(Index, usize),
    Truncate(Index),
}

/// Where parsers are careless: around zero, the sign and the width of a number.
fn nasty_number() -> impl Strategy<Value = u64> {
    let edges = [0, 1, 3, 31, 1 << 16, 1 << 30, 1 << 31, u64::from(u32::MAX), 1 << 40, 1 << 60, 1 << 63, u64::MAX];
    prop_oneof![proptest::sample::select(edges.to_vec()), 0..300_u64, any::<u64>()]
}

fn damage() -> impl Strategy<Value = Damage> {
    let width = || proptest::sample::select(vec![1_usize, 2, 4, 8]);
    prop_oneof![
        6 => (any::<Index>(), nasty_number(), width()).prop_map(|(at, n, width)| Damage::Number(at, n, width)),
        2 => (any::<Index>(), any::<Index>(), 1..64_usize).prop_map(|(from, to, len)| Damage::Copy(from, to, len)),
        1 => (any::<Index>(), 1..64_usize).prop_map(|(at, len)| Damage::Remove(at, len)),
        1 => any::<Index>().prop_map(Damage::Truncate),
    ]
}

/// `bytes` with all of `damages`, which begin in the first `header` bytes.
fn damaged(bytes: &[u8], header: usize, damages: &[Damage]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for damage in damages {
        let within = header.min(bytes.len()).max(1);
        let piece = |bytes: &[u8], at: usize, len: usize| at.min(bytes.len())..(at + len).min(bytes.len());
        match damage {
            Damage::Number(at, number, width) => {
                let place = piece(&bytes, at.index(within), *width);
                let len = place.len();
                bytes[place].copy_from_slice(&number.to_le_bytes()[..len]);
            }
            Damage::Copy(from, to, len) => {
                let copy = bytes[piece(&bytes, from.index(within), *len)].to_vec();
                let at = to.index(within).min(bytes.len());
                bytes.splice(at..at, copy);
            }
            Damage::Remove(at, len) => drop(bytes.drain(piece(&bytes, at.index(within), *len))),
            Damage::Truncate(at) => bytes.truncate(at.index(within)),
        }
    }
    bytes
}

/// Random bytes, or one of `files` with up to six damages in its first `header` bytes.
fn file(files: &'static [&'static str], header: usize) -> impl Strategy<Value = Vec<u8>> {
    let files: Vec<Vec<u8>> = files.iter().map(|name| fs::read(fixture(name)).unwrap()).collect();
    let some = (proptest::sample::select(files), proptest::collection::vec(damage(), 1..=6))
        .prop_map(move |(bytes, damages)| damaged(&bytes, header, &damages));
    prop_oneof![9 => some, 1 => proptest::collection::vec(any::<u8>(), 0..2_000)]
}

/// What a damaged or hostile file may have in place of a value.
fn nasty_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => nasty_number().prop_map(Value::from),
        2 => any::<f64>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => proptest::sample::select(vec![
            Value::Null, json!(true), json!([]), json!({}), json!(""), json!("\u{1b}[2J\n"), json!("llama"), json!("../x"), json!(1e300),
        ]),
        1 => ".{0,40}".prop_map(Value::from),
    ]
}

/// One of `files` with up to three of its values, at any depth, replaced.
fn json_file(files: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let files: Vec<Value> = files.iter().map(|name| crate::common::json(name)).collect();
    let changes = proptest::collection::vec((any::<Index>(), nasty_value()), 1..=3);
    (proptest::sample::select(files), changes).prop_map(|(mut file, changes)| {
        for (at, value) in changes {
            let mut left = at.index(nodes(&file));
            replace(&mut file, &mut left, &value);
        }
        file
    })
}

fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(nodes).sum(),
        Value::Object(map) => map.values().map(nodes).sum(),
        _ => 0,
    }
}

/// Puts `new` in place of the node that `left` others come before. `true`: done.
fn replace(value: &mut Value, left: &mut usize, new: &Value) -> bool {
    if *left == 0 {
        *value = new.clone();
        return true;
    }
    *left -= 1;
    match value {
        Value::Array(list) => list.iter_mut().any(|inner| replace(inner, left, new)),
        Value::Object(map) => map.values_mut().any(|inner| replace(inner, left, new)),
        _ => false,
    }
}

/// Loads the model and takes two tokens of it: it works, or says why not in one line.
fn try_model(model: &Path, dtype: Option<&str>) -> Result<(), TestCaseError> {
    let run = Candle.load(&request(model, dtype)).and_then(|mut engine| {
        engine.start(&[1, 2, 3])?;
        engine.next()
    });
    run.map_or_else(|error| one_line(&error), |_| Ok(()))
}

fn one_line(error: &anyhow::Error) -> Result<(), TestCaseError> {
    let line = format!("{error:#}");
    prop_assert!(!line.is_empty() && !line.contains(char::is_control), "{line:?}");
    Ok(())
}

thread_local! {
    /// Copies of fixtures' folders, made once a test.
    static COPIES: RefCell<BTreeMap<&'static str, TempDir>> = const { RefCell::new(BTreeMap::new()) };
}

/// A fixture's folder with one of its files in another form.
fn try_folder(fixture: &'static str, name: &str, content: &[u8]) -> Result<(), TestCaseError> {
    COPIES.with_borrow_mut(|copies| {
        let folder = copies.entry(fixture).or_insert_with(|| copy_of(fixture)).path();
        let whole = fs::read(folder.join(name)).unwrap();
        fs::write(folder.join(name), content).unwrap();
        let result = try_model(folder, None);
        fs::write(folder.join(name), whole).unwrap();
        result
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn gguf(bytes in file(&["llama/model.gguf", "qwen2/model.gguf", "qwen3/model.gguf"], 9_000), as_f32: bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.gguf");
        fs::write(&path, bytes).unwrap();
        try_model(&path, as_f32.then_some("f32"))?;
    }

    #[test]
    fn config_bytes(bytes in file(&["gpt2-new/config.json", "llama/config.json", "qwen3/config.json"], usize::MAX)) {
        try_folder("llama", "config.json", &bytes)?;
    }

    #[test]
    fn config_values(config in json_file(&["gpt2-new/config.json", "gpt2-erf/config.json", "llama/config.json", "qwen2/config.json", "qwen3/config.json"])) {
        let folder = match config["model_type"].as_str() {
            Some("gpt2") => "gpt2-new",
            Some("qwen2") => "qwen2",
            Some("qwen3") => "qwen3",
            _ => "llama",
        };
        try_folder(folder, "config.json", config.to_string().as_bytes())?;
    }

    #[test]
    fn safetensors(bytes in file(&["llama/model.safetensors", "qwen3/model.safetensors"], 4_000)) {
        try_folder("llama", "model.safetensors", &bytes)?;
    }

    #[test]
    fn list_of_shards(index in json_file(&["qwen2/model.safetensors.index.json"])) {
        try_folder("qwen2", "model.safetensors.index.json", index.to_string().as_bytes())?;
    }

    #[test]
    fn tokenizer_values(tokenizer in json_file(&["tokenizer/gpt-2.json", "tokenizer/spm.json"]), text in ".{0,60}") {
        try_tokenizer(tokenizer.to_string().as_bytes(), &text)?;
    }

    #[test]
    fn tokenizer_bytes(bytes in file(&["tokenizer/gpt-2.json", "tokenizer/spm.json"], usize::MAX)) {
        try_tokenizer(&bytes, "Hello, world")?;
    }
}

/// Reads the tokenizer and sends a text there and back.
fn try_tokenizer(content: &[u8], text: &str) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    fs::write(&path, content).unwrap();
    let back = Text::from_file(&path).and_then(|tokenizer| tokenizer.detokenize(&tokenizer.tokenize(text)?));
    if let Err(error) = back {
        // Shown through `Candle.load`, which removes what a terminal would obey.
        prop_assert!(!error.to_string().is_empty());
    }
    Ok(())
}
