//! The golden files.

use std::path::{Path, PathBuf};

use serde_json::Value;

pub fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name)
}

pub fn golden_text(name: &str) -> String {
    std::fs::read_to_string(golden(name)).expect("a golden file")
}

pub fn golden_value(name: &str) -> Value {
    serde_json::from_str(&golden_text(name)).expect("a golden file is JSON")
}
