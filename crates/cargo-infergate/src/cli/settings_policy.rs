//! By whose settings `gate --against` judges: what decides is base's, whatever head's `infergate.toml` says.
//!
//! A pull request may change that file, and must not loosen by it the gate that it has to pass. So limits, targets and which cases
//! there are come from the file as base has it. What head changes is named in the verdict and takes effect after the merge.
//! `--settings head` lets head's file count at once, for whoever calls the gate and trusts head. Flags and variables are
//! the caller's and stay above both.

use std::path::Path;

use anyhow::{Context, Result};
use infergate_core::printable::printable_within;
use infergate_core::text_file::read_text;
use infergate_receipts::{Note, Side, Terms};

use super::flags;
use super::gate_options::Gate;
use crate::config::{Config, FILE_NAME, KEYS, Layer, MAX_FILE_BYTES, accepts, current_folder, find_file, scenarios};
use infergate_build::git::{commit_of, file_of, git};

/// Characters of a value that are shown.
const SHOWN: usize = 300;

/// Keys of text that are shown whole: names of cases, and of what Cargo.toml has.
const SHOWN_TEXTS: [&str; 6] = ["dtype", "cases", "bench.package", "bench.target", "bench.features", "bench.profile"];

/// Keys that base's file sets, or their default where base has none: head must not loosen by them the gate that it has to pass.
const OF_BASE: [&str; 11] = [
    "threshold",
    "mean_threshold",
    "widest",
    "inconclusive",
    "drift_tolerance",
    "counter_tolerance",
    "targets",
    "worker.check_output",
    "server.check_output",
    "server.throughput_limit",
    "server.latency_limit",
];

/// Keys that base's file sets, or head's where base has none.
const OF_BASE_IF_THERE: [&str; 5] = ["cases", "memory.case", "memory.runs", "server.users", "server.window_s"];

/// Whether base's file sets a key where a revision is compared with, and not head's.
fn is_of_base(key: &str, base_has_a_file: bool) -> bool {
    OF_BASE.contains(&key) || (base_has_a_file && OF_BASE_IF_THERE.contains(&key))
}

/// What a gate goes by.
pub struct GateSettings {
    /// Base's file in what decides, head's in the rest; above both variables and flags.
    pub config: Config,
    /// The same for the receipt, with what head declares as intended; `None` where no revision is compared with.
    pub terms: Option<Terms>,
    /// How head's file differs from base's.
    pub notes: Vec<Note>,
}

impl GateSettings {
    /// Those of a gate against `revision`, where `config` is head's file, variables and flags; `config` as it is without one.
    pub fn against(revision: Option<&str>, gate: &Gate, config: &Config) -> Result<Self> {
        let as_they_are = Self { config: config.clone(), terms: None, notes: Vec::new() };
        let Some(revision) = revision else { return Ok(as_they_are) };
        let here = current_folder()?;
        let prefix = match git(&here, &["rev-parse", "--show-prefix"]) {
            // Outside git, or without it, the checkout that follows says so; a receipt is judged without one.
            Err(_) if gate.receipt.is_empty() => return Ok(as_they_are),
            prefix => prefix?,
        };
        let base = of_commit(&here, &commit_of(&here, revision)?, &prefix)?;
        let base_text = base.as_deref().unwrap_or_default();
        let head = find_file(&here);
        let head_text = head.as_deref().map_or(Ok(String::new()), |path| read_text(path, MAX_FILE_BYTES))?;
        let by_head = gate.paired.settings == Some(Side::Head);
        let notes = match changes(base.as_deref(), &head_text, by_head) {
            Err(_) if by_head => {
                vec![Note::from("base's infergate.toml cannot be understood, and head's counts".to_owned())]
            }
            notes => notes.context(
                "base's settings cannot be understood; fix them there, or let head's file count with --settings head",
            )?,
        };
        let accepted_before = accepts(Path::new(FILE_NAME), base_text);
        let terms = |accepted_before| Terms { by_head, accept: config.accept.clone(), accepted_before };
        if by_head {
            // A note says what cannot be understood.
            return Ok(Self { terms: Some(terms(accepted_before.unwrap_or_default())), notes, ..as_they_are });
        }
        let is_of_base = |key: &str| is_of_base(key, base.is_some());
        let of_base = Layer::of_file(Path::new(FILE_NAME), base_text)?.only(is_of_base);
        let of_head = Layer::of_file(&head.unwrap_or(FILE_NAME.into()), &head_text)?.only(|key| !is_of_base(key));
        let layers = config.flags.clone().over(Layer::of_environment()?).over(of_base).over(of_head);
        let config = layers.config(config.accept.clone())?;
        Ok(Self { config, terms: Some(terms(accepted_before.context("base's settings")?)), notes })
    }
}

