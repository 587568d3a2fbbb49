//! Why a row ended as it did where its numbers do not say it, what mends it, and what holds for the whole run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Subject;
use super::accept::{Accept, NoEffect, UpTo};

/// Why, with the numbers of each why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// The run breaks an invariant.
    Broken {
        /// Which, in one sentence.
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
    /// The baseline does not know this subject's output, or there is no baseline.
    NoReference,
    /// There is no baseline.
    NoBaseline,
    /// The baseline has no session of this subject.
    NoSession,
    /// Sides ran on platforms between which exactness cannot be asked for.
    OtherPlatform {
        /// What differs: `instruction set`.
        what: String,
        /// Base's.
        base: String,
        /// Head's.
        head: String,
    },
    /// Sides ran on different machine classes.
    OtherMachine {
        /// The ratio is one of fractions of what the hardware gives.
        normalised: bool,
    },
    /// Sessions of fewer days than it takes to judge.
    TooFewSessions {
        /// There are.
        sessions: usize,
        /// They are of so many days, in UTC; `null` in an older file, which counted sessions.
        #[serde(default)]
        days: Option<usize>,
        /// It takes so many days.
        needed: usize,
    },
    /// The process medians vary too much.
    Noisy {
        /// Their coefficient of variation.
        cv: f64,
        /// The limit.
        limit: f64,
    },
    /// Too few processes for a coefficient of variation.
    TooFewProcesses {
        /// There are.
        processes: usize,
    },
    /// The run has fewer processes than the baseline's sessions.
    ShorterThanSessions {
        /// There are.
        processes: usize,
        /// Each session has at least.
        usual: usize,
    },
    /// The run has far fewer requests than the baseline's sessions.
    FewerRequests {
        /// There are.
        requests: u64,
        /// Each session has at least.
        usual: u64,
    },
    /// The load is another one than the baseline's.
    OtherLoad {
        /// What differs: `output tokens`.
        what: String,
        /// Base's.
        base: String,
        /// Head's.
        head: String,
    },
    /// More requests failed than before.
    MoreFail {
        /// So many.
        failed: u64,
        /// Of so many.
        issued: u64,
        /// The largest share of any session.
        most_before: f64,
    },
    /// The mean rose by more than its limit, and by much more than the median: few samples take much longer.
    SomeSlower,
    /// The median regressed before the mean was decided.
    MedianRegressed,
    /// The last look came, and the interval is too wide.
    TooNoisy {
        /// Blocks.
        blocks: usize,
    },
    /// The time given ended.
    OutOfTime {
        /// Blocks that were measured.
        blocks: usize,
        /// Blocks that may settle it.
        more: usize,
    },
    /// Too few blocks to judge.
    TooFewBlocks {
        /// There are.
        blocks: usize,
    },
    /// Too few servers of each side, each of which was started once: their luck cannot be told from a change.
    FewServers {
        /// There are.
        servers: usize,
        /// It takes.
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
    /// Not one of the functions that changed runs in this case, so its time is where the linker put the code.
    RunsNothingChanged {
        /// So many changed.
        changed: usize,
    },
    /// Functions that changed run in this case.
    RunsChanged {
        /// So many of them.
        functions: usize,
        /// So many changed.
        changed: usize,
        /// The names of some that run.
        named: Vec<String>,
    },
    /// Whether a function that changed runs in this case is not known.
    NotWatched {
        /// Why, as a clause.
        why: String,
    },
    /// The subject has no such metric, or it was not counted.
    NoSuchMetric,
    /// This channel does not measure that metric.
    NotMeasured,
    /// Head's infergate.toml declares a change of this size as intended.
    Accepted {
        /// How far; `null` for an output.
        #[serde(default)]
        #[schemars(with = "Option<String>")]
        up_to: Option<UpTo>,
        /// Why, in head's words.
        reason: String,
    },
    /// Head's infergate.toml declares a change as intended, and this one is larger.
    BeyondAccepted {
        /// How far; `null` for an output.
        #[serde(default)]
        #[schemars(with = "Option<String>")]
        up_to: Option<UpTo>,
    },
    /// What the leak rule says of itself, which `cargo bench` says in the same words.
    Observed {
        /// One sentence.
        text: String,
    },
}

/// What the user can do about a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Remedy {
    /// Measure again.
    MeasureAgain,
    /// Bless a session.
    Bless,
    /// Allow the output to change.
    AllowOutputChange,
    /// Give more time.
    MoreTime,
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
        /// Which, in one sentence.
        what: String,
    },
    /// The run, or the base run, was cut short.
    CutShort {
        /// It is the base run.
        base: bool,
    },
    /// There is no baseline for this machine class.
    NoBaseline {
        /// Which.
        machine_class: String,
    },
    /// The baseline is of another machine class.
    OtherMachine {
        /// Base's class.
        base: String,
        /// Head's class.
        head: String,
    },
    /// One session is compared with one.
    OneSession,
    /// The sides differ in something besides the code.
    Differs {
        /// What: `rustc`.
        what: String,
        /// Base's.
        base: String,
        /// Head's.
        head: String,
        /// Stored channel: in how many of how many sessions.
        #[serde(default)]
        sessions: Option<(usize, usize)>,
        /// Whether base is a revision, not a baseline.
        paired: bool,
    },
    /// What the hardware gave moved during the run.
    Drift {
        /// What: `memory read`.
        what: String,
        /// By this fraction.
        change: f64,
    },
    /// The baseline has subjects that were not run.
    NotRun {
        /// Which.
        #[schemars(with = "Vec<String>")]
        subjects: Vec<Subject>,
    },
    /// Head's infergate.toml gives a key another value than base's.
    GateChanged {
        /// The key.
        key: String,
        /// Its value in base's file, as TOML.
        was: String,
        /// Its value in head's file.
        is: String,
        /// Base's value holds here, and head's does once it is merged. `false`: head's value holds already.
        #[serde(default)]
        after_merge: bool,
    },
    /// A table `[[accept]]` of head's infergate.toml has no effect.
    NotAccepted {
        /// The table.
        accept: Accept,
        /// Why not.
        why: NoEffect,
    },
    /// Base and head load the same code and constants, so nothing was timed.
    SameCode,
    /// So many functions differ between base and head.
    CodeChanged {
        /// How many.
        functions: usize,
        /// The names of some.
        named: Vec<String>,
    },
    /// Base's allocations were not counted.
    BaseNotCounted,
    /// A sentence of the command's own: how often this gate is wrong here.
    Said {
        /// The sentence.
        text: String,
    },
}

impl From<String> for Note {
    fn from(text: String) -> Self {
        Self::Said { text }
    }
}
