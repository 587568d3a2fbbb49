//! The bench target's executable, from cargo's own messages.

use std::env;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::output;
use crate::config::BenchTarget;

/// Builds the bench target and gives its executable. cargo's own progress and errors go to stderr as they come.
///
/// # Errors
/// When cargo does not start, the build fails, or there is no such target.
pub fn build(target: &BenchTarget) -> Result<PathBuf> {
    output::say("building the bench target (some minutes the first time)");
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    command.args(["bench", "--no-run", "--message-format=json-render-diagnostics", "--bench", &target.target]);
    if let Some(package) = &target.package {
        command.args(["--package", package]);
    }
    if let Some(profile) = &target.profile {
        command.args(["--profile", profile]);
    }
    if !target.features.is_empty() {
        command.arg("--features").arg(target.features.join(","));
    }
    // Variables cargo set for this process describe this process, and would make cargo build anew.
    for name in env::vars_os().map(|(name, _)| name) {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("CARGO_PKG_") || name_text.starts_with("CARGO_MANIFEST_") || name == "OUT_DIR" {
            command.env_remove(name);
        }
    }
    let mut cargo = command.stdout(Stdio::piped()).spawn().context("cargo cannot be started; is it installed?")?;
    let messages = cargo.stdout.take().context("cargo gives no messages")?;
    let mut executable = None;
    for line in BufReader::new(messages).lines() {
        let message: Value =
            serde_json::from_str(&line.context("cargo's messages cannot be read")?).unwrap_or_default();
        let built = &message["target"];
        if message["reason"] == "compiler-artifact" && built["name"] == *target.target && built["kind"][0] == "bench" {
            executable = message["executable"].as_str().map(PathBuf::from).or(executable);
        }
    }
    let status = cargo.wait().context("cargo cannot be waited for")?;
    if !status.success() {
        bail!(
            "bench target '{}': the build failed, cargo's words are above; mend it, or name another under [bench] in infergate.toml",
            target.target
        );
    }
    executable.with_context(|| format!("bench target '{}': cargo built no executable of that name", target.target))
}
