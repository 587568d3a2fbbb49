//! Helpers for the tests of models.
#![allow(dead_code, reason = "each test file uses some of them")]

pub mod gguf;
pub mod hub_server;

use std::path::{Path, PathBuf};

use infergate::engine::LoadRequest;
use serde_json::Value;

/// A file or folder below tests/fixtures.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A fixture's JSON.
pub fn json(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(fixture(name)).unwrap()).unwrap()
}

/// A request for `model`, one thread.
pub fn request(model: impl AsRef<Path>, dtype: Option<&str>) -> LoadRequest {
    let model = model.as_ref().to_str().unwrap().to_owned();
    LoadRequest { model, dtype: dtype.map(str::to_owned), seed: 42, ..LoadRequest::default() }
}

/// The numbers of a JSON array.
pub fn ids(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).unwrap()
}

/// Copies a fixture's folder to where a test may change it.
pub fn copy_of(name: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(fixture(name)).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
    }
    copy
}
