//! The verdict file: what the gate decided, and on what.
//!
//! A verdict is data: each row says what it is about ([`Subject`]), what was compared ([`Evidence`], numbers in fields of
//! their own), how it ended ([`Outcome`]), why where the numbers do not say it ([`Reason`]), and what mends it
//! ([`Remedy`]). Words are made in infergate-report's `words.rs` alone; whoever exports a verdict reads fields and never a sentence.
//!
//! What an addition touches: ARCHITECTURE.md.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Evidence, MemoryEvidence, MemoryMeasure, Note, Outcome, Reason, Remedy, Subject, TimeEvidence};

/// Schema name of a [`Verdict`].
pub const VERDICT_SCHEMA: &str = "infergate.verdict/1";

/// One thing that was compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictRow {
    /// What it is about: `decode/p128`, `model`, `bench:fib/20`.
    #[schemars(with = "String")]
    pub subject: Subject,
    /// How the comparison ended.
    pub outcome: Outcome,
    /// What was compared, and the numbers.
    pub evidence: Evidence,
    /// Why it ended so, where the numbers do not say it.
    pub reasons: Vec<Reason>,
    /// What mends it; `null` where nothing is to be done, or nothing but the program itself.
    pub remedy: Option<Remedy>,
}

impl VerdictRow {
    /// A row without reasons.
    pub fn new(subject: impl Into<Subject>, outcome: Outcome, evidence: Evidence) -> Self {
        Self { subject: subject.into(), outcome, evidence, reasons: Vec::new(), remedy: None }
    }

    /// The same, because of `reason`.
    #[must_use]
    pub fn because(mut self, reason: Reason) -> Self {
        self.reasons.push(reason);
        self
    }

    /// The same, with how to fix it.
    #[must_use]
    pub fn with_remedy(self, remedy: Remedy) -> Self {
        Self { remedy: Some(remedy), ..self }
    }

    /// Whether more blocks, more runs, or a quieter machine would have decided it. What was not measured at all, a counter that
    /// is no longer counted or a target's value, is not undecided but missing.
    pub fn is_undecided(&self) -> bool {
        let was_measured = match &self.evidence {
            Evidence::Time(time) => time.ratio.is_some(),
            Evidence::Memory(memory) => memory.slope_bytes.is_some(),
            _ => false,
        };
        self.outcome.is_undecided() && was_measured
    }

    /// Whether `inconclusive = "warn"` lets it pass: noise left it open. A slowdown that lies above its limit wherever in its interval it
    /// is was left open by too little time, and a heap that still grows, which is counted exactly, by too few runs.
    pub fn passes_undecided(&self) -> bool {
        let is_noise = match &self.evidence {
            Evidence::Time(time) => !time.is_above_limit(),
            Evidence::Memory(memory) => memory.measure == MemoryMeasure::Resident,
            _ => false,
        };
        self.is_undecided() && is_noise
    }

    /// The time it rests on, where it rests on one.
    pub fn time(&self) -> Option<&TimeEvidence> {
        if let Evidence::Time(time) = &self.evidence { Some(time) } else { None }
    }

    /// The same of memory over many runs.
    pub fn memory(&self) -> Option<&MemoryEvidence> {
        if let Evidence::Memory(memory) = &self.evidence { Some(memory) } else { None }
    }
}

/// The gate's decision, and what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// [`VERDICT_SCHEMA`].
    pub schema: String,
    /// How the whole gate ended: the worst row decides.
    pub verdict: Outcome,
    /// 0 pass, 1 regressed, 2 failed, 3 no verdict, 4 not comparable. 0 also where the key `inconclusive` says `warn` and nothing
    /// but noise kept it from a verdict.
    pub exit_code: i32,
    /// Everything that was compared.
    pub rows: Vec<VerdictRow>,
    /// What holds for the run as a whole: missing baseline, sessions that are missing, builds that differ.
    pub notes: Vec<Note>,
}

impl Verdict {
    /// The worst of `rows` decides, in the order of exit codes 2, 1, 3, 4, 0; none at all is a pass of nothing and therefore
    /// [`Outcome::Failed`].
    pub fn of(rows: Vec<VerdictRow>, notes: Vec<Note>) -> Self {
        let verdict = match worst(&rows, |_| true) {
            None => Outcome::Failed,
            Some(worst) if worst.exit_code() == 0 => Outcome::Pass,
            Some(worst) => worst,
        };
        Self { schema: VERDICT_SCHEMA.into(), verdict, exit_code: verdict.exit_code(), rows, notes }
    }

