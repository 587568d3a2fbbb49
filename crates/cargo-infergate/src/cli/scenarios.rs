//! The scenarios of `infergate.toml`.

use std::path::Path;

use anyhow::{Result, ensure};
use infergate_core::config::{MAX_FILE_BYTES, find_file};
use infergate_core::text_file::read_text;
use serde::Deserialize;

use crate::receipt::{MAX_TOKENS, MAX_TURNS, Scenario};

/// `[[scenario]]` of `infergate.toml`. Its other keys are read elsewhere.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    scenario: Vec<Scenario>,
}

/// Those of the `infergate.toml` that holds in `folder`; none where it has none.
pub fn scenarios_of(folder: &Path) -> Result<Vec<Scenario>> {
    find_file(folder).map_or_else(|| Ok(Vec::new()), |path| in_file(&path))
}

fn in_file(path: &Path) -> Result<Vec<Scenario>> {
    let text = read_text(path, MAX_FILE_BYTES)?;
    let file: File = toml::from_str(&text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        let line = text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1;
        anyhow::anyhow!("{}:{line}: {}", path.display(), error.message().lines().next().unwrap_or_default())
    })?;
    let place = path.display();
    for (index, scenario) in file.scenario.iter().enumerate() {
        let name = &scenario.name;
        let tokens = [scenario.input_tokens, scenario.output_tokens];
        ensure!(!name.is_empty(), "{place}: a scenario has no name; give it one");
        ensure!(
            tokens.iter().all(|tokens| (1..=MAX_TOKENS).contains(tokens)) && scenario.turn_tokens <= MAX_TOKENS,
            "{place}: scenario {name}: tokens are numbers from 1 to {MAX_TOKENS}"
        );
        ensure!((1..=MAX_TURNS).contains(&scenario.turns), "{place}: scenario {name}: turns are from 1 to {MAX_TURNS}");
        let again = file.scenario.iter().take(index).any(|other| other.name == *name);
        ensure!(!again, "{place}: scenario {name} is there twice; rename one");
    }
    Ok(file.scenario)
}
