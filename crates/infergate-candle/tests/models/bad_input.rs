//! Whatever is wrong with a model's files, the error is one line that names it.

use std::fs;
use std::path::Path;

use crate::common::gguf::{GgufFile, Value as Meta};
use crate::common::{copy_of, fixture, json, request};
use infergate::engine::EngineFactory;
use infergate_candle::Candle;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The one line that loading `model` fails with.
fn error(model: &Path, dtype: Option<&str>) -> String {
    match Candle.load(&request(model, dtype)) {
        Ok(_) => panic!("{} loads", model.display()),
        Err(error) => {
            let line = format!("{error:#}");
            assert!(!line.contains('\n') && !line.ends_with('.'), "{line}");
            line
        }
    }
}

fn assert_says(line: &str, words: &[&str]) {
    assert!(words.iter().all(|w| line.contains(w)), "{line:?} does not say {words:?}");
}

fn gguf_error(bytes: &[u8]) -> String {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("model.gguf");
    fs::write(&path, bytes).unwrap();
    let line = error(&path, None);
    assert!(line.contains("model.gguf"), "{line}");
    assert_eq!(line, error(&path, Some("f32")), "the same with --dtype f32");
    line
}

#[test]
fn gguf_missing_or_something_else() {
    assert_says(&error(Path::new("no/such.gguf"), None), &["no/such.gguf", "cannot open"]);
    for wrong in [b"".as_slice(), b"PK\x03\x04 a zip file"] {
        assert_says(&gguf_error(wrong), &["is not a GGUF file"]);
    }
    let aligned = GgufFile::default().with("general.alignment", Meta::Number(0));
    assert_says(&gguf_error(&aligned.bytes()), &["general.alignment is 0"]);
    let whole = fs::read(fixture("qwen2/model.gguf")).unwrap();
    assert_says(&gguf_error(&whole[..1_000]), &["truncated or damaged"]);
    gguf_error(&whole[..whole.len() - 1]);
}

/// The tokenizers crate panics over merges that make a longer token than any.
#[test]
fn a_panic_of_a_library_is_an_error_that_names_the_file() {
    let copy = copy_of("llama");
    let path = copy.path().join("tokenizer.json");
    let vocab = json!({ "aaaa": 0, "bbbb": 1, "c": 2 });
    let model = json!({ "type": "BPE", "vocab": vocab, "merges": ["aaaa bbbb"] });
    fs::write(&path, json!({ "version": "1.0", "added_tokens": [], "model": model }).to_string()).unwrap();
    assert_says(&error(copy.path(), None), &[copy.path().to_str().unwrap(), "panicked"]);
}

#[test]
fn gguf_of_another_model_than_its_metadata_says() {
    let whole = fs::read(fixture("llama/model.gguf")).unwrap();
    let patched = |key: &str, value: u32| {
        let mut bytes = whole.clone();
        let at = bytes.windows(key.len()).position(|w| w == key.as_bytes()).unwrap() + key.len() + 4;
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        gguf_error(&bytes)
    };
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
    for (content, says) in [("{}", "weight_map"), (r#"{"weight_map": {"a": "../b"}}"#, "plain file")] {
        fs::write(&index, content).unwrap();
        assert_says(&error(copy.path(), None), &["index.json", says]);
    }
}

#[test]
fn files_that_are_truncated_or_damaged() {
    let copy = copy_of("llama");
    let path = copy.path().join("model.safetensors");
    let whole = fs::read(&path).unwrap();
    for length in [0, 100, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        assert_says(&error(copy.path(), None), &["model.safetensors", "damaged"]);
    }
    fs::write(copy.path().join("tokenizer.json"), "{\"version\": \"1.0\"").unwrap();
    assert_says(&error(copy.path(), None), &["tokenizer.json is damaged"]);
    fs::write(copy.path().join("config.json"), "[1, 2").unwrap();
    assert_says(&error(copy.path(), None), &["config.json is damaged", "line"]);
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
    assert_says(&change("hidden_act", json!("gelu")), &["`gelu`"]);
    assert_says(&change("attention_bias", json!(true)), &["attention_bias"]);
    assert_says(&change("rope_parameters", json!({"rope_type": "yarn", "factor": 4.0})), &["`yarn`"]);
    assert_says(&change("rope_parameters", json!({"rope_type": "llama3"})), &["factor"]);
}

#[test]
fn a_model_larger_than_memory_is_refused_before_it_is_loaded() {
    let copy = copy_of("gpt2-new");
    let mut config = json("gpt2-new/config.json");
    config["n_layer"] = json!(1_000_000_000);
    fs::write(copy.path().join("config.json"), config.to_string()).unwrap();
    assert_says(&error(copy.path(), None), &["GiB of memory", "GiB are free", "choose a smaller model"]);
}
