//! When requests start ([`Arrivals`]) and when no more do ([`Stop`]).

use serde::{Deserialize, Serialize};

/// When requests start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Arrivals {
    /// Closed loop: each of `users` has one request in flight, and sends the next when it ends.
    Closed {
        /// Requests in flight.
        users: u32,
    },
    /// Open loop: requests start by a schedule that does not wait for answers. Latency counts from the scheduled start, so
    /// that a late client cannot hide a queue.
    Open {
        /// The schedule's mean.
        requests_per_s: f64,
        /// How the starts are spaced.
        spacing: Spacing,
    },
}

/// The distribution of the gaps between the starts of an open loop. The mean gap is `1 / requests_per_s` for each.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Spacing {
    /// Every gap the same.
    Constant,
    /// Exponential gaps: independent users.
    Poisson,
    /// Gamma gaps. Shape 1 is Poisson, below it is burstier.
    Gamma {
        /// The gamma distribution's shape.
        shape: f64,
    },
}

/// When no further request starts. What is in flight then is drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Stop {
    /// After so many requests were sent.
    Requests {
        /// How many.
        count: u64,
    },
    /// After so much time.
    Duration {
        /// Nanoseconds since the first request's start.
        ns: u64,
    },
}
