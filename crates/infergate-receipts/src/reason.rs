//! Why a row ended as it did where its numbers do not say it, what fixes it, and what holds for the whole run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Subject;
use super::accept::{Accept, NoEffect, UpTo};

/// Why a row ended as it did, with the numbers of each reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// The run breaks an invariant.
    Broken {
        /// Which invariant, in one sentence.
        what: String,
    },
    /// The run was cut short.
    CutShort,
    /// Nothing was timed.
    NotTimed,
    /// The output changed, so the time is not judged.
    OutputChanged,
    /// A change that the user allowed.
    Allowed,
    /// Base and head were given different prompts, so that other tokens say nothing.
    OtherPrompt,
    /// Head gives no logits where base does, so that less was compared than could be.
    LogitsLost,
    /// The baseline does not know this subject's output, or there is no baseline.
    NoReference,
    /// There is no baseline.
    NoBaseline,
    /// The baseline has no session of this subject.
    NoSession,
    /// Sides ran on platforms between which exactness, or equal times, cannot be asked for.
    OtherPlatform {
        /// What differs between the platforms: `instruction set`, `machine class`.
        what: String,
        /// What it is for base.
        base: String,
        /// What it is for head.
        head: String,
    },
    /// Sessions of fewer days than it takes to judge.
    TooFewSessions {
        /// Sessions that the baseline has of this subject.
        sessions: usize,
        /// Days, in UTC, that these sessions are of.
        days: usize,
        /// Days that it takes; each step takes one more.
        needed: usize,
    },
    /// The process medians vary too much.
    Noisy {
        /// Coefficient of variation of head's process medians.
        cv: f64,
        /// The coefficient of variation above which nothing is judged.
        limit: f64,
    },
    /// Too few processes for a coefficient of variation.
    TooFewProcesses {
        /// Processes of the run.
        processes: usize,
    },
    /// The load is another one than the baseline's.
    OtherLoad {
        /// What differs between the loads: `output tokens`.
        what: String,
        /// What it is in the baseline.
        base: String,
        /// What it is in this run.
        head: String,
    },
    /// More requests failed than before.
    MoreFail {
        /// Requests of head that failed.
        failed: u64,
        /// Requests of head that were sent.
        issued: u64,
        /// The largest share of requests that failed in base, or in any session of the baseline.
        most_before: f64,
        /// In how many blocks; `null` where there are none.
        #[serde(skip_serializing_if = "Option::is_none")]
        blocks: Option<BlocksWorse>,
    },
    /// Answers to the same prompts under load are of another length than base's.
    OtherLengths {
        /// Answers that were compared.
        answers: u64,
    },
    /// The mean rose by more than its limit, and by much more than the median: few samples take much longer.
    SomeSlower,
    /// The median regressed before the mean was decided.
    MedianRegressed,
    /// The last look came, and the interval is too wide.
    TooNoisy {
        /// Blocks that were measured.
        blocks: usize,
    },
    /// The time given ended.
    OutOfTime {
        /// Blocks that were measured.
        blocks: usize,
        /// Blocks more that may settle it, at most.
        more: usize,
    },
    /// Too few blocks to judge.
    TooFewBlocks {
        /// Blocks that were measured.
        blocks: usize,
    },
    /// Too few servers of each side, each of which was started once: their luck cannot be told from a change.
    FewServers {
        /// Servers of each side.
        servers: usize,
        /// Servers of each side that it takes.
        needed: usize,
    },
    /// Pairs of servers differ too much to carry what their blocks show.
    ServersDiffer {
        /// Servers of each side.
        servers: usize,
        /// Sample standard deviation of ln(head / base) over the pairs.
        std: f64,
        /// The change from which on it would fail: 0.02.
        limit: f64,
    },
    /// Measuring ended, because something else showed that head is worse under this load.
    LoadDecided {
        /// Blocks that were measured.
        blocks: usize,
    },
    /// The case takes less time, so a higher count is shown and fails nothing.
    TimeIsBetter,
    /// Noise left this limit inconclusive, and a slowdown by the row's wider `threshold` is excluded.
    TooNoisyFor {
        /// The ratio from which on a slowdown fails.
        limit: f64,
    },
    /// Head is slower at some placements of what changed and not at others: its work is not.
    SlowerAt {
        /// Placements at which it is slower.
        placements: usize,
        /// Of so many.
        of: usize,
    },
    /// Not one of the functions that changed runs in this case, so it was not timed.
    RunsNothingChanged {
        /// Functions that differ between base and head.
        changed: usize,
    },
    /// Functions that changed run in this case.
    RunsChanged {
        /// Functions that changed and run in this case.
        functions: usize,
        /// Functions that differ between base and head.
        changed: usize,
        /// The names of some of those that run.
        named: Vec<String>,
    },
    /// Whether a function that changed runs in this case is not known.
    NotWatched {
        /// Why it is not known, as a clause.
        why: String,
    },
    /// The subject has no such metric, or it was not counted.
    NoSuchMetric,
    /// This channel does not measure that metric.
    NotMeasured,
    /// Head's infergate.toml declares a change of this size as intended.
    Accepted {
        /// The largest change that is declared; `null` for an output.
        #[schemars(with = "Option<String>")]
        up_to: Option<UpTo>,
        /// Why it is meant, in head's words.
        reason: String,
    },
    /// Head's infergate.toml declares a change as intended, and this one is larger.
    BeyondAccepted {
        /// The largest change that is declared; `null` for an output.
        #[schemars(with = "Option<String>")]
        up_to: Option<UpTo>,
    },
    /// What the leak rule says of itself, which `cargo bench` says in the same words.
    Observed {
        /// What it found, in one sentence.
        text: String,
    },
}

