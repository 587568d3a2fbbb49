//! Chooses the settings of `gate --against`: base's file decides limits, targets and cases.
//!
//! A pull request may change `infergate.toml`, and must not loosen the gate that it has to pass. The verdict names what head changes
//! there; it takes effect after the merge. With `--settings head` head's file decides at once, for users who trust head. Flags and
//! variables come from the user and override both files.

use std::path::Path;

use anyhow::{Context, Result};
use infergate_core::printable::printable_within;
use infergate_core::text_file::read_text;
use infergate_receipts::{Note, Side, Terms};

use super::flags;
use super::gate_options::Gate;
use crate::config::{Config, FILE_NAME, KEYS, Layer, MAX_FILE_BYTES, Tables, current_folder, find_file};
use infergate_build::git::{commit_of, file_of, prefix};

/// The most characters of a value that are shown.
const SHOWN: usize = 300;

/// Keys whose texts are shown whole: names of cases, and of what Cargo.toml has.
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

/// The settings of a gate.
pub struct GateSettings {
    /// Base's file for what decides, head's for the rest; variables and flags override both.
    pub config: Config,
    /// Whose settings judge, and what head declares as intended, for the receipt; `None` if there is no revision to compare with.
    pub settings_record: Option<Terms>,
    /// How head's file differs from base's.
    pub notes: Vec<Note>,
}

impl GateSettings {
    /// The settings of a gate against `revision`; `config` has head's file, variables and flags. Without a revision they are `config`.
    pub fn against(revision: Option<&str>, gate: &Gate, config: &Config) -> Result<Self> {
        let as_they_are = Self { config: config.clone(), settings_record: None, notes: Vec::new() };
        let Some(revision) = revision else { return Ok(as_they_are) };
        let here = current_folder()?;
        let prefix = match prefix(&here) {
            // Outside git, or without it, the checkout that follows says so; a receipt is judged without one.
            Err(_) if gate.receipt.is_empty() => return Ok(as_they_are),
            prefix => prefix?,
        };
        let base = of_commit(&here, &commit_of(&here, revision)?, &prefix)?;
        let is_of_base = |key: &str| OF_BASE.contains(&key) || (base.is_some() && OF_BASE_IF_THERE.contains(&key));
        let head = find_file(&here);
        let head_text = head.as_deref().map_or(Ok(String::new()), |path| read_text(path, MAX_FILE_BYTES))?;
        let by_head = gate.paired.settings == Some(Side::Head);
        let record = |accepted_before| Some(Terms { by_head, accept: config.tables.accept.clone(), accepted_before });
        let (of_base, was) = match read(base.as_deref().unwrap_or_default()) {
            Err(_) if by_head => {
                let text = "base's infergate.toml cannot be understood, and head's counts";
                return Ok(Self { settings_record: record(Vec::new()), notes: vec![Note::from(text)], ..as_they_are });
            }
            found => found.context(
                "base's settings cannot be understood; fix them there, or let head's file count with --settings head",
            )?,
        };
        let (of_head, is) = read(&head_text)?;
        let mut notes = changes(&of_base, &of_head, |key| !by_head && is_of_base(key));
        if was.scenarios != is.scenarios {
            let text = "head changes the gate: the tables [[scenario]], which say what users do (head's hold here)";
            notes.push(Note::from(text));
        }
        if by_head {
            return Ok(Self { settings_record: record(was.accept), notes, ..as_they_are });
        }
        let of_head = Layer::of_file(&head.unwrap_or(FILE_NAME.into()), &head_text)?.only(|key| !is_of_base(key));
        let file = of_base.only(is_of_base).over(of_head);
        let config = Config::of(&config.flags, file, config.tables.clone())?;
        Ok(Self { config, settings_record: record(was.accept), notes })
    }
}

/// Reads a file's text as if it were in the current folder: base's and head's lie in different ones.
fn read(text: &str) -> Result<(Layer, Tables)> {
    let path = Path::new(FILE_NAME);
    Ok((Layer::of_file(path, text)?, Tables::of_file(path, text)?))
}

/// The file that holds in the folder `prefix` of `commit`: its own, or the nearest above it.
fn of_commit(here: &Path, commit: &str, prefix: &str) -> Result<Option<String>> {
    let text = |folder: &Path| file_of(here, commit, &folder.join(FILE_NAME).to_string_lossy()).transpose();
    Path::new(prefix.trim_end_matches('/')).ancestors().find_map(text).transpose()
}

/// The keys whose values differ between both files; defaults count as given.
fn changes(was: &Layer, is: &Layer, after_merge: impl Fn(&str) -> bool) -> Vec<Note> {
    let words = |layer: &Layer, key: &str| layer.get(key).map_or_else(|| flags::default_of(key), <[String]>::to_vec);
    let change = |key: &&str| {
        let (was, is) = (words(was, key), words(is, key));
        (was != is).then(|| Note::GateChanged {
            key: (*key).into(),
            was: shown(key, &was),
            is: shown(key, &is),
            after_merge: after_merge(key),
        })
    };
    KEYS.iter().filter_map(change).collect()
}

/// A value as a receipt may hold it: a text can be an API key, or a folder of this machine. Only the last part of a path is shown, and of a
/// list only that of its first path.
fn shown(key: &str, words: &[String]) -> String {
    let shown = match words {
        [] => "not set".to_owned(),
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
