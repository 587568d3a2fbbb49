//! The verdict file as it is written: the verdict, and in words what a comment says of it.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Outcome, Subject, Verdict};

/// What `--json` writes: the gate's decision with all its numbers, and the words that a person reads in the comment. Whoever
/// reads the file back takes the decision alone; words are made of its rows anew.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "Verdict")]
pub struct VerdictFile {
    /// What happened, in one sentence: the first line of the comment and the last of the terminal.
    #[serde(default)]
    pub headline: String,
    /// Each row that keeps it from passing, in the order of `rows`; none where it passes.
    #[serde(default)]
    pub failures: Vec<Failure>,
    /// How the numbers came about, what their intervals mean, and how often such a gate is wrong; `null` where nothing was timed.
    #[serde(default)]
    pub how_sure: Option<String>,
    /// What was measured about the cause of each failure: parts of a time that moved, functions that changed, call stacks.
    #[serde(default)]
    pub where_to_look: Vec<String>,
    /// The commands that measure this again, one a line; `null` where a commit or a model is not known.
    #[serde(default)]
    pub repeat: Option<String>,
    /// The command that finds the commit behind the first case that is slower; `null` where none is.
    #[serde(default)]
    pub find_commit: Option<String>,
    /// What to add to head's infergate.toml if the failures are intended, as TOML; each `reason` is left to be written. `null` where
    /// nothing failed that can be accepted.
    #[serde(default)]
    pub accept: Option<String>,
    /// The decision.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// A row that keeps a verdict from passing, in words.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Failure {
    /// What it is about: `decode/p128`, `model`, `bench:fib/20`.
    #[schemars(with = "String")]
    pub subject: Subject,
    /// What is worse, as people say it: `ITL`, `output`, `allocations a token`, `heap`.
    pub what: String,
    /// How it ended.
    pub outcome: Outcome,
    /// By how much, where the true change lies, which limit it misses, and what mends it, in one sentence.
    pub said: String,
    /// Its place in `rows`, from 0: the numbers are in the `evidence` there, each with its unit in its name.
    pub row: usize,
}
