//! `schema`: the JSON Schemas of the file formats, and `infergate.toml` with its defaults.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::{output, outputs};
use crate::config::keys;
use crate::receipt::{json_schemas, write_text};

/// Print the default infergate.toml, or JSON Schemas
#[derive(Args)]
#[command(after_help = "Examples:\n  cargo xtask schema > infergate.toml\n  cargo xtask schema --out schemas")]
pub struct Schema {
    /// Write the JSON Schemas into this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Write the JSON Schemas into this one file, by name; - is stdout, which then has nothing else
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub fn run(asked: &Schema) -> Result<i32> {
    output::heed_json(asked.json.as_ref());
    if let Some(json) = &asked.json {
        let schemas = json_schemas().into_iter().map(|(name, schema)| Ok((name, serde_json::from_str(&schema)?)));
        outputs::put(json, &schemas.collect::<Result<BTreeMap<&str, serde_json::Value>>>()?)?;
        return Ok(0);
    }
    let Some(folder) = &asked.out else {
        output::document(&keys::commented_file());
        return Ok(0);
    };
    json_schemas().into_iter().try_for_each(|(name, schema)| write_text(&folder.join(name), &schema))?;
    Ok(0)
}
