//! Whatever is wrong with a model's files, it is said in one line, and nothing panics.

mod common;

use std::fs;
use std::path::Path;

use common::gguf::{GgufFile, Value as Meta};
use common::{copy_of, fixture, json, request};
use infergate::engine::EngineFactory;
use infergate_core::prompt::seeded_ids;
use infergate_candle::Candle;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The one line that loading `model` fails with.
fn error(model: &Path, dtype: Option<&str>) -> String {
    match Candle.load(&request(model, dtype)) {
        Ok(_) => panic!("{} loads", model.display()),
        Err(error) => one_line(&error),
    }
}

fn one_line(error: &anyhow::Error) -> String {
    let line = format!("{error:#}");
    assert!(!line.contains('\n') && !line.ends_with('.'), "{line}");
    line
}

fn assert_says(line: &str, words: &[&str]) {
    assert!(words.iter().all(|w| line.contains(w)), "{line:?} does not say {words:?}");
}

/// A GGUF file with these bytes.
fn gguf(bytes: &[u8]) -> (TempDir, std::path::PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("model.gguf");
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn gguf_error(bytes: &[u8]) -> String {
    let (_folder, path) = gguf(bytes);
    let line = error(&path, None);
    assert_eq!(line, error(&path, Some("f32")), "the same with --dtype f32");
    line
}

#[test]
fn gguf_missing_empty_or_something_else() {
    assert_says(&error(Path::new("no/such.gguf"), None), &["no/such.gguf", "cannot open"]);
    assert_says(&gguf_error(b""), &["model.gguf", "is empty"]);
    for wrong in [b"GG".as_slice(), b"PK\x03\x04 a zip file", b"FUGG\x03\0\0\0", &[0; 64]] {
        assert_says(&gguf_error(wrong), &["model.gguf is not a GGUF file"]);
    }
    assert_says(&error(&fixture("llama").join("../llama/nothing.gguf"), None), &["nothing.gguf"]);
    let folder = TempDir::new().unwrap();
    let directory = folder.path().join("folder.gguf");
    fs::create_dir(&directory).unwrap();
    error(&directory, None);
}

#[test]
fn gguf_truncated_anywhere() {
    let whole = fs::read(fixture("qwen2/model.gguf")).unwrap();
    let lengths = (4..whole.len()).step_by(397).chain([whole.len() - 1]);
    for length in lengths {
        assert_says(&gguf_error(&whole[..length]), &["truncated or damaged"]);
    }
}

#[test]
fn gguf_headers_that_would_panic_or_fill_memory() {
    let alignment = |n| GgufFile::default().with("general.alignment", Meta::Number(n)).bytes();
    assert_says(&gguf_error(&alignment(0)), &["general.alignment is 0"]);
    assert_says(&gguf_error(&alignment(3)), &["general.alignment is 3"]);

    let whole = fs::read(fixture("qwen2/model.gguf")).unwrap();
    // The version, the number of weights, the number of metadata entries.
    for at in [4, 8, 16] {
        let mut bytes = whole.clone();
        bytes[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_says(&gguf_error(&bytes), &["truncated or damaged"]);
    }
    // A weight of 2^63 rows.
    let mut bytes = whole.clone();
    let name = b"token_embd.weight";
    let at = bytes.windows(name.len()).position(|w| w == name).unwrap() + name.len() + 4 + 8;
    bytes[at..at + 8].copy_from_slice(&(1_u64 << 63).to_le_bytes());
    assert_says(&gguf_error(&bytes), &["token_embd.weight"]);
}

#[test]
fn gguf_metadata_that_does_not_fit() {
    let whole = fs::read(fixture("llama/model.gguf")).unwrap();
    let patched = |key: &str, value: u32| {
        let mut bytes = whole.clone();
        let at = bytes.windows(key.len()).position(|w| w == key.as_bytes()).unwrap() + key.len() + 4;
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        gguf_error(&bytes)
    };
    for key in ["block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count"] {
        for value in [0, u32::MAX] {
            patched(&format!("llama.{key}"), value);
        }
    }
    assert_says(&patched("llama.block_count", 1), &["blk.1."]);
    assert_says(&patched("llama.block_count", 3), &["blk.2.", "missing"]);
    assert_says(&patched("llama.embedding_length", 64), &["shape"]);
    assert_says(&patched("llama.attention.head_count_kv", 3), &["key-value heads"]);
}

#[test]
fn gguf_of_an_unsupported_kind() {
    let file = |architecture: &str| GgufFile::default().with("general.architecture", Meta::Text(architecture.into()));
    assert_says(&gguf_error(&file("mamba").bytes()), &["`mamba`", "llama", "qwen2", "qwen3"]);
    assert_says(&gguf_error(&GgufFile::default().bytes()), &["general.architecture"]);
    let experts = file("llama").with("llama.expert_count", Meta::Number(8));
    assert_says(&gguf_error(&experts.bytes()), &["mixture-of-experts"]);
    let stretched = file("llama").with("llama.rope.scaling.type", Meta::Text("yarn".into()));
    assert_says(&gguf_error(&stretched.bytes()), &["`yarn`"]);
    let mut unknown = fs::read(fixture("qwen2/model.gguf")).unwrap();
    let name = b"token_embd.weight";
    let dtype = unknown.windows(name.len()).position(|w| w == name).unwrap() + name.len() + 4 + 2 * 8;
    unknown[dtype] = 23;
    assert_says(&gguf_error(&unknown), &["quantization candle cannot read"]);
    let mut renamed = fs::read(fixture("qwen2/model.gguf")).unwrap();
    let at = renamed.windows(19).position(|w| w == b"blk.0.attn_q.weight").unwrap();
    renamed[at + 12] = b'x';
    assert_says(&gguf_error(&renamed), &["blk.0.attn_q", "missing"]);
}

#[test]
fn a_dtype_that_is_not_possible() {
    assert_says(&error(&fixture("llama/model.gguf"), Some("bf16")), &["`bf16`", "q8_0", "f32"]);
    assert_says(&error(&fixture("llama"), Some("q8_0")), &["`q8_0`", "f32"]);
}

#[test]
fn a_directory_without_its_files() {
    assert_says(&error(Path::new("no/such/folder"), None), &["no directory no/such/folder"]);
    let empty = TempDir::new().unwrap();
    assert_says(&error(empty.path(), None), &["no config.json"]);
    for (name, missing) in [("llama", "model.safetensors"), ("qwen2", "model-00002-of-00002.safetensors")] {
        let copy = copy_of(name);
        fs::remove_file(copy.path().join(missing)).unwrap();
        assert_says(&error(copy.path(), None), &["has no", missing]);
    }
    let copy = copy_of("qwen2");
    let index = copy.path().join("model.safetensors.index.json");
    for (content, says) in
        [("{", "is no JSON"), ("{}", "weight_map"), (r#"{"weight_map": {"a": "../b"}}"#, "plain file")]
    {
        fs::write(&index, content).unwrap();
        assert_says(&error(copy.path(), None), &[says]);
    }
}

#[test]
fn safetensors_truncated_or_damaged() {
    let copy = copy_of("llama");
    let path = copy.path().join("model.safetensors");
    let whole = fs::read(&path).unwrap();
    for length in [0, 1, 8, 9, 100, 1000, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        assert_says(&error(copy.path(), None), &["model.safetensors", "truncated or damaged"]);
    }
    for header_bytes in [u64::MAX, 1 << 40, 99_999_999, 3] {
        let mut bytes = whole.clone();
        bytes[..8].copy_from_slice(&header_bytes.to_le_bytes());
        fs::write(&path, &bytes).unwrap();
        assert_says(&error(copy.path(), None), &["truncated or damaged"]);
    }
    // One offset too low, so that two weights overlap.
    let mut bytes = whole.clone();
    let at = bytes.windows(16).position(|w| w == b"\"data_offsets\":[").unwrap() + 16;
    bytes[at] = b'1';
    fs::write(&path, &bytes).unwrap();
    assert_says(&error(copy.path(), None), &["damaged"]);
}

#[test]
fn weights_that_do_not_fit_the_config() {
    let copy = copy_of("llama");
    let change = |key: &str, value: Value| {
        let mut config = json("llama/config.json");
        config[key] = value;
        fs::write(copy.path().join("config.json"), config.to_string()).unwrap();
        error(copy.path(), None)
    };
    assert_says(&change("vocab_size", json!(100)), &["model.embed_tokens.weight", "shape"]);
    assert_says(&change("num_hidden_layers", json!(3)), &["model.layers.2.", "missing"]);
    assert_says(&change("num_hidden_layers", json!(1)), &["model.layers.1.", "not part"]);
    assert_says(&change("num_key_value_heads", json!(3)), &["key-value heads"]);
    assert_says(&change("model_type", json!("mamba")), &["`mamba`", "gpt2, llama, qwen2 and qwen3"]);
    assert_says(&change("model_type", Value::Null), &["model_type"]);
    assert_says(&change("hidden_act", json!("gelu")), &["`gelu`"]);
    assert_says(&change("attention_bias", json!(true)), &["attention_bias"]);
    assert_says(&change("rope_parameters", json!({"rope_type": "yarn", "factor": 4.0})), &["`yarn`"]);
    assert_says(&change("rope_parameters", json!({"rope_type": "llama3"})), &["factor"]);
}

/// Bytes changed anywhere in the header: the file loads and runs, or it is refused in one line.
#[test]
fn damaged_bytes_never_panic() {
    for (name, weights) in [("llama/model.gguf", 10_000), ("qwen3/model.gguf", 4_000), ("qwen2/model.gguf", 4_000)] {
        let whole = fs::read(fixture(name)).unwrap();
        let (folder, path) = gguf(&whole);
        for seed in 0..80 {
            let mut bytes = whole.clone();
            for draw in seeded_ids(6, seed, 1 << 30).chunks(2) {
                bytes[8 + draw[0] as usize % weights] = u8::try_from(draw[1] % 256).unwrap();
            }
            fs::write(&path, bytes).unwrap();
            for dtype in [None, Some("f32")] {
                let run = Candle.load(&request(&path, dtype)).and_then(|mut engine| {
                    engine.start(&[1, 2, 3])?;
                    engine.next()
                });
                if let Err(error) = run {
                    one_line(&error);
                }
            }
        }
        drop(folder);
    }
}

/// Every number in config.json, replaced by what a damaged or hostile file may have.
#[test]
fn numbers_in_the_config_never_panic() {
    for name in ["llama", "qwen2", "qwen3"] {
        let copy = copy_of(name);
        let config = json(&format!("{name}/config.json"));
        for (key, _) in config.as_object().unwrap().iter().filter(|(_, v)| v.is_number()) {
            for value in [json!(0), json!(3), json!(u64::MAX), json!(1_u64 << 62), json!(-1), json!("x"), json!(1e300)]
            {
                let mut config = config.clone();
                config[key] = value;
                fs::write(copy.path().join("config.json"), config.to_string()).unwrap();
                if let Err(error) = Candle.load(&request(copy.path(), None)) {
                    one_line(&error);
                }
            }
        }
    }
}

#[test]
fn a_config_or_tokenizer_that_cannot_be_read() {
    let copy = copy_of("llama");
    fs::write(copy.path().join("tokenizer.json"), "{\"version\": \"1.0\"").unwrap();
    assert_says(&error(copy.path(), None), &["tokenizer.json is damaged"]);
    for wrong in ["", "not JSON", "[1, 2", "{\"model_type\": }"] {
        fs::write(copy.path().join("config.json"), wrong).unwrap();
        assert_says(&error(copy.path(), None), &["config.json is no JSON", "line"]);
    }
}

/// Four TiB that take no room on the disk.
const TOO_LARGE: u64 = 1 << 42;

#[test]
fn a_model_larger_than_memory_is_refused_before_it_is_loaded() {
    let folder = copy_of("gpt2-new");
    let weights = folder.path().join("model.safetensors");
    let header = format!(r#"{{"w":{{"dtype":"F32","shape":[{}],"data_offsets":[0,{TOO_LARGE}]}}}}"#, TOO_LARGE / 4);
    fs::write(&weights, [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat()).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&weights).unwrap();
    file.set_len(8 + header.len() as u64 + TOO_LARGE).unwrap();
    // The file as it is read, and its weight in f32.
    assert_says(
        &error(folder.path(), None),
        &["takes 8192.0 GiB of memory", "loading them 8192.0", "GiB are free", "choose a smaller model"],
    );
}
