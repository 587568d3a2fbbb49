//! What several tests share.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The executable of an example of this repository. `cargo test` has built it; `cargo test --test NAME` has not.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let profile = test.parent().and_then(Path::parent).expect("target/PROFILE/deps/test");
    let path = profile.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if !path.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        // What cargo told this test about itself would make some build scripts run again.
        for (variable, _) in std::env::vars().filter(|(name, _)| name.starts_with("CARGO_") || name == "OUT_DIR") {
            if variable != "CARGO_HOME" && variable != "CARGO_TARGET_DIR" {
                cargo.env_remove(variable);
            }
        }
        let built = cargo.args(["build", "--quiet", "--workspace", "--example", name]).status();
        assert!(built.expect("cargo starts").success(), "example {name} builds");
    }
    path
}
