//! What a worker can do, by the words of its hello.

use serde::{Deserialize, Serialize};

use super::{Request, Sampling, profile};

/// One thing a worker can do. Its word in `hello` is the request's `op`, or the name of an addition to one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Time to first token in parts.
    Ttft,
    /// Verify a case's output and warm it up.
    Prepare,
    /// Take samples of a prepared case.
    Sample,
    /// Advance a generation by some tokens.
    Turn,
    /// Say how much memory is in use, after one more run where a case is named.
    Memory,
    /// Say what one generation takes.
    Inference,
    /// Count allocations.
    Count,
    /// Find where what outlives its run was allocated.
    Locate,
    /// A request's `id` comes back in its answer.
    RequestId,
    /// A sample can hold several iterations.
    Iterations,
    /// An output carries its fingerprint, and can be made to follow another one while it is taken.
    Fingerprint,
    /// Say what tokens are as text.
    Text,
    /// Serve many requests at once.
    LoadLevel,
    /// Count the tokens of texts.
    CountTokens,
    /// Put users on a server.
    Window,
    /// Say where it allocates.
    Sites,
    /// Say where its threads are while it takes samples.
    Profile,
    /// Say how long a prompt takes that was just read, and a new one.
    Reread,
    /// One more iteration before each sample, of a bench whose state begins anew with it.
    WarmUp,
    /// A word of a newer infergate's.
    #[serde(other)]
    Unknown,
}

impl Capability {
    /// What a bench target with an engine can: all but what a server's worker or a bench does, and what this system cannot.
    pub fn of_engines() -> Vec<Self> {
        use Capability::*;
        let all = [
            Ttft,
            Prepare,
            Sample,
            Turn,
            Memory,
            Inference,
            Count,
            Locate,
            RequestId,
            Iterations,
            Fingerprint,
            Text,
            LoadLevel,
            CountTokens,
            Sites,
            Profile,
            Reread,
        ];
        all.into_iter().filter(|known| *known != Profile || profile::IS_SUPPORTED).collect()
    }
}

impl Request {
    /// What a worker must be able to do to answer this; `None` where every worker can.
    pub fn capability(&self) -> Option<Capability> {
        Some(match self {
            Self::Hello | Self::Load { .. } => return None,
            Self::Ttft { .. } => Capability::Ttft,
            Self::Prepare { .. } => Capability::Prepare,
            Self::Sample { sampling: Sampling { warm_up: true, .. }, .. } => Capability::WarmUp,
            Self::Sample { sampling: Sampling { iterations: 1, .. }, .. } => Capability::Sample,
            Self::Sample { .. } => Capability::Iterations,
            Self::Turn { .. } => Capability::Turn,
            Self::Memory { .. } => Capability::Memory,
            Self::Inference { .. } => Capability::Inference,
            Self::Count { .. } => Capability::Count,
            Self::Locate { .. } => Capability::Locate,
            Self::Sites { .. } => Capability::Sites,
            Self::Reread { .. } => Capability::Reread,
            Self::Text { .. } => Capability::Text,
            Self::LoadLevel { .. } => Capability::LoadLevel,
            Self::CountTokens { .. } => Capability::CountTokens,
            Self::Window { .. } => Capability::Window,
            Self::Profile { .. } => Capability::Profile,
        })
    }
}
