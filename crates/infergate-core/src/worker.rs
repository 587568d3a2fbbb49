//! The bench binary as a measured worker: one request a line on stdin, one answer a line on stdout.
//!
//! # The line protocol, version 2
//! Each line is one JSON object. A request has `op`; an answer is `{"ok": ...}` `{"error": "one line"}` or, when the run
//! broke an invariant, `{"invalid": "one line"}`. Nothing else goes to stdout: one line for each request, at most 16 MiB long
//! (lines that do not begin with `{` are passed over before the first answer, 1 MiB of them at the most). The worker ends at end of input, and has 2 s
//! then to remove what it made. An engine in any language can be gated by speaking it.
//!
//! | request | answer in `ok` |
//! |---|---|
//! | `{"op":"hello"}` | `{"protocol":2,"capabilities":["ttft",..],"tool":"0.1.0","machine":{..},"build":{..}}` |
//! | `{"op":"load","request":{"model":"synthetic:gpt2","dtype":null,"threads":2,"seed":1,"options":{}},"prompt_text":null}` | `{"engine":{..},"load_ns":1,"devices":[],"cost":null}` |
//! | `{"op":"ttft","prompt_tokens":128}` | [`TtftParts`](crate::receipt::TtftParts); the first one after `load` is the cold one |
//! | `{"op":"prepare","case":"decode/p128","known":null}` | `{"output":{..},"work":{..}}`, verified by computing it twice; with the ids of an earlier process in `known`, which its own have to be, it only warms up |
//! | `{"op":"sample","case":"decode/p128","count":10}` | `{"samples_ns":[[1],..]}`, of a prepared case |
//! | `{"op":"turn","case":"generate/p128-o64","tokens":4}` | `{"step_ns":[9,1,1,1]}`: up to so many further tokens of one generation, the time of each; pauses between turns are no part of it |
//! | `{"op":"memory","case":null}` | `{"sample":{..},"peak_live_bytes":1,"peak_rss_bytes":1,"missing":[]}`: the memory now; with a prepared case after one more run of it, best of another prompt of its length: infergate's workers ask the known one in each tenth run |
//! | `{"op":"inference","case":"generate/p128-o64"}` | [`InferenceMemory`](crate::receipt::InferenceMemory) of a prepared case |
//! | `{"op":"count","case":"decode/p128","repeats":3}` | [`CountedCase`](crate::receipt::CountedCase), of a prepared case, from a worker that counts its heap |
//! | `{"op":"locate","case":"generate/p128-o64","runs":8}` | [[`LeakSite`](crate::receipt::LeakSite), ..]: where what outlives its run was allocated |
//!
//! An engine must not compute between requests: while one side of a pair works, the other one is idle. One that does
//! go on says `"pacing":"streaming"` in its `engine`, and is never asked for a part of a generation. The answers to `sample` and `turn` may
//! tell: `"idle":{"cpu_ns":1,"wall_ns":9}` is the processor time of the worker since it began, and the time by the clock, between its
//! answers to those two requests and whatever came next.
//!
//! The last four belong to the memory phase; a worker without them can be timed and not followed.
//!
//! A worker whose cases are benches of somebody's own, such as criterion's, lists them in the answer to `load`, `"benches":["bench:fib/20"]`,
//! and takes no others. Their output has no ids, or the eight little-endian 32-bit words of the SHA-256 of what the bench
//! returned; `prepare` may say `"throughput":{"unit":"bytes","per_iteration":1024}`.
//!
//! # What a worker can do
//! `capabilities` lists the requests it answers, by their `op`, and the additions it knows. Nobody is asked for what it does
//! not list, and words that the other side does not know are passed over, so that workers and gates of different ages work
//! together. The additions to the table above:
//!
//! | addition | what it means |
//! |---|---|
//! | `request_id` | a request other than `hello` has a number `id`, which its answer repeats: an answer that was not asked for shows |
//! | `fingerprint` | the output of `prepare` has a `fingerprint`, and `prepare` takes `"feed":[262,11]`: the tokens to append behind the prompt while it is taken, so that two workers are asked about the same text |
//! | `iterations` | `sample` takes `"iterations":100`: each sample is the sum over so many iterations, timed together where nothing has to be set up between them |
//! | `warm_up` | `sample` takes `"warm_up":true`: one more iteration before each sample, which does not count |
//! | `text` | it answers `{"op":"text","ids":[262,11]}` with `{"text":" the,"}`, or `null` where it has no tokenizer |
//! | `load_level` | it answers `{"op":"load_level","plan":{..}}`, a [`LevelPlan`], with a [`LoadLevel`](crate::load::LoadLevel): many requests at once on the loaded engine's scheduler, the time of each token, and how many outputs were computed again alone and were the same; one that is not makes the answer `invalid` |
//! | `window` | it measures a server, and answers `{"op":"window","case":"bench:chat/16-users/token","plan":{..}}`, a [`WindowPlan`], with a [`LoadWindow`](crate::load::LoadWindow): many users at once on it, each request and the time of each piece of its answer |
//! | `sites` | it counts its heap, and answers `{"op":"sites","case":"decode/p128"}` with [[`AllocationSite`](crate::receipt::AllocationSite), ..]: where a prepared case allocates |
//! | `profile` | it answers `{"op":"profile","case":"decode/p128","count":400,"iterations":1,"file":"/tmp/x"}` with a [`Profile`]: what as many samples took while its threads were interrupted every millisecond of processor time; where each was, and its stack, are in the file, see [`profile`] |
//! | `reread` | it answers `{"op":"reread","case":"prefill/p128","count":3,"skip":0}` with a [`Reread`]: what reading the prompt of a prepared case takes that it has just read, and a new one, so often in turn; new ones begin with another token each, and the first `skip` of them are left out |
//! | `count_tokens` | it answers `{"op":"count_tokens","texts":["one two"]}` with `{"tokens":[2]}`: how many tokens each text has by the loaded model's tokenizer, without special tokens |
//!
//! # Times are checked
//! The sum of the times in an answer cannot be more than the asking side waited for it, and not far less: a case whose
//! requests mostly leave more than half of the wait, and more than 100 ms, unexplained is `invalid`. A worker on a made-up
//! clock says `"clock":"virtual"` in its hello; no gate takes its times for real ones. Of a level only the first rule holds.
//!
//! `machine`, `build`, `engine`, `output`, `work` and the others are the receipt's types, see [`crate::receipt`].

