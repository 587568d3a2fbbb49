//! When requests start ([`Arrivals`]) and when no more do ([`Stop`]).

use serde::{Deserialize, Serialize};

use super::random::Random;

/// When requests start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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

/// Which requests are measured, by their starts. Behind the last of them the load goes on until all of them have ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Stop {
    /// So many, the first ones at full load.
    Requests {
        /// How many.
        count: u64,
    },
    /// Those that start within so much time of full load.
    Duration {
        /// Nanoseconds since ramp and warm-up were over.
        ns: u64,
    },
}

impl Arrivals {
    /// How a level of this load is named: `8 users`, `2.5 requests/s`.
    pub fn name(&self) -> String {
        match *self {
            Self::Closed { users: 1 } => "1 user".into(),
            Self::Closed { users } => format!("{users} users"),
            Self::Open { requests_per_s, .. } => format!("{requests_per_s} requests/s"),
        }
    }

    /// Users of a closed loop.
    pub fn users(&self) -> Option<u32> {
        if let Self::Closed { users } = *self { Some(users) } else { None }
    }

    /// When each request of an open loop starts, nanoseconds since the run began: the first at 0, in order, without end. The
    /// same seed gives the same times everywhere. `None` for a closed loop, where a request starts when its user is free.
    pub fn starts(&self, seed: u64) -> Option<Starts> {
        match *self {
            Self::Closed { .. } => None,
            Self::Open { requests_per_s, spacing } => {
                Some(Starts { gap_ns: 1e9 / requests_per_s, spacing, random: Random::new(seed), at_ns: 0.0, given: 0 })
            }
        }
    }
}

/// The starts of an open loop, see [`Arrivals::starts`].
#[derive(Debug, Clone)]
pub struct Starts {
    /// The mean gap.
    gap_ns: f64,
    spacing: Spacing,
    random: Random,
    at_ns: f64,
    given: u64,
}

impl Iterator for Starts {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let start_ns = self.at_ns;
        self.given += 1;
        self.at_ns = match self.spacing {
            // From the number, not from the last one: a thousand rounded gaps would add up.
            Spacing::Constant => self.given as f64 * self.gap_ns,
            Spacing::Poisson => start_ns + self.gap_ns * self.random.exponential(),
            Spacing::Gamma { shape } => start_ns + self.gap_ns * self.random.gamma(shape) / shape,
        };
        // A float beyond u64 becomes its largest value: a request that never starts.
        Some(start_ns.round() as u64)
    }
}
