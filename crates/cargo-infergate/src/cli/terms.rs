//! By whose settings `gate --against` judges: what decides is base's, whatever head's `infergate.toml` says.
//!
//! A pull request may change that file, and must not loosen by it the gate that it has to pass. So limits, targets and which cases
//! there are come from the file as base has it. What head changes is named in the verdict and takes effect after the merge.
//! `--settings head` lets head's file count at once, for whoever calls the gate and trusts head. Flags and variables are
//! the caller's and stay above both.

use std::collections::BTreeMap;
use std::env;
use std::path::Path;

use crate::config::{Config, accepts};
use anyhow::{Context, Result};
use infergate_core::config::keys::{KEYS, Key, Kind, SaidBy, Value, commented_file};
use infergate_core::config::{FILE_NAME, MAX_FILE_BYTES, Settings, find_file};
use infergate_core::text_file::read_text;
use infergate_receipts::{Accept, Note, Side, Terms};

use super::gate_flags::Gate;
use infergate_build::git::{commit_of, file_of, git};

/// As many characters of a value are shown.
const SHOWN: usize = 300;

/// What a gate goes by.
pub struct Agreed {
    /// Base's file in what decides, head's in the rest; above both variables and flags.
    pub config: Config,
    /// The same for the receipt, with what head declares as intended; `None` where no revision is compared with.
    pub terms: Option<Terms>,
    /// What head's file says otherwise than base's.
    pub notes: Vec<Note>,
}

impl Agreed {
    /// `config` as it is.
    pub fn by(config: &Config) -> Self {
        Self { config: config.clone(), terms: None, notes: Vec::new() }
    }
}

/// The terms of a gate against `revision`, where `config` is head's file, variables and flags.
pub fn of(revision: &str, gate: &Gate, config: &Config) -> Result<Agreed> {
    let here = env::current_dir().context("the current folder cannot be read")?;
    let prefix = match git(&here, &["rev-parse", "--show-prefix"]) {
        // Outside git, or without it, the checkout that follows says so; a receipt is judged without one.
        Err(_) if gate.receipt.is_empty() => return Ok(Agreed::by(config)),
        prefix => prefix?,
    };
    let commit = commit_of(&here, revision)?;
    let base = of_commit(&here, &commit, &prefix)?;
    let head = find_file(&here);
    let text = head.as_deref().map(|path| read_text(path, MAX_FILE_BYTES)).transpose()?;
    let of_head = gate.paired.settings == Some(Side::Head);
    let remedy = "mend it there, or let head's file count with --settings head";
    let notes = match changes(base.as_deref(), text.as_deref(), of_head) {
        Err(_) if of_head => {
            vec![Note::from("base's infergate.toml cannot be understood, and head's counts".to_owned())]
        }
        notes => notes.with_context(|| format!("base's settings cannot be understood; {remedy}"))?,
    };
    if of_head {
        // What cannot be understood was said to be so.
        let accepted_before = accepts(Path::new(FILE_NAME), base.as_deref().unwrap_or_default()).unwrap_or_default();
        let terms = Terms { by_head: true, accept: config.accept.clone(), accepted_before };
        return Ok(Agreed { config: config.clone(), terms: Some(terms), notes });
    }
    let mut merged = Merged { is_base: base.is_some(), ..Merged::default() };
    if let (Some(path), Some(text)) = (&head, &text) {
        merged.found_in(path.parent().unwrap_or(Path::new("")));
        merged.apply_file(path, text)?;
    }
    merged.of_base = true;
    merged.apply_file(Path::new(FILE_NAME), base.as_deref().unwrap_or_default()).context("base's settings")?;
    let Merged { mut config, accepted_before, .. } = merged;
    config.apply_environment()?;
    let terms = Terms { by_head: false, accept: config.accept.clone(), accepted_before };
    Ok(Agreed { config: gate.keys.over(config)?, terms: Some(terms), notes })
}

