//! The tables of infergate.toml that no flag can set: `[[accept]]`, the changes that head declares as intended, and `[[scenario]]`, what
//! users of a server do. Keys are in `config.rs`.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use infergate_receipts::{Accept, MAX_TOKENS, MAX_TURNS, Scenario, Subject, UpTo, validate_accepts};

/// The tables of one file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tables {
    /// The changes that are declared as intended.
    pub accept: Vec<Accept>,
    /// What users do; empty: the scenarios that come with infergate.
    pub scenarios: Vec<Scenario>,
}

/// As the file has them; the keys are read elsewhere.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    accept: Vec<AcceptTable>,
    #[serde(default)]
    scenario: Vec<ScenarioTable>,
}

/// A misspelt key would be a limit that nobody meant.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AcceptTable {
    case: String,
    metric: String,
    up_to: Option<UpTo>,
    reason: String,
}

/// In a receipt, a later version may have more fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioTable {
    name: String,
    input_tokens: u32,
    output_tokens: u32,
    #[serde(default = "one")]
    turns: u32,
    #[serde(default)]
    turn_tokens: u32,
}

fn one() -> u32 {
    1
}

impl Tables {
    /// Those in `text`, which stands in the file `path`.
    ///
    /// # Errors
    /// A table that is not sound, by its line or its names.
    pub fn of_file(path: &Path, text: &str) -> Result<Self> {
        let file: File = toml::from_str(text).map_err(|error| {
            let before = text.bytes().take(error.span().map_or(0, |span| span.start));
            let (path, line) = (path.display(), before.filter(|byte| *byte == b'\n').count() + 1);
            anyhow::anyhow!("{path}:{line}: {}", error.message().lines().next().unwrap_or_default())
        })?;
        let accept = accepts(file.accept).with_context(|| format!("{}: accept", path.display()))?;
        Ok(Self { accept, scenarios: scenarios(path, file.scenario)? })
    }
}

fn accepts(tables: Vec<AcceptTable>) -> Result<Vec<Accept>> {
    let accept = |AcceptTable { case, metric, up_to, reason }| -> Result<Accept> {
        let case = Subject::named(&case).with_context(|| format!("case '{case}'"))?;
        Ok(Accept { case, metric, up_to, reason: reason.trim().to_owned() })
    };
    let accepts = tables.into_iter().map(accept).collect::<Result<Vec<Accept>>>()?;
    validate_accepts(&accepts)?;
    Ok(accepts)
}

fn scenarios(path: &Path, tables: Vec<ScenarioTable>) -> Result<Vec<Scenario>> {
    let file = path.display();
    let mut scenarios: Vec<Scenario> = Vec::new();
    for ScenarioTable { name, input_tokens, output_tokens, turns, turn_tokens } in tables {
        ensure!(!name.is_empty(), "{file}: a scenario has no name; give it one");
        ensure!(
            [input_tokens, output_tokens].iter().all(|tokens| (1..=MAX_TOKENS).contains(tokens))
                && turn_tokens <= MAX_TOKENS,
            "{file}: scenario {name}: tokens are numbers from 1 to {MAX_TOKENS}"
        );
        ensure!((1..=MAX_TURNS).contains(&turns), "{file}: scenario {name}: turns are from 1 to {MAX_TURNS}");
        let is_there = scenarios.iter().any(|other| other.name == name);
        ensure!(!is_there, "{file}: scenario {name} is there twice; rename one");
        scenarios.push(Scenario { name, input_tokens, output_tokens, turns, turn_tokens });
    }
    Ok(scenarios)
}
