//! One of several clients that put a load on together, each from a machine of its own. A shard takes the users and the
//! requests of the whole load whose number, divided by the number of shards, leaves its own: so nothing is done twice, and all
//! shards together do what one client would. Pure.

use std::str::FromStr;

use anyhow::{Context as _, Result, ensure};
use infergate_core::load::{Arrivals, Stop};

use crate::receipt::{MAX_SHARDS, ShardRecord};

/// Which of how many.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shard {
    /// Which one, from 0.
    pub index: u32,
    /// How many there are, at least 1.
    pub count: u32,
}

impl Shard {
    /// All of a load.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Whether there is no other one.
    pub fn is_whole(self) -> bool {
        self.count == 1
    }

    /// The number in the whole load of this shard's user or request `own`.
    pub fn number(self, own: u64) -> u64 {
        own * u64::from(self.count) + u64::from(self.index)
    }

    /// Whether the user or the request `number` of the whole load is this shard's.
    pub fn has(self, number: u64) -> bool {
        number % u64::from(self.count) == u64::from(self.index)
    }

    /// How many of the first `numbers` are this shard's.
    pub fn share(self, numbers: u64) -> u64 {
        let count = u64::from(self.count);
        numbers / count + u64::from(numbers % count > u64::from(self.index))
    }

    /// What this shard does of `whole`: its users, or its part of the rate.
    pub fn arrivals(self, whole: Arrivals) -> Arrivals {
        match whole {
            Arrivals::Closed { users } => Arrivals::Closed { users: self.share(users.into()) as u32 },
            Arrivals::Open { requests_per_s, spacing } => {
                Arrivals::Open { requests_per_s: requests_per_s / f64::from(self.count), spacing }
            }
        }
    }

    /// Which requests this shard measures, where the whole load measures `whole`.
    pub fn stop(self, whole: Stop) -> Stop {
        match whole {
            Stop::Requests { count } => Stop::Requests { count: self.share(count) },
            Stop::Duration { .. } => whole,
        }
    }

    /// This shard's part of `warm_up_requests`, which are each user's in a closed loop and the schedule's in an open one: one at
    /// least where there are any, or this shard would measure before the server has its load.
    pub fn warm_up(self, arrivals: Arrivals, warm_up_requests: u64) -> u64 {
        match arrivals {
            Arrivals::Closed { .. } => warm_up_requests,
            Arrivals::Open { .. } => self.share(warm_up_requests).max(warm_up_requests.min(1)),
        }
    }
}

impl Default for Shard {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl FromStr for Shard {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts = text.split_once('/').and_then(|(number, count)| Some((number.parse().ok()?, count.parse().ok()?)));
        let (number, count): (u32, u32) =
            parts.with_context(|| format!("{text}: write K/N, for example 1/4 for the first of 4"))?;
        ensure!((1..=MAX_SHARDS).contains(&count), "{count} shards: there can be 1 to {MAX_SHARDS}");
        ensure!(
            (1..=count).contains(&number),
            "there is no shard {number} of {count}; they are numbered from 1 to {count}"
        );
        Ok(Self { index: number - 1, count })
    }
}

/// What a shard's receipt says about itself.
pub fn note(record: &ShardRecord) -> String {
    format!(
        "{} of run {}: its users and requests alone; load merge puts the shards together",
        record.name(),
        record.run
    )
}