mod between;
mod capability;
mod client;
mod error;
mod exit;
mod file;
mod honesty;
mod level;
mod measured;
mod pipe;
pub mod profile;
mod requests;
mod reread;
mod timeouts;
mod wire;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::engine::{Cost, Device, EngineInfo, LoadRequest, TokenId};
use crate::load::{LevelPlan, WindowPlan};
use crate::receipt::{Build, Idle, Machine, MemorySample, Output, Throughput, Work, output_sha256};

pub use capability::Capability;
pub use client::{Client, trust_virtual_clocks};
pub use error::{WorkerError, ensure_not};
pub use exit::ending;
pub use file::{Launcher, PACKAGE_FOLDER, Program, WorkerFile};
pub use honesty::{Honesty, ensure_waited_for};
pub use measured::{Ids, Measured};
pub use pipe::MOST_LINE_BYTES;
#[doc(hidden)]
pub use pipe::{Event as LineEvent, next_line};
pub use profile::{Profile, ProfileModule};
pub use reread::Reread;
pub use timeouts::Timeouts;
pub use wire::{Asked, Wire, hello};

/// The protocol's version. It stays: what a worker can do beyond it is in [`Hello::capabilities`].
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
        /// The model, and how.
        request: LoadRequest,
        /// The text prompts are cut from; `null` is the built-in one.
        prompt_text: Option<String>,
    },
    /// Time to first token in parts.
    Ttft {
        /// Tokens of the prompt.
        prompt_tokens: usize,
    },
    /// Verify a case's output and warm it up.
    Prepare {
        /// The case.
        case: Case,
        /// The output it must have, from an earlier process.
        known: Option<Vec<TokenId>>,
        /// The tokens to follow while the fingerprint is taken; only for a worker that lists `fingerprint`.
        feed: Option<Vec<TokenId>>,
    },
    /// Take samples of a prepared case.
    Sample {
        /// The case.
        case: Case,
        /// How many and how.
        #[serde(flatten)]
        sampling: Sampling,
    },
    /// Advance one generation of a prepared case.
    Turn {
        /// The case.
        case: Case,
        /// By at most so many tokens.
        tokens: usize,
    },
    /// How much memory is in use?
    Memory {
        /// After one more run of this prepared case.
        case: Option<Case>,
    },
    /// What does one generation take?
    Inference {
        /// The prepared case.
        case: Case,
    },
    /// Count allocations of a prepared case.
    Count {
        /// The case.
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
    /// Find where a prepared case allocates.
    Sites {
        /// The case.
        case: Case,
    },
    /// Take samples of a prepared case, and look meanwhile where its threads are.
    Profile {
        /// The case.
        case: Case,
        /// How many.
        count: usize,
        /// Iterations in each.
        iterations: usize,
        /// Where to write what was seen.
        file: PathBuf,
    },
    /// How long does a prompt take that was just read, and a new one?
    Reread {
        /// The prepared case.
        case: Case,
        /// How often.
        count: usize,
        /// New prompts that were read before.
        skip: usize,
    },
    /// What do these tokens say?
    Text {
        /// Any.
        ids: Vec<TokenId>,
    },
    /// Serve many requests at once.
    LoadLevel {
        /// Which, and when.
        plan: LevelPlan,
    },
    /// Put users on a server.
    Window {
        /// What they ask: the scenario of this case.
        case: Case,
        /// How many, for how long.
        plan: WindowPlan,
    },
    /// How many tokens do texts have?
    CountTokens {
        /// The texts.
        texts: Vec<String>,
    },
}

