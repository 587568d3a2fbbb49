//! The bench binary as a measured worker: one request a line on stdin, one answer a line on stdout.
//!
//! # The line protocol, version 2
//! Each line is one JSON object. A request has `op`; an answer is `{"ok": ...}` `{"error": "one line"}` or, when the run
//! broke an invariant, `{"invalid": "one line"}`. Nothing else is
//! written to stdout. The worker ends at end of input. An engine in any language can be gated by speaking it.
//!
//! | request | answer in `ok` |
//! |---|---|
//! | `{"op":"hello"}` | `{"protocol":2,"tool":"0.1.0","machine":{..},"build":{..}}` |
//! | `{"op":"load","request":{"model":"synthetic:gpt2","dtype":null,"threads":2,"seed":1,"options":{}},"prompt_text":null}` | `{"engine":{..},"load_ns":1,"devices":[]}` |
//! | `{"op":"ttft","prompt_tokens":128}` | [`TtftParts`]; the first one after `load` is the cold one |
//! | `{"op":"prepare","case":"decode/p128","known":null}` | `{"output":{..},"work":{..}}`, verified by computing it twice; with the ids of an earlier process in `known` it only warms up |
//! | `{"op":"sample","case":"decode/p128","count":10,"slowdown":0}` | `{"samples_ns":[[1],..]}`, of a prepared case |
//! | `{"op":"turn","case":"generate/p128-o64","tokens":4,"slowdown":0}` | `{"step_ns":[9,1,1,1]}`: up to so many further tokens of one generation, the time of each; pauses between turns are no part of it |
//! | `{"op":"memory","case":null}` | `{"sample":{..},"peak_live_bytes":1,"peak_rss_bytes":1,"missing":[]}`: the memory now; with a prepared case after one more run of it |
//! | `{"op":"inference","case":"generate/p128-o64"}` | [`InferenceMemory`] of a prepared case |
//! | `{"op":"count","case":"decode/p128","repeats":3}` | [`CountedCase`], of a prepared case, from a worker that counts its heap |
//! | `{"op":"locate","case":"generate/p128-o64","runs":8}` | [[`LeakSite`](crate::receipt::LeakSite), ..]: where what outlives its run was allocated |
//!
//! `slowdown` (0.05 is 5 %) makes the engine slower by that share of each timed step, spent spinning: a calibration's known
//! change. An engine must not compute between requests: while one side of a pair works, the other one is idle.
//!
//! The last four belong to the memory phase; a worker without them can be timed and not followed.
//!
//! `machine`, `build`, `engine`, `output`, `work` and the others are the receipt's types, see [`crate::receipt`].

#[cfg(feature = "bench")]
mod serve;

mod client;

use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::engine::{Device, EngineInfo, LoadRequest, TokenId};
use crate::receipt::{
    Build, CountedCase, InferenceMemory, Machine, MemorySample, Output, ProcessSamples, TtftParts, Work,
};

pub use client::{Client, Interrupted, NotComparable, Refused, interrupted};
#[cfg(feature = "bench")]
pub use serve::serve;

/// The protocol's version. A worker of another version is not comparable.
pub const PROTOCOL: u32 = 2;

/// The argument that makes a bench binary a worker.
pub const WORKER_ARGUMENT: &str = "--infergate-worker";

/// A line to the worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Request {
    /// Who are you?
    Hello,
    /// Load a model.
    Load {
        /// Which.
        request: LoadRequest,
        /// The text prompts are cut from; `null` is the built-in one.
        #[serde(default)]
        prompt_text: Option<String>,
    },
    /// Time to first token in parts.
    Ttft {
        /// P
        prompt_tokens: usize,
    },
    /// Verify a case's output and warm it up.
    Prepare {
        /// Which.
        case: Case,
        /// The output it must have, from an earlier process.
        #[serde(default)]
        known: Option<Vec<TokenId>>,
    },
    /// Take samples of a prepared case.
    Sample {
        /// Which.
        case: Case,
        /// How many.
        count: usize,
        /// Slower by this fraction.
        #[serde(default)]
        slowdown: f64,
    },
    /// Advance one generation of a prepared case.
    Turn {
        /// Which.
        case: Case,
        /// By at most so many tokens.
        tokens: usize,
        /// Slower by this fraction.
        #[serde(default)]
        slowdown: f64,
    },
    /// How much memory is in use?
    Memory {
        /// After one more run of this prepared case.
        #[serde(default)]
        case: Option<Case>,
    },
    /// What does one generation take?
    Inference {
        /// Which, prepared.
        case: Case,
    },
    /// Count allocations of a prepared case.
    Count {
        /// Which.
        case: Case,
        /// How often.
        repeats: usize,
    },
    /// Find where what outlives its run was allocated.
    Locate {
        /// The prepared case to run.
        case: Case,
        /// How often.
        runs: usize,
    },
}

/// A line from the worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply<T> {
    /// It worked.
    Ok(T),
    /// It did not, and why, in one line.
    Error(String),
    /// It ran and broke an invariant, in one line: no verdict can rest on it.
    Invalid(String),
}

/// Answer to [`Request::Hello`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// infergate's version in the worker.
    pub tool: String,
    /// The machine as the worker sees it.
    pub machine: Machine,
    /// How the worker was compiled.
    pub build: Build,
}

/// Answer to [`Request::Load`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Loaded {
    /// Engine and model.
    pub engine: EngineInfo,
    /// Time to load, nanoseconds.
    pub load_ns: u64,
    /// Devices it computes on besides the processor.
    #[serde(default)]
    pub devices: Vec<Device>,
}

/// Answer to [`Request::Prepare`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PreparedReply {
    /// The greedy output, the same twice.
    pub output: Output,
    /// The least work of one sample.
    #[serde(default)]
    pub work: Option<Work>,
}

/// Answer to [`Request::Turn`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TurnReply {
    /// Time of each token, nanoseconds; the first of a generation includes the prompt.
    pub step_ns: Vec<u64>,
}

/// Answer to [`Request::Memory`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryState {
    /// Memory now.
    pub sample: MemorySample,
    /// The most that was live at once since the request before this one, or since the process began.
    #[serde(default)]
    pub peak_live_bytes: Option<u64>,
    /// The largest resident set since the process began.
    #[serde(default)]
    pub peak_rss_bytes: Option<u64>,
    /// What this system or this worker cannot say, one sentence each.
    #[serde(default)]
    pub missing: Vec<String>,
}

/// Answer to [`Request::Inference`].
pub type InferenceReply = InferenceMemory;
/// Answer to [`Request::Count`].
pub type CountReply = CountedCase;
/// Answer to [`Request::Sample`].
pub type SampleReply = ProcessSamples;
/// Answer to [`Request::Ttft`].
pub type TtftReply = TtftParts;
