//! Where the allocations are that a case makes more of.

use infergate_core::case::Case;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Places of one case that are kept.
pub const MOST_PLACES: usize = 20;
/// Allocations and bytes that are more than rounding.
const LEAST_ALLOCATIONS: f64 = 0.01;
const LEAST_BYTES: f64 = 1.0;

/// Where base and head allocate differently, in a prompt for prefill, else in a token: counted exactly, in processes of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Allocated {
    /// The case.
    #[schemars(with = "String")]
    pub id: Case,
    /// The places, those first whose number changed most.
    pub places: Vec<AllocatedPlace>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
