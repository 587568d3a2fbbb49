//! Files that broke a parser once, or would break a careless one: each is refused in one line. Made by
//! `tests/corpus/make.py`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{copy_of, request};
use infergate::engine::EngineFactory;
use infergate_candle::Candle;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// The one line that loading a model with `file` in it fails with.
fn refusal(parser: &str, file: &Path) -> String {
    let in_place_of = |folder: &str, name: &str| {
        let folder = copy_of(folder);
        fs::copy(file, folder.path().join(name)).unwrap();
        load(folder.path())
    };
    match parser {
        "gguf" => load(file),
        "config" => in_place_of("llama", "config.json"),
        "safetensors" => in_place_of("llama", "model.safetensors"),
        "index" => in_place_of("qwen2", "model.safetensors.index.json"),
        "tokenizer" => in_place_of("llama", "tokenizer.json"),
        other => panic!("tests/corpus/{other} belongs to no parser"),
    }
}

fn load(model: &Path) -> String {
    match Candle.load(&request(model, None)) {
        Ok(_) => panic!("{} loads", model.display()),
        Err(error) => format!("{error:#}"),
    }
}

#[test]
fn every_file_is_refused_in_one_line() {
    let expected: BTreeMap<String, Vec<String>> =
        serde_json::from_slice(&fs::read(corpus().join("expected.json")).unwrap()).unwrap();
    assert!(expected.len() > 100, "{} files", expected.len());
    let mut wrong = Vec::new();
    for (name, words) in expected {
        let line = refusal(name.split('/').next().unwrap(), &corpus().join(&name));
        let says = words.iter().all(|word| line.contains(word));
        if !says || line.contains(char::is_control) || line.ends_with('.') {
            wrong.push(format!("{name}: {line:?} does not say {words:?} in one line"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is claimed here is really there, at no cost on the disk.
#[test]
fn a_file_of_a_gib_of_metadata_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    fs::copy(corpus().join("gguf/array-of-2-30-bytes.gguf"), &path).unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 31).unwrap();
    assert!(load(&path).contains("more than 4194304 values"));
}

#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_not_opened() {
    let folder = copy_of("llama");
    for name in ["model.safetensors", "config.json"] {
        let path = folder.path().join(name);
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(load(folder.path()).contains(&format!("has no {name}")));
        fs::remove_file(&path).unwrap();
        fs::copy(crate::common::fixture("llama").join(name), &path).unwrap();
    }
    let device = folder.path().join("device.gguf");
    std::os::unix::fs::symlink("/dev/zero", &device).unwrap();
    assert!(load(&device).contains("no regular file"));
}
