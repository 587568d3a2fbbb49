//! The one table of keys: name, kind, default and what it means. File, environment, flags and `infergate.toml` all come
//! from it.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

/// A key's value.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Value {
    Text(String),
    Count(u64),
    Number(f64),
    Switch(bool),
    List(Vec<String>),
}

/// What a key takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Any text but an empty one.
    Text,
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

/// One key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Key {
    /// As in `infergate.toml`; a key of a table has its name in front: `bench.target`.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// Its default as TOML; `None` where the default is to leave it out.
    pub default: Option<&'static str>,
    /// A value to show where there is no default.
    pub example: &'static str,
    /// One line on what it does.
    pub doc: &'static str,
}

const fn key(
    name: &'static str,
    kind: Kind,
    default: Option<&'static str>,
    example: &'static str,
    doc: &'static str,
) -> Key {
    Key { name, kind, default, example, doc }
}

/// Every key, in the order of `infergate.toml`.
pub const KEYS: &[Key] = &[
    key(
        "model",
        Kind::Text,
        Some("\"synthetic:gpt2\""),
        "",
        "Model: synthetic:gpt2 (also distilgpt2, smollm2-135m, tiny), a .gguf file, a folder, or hf:ORG/NAME[@REV][/FILE.gguf]",
    ),
    key(
        "dtype",
        Kind::Text,
        None,
        "\"f32\"",
        "Compute type; f32 dequantizes a GGUF at load; left out: as the file has it",
    ),
    key(
        "threads",
        Kind::Count(1, 4096),
        None,
        "2",
        "Threads to compute with; left out: every core this process may use",
    ),
    key("seed", Kind::Count(0, i64::MAX as u64), Some("1"), "", "Seed of synthetic weights and prompts"),
    key(
        "options",
        Kind::List,
        Some("[]"),
        "[\"url=http://127.0.0.1:8080\", \"device=cuda\"]",
        "What else the engine understands, NAME=VALUE each; never written into a receipt",
    ),
    key(
        "prompt",
        Kind::Text,
        None,
        "\"prompts/alice.txt\"",
        "Text file that prompts are cut from; left out: a public-domain text that comes with infergate",
    ),
    key(
        "cases",
        Kind::List,
        Some("[]"),
        "[\"decode/*\", \"prefill/p256\"]",
        "Cases, ids or globs; empty: the gate's suite of five (the full grid for `cargo bench`)",
    ),
    key("runs", Kind::Count(1, 1000), Some("5"), "", "Fresh processes of one session"),
    key(
        "seconds_per_case",
        Kind::Number(0.0, 3600.0),
        Some("3.0"),
        "",
        "Time to sample one case in one process; at least 3 samples, at most 200",
    ),
    key(
        "alpha",
        Kind::Number(1e-9, 0.499),
        Some("0.01"),
        "",
        "Chance that an unchanged program is called regressed, over the whole suite",
    ),
    key(
        "threshold",
        Kind::Ratio(1.001, 100.0),
        None,
        "1.02",
        "Against a revision, the ratio from which on a slowdown fails, 1.02 or 2%; left out: 1.02 where a case is quiet, 1.03 elsewhere",
    ),
    key(
        "anchor",
        Kind::Text,
        None,
        "\"v0.1.0\"",
        "Against a revision, an older one that head is compared with in the same blocks, so that no sum of small slowdowns passes; left out: none",
    ),
    key(
        "anchor_limit",
        Kind::Ratio(1.001, 100.0),
        Some("1.05"),
        "",
        "The ratio to the anchor from which on a slowdown fails",
    ),
    key(
        "undecided",
        Kind::Text,
        Some("\"fail\""),
        "",
        "Against a revision, what a run that ends inconclusive or unstable does: fail; warn, which passes and says so; again, which measures once more and reports both",
    ),
    key(
        "stored_floor",
        Kind::Ratio(1.001, 100.0),
        Some("1.10"),
        "",
        "The stored channel never calls a ratio below this regressed",
    ),
    key(
        "cv_limit",
        Kind::Number(1e-6, 100.0),
        Some("0.20"),
        "",
        "A case whose process medians vary more than this (std / mean) is unstable",
    ),
    key("min_sessions", Kind::Count(2, 1000), Some("8"), "", "Sessions a baseline needs before its time is judged"),
    key(
        "require_baseline",
        Kind::Switch,
        Some("false"),
        "",
        "Whether a run without a comparable baseline fails (exit 4) instead of being advisory",
    ),
    key(
        "drift_tolerance",
        Kind::Number(0.0, 1.0),
        None,
        "1e-6",
        "Logits that differ by up to this fraction of the largest one (root mean square) drifted, more is a changed output; left out: by the dtype, 1e-6 for f32",
    ),
    key(
        "counter_tolerance",
        Kind::Number(0.0, 1.0),
        Some("0.01"),
        "",
        "A counter of bytes may rise by this fraction and passes; a number of allocations may not rise at all",
    ),
    key(
        "targets",
        Kind::List,
        Some("[]"),
        "[\"prefill/p128 ttft_ms < 2500\", \"decode/* tokens_per_s > 20\"]",
        "Absolute limits, one `CASE METRIC < VALUE` or `>` each, in whatever unit the metric names",
    ),
    key("baselines", Kind::Text, Some("\"baselines\""), "", "Folder of the committed baselines"),
    key(
        "base_folder",
        Kind::Text,
        None,
        "\"/var/cache/infergate\"",
        "Folder, outside the repository, that keeps the checkout and build of a base revision; left out: the user's cache",
    ),
    key("memory.case", Kind::Text, Some("\"generate/p128-o64\""), "", "Case that the memory phase repeats"),
    key(
        "memory.runs",
        Kind::Count(0, 5000),
        Some("100"),
        "",
        "Runs of the memory phase; a verdict on leaks takes 20, and 0 leaves the phase out of the gate",
    ),
    key(
        "memory.growth_limit_bytes",
        Kind::Count(0, i64::MAX as u64),
        None,
        "67108864",
        "The resident set may grow by so much over the runs; left out: by any amount that is not a leak",
    ),
    key(
        "bench.package",
        Kind::Text,
        None,
        "\"my-engine\"",
        "Package of the bench target; left out: the one of the current folder",
    ),
    key("bench.target", Kind::Text, Some("\"inference\""), "", "Bench target that is the measured worker"),
    key(
        "bench.memory_target",
        Kind::Text,
        Some("\"memory\""),
        "",
        "Bench target that counts its heap, for the memory phase",
    ),
    key("bench.features", Kind::List, Some("[]"), "[\"cuda\"]", "Features to build it with"),
    key(
        "bench.profile",
        Kind::Text,
        None,
        "\"release-lto\"",
        "Profile to build it with; left out: cargo's own for benches",
    ),
    key(
        "worker.command",
        Kind::List,
        Some("[]"),
        "",
        "Against a revision, in place of a bench target: a program and its arguments, run once a sample in each checkout; its output is what it prints",
    ),
    key(
        "worker.build",
        Kind::List,
        Some("[]"),
        "",
        "A program and its arguments that build that command, run once in each checkout",
    ),
    key(
        "worker.check_output",
        Kind::Switch,
        Some("true"),
        "",
        "Compare what the command prints; false for one that prints times",
    ),
    key(
        "server.command",
        Kind::List,
        Some("[]"),
        "",
        "With gate --server: a program and its arguments that start a server; {port} in one of them becomes a free port",
    ),
    key(
        "server.build",
        Kind::List,
        Some("[]"),
        "",
        "A program and its arguments that build the server, run once in each checkout",
    ),
    key("server.ready", Kind::Text, Some("\"/health\""), "", "Path that answers 2xx once the server is ready"),
    key("server.ready_s", Kind::Count(1, 86_400), Some("300"), "", "Seconds within which it has to be ready"),
    key("server.model", Kind::Text, Some("\"default\""), "", "The model's name at the server"),
    key("server.api", Kind::Text, Some("\"chat\""), "", "Which of its endpoints is asked: chat or completions"),
    key(
        "server.ignore_eos",
        Kind::Switch,
        Some("false"),
        "",
        "Send ignore_eos, an extension: every answer has its full length",
    ),
    key(
        "server.check_output",
        Kind::Switch,
        Some("true"),
        "",
        "Compare what the server says; false for one that does not say the same twice",
    ),
];

