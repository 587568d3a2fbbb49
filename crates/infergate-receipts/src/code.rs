//! What differs between the machine code of base and that of head.

use infergate_core::case::Case;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was found before anything was timed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeRecord {
    /// Both load the same code and constants, and read the same files, so nothing was timed.
    pub same: bool,
    /// Cases that were not timed since nothing that changed can reach them: their program is the same, or they run none of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub same_cases: Vec<Case>,
    /// At most so many functions are in one alone, or have other instructions or constants; `null` where that is not known.
    #[serde(default)]
    pub changed: Option<usize>,
    /// The names of some of them.
    #[serde(default)]
    pub named: Vec<String>,
    /// Of each case, looked at before it was timed: how much of it it runs.
    #[serde(default)]
    pub runs: Vec<CodeRuns>,
}

/// What a case runs of the functions that changed: in each build's own process, from its start on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeRuns {
    /// The case.
    #[schemars(with = "String")]
    pub id: Case,
    /// So many; `null` where that could not be watched.
    pub functions: Option<usize>,
    /// Of at most so many that changed in its bench target; `null`: as many as of the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<usize>,
    /// The names of some of them.
    #[serde(default)]
    pub named: Vec<String>,
    /// Why it could not be watched, as a clause.
    #[serde(default)]
    pub why: Option<String>,
}

impl CodeRecord {
    /// Nothing differs.
    pub fn same() -> Self {
        Self { same: true, same_cases: Vec::new(), changed: Some(0), named: Vec::new(), runs: Vec::new() }
    }

    /// Whether this case was watched, and not one of the functions that changed began in it.
    pub fn runs_nothing_changed(&self, case: Case) -> bool {
        self.runs.iter().any(|runs| runs.id == case && runs.functions == Some(0))
    }
}
