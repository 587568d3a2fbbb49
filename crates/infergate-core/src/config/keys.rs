//! The one table of keys: name, kind, default and what it means. File, environment, flags and `infergate.toml` all come
//! from it.

mod table;

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::FromValue;
pub use table::KEYS;

/// A key's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Of [`Kind::Text`] and [`Kind::Path`].
    Text(String),
    /// Of [`Kind::Count`].
    Count(u64),
    /// Of [`Kind::Number`], and of [`Kind::Ratio`], which is a ratio by then.
    Number(f64),
    /// Of [`Kind::Switch`].
    Switch(bool),
    /// Of [`Kind::List`].
    List(Vec<String>),
}

/// What a key takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Any text but an empty one.
    Text,
    /// The same as a path, which in a file counts from its folder.
    Path,
    /// A whole number from the first to the second.
    Count(u64, u64),
    /// A number from the first to the second, both allowed.
    Number(f64, f64),
    /// The same as a ratio, which can be written as the percentage above 1: `1.05` or `5%`.
    Ratio(f64, f64),
    /// `true` or `false`.
    Switch,
    /// Several texts.
    List,
}

/// What a key is for. A command takes whole groups as flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// What is measured.
    Measure,
    /// How much of it in one session against a baseline.
    Session,
    /// How the bench target is built.
    Build,
    /// The memory phase.
    Memory,
    /// How a run is judged by a baseline.
    JudgeStored,
    /// How any run is judged.
    Judge,
    /// How a revision is compared with.
    Paired,
}

/// Whose file says a key where a revision is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaidBy {
    /// Head's.
    Head,
    /// Base's, or the default where base has no file: head must not loosen by it the gate that it has to pass.
    Base,
    /// Base's, or head's where base has no file to say it.
    BaseIfThere,
    /// Head's. It says nothing of how head is judged, so no note names a change of it.
    HeadUnnoted,
}

/// One key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Key {
    /// What it is for.
    pub group: Group,
    /// As in `infergate.toml`; a key of a table has its name in front: `bench.target`.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// One line on what it does.
    pub doc: &'static str,
    /// Its default as TOML; `None` where the default is to leave it out.
    pub default: Option<&'static str>,
    /// A value to show where there is no default.
    pub example: &'static str,
    /// What its value is called in a help.
    pub value: &'static str,
    /// Another name of its flag.
    pub alias: Option<&'static str>,
    /// Whose file says it.
    pub said_by: SaidBy,
}

/// A key without a default, which is head's to say.
const fn key(group: Group, name: &'static str, kind: Kind, doc: &'static str) -> Key {
    let value = match kind {
        Kind::Text | Kind::List => "NAME",
        Kind::Path => "PATH",
        Kind::Switch => "BOOL",
        Kind::Count(..) | Kind::Number(..) | Kind::Ratio(..) => "N",
    };
    Key { group, name, kind, doc, default: None, example: "", value, alias: None, said_by: SaidBy::Head }
}