/// Blocks in which a side had any of what is counted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlocksWorse {
    /// Of base.
    pub base: usize,
    /// Of head.
    pub head: usize,
    /// Blocks of each side.
    pub of: usize,
}

/// What the user can do about a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Remedy {
    /// Measure again.
    MeasureAgain,
    /// Bless a session.
    Bless,
    /// Allow the output to change.
    AllowOutputChange,
    /// Accept the changed output, in infergate.toml.
    AcceptOutput,
    /// Give more time.
    MoreTime,
    /// Follow more runs, if a cache is still filling.
    MoreRuns,
    /// Name other cases in the target.
    NameOtherCases,
    /// Count allocations, or name other cases in the target.
    CountOrNameOtherCases,
    /// Measure this revision alone, without `--against`.
    MeasureAlone,
}

/// What holds for the run as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Note {
    /// An invariant is broken.
    Broken {
        /// Which invariant, in one sentence.
        what: String,
    },
    /// The run, or the base run, was cut short.
    CutShort {
        /// Whether it is the base run.
        base: bool,
    },
    /// There is no baseline for this machine class.
    NoBaseline {
        /// The class of this machine.
        machine_class: String,
    },
    /// Outputs and counters are judged by another machine class's session: it is the newest.
    OtherClass {
        /// That class.
        machine_class: String,
        /// When its session began, RFC 3339 in UTC.
        created: String,
    },
    /// One session is compared with one.
    OneSession,
    /// The sides differ in something besides the code.
    Differs {
        /// What differs: `rustc`.
        what: String,
        /// What it is for base.
        base: String,
        /// What it is for head.
        head: String,
        /// Stored channel: in how many of the sessions, and how many there are.
        sessions: Option<(usize, usize)>,
        /// Whether base is a revision, not a baseline.
        paired: bool,
    },
    /// What the hardware gave moved during the run.
    Drift {
        /// What was probed: `memory read`.
        what: String,
        /// By which fraction it moved: -0.1 is 10 % less.
        change: f64,
    },
    /// How much a case uses of what its machine can do, where its time is not judged.
    Share {
        /// The case.
        #[schemars(with = "String")]
        subject: Subject,
        /// Head's share of the hardware's limit.
        share: f64,
        /// The lowest share in the baselines of all machine classes.
        lowest: f64,
        /// The highest.
        highest: f64,
        /// How many sessions these are of.
        sessions: usize,
        /// How many machine classes those are of.
        classes: usize,
    },
    /// The baseline has subjects that were not run.
    NotRun {
        /// The subjects that are missing.
        #[schemars(with = "Vec<String>")]
        subjects: Vec<Subject>,
    },
    /// Head's infergate.toml gives a key another value than base's.
    GateChanged {
        /// The key.
        key: String,
        /// Its value in base's file, as TOML.
        was: String,
        /// Its value in head's file, as TOML.
        is: String,
        /// Base's value holds here, and head's does once it is merged. `false`: head's value holds already.
        #[serde(default)]
        after_merge: bool,
    },
    /// A table `[[accept]]` of head's infergate.toml has no effect.
    NotAccepted {
        /// The table that has no effect.
        accept: Accept,
        /// Why it has none.
        why: NoEffect,
    },
    /// Base and head load the same code and constants, so nothing was timed.
    SameCode,
    /// So many functions differ between base and head.
    CodeChanged {
        /// How many functions differ, at most.
        functions: usize,
        /// The names of some of them.
        named: Vec<String>,
    },
    /// Base and head were laid out alike.
    LaidAlike {
        /// Functions of base that lie at the same address in head, with the same code.
        same: usize,
        /// Functions of base.
        functions: usize,
    },
    /// Base's allocations were not counted.
    BaseNotCounted,
    /// How often gates like this one were wrong on this machine class, by its calibration.
    OwnErrors {
        /// The day of the calibration, in UTC: `2026-11-20`.
        calibrated: String,
        /// Settled gates between two builds that do the same.
        gates: u64,
        /// Those of them that called a case regressed.
        regressed: u64,
        /// Further gates between them, which decided nothing.
        inconclusive: u64,
    },
    /// How often gates like this one are wrong was not measured.
    OwnErrorsUnknown {
        /// Why it was not measured, as a clause.
        why: String,
    },
    /// A sentence of the command's own.
    Said {
        /// What is said, in one sentence.
        text: String,
    },
}

impl<T: Into<String>> From<T> for Note {
    fn from(text: T) -> Self {
        Self::Said { text: text.into() }
    }
}
