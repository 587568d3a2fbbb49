//! The golden files, and files changed for a test.

use std::path::{Path, PathBuf};

use cargo_infergate::receipt::read_receipt_or_baseline;
use serde_json::Value;
use tempfile::TempDir;

pub fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

pub fn golden_text(name: &str) -> String {
    std::fs::read_to_string(golden(name)).expect("a golden file")
}

pub fn golden_value(name: &str) -> Value {
    serde_json::from_str(&golden_text(name)).expect("a golden file is JSON")
}

/// The whole error of reading a file with these bytes, without its folder.
pub fn error_of(bytes: &[u8]) -> String {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("file.json");
    std::fs::write(&path, bytes).expect("a file");
    let error = format!("{:#}", read_receipt_or_baseline(&path).expect_err("a broken file is refused"));
    let place = path.display().to_string();
    assert!(error.starts_with(&place), "the error names the file: {error}");
    assert!(!error.contains('\n') && !error.ends_with('.'), "one line without a full stop: {error}");
    error.replace(&place, "FILE")
}

/// As [`error_of`], for a golden file after `change`.
pub fn error_after(name: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut value = golden_value(name);
    change(&mut value);
    error_of(value.to_string().as_bytes())
}