impl Key {
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
            Kind::Text => Ok(Value::Text(word.to_owned())),
            Kind::Count(..) => word.parse().map(Value::Count).or_else(|_| bail!(wrong())),
            Kind::Number(..) => word.parse().map(Value::Number).or_else(|_| bail!(wrong())),
            Kind::Ratio(..) => ratio(word).map(Value::Number).with_context(wrong),
            Kind::Switch => word.parse().map(Value::Switch).or_else(|_| bail!(wrong())),
            Kind::List => {
                let entries = words.iter().flat_map(|word| word.split(',')).map(str::trim);
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
            (Kind::Text, Value::Text(text)) => !text.is_empty(),
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
            Kind::Text => "a text that is not empty".into(),
            Kind::Count(least, most) if most > u64::from(u32::MAX) => format!("a whole number from {least}"),
            Kind::Count(least, most) => format!("a whole number from {least} to {most}"),
            Kind::Number(least, most) => format!("a number from {least} to {most}"),
            Kind::Ratio(least, most) => format!("a ratio from {least} to {most}, or a percentage such as 5%"),
            Kind::Switch => "true or false".into(),
            Kind::List => "a list of texts".into(),
        }
    }
}

/// A ratio as it is, or as the percentage above 1: 1.05 from `1.05` and from `5%`. `None` for what is neither.
pub fn ratio(word: &str) -> Option<f64> {
    match word.strip_suffix('%') {
        Some(percent) => Some(1.0 + percent.trim_end().parse::<f64>().ok()? / 100.0),
        None => word.parse().ok(),
    }
}

impl Value {
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
