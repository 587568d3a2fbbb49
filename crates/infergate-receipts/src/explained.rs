//! Which functions took the time that a case takes longer.

use infergate_core::case::Case;
use serde::{Deserialize, Serialize};

/// Functions of one case that are kept.
pub const MOST_FUNCTIONS: usize = 20;
/// Frames that are kept.
pub const MOST_FRAMES: usize = 300;
/// Functions below one that are kept.
pub const MOST_CALLED: usize = 3;

/// What blocks with a sampling profiler showed of one case. They explain a verdict and have no part in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// The case.
    pub id: Case,
    /// Why nothing is known, as a clause; the rest is empty then.
    pub why_not: Option<String>,
    /// Blocks: fresh processes of both sides.
    pub blocks: usize,
    /// Times that a thread of base was looked at while an iteration was timed.
    pub base_samples: u64,
    /// The same of head.
    pub head_samples: u64,
    /// An iteration's time by the clock, in these blocks.
    pub total: Option<Moved>,
    /// An iteration's processor time of all threads.
    pub processor: Option<Moved>,
    /// An iteration's time in which no thread worked: waiting, a lock, a sleep, reading a file. `null` where threads work side by
    /// side, so that this cannot be told.
    pub waiting: Option<Moved>,
    /// Functions whose processor time changed for sure (Holm's method over all that have 0.5 % of it, level 5 %), those that changed
    /// most first. A function whose machine code changed has with it what it calls that did not change.
    pub functions: Vec<ExplainedFunction>,
    /// The tree of all stacks: each frame before those that it calls, with the processor time of an iteration in it and below.
    pub frames: Vec<ExplainedFrame>,
    /// Whether a function that changed was seen at work in what is timed; `null` where it is not known which changed.
    pub runs_changed: Option<bool>,
}

/// A function whose time changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExplainedFunction {
    /// Its name, without hashes.
    pub name: String,
    /// The line of it whose time rose most, `src/step.rs:131`, or `dot at src/step.rs:131` where that is in a function that was inlined;
    /// `null` where the build has no line tables.
    pub place: Option<String>,
    /// Whether its machine code changed; `null` where that is not known.
    pub changed: Option<bool>,
    /// Whether the change edits its source, and its machine code is not the same; `null` where that is not known.
    pub edited: Option<bool>,
    /// Who calls it, where its own code did not change or it is the standard library's.
    pub caller: Option<String>,
    /// Its processor time in an iteration.
    pub time: Moved,
    /// Of that, functions it calls whose time changed, those that changed most first.
    #[serde(default)]
    pub called: Vec<CalledFunction>,
}

/// A function that is called by one whose time changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalledFunction {
    /// Its name, without hashes.
    pub name: String,
    /// Its processor time in an iteration, below that function.
    pub time: Moved,
}

/// A function as it was called by those before it in the tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExplainedFrame {
    /// Its name, without hashes.
    pub name: String,
    /// How many frames it lies below the first.
    pub depth: usize,
    /// Processor time of an iteration, with what it calls.
    pub time: Moved,
}

/// Time on both sides, and how much it changed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// Of base, nanoseconds, the mean over blocks.
    pub base_ns: f64,
    /// Of head, nanoseconds.
    pub head_ns: f64,
    /// Where the true difference begins, nanoseconds: Student's interval of 95 % over blocks.
    pub low_ns: f64,
    /// Where it ends, nanoseconds.
    pub high_ns: f64,
}

impl Moved {
    /// Head less base, nanoseconds.
    pub fn change_ns(&self) -> f64 {
        self.head_ns - self.base_ns
    }

    /// Whether the interval leaves out zero.
    pub fn is_sure(&self) -> bool {
        self.low_ns > 0.0 || self.high_ns < 0.0
    }
}

impl Explained {
    /// Nothing is known.
    pub fn not(id: Case, why_not: String) -> Self {
        Self {
            id,
            why_not: Some(why_not),
            blocks: 0,
            base_samples: 0,
            head_samples: 0,
            total: None,
            processor: None,
            waiting: None,
            functions: Vec::new(),
            frames: Vec::new(),
            runs_changed: None,
        }
    }
}

/// Places of one case that are kept.
pub const MOST_PLACES: usize = 20;
/// Allocations and bytes that are more than rounding.
const LEAST_ALLOCATIONS: f64 = 0.01;
const LEAST_BYTES: f64 = 1.0;

/// Where base and head allocate differently, in a prompt for prefill, else in a token: counted exactly, in processes of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Allocated {
    /// The case.
    pub id: Case,
    /// The places, those first whose number changed most.
    pub places: Vec<AllocatedPlace>,
}

/// One of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AllocatedPlace {
    /// `function at file:line`, innermost first, the allocator and the standard library left out; head's where it has any.
    pub frames: Vec<String>,
    /// Allocations of base.
    pub base_allocations: f64,
    /// Allocations of head.
    pub head_allocations: f64,
    /// Bytes of base.
    pub base_bytes: f64,
    /// Bytes of head.
    pub head_bytes: f64,
}

impl AllocatedPlace {
    /// How many allocations more head makes than base; `None` where that is no more than rounding.
    pub fn more_allocations(&self) -> Option<f64> {
        Some(self.head_allocations - self.base_allocations).filter(|more| more.abs() >= LEAST_ALLOCATIONS)
    }

    /// The same of their bytes.
    pub fn more_bytes(&self) -> Option<f64> {
        Some(self.head_bytes - self.base_bytes).filter(|more| more.abs() >= LEAST_BYTES)
    }
}
