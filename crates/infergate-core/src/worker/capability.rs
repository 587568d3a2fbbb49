//! What a worker can do, by the words of its hello.

use serde::Deserialize;

use super::{MOST_LINE_BYTES, PROTOCOL, Request, Sampling, profile};

macro_rules! capabilities {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// One thing a worker can do. Its word in `hello` is the request's `op`, or the name of an addition to one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Capability {
            $($(#[$doc])* $name,)*
        }

        impl Capability {
            /// All that this infergate knows.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its word.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }
        }
    };
}

capabilities! {
    /// Time to first token in parts.
    Ttft = "ttft",
    /// Verify a case's output and warm it up.
    Prepare = "prepare",
    /// Take samples of a prepared case.
    Sample = "sample",
    /// Advance a generation by some tokens.
    Turn = "turn",
    /// Say how much memory is in use, after one more run where a case is named.
    Memory = "memory",
    /// Say what one generation takes.
    Inference = "inference",
    /// Count allocations.
    Count = "count",
    /// Find where what outlives its run was allocated.
    Locate = "locate",
    /// A request's `id` comes back in its answer.
    RequestId = "request_id",
    /// A sample can hold several iterations.
    Iterations = "iterations",
    /// An output carries its fingerprint, and can be made to follow another one while it is taken.
    Fingerprint = "fingerprint",
    /// Say what tokens are as text.
    Text = "text",
    /// Serve many requests at once.
    LoadLevel = "load_level",
    /// Count the tokens of texts.
    CountTokens = "count_tokens",
    /// Put users on a server.
    Window = "window",
    /// Say where it allocates.
    Sites = "sites",
    /// Say where its threads are while it takes samples.
    Profile = "profile",
    /// Say how long a prompt takes that was just read, and a new one.
    Reread = "reread",
    /// One more iteration before each sample, of a bench whose state begins anew with it.
    WarmUp = "warm_up",
}

impl Capability {
    /// What a bench target with an engine can: all but what a server's worker or a bench does, and what this system cannot.
    pub fn of_engines() -> Vec<Self> {
        let others = [Self::Window, Self::WarmUp];
        Self::ALL.iter().copied().filter(|known| !others.contains(known) && known.is_supported()).collect()
    }

    /// Whether this system lets a worker do it.
    pub fn is_supported(self) -> bool {
        self != Self::Profile || profile::IS_SUPPORTED
    }
}

/// What protocol 2 could before workers said what they can.
const BASE: [Capability; 8] = [
    Capability::Ttft,
    Capability::Prepare,
    Capability::Sample,
    Capability::Turn,
    Capability::Memory,
    Capability::Inference,
    Capability::Count,
    Capability::Locate,
];

/// What a hello says of its protocol, whatever else is in it.
#[derive(Debug, Deserialize)]
pub struct Abilities {
    /// The version.
    #[serde(default)]
    pub protocol: Option<u64>,
    #[serde(default)]
    capabilities: Option<Vec<String>>,
}

impl Abilities {
    /// The capabilities that both sides know. A word that is not known here belongs to a newer worker and is passed over.
    /// `None`: it names none, and its protocol is not the one whose abilities are known.
    pub fn known(&self) -> Option<Vec<Capability>> {
        match &self.capabilities {
            None => (self.protocol == Some(PROTOCOL.into())).then(|| BASE.to_vec()),
            Some(words) => {
                let said = |known: &Capability| words.iter().any(|word| word == known.word());
                Some(Capability::ALL.iter().copied().filter(said).collect())
            }
        }
    }
}

/// The longest answer to what a sound worker answers in a few kilobytes.
const MOST_SHORT_BYTES: u64 = 64 << 10;
/// A thousand benches, counters or call stacks, with long names.
const MOST_NAMES_BYTES: u64 = 1 << 20;

impl Request {
    /// The longest answer that is looked into.
    pub fn most_answer_bytes(&self) -> u64 {
        match self {
            Self::Hello | Self::Ttft { .. } | Self::Memory { .. } | Self::Inference { .. } | Self::Reread { .. } => {
                MOST_SHORT_BYTES
            }
            Self::Load { .. } | Self::Count { .. } | Self::Locate { .. } | Self::Sites { .. } => MOST_NAMES_BYTES,
            // A number for each token, sample, request or text that was asked for.
            Self::Prepare { .. }
            | Self::Sample { .. }
            | Self::Profile { .. }
            | Self::Turn { .. }
            | Self::Text { .. }
            | Self::LoadLevel { .. }
            | Self::CountTokens { .. }
            | Self::Window { .. } => MOST_LINE_BYTES,
        }
    }

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
