//! The scenarios of `infergate.toml`.

use std::path::Path;

use anyhow::{Result, ensure};
use infergate_core::config::{MAX_FILE_BYTES, find_file};
use infergate_core::text_file::read_text;
use serde::Deserialize;

use crate::config::line_at;
use infergate_receipts::{MAX_TOKENS, MAX_TURNS, Scenario};

/// `[[scenario]]` of `infergate.toml`. Its other keys are read elsewhere.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    scenario: Vec<Table>,
}

/// One of them, in which a misspelt key is refused. In a receipt, a later version may have more fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    name: String,
    input_tokens: u32,
    output_tokens: u32,
    turns: Option<u32>,
    turn_tokens: Option<u32>,
}

impl From<Table> for Scenario {
    fn from(table: Table) -> Self {
        let Table { name, input_tokens, output_tokens, turns, turn_tokens } = table;
        let (turns, turn_tokens) = (turns.unwrap_or(1), turn_tokens.unwrap_or_default());
        Self { name, input_tokens, output_tokens, turns, turn_tokens }
    }
}

/// Those of the `infergate.toml` that holds in `folder`; none where it has none.
pub fn scenarios_of(folder: &Path) -> Result<Vec<Scenario>> {
    find_file(folder).map_or_else(|| Ok(Vec::new()), |path| in_file(&path))
}

fn in_file(path: &Path) -> Result<Vec<Scenario>> {
    let text = read_text(path, MAX_FILE_BYTES)?;
    let file: File = toml::from_str(&text).map_err(|error| {
        let line = line_at(&text, error.span().map_or(0, |span| span.start));
        anyhow::anyhow!("{}:{line}: {}", path.display(), error.message().lines().next().unwrap_or_default())
    })?;
    let place = path.display();
    let scenarios: Vec<Scenario> = file.scenario.into_iter().map(Scenario::from).collect();
    for (index, scenario) in scenarios.iter().enumerate() {
        let name = &scenario.name;
        let tokens = [scenario.input_tokens, scenario.output_tokens];
        ensure!(!name.is_empty(), "{place}: a scenario has no name; give it one");
        ensure!(
            tokens.iter().all(|tokens| (1..=MAX_TOKENS).contains(tokens)) && scenario.turn_tokens <= MAX_TOKENS,
            "{place}: scenario {name}: tokens are numbers from 1 to {MAX_TOKENS}"
        );
        ensure!((1..=MAX_TURNS).contains(&scenario.turns), "{place}: scenario {name}: turns are from 1 to {MAX_TURNS}");
        let again = scenarios.iter().take(index).any(|other| other.name == *name);
        ensure!(!again, "{place}: scenario {name} is there twice; rename one");
    }
    Ok(scenarios)
}
