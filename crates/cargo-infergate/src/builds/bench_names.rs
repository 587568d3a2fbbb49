//! The bench targets there are, for whoever asked for one that is not.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};

use super::workspace::{self, Package};
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
        true => "there are no benches of criterion or divan here, and for an engine the command `init` adds one".into(),
        false => format!("name one with --bench-target: there are {}", first_of(&names, MOST_NAMES, ", ")),
    }
}

/// Of the package that was named, else of all; `None` where there is no such package, or cargo cannot tell.
fn here(target: &BenchTarget) -> Result<Option<BTreeSet<String>>> {
    let mut packages = workspace::packages(Path::new("."))?.unwrap_or_default();
    packages.retain(|package| package.is_asked_for(target));
    let benches = packages.iter().flat_map(Package::benches).map(|bench| bench.name.clone());
    Ok((!packages.is_empty()).then(|| benches.collect()))
}