/// The file that holds in the folder `prefix` of `commit`: its own, or the nearest above it.
fn of_commit(here: &Path, commit: &str, prefix: &str) -> Result<Option<String>> {
    let folder = Path::new(prefix.trim_end_matches('/'));
    for folder in folder.ancestors() {
        let path = folder.join(FILE_NAME).to_string_lossy().into_owned();
        if let Some(text) = file_of(here, commit, &path)? {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// The keys whose values differ between the texts of both files; defaults count as given. Both are read as if they lay in the current
/// folder, since two checkouts lie in other ones.
fn changes(base: Option<&str>, head_text: &str, by_head: bool) -> Result<Vec<Note>> {
    let (path, base_text) = (Path::new(FILE_NAME), base.unwrap_or_default());
    let (was, is) = (Layer::of_file(path, base_text)?, Layer::of_file(path, head_text)?);
    let words = |layer: &Layer, key: &str| layer.get(key).map_or_else(|| flags::default_of(key), <[String]>::to_vec);
    let change = |key: &&str| {
        let (was, is) = (words(&was, key), words(&is, key));
        let after_merge = !by_head && is_of_base(key, base.is_some());
        (was != is).then(|| Note::GateChanged {
            key: (*key).into(),
            was: shown(key, &was),
            is: shown(key, &is),
            after_merge,
        })
    };
    let mut notes: Vec<Note> = KEYS.iter().filter_map(change).collect();
    if scenarios(path, base_text).ok() != scenarios(path, head_text).ok() {
        let text = "head changes the gate: the tables [[scenario]], which say what users do (head's hold here)";
        notes.push(Note::from(text.to_owned()));
    }
    Ok(notes)
}

/// A value as a receipt may hold it: a text can be a key to a server, or a folder. Of an option its name is shown, of a program or
/// file the file's name, and nothing of a program's arguments.
fn shown(key: &str, words: &[String]) -> String {
    let shown = match words {
        [] => "not set".to_owned(),
        _ if key == "options" => {
            let name = |word: &String| word.split_once('=').map_or("...".into(), |(name, _)| format!("{name}=..."));
            words.iter().map(name).collect::<Vec<_>>().join(", ")
        }
        [spec] if key == "model" && ["hf:", "synthetic:"].iter().any(|start| spec.starts_with(start)) => spec.clone(),
        _ if SHOWN_TEXTS.contains(&key) || !flags::is_text(key) => words.join(", "),
        [only] => file_name(only).to_owned(),
        [first, ..] => format!("{}, ...", file_name(first)),
    };
    printable_within(&shown, SHOWN).into_owned()
}

/// The last part of a path; `...` for a text with other characters, such as a whole command or an address with a password.
fn file_name(text: &str) -> &str {
    let is_path = text.chars().all(|c| c.is_alphanumeric() || "._-+:/\\".contains(c));
    let name = text.trim_end_matches('/').rsplit(['/', '\\']).next();
    name.filter(|_| is_path).unwrap_or("...")
}
