//! `schema`: the JSON Schemas of the file formats, and `infergate.toml` with its defaults.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Arg, ArgMatches, Command, value_parser};

use super::{flags, output, outputs};
use crate::config::keys;
use crate::receipt::{json_schemas, write_text};

/// Its flags.
pub fn command() -> Command {
    let folder = Arg::new("out").long("out").value_name("FOLDER").value_parser(value_parser!(PathBuf));
    Command::new("schema")
        .about("Print the default infergate.toml, or JSON Schemas")
        .arg(folder.help("Write the JSON Schemas into this folder"))
        .arg(flags::json("Write the JSON Schemas into this one file, by name"))
        .after_help("Examples:\n  cargo xtask schema > infergate.toml\n  cargo xtask schema --out schemas")
}

/// Prints or writes.
pub fn run(matches: &ArgMatches) -> Result<i32> {
    if let Some(json) = flags::path(matches, "json") {
        let schemas = json_schemas().into_iter().map(|(name, schema)| Ok((name, serde_json::from_str(&schema)?)));
        outputs::put(&json, &schemas.collect::<Result<BTreeMap<&str, serde_json::Value>>>()?)?;
        return Ok(0);
    }
    let Some(folder) = matches.get_one::<PathBuf>("out") else {
        output::document(&keys::commented_file());
        return Ok(0);
    };
    json_schemas().into_iter().try_for_each(|(name, schema)| write_text(&folder.join(name), &schema))?;
    Ok(0)
}