/// The file that holds in the folder `prefix` of `commit`: its own, or the nearest above it.
fn of_commit(here: &Path, commit: &str, prefix: &str) -> Result<Option<String>> {
    let folder = Path::new(prefix.trim_end_matches('/'));
    for folder in folder.ancestors() {
        let path = folder.join(FILE_NAME).to_string_lossy().replace('\\', "/");
        if let Some(text) = file_of(here, commit, &path, MAX_FILE_BYTES)? {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// Both files, each in what is its own to say.
#[derive(Default)]
struct Merged {
    config: Config,
    /// Whether base has a file.
    is_base: bool,
    /// Whose file is applied now.
    of_base: bool,
    /// Base's `[[accept]]`.
    accepted_before: Vec<Accept>,
}

impl Settings for Merged {
    fn set(&mut self, key: &Key, value: Value) -> Result<()> {
        if decides(key, self.is_base) == self.of_base { self.config.set(key, value) } else { Ok(()) }
    }

    fn set_tables(&mut self, path: &Path, text: &str) -> Result<()> {
        let place = if self.of_base { &mut self.accepted_before } else { &mut self.config.accept };
        *place = accepts(path, text)?;
        Ok(())
    }

    fn found_in(&mut self, folder: &Path) {
        self.config.found_in(folder);
    }
}

/// Whether the key is base's to say, where base has a file or has none.
fn decides(key: &Key, base_has_a_file: bool) -> bool {
    key.said_by == SaidBy::Base || (base_has_a_file && key.said_by == SaidBy::BaseIfThere)
}

/// The keys whose values differ between the texts of both files; defaults count as given.
fn changes(base: Option<&str>, head: Option<&str>, of_head: bool) -> Result<Vec<Note>> {
    let (was, is) = (Written::of(base)?, Written::of(head)?);
    let text = |written: &Written, key: &Key| {
        let value = written.0.get(key.name).map(|value| toml_of(&for_a_receipt(key, value.clone())));
        let value = value.unwrap_or_else(|| "left out".to_owned());
        if value.chars().count() > SHOWN { value.chars().take(SHOWN).chain(['…']).collect() } else { value }
    };
    let differs = |key: &&Key| key.said_by != SaidBy::HeadUnnoted && was.0.get(key.name) != is.0.get(key.name);
    let change = |key: &Key| Note::GateChanged {
        key: key.name.to_owned(),
        was: text(&was, key),
        is: text(&is, key),
        after_merge: !of_head && decides(key, base.is_some()),
    };
    let of_scenarios = (scenarios(base) != scenarios(head)).then(|| {
        Note::from(
            "head changes the gate: the tables [[scenario]], which say what users do (head's hold here)".to_owned(),
        )
    });
    Ok(KEYS.iter().filter(differs).map(change).chain(of_scenarios).collect())
}

/// The tables that say what is measured under load; whoever uses them checks them.
fn scenarios(text: Option<&str>) -> Option<toml::Value> {
    text?.parse::<toml::Table>().ok()?.remove("scenario")
}

/// Values as they are written, paths included: two checkouts lie in other folders.
#[derive(Debug, Default)]
struct Written(BTreeMap<&'static str, Value>);

impl Settings for Written {
    fn set(&mut self, key: &Key, value: Value) -> Result<()> {
        self.0.insert(key.name, value);
        Ok(())
    }
}

impl Written {
    fn of(text: Option<&str>) -> Result<Self> {
        let mut written = Self::default();
        written.apply_file(Path::new(FILE_NAME), &commented_file())?;
        written.apply_file(Path::new(FILE_NAME), text.unwrap_or_default())?;
        Ok(written)
    }
}

/// A value without what no receipt holds: what an engine is told by an option, which may be a key to a server, and folders.
fn for_a_receipt(key: &Key, value: Value) -> Value {
    let is_path = |text: &str| match key.name {
        "model" => !text.starts_with("hf:") && !text.starts_with("synthetic:"),
        _ => key.kind == Kind::Path,
    };
    match value {
        Value::List(options) if key.name == "options" => {
            let name = |option: &String| option.split_once('=').map_or("...".into(), |(name, _)| format!("{name}=..."));
            Value::List(options.iter().map(name).collect())
        }
        Value::Text(path) if is_path(&path) => {
            let name = path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default();
            Value::Text(name.to_owned())
        }
        value => value,
    }
}

/// A value as `infergate.toml` writes it.
fn toml_of(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("\"{text}\""),
        Value::Count(count) => count.to_string(),
        Value::Number(number) => format!("{number:?}"),
        Value::Switch(on) => on.to_string(),
        Value::List(list) => {
            format!("[{}]", list.iter().map(|item| format!("\"{item}\"")).collect::<Vec<_>>().join(", "))
        }
    }
}