    /// The same, with exit code 0 if every row that keeps it from passing [may](VerdictRow::passes_undecided); else the worst of the other
    /// rows decides.
    #[must_use]
    pub fn passing_undecided(self) -> Self {
        if !self.verdict.is_undecided() {
            return self;
        }
        match worst(&self.rows, |row| !row.passes_undecided()).filter(|worst| worst.exit_code() != 0) {
            Some(verdict) => Self { verdict, exit_code: verdict.exit_code(), ..self },
            None => Self { exit_code: Outcome::Pass.exit_code(), ..self },
        }
    }

    /// Whether it passes although it is undecided: every row that keeps it from passing [may](VerdictRow::passes_undecided).
    pub fn passes_undecided(&self) -> bool {
        let mut failed = self.rows.iter().filter(|row| row.outcome.exit_code() != 0);
        self.exit_code == 0 && self.verdict.is_undecided() && failed.all(VerdictRow::passes_undecided)
    }

    /// The row that decided. Of several as bad it is the first that no more evidence would change.
    pub fn deciding(&self) -> Option<&VerdictRow> {
        let mut as_bad = self.rows.iter().filter(|row| row.outcome == self.verdict);
        as_bad.clone().find(|row| !row.is_undecided()).or_else(|| as_bad.next())
    }

    /// The same, never better than `at_best`: a run that broke an invariant or was cut short passes nothing, whatever its
    /// rows say, and what else is open in it is no reason to call it noise.
    #[must_use]
    pub fn at_best(self, at_best: Outcome) -> Self {
        let of_run = |outcome: Outcome| match outcome {
            Outcome::Invalid => 2,
            Outcome::Partial => 1,
            _ => 0,
        };
        let rank = |outcome: Outcome| (outcome.severity(), of_run(outcome));
        if self.rows.is_empty() || rank(self.verdict) < rank(at_best) {
            return Self { verdict: at_best, exit_code: at_best.exit_code(), ..self };
        }
        self
    }
}

/// The worst outcome of the rows that `counts`; of several as bad one that no more evidence would change, and a slower case first.
pub(super) fn worst(rows: &[VerdictRow], counts: impl Fn(&VerdictRow) -> bool) -> Option<Outcome> {
    let rows = rows.iter().filter(|row| counts(row));
    let order = [Outcome::CounterRegressed, Outcome::Leak, Outcome::OutputChanged, Outcome::Regressed];
    let rank = |row: &VerdictRow| order.iter().position(|outcome| *outcome == row.outcome);
    rows.max_by_key(|row| (row.outcome.severity(), !row.is_undecided(), rank(row))).map(|row| row.outcome)
}

/// What `--json` writes: the gate's decision with all its numbers, and the words that a person reads in the comment. Whoever
/// reads the file back takes the decision alone; words are made of its rows anew.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "Verdict")]
pub struct VerdictFile {
    /// What happened, in one sentence: the first line of the comment and the last of the terminal.
    pub headline: String,
    /// Each row that keeps it from passing, in the order of `rows`; none where it passes.
    pub failures: Vec<Failure>,
    /// How the numbers came about, what their intervals mean, and how often such a gate is wrong; `null` where nothing was timed.
    pub how_sure: Option<String>,
    /// What was measured about the cause of each failure: parts of a time that moved, functions that changed, call stacks.
    pub where_to_look: Vec<String>,
    /// The commands that measure this again, one a line; `null` where a commit or a model is not known.
    pub repeat: Option<String>,
    /// The command that finds the commit behind the first case that is slower; `null` where none is.
    pub find_commit: Option<String>,
    /// What to add to head's infergate.toml if the failures are intended, as TOML; each `reason` is left to be written. `null` where
    /// nothing failed that can be accepted.
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
    /// What is worse, as people say it: `ITL`, `output`, `allocations per token`, `heap`.
    pub what: String,
    /// How it ended.
    pub outcome: Outcome,
    /// By how much, where the true change lies, which limit it misses, and what mends it, in one sentence.
    pub message: String,
    /// Its place in `rows`, from 0: the numbers are in the `evidence` there, each with its unit in its name.
    pub row: usize,
}
