//! The bench targets there are, for whoever asked for one that is not.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};
use serde_json::Value;

use super::bench_target::{is_asked_for, metadata};
use crate::config::BenchTarget;
use infergate_core::printable::first_of;

/// Names that a message has room for.
const MOST_NAMES: usize = 12;

/// Refuses a bench target that the working tree lacks. Where cargo cannot tell, it says why when it builds.
pub fn ensure_there(target: &BenchTarget) -> Result<()> {
    match here(target)? {
        Some(names) if !names.contains(&target.target) => {
            bail!("there is no bench target '{}' here; {}", target.target, remedy(&names))
        }
        _ => Ok(()),
    }
}

/// What to do where the working tree lacks it, too.
pub fn advice(target: &BenchTarget) -> Result<String> {
    Ok(remedy(&here(target)?.unwrap_or_default()))
}

fn remedy(names: &BTreeSet<String>) -> String {
    let names: Vec<&String> = names.iter().collect();
    match names.is_empty() {
        true => "the command `init` adds one".into(),
        false => format!("name one with --bench-target: there are {}", first_of(&names, MOST_NAMES, ", ")),
    }
}

/// Of the package that was named, else of all; `None` where there is no such package, or cargo cannot tell.
fn here(target: &BenchTarget) -> Result<Option<BTreeSet<String>>> {
    let metadata = metadata(Path::new("."))?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let packages: Vec<&Value> = packages.filter(|package| is_asked_for(package, target)).collect();
    let targets = packages.iter().filter_map(|package| package["targets"].as_array()).flatten();
    let benches = targets.filter(|built| built["kind"][0] == "bench").filter_map(|built| built["name"].as_str());
    Ok((!packages.is_empty()).then(|| benches.map(str::to_owned).collect()))
}
