//! Passes what only cargo knows at build time on to `src/build_info.rs`.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTFLAGS");
    println!("cargo::rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    let rustc = Command::new(variable("RUSTC")).arg("--version").output();
    let rustc = rustc.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let flags = variable("CARGO_ENCODED_RUSTFLAGS").replace('\u{1f}', " ");
    // Cargo adds this file to each package that it packs for a registry.
    let is_packed = Path::new("Cargo.toml.orig").is_file().to_string();
    for (name, value) in [
        ("RUSTC", rustc),
        ("FLAGS", flags),
        ("TARGET", variable("TARGET")),
        ("OPT_LEVEL", variable("OPT_LEVEL")),
        ("IS_PACKED", is_packed),
    ] {
        // A flag can hold a path (`--remap-path-prefix`), and the name of a home is nobody's business.
        let home = env::var("HOME").ok().filter(|home| home.len() > 1);
        let value = home.map_or(value.clone(), |home| value.replace(&home, "~"));
        println!("cargo::rustc-env=INFERGATE_{name}={}", value.lines().next().unwrap_or_default().trim());
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}