impl Key {
    const fn default(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    const fn example(self, example: &'static str) -> Self {
        Self { example, ..self }
    }

    const fn value(self, value: &'static str) -> Self {
        Self { value, ..self }
    }

    const fn alias(self, alias: &'static str) -> Self {
        Self { alias: Some(alias), ..self }
    }

    const fn said_by(self, said_by: SaidBy) -> Self {
        Self { said_by, ..self }
    }

    /// The key of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// The flag without its dashes: `seconds-per-case`, `bench-package`.
    pub fn flag(&self) -> String {
        self.name.replace(['_', '.'], "-")
    }

    /// The environment variable: `INFERGATE_SECONDS_PER_CASE`.
    pub fn environment(&self) -> String {
        format!("INFERGATE_{}", self.name.replace('.', "_").to_uppercase())
    }

    /// Reads the words of a flag or a variable.
    ///
    /// # Errors
    /// When they are not of this key's kind.
    pub fn parse_words(&self, words: &[String]) -> Result<Value> {
        let word = words.first().map(|word| word.trim()).unwrap_or_default();
        let wrong = || format!("'{word}' is not {}", self.expected());
        match self.kind {
            Kind::Text | Kind::Path => Ok(Value::Text(word.to_owned())),
            Kind::Count(..) => word.parse().map(Value::Count).or_else(|_| bail!(wrong())),
            Kind::Number(..) => word.parse().map(Value::Number).or_else(|_| bail!(wrong())),
            Kind::Ratio(..) => match word.strip_suffix('%') {
                Some(percent) => percentage(percent).map(Value::Number).with_context(wrong),
                None => word.parse().ok().with_context(wrong).and_then(bare_ratio),
            },
            Kind::Switch => word.parse().map(Value::Switch).or_else(|_| bail!(wrong())),
            Kind::List => {
                let entries = words.iter().flat_map(|word| entries(word)).map(str::trim);
                Ok(Value::List(entries.filter(|entry| !entry.is_empty()).map(str::to_owned).collect()))
            }
        }
    }

    /// Refuses a value out of range.
    ///
    /// # Errors
    /// Naming the key and its range.
    pub fn check(&self, value: &Value) -> Result<()> {
        let good = match (self.kind, value) {
            (Kind::Text | Kind::Path, Value::Text(text)) => !text.is_empty(),
            (Kind::Count(least, most), Value::Count(count)) => (least..=most).contains(count),
            (Kind::Number(least, most) | Kind::Ratio(least, most), Value::Number(number)) => {
                (least..=most).contains(number)
            }
            (Kind::Switch, Value::Switch(_)) | (Kind::List, Value::List(_)) => true,
            _ => false,
        };
        ensure!(good, "{} takes {}", self.name, self.expected());
        Ok(())
    }

    /// What it takes, in words.
    pub fn expected(&self) -> String {
        match self.kind {
            Kind::Text | Kind::Path => "a text that is not empty".into(),
            Kind::Count(least, most) if most > u64::from(u32::MAX) => format!("a whole number from {least}"),
            Kind::Count(least, most) => format!("a whole number from {least} to {most}"),
            Kind::Number(least, most) => format!("a number from {least} to {most}"),
            Kind::Ratio(least, most) => {
                let [least, most] = [least, most].map(|ratio| ((ratio - 1.0) * 1000.0).round() / 10.0);
                format!("a percentage from {least}% to {most}%, or its ratio such as 1.05")
            }
            Kind::Switch => "true or false".into(),
            Kind::List => "a list of texts".into(),
        }
    }
}

/// The entries between commas. One within brackets, as in a bench's name `mul/(16, 32)`, parts nothing, where each bracket has its other.
fn entries(word: &str) -> Vec<&str> {
    let (mut found, mut from, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, c) in word.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&word[from..at]);
                from = at + 1;
            }
            _ => {}
        }
        if depth < 0 {
            break;
        }
    }
    if depth != 0 {
        return word.split(',').collect();
    }
    found.push(&word[from..]);
    found
}

/// The ratio of a percentage above 1: 1.05 of `5`.
fn percentage(percent: &str) -> Option<f64> {
    Some(1.0 + percent.trim_end().parse::<f64>().ok()? / 100.0)
}

/// A ratio without a percent sign.
///
/// # Errors
/// From 2 on: whoever writes 5 means 5 %, and a gate with a limit of five times as slow would pass nearly everything.
pub fn bare_ratio(ratio: f64) -> Result<Value> {
    let above = (ratio - 1.0) * 100.0;
    // What is no number is out of every range.
    if ratio >= 2.0 {
        bail!("{ratio} is a ratio, +{above:.0} %; write {ratio}%, or {above:.0}% if that is meant");
    }
    Ok(Value::Number(ratio))
}

impl Value {
    /// As what it is put into.
    ///
    /// # Errors
    /// A value that its kind allows and its meaning does not.
    pub fn to<T: FromValue>(&self) -> Result<T> {
        T::from_value(self)
    }

    /// Whether this text is a path that counts from `folder`: it looks like one, or names a file or folder there.
    pub fn is_a_path_from(&self, folder: &Path) -> bool {
        let is_path = |text: &str| super::looks_like_a_path(text) || folder.join(text).exists();
        matches!(self, Self::Text(text) if !text.is_empty() && is_path(text))
    }

    /// A text that is a relative path, as seen from `folder`.
    pub fn relative_to(self, folder: &Path) -> Self {
        match self {
            Self::Text(text) => Self::Text(folder.join(text).to_string_lossy().into_owned()),
            other => other,
        }
    }
}

/// `infergate.toml` with every key at its default; a key without one is commented out.
pub fn commented_file() -> String {
    let mut text = String::from(
        "# Every key of infergate at its default. A key can also be given as a flag (--runs 5) or as an environment variable\n\
         # (INFERGATE_RUNS=5); a flag wins over a variable, a variable over this file.\n",
    );
    let mut table = "";
    for key in KEYS {
        let (in_table, name) = key.name.split_once('.').unwrap_or(("", key.name));
        if in_table != table {
            text += &format!("\n[{in_table}]\n");
            table = in_table;
        }
        text += &format!("\n# {}.\n", key.doc);
        match key.default {
            Some(default) => text += &format!("{name} = {default}\n"),
            None => text += &format!("# {name} = {}\n", key.example),
        }
    }
    text
}