fn one() -> usize {
    1
}

/// A line from the worker: one of `ok`, `error` and `invalid`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answer<T> {
    /// The request's, where it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// It worked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok: Option<T>,
    /// It did not, and why, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// It ran and broke an invariant, in one line: no verdict can rest on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
}

/// Answer to [`Request::Hello`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// What it can do.
    pub capabilities: Vec<Capability>,
    /// `virtual` where times are made up.
    pub clock: Option<String>,
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
    /// What a step costs; `None` where the engine does not say.
    pub cost: Option<Cost>,
    /// The only cases there are, where they are benches; empty for an engine, which takes any case.
    #[serde(default)]
    pub benches: Vec<Case>,
}

/// Answer to [`Request::Prepare`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PreparedReply {
    /// The greedy output, the same twice.
    pub output: Output,
    /// The least work of one sample.
    pub work: Option<Work>,
    /// What one iteration gets through, where a criterion bench says so.
    pub throughput: Option<Throughput>,
    /// Tokens that a server's answer counts as; `None` where the output is its tokens.
    pub counted_tokens: Option<u64>,
}

impl PreparedReply {
    /// The reply with an output that is `ids` and nothing else.
    pub fn of_ids(ids: Vec<TokenId>) -> Self {
        let sha256 = output_sha256(&ids);
        let output = Output { sha256, ids, ..Output::default() };
        Self { output, work: None, throughput: None, counted_tokens: None }
    }
}

/// Answer to [`Request::CountTokens`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CountedTokens {
    /// Tokens of each text.
    pub tokens: Vec<u64>,
}

/// Answer to [`Request::Turn`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TurnReply {
    /// Time of each token, nanoseconds; the first of a generation includes the prompt.
    pub step_ns: Vec<u64>,
    /// What the worker computed between requests so far; `None` where it does not say.
    pub idle: Option<Idle>,
}

/// Answer to [`Request::Memory`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryState {
    /// Memory now.
    pub sample: MemorySample,
    /// The most that was live at once since the request before this one, or since the process began.
    pub peak_live_bytes: Option<u64>,
    /// The largest resident set since the process began.
    pub peak_rss_bytes: Option<u64>,
    /// What this system or this worker cannot say, one sentence each.
    #[serde(default)]
    pub missing: Vec<String>,
}

/// Answer to [`Request::Text`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextReply {
    /// The text; `null` without a tokenizer.
    pub text: Option<String>,
}

/// How samples are taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// How many.
    pub count: usize,
    /// Iterations in each; more than one only for a worker that lists `iterations`.
    #[serde(default = "one")]
    pub iterations: usize,
    /// One more iteration before each, which does not count; only for a worker that lists `warm_up`.
    #[serde(default)]
    pub warm_up: bool,
}

impl Sampling {
    /// So many samples of so many iterations.
    pub fn of(count: usize, iterations: usize) -> Self {
        Self { count, iterations, warm_up: false }
    }
}

/// Answer to [`Request::Sample`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SampleReply {
    /// As [`samples_ns`](crate::receipt::ProcessSamples::samples_ns); how many iterations each holds was asked.
    pub samples_ns: Vec<Vec<u64>>,
    /// As [`TurnReply::idle`].
    pub idle: Option<Idle>,
}
