//! What was behind each token of an output, to the last bit: [`Fingerprint`].

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Error, Result};
use serde::{Deserialize, Serialize};

use super::Output;
use crate::splitmix::{STEP, mixed};

/// Positions a fingerprint looks at, in every case; fewer only where the context ends.
pub const FINGERPRINT_POSITIONS: usize = 16;

/// Best tokens kept of each position.
pub const FINGERPRINT_TOP: usize = 8;

/// Numbers behind an output, which change before any token does.
///
/// Position i is the choice of token i behind the prompt, from 0. A fingerprint has 16 positions: the first 16 tokens, also where
/// the case itself has fewer, or 16 spread over a longer output, its first and its last token among them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The engine's tokens behind those of the output, as many as it takes to have 16.
    #[serde(default)]
    pub more_ids: Vec<u32>,
    /// The tokens that were appended behind the prompt, where the engine was made to follow another output than its own.
    pub fed: Option<Vec<u32>>,
    /// The numbers, by position; none where the engine gives no logits.
    #[serde(default)]
    pub steps: Vec<StepLogits>,
    /// Finite logits at each position of `steps`, the fewest where they are not as many; `null` where the engine gives none.
    pub logits: Option<usize>,
    /// For each of `steps` the sum of all its finite logits, about half of them with a minus: at one position always the same ones. On
    /// average the square of how far two such sums lie apart is the sum of the squares of how far their logits do. Empty
    /// where the engine gives none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signed_sums: Vec<f64>,
}

/// The logits behind one token. In a file one line of text: the position, log-sum-exp as the bits of an f64, and for each of
/// the best tokens its id and the bits of its f32, all bits in hexadecimal: `3 4002000000000000 1:40000000 0:3f000000`.
#[derive(Debug, Clone)]
pub struct StepLogits {
    /// Which token behind the prompt, from 0.
    pub position: usize,
    /// ln of the sum of exp(logit) over the whole vocabulary.
    pub log_sum_exp: f64,
    /// The best tokens and their logits, best first; the lower id first on ties.
    pub top: Vec<(u32, f32)>,
}

impl StepLogits {
    /// Of all the logits behind the token at `position`.
    pub fn of(position: usize, logits: &[f32]) -> Self {
        let mut top: Vec<(u32, f32)> = Vec::with_capacity(FINGERPRINT_TOP + 1);
        for (id, &logit) in (0..).zip(logits) {
            if top.len() == FINGERPRINT_TOP && top.last().is_some_and(|(_, least)| logit <= *least) {
                continue;
            }
            let at = top.iter().position(|(_, other)| logit > *other).unwrap_or(top.len());
            top.insert(at, (id, logit));
            top.truncate(FINGERPRINT_TOP);
        }
        let largest = f64::from(top.first().map_or(0.0, |(_, logit)| *logit));
        let sum: f64 = logits.iter().map(|logit| (f64::from(*logit) - largest).exp()).sum();
        Self { position, log_sum_exp: largest + sum.ln(), top }
    }
}

/// Bit for bit: a NaN equals itself, and the two zeros differ.
impl PartialEq for StepLogits {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl fmt::Display for StepLogits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:016x}", self.position, self.log_sum_exp.to_bits())?;
        self.top.iter().try_for_each(|(id, logit)| write!(f, " {id}:{:08x}", logit.to_bits()))
    }
}

crate::serde_as_text!(StepLogits, StepLogits::to_string);

impl FromStr for StepLogits {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parsed = || -> Option<Self> {
            let mut words = text.split(' ');
            let position = words.next()?.parse().ok()?;
            let log_sum_exp = f64::from_bits(bits(words.next()?, 16)?);
            let top = words.map(|word| {
                let (id, logit) = word.split_once(':')?;
                Some((id.parse().ok()?, f32::from_bits(u32::try_from(bits(logit, 8)?).ok()?)))
            });
            let top: Vec<(u32, f32)> = top.collect::<Option<_>>()?;
            (!top.is_empty()).then_some(Self { position, log_sum_exp, top })
        };
        parsed().context("a step of a fingerprint is not `POSITION BITS ID:BITS ..`; measure again")
    }
}

/// The sign of logit `id` in the signed sum at `position`: a bit of [`mixed`].
fn sign(position: u64, id: u64) -> f64 {
    let bits = mixed(((position << 32) + id + 1).wrapping_mul(STEP));
    if bits & 1 == 0 { 1.0 } else { -1.0 }
}

/// Exactly `digits` hexadecimal digits.
fn bits(text: &str, digits: usize) -> Option<u64> {
    let plain = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

impl Output {
    /// The tokens that the engine said by itself, those behind the output's own included.
    pub fn said(&self) -> Vec<u32> {
        let more = self.fingerprint.as_ref().map_or(&[][..], |fingerprint| &fingerprint.more_ids);
        [self.ids.as_slice(), more].concat()
    }

    /// Every token that was appended behind the prompt while the fingerprint was taken, the engine's own or those it was
    /// made to follow. Without a fingerprint the output itself.
    pub fn path(&self) -> Vec<u32> {
        match &self.fingerprint {
            Some(Fingerprint { fed: Some(fed), .. }) => fed.clone(),
            _ => self.said(),
        }
    }
}

impl Fingerprint {
    /// Adds what all `logits` say of the token at `position`.
    pub fn add(&mut self, position: usize, logits: &[f32]) {
        self.steps.push(StepLogits::of(position, logits));
        let finite = || (0..).zip(logits).filter(|(_, logit)| logit.is_finite());
        let count = finite().count();
        self.logits = Some(self.logits.map_or(count, |fewest| fewest.min(count)));
        self.signed_sums.push(finite().map(|(id, logit)| f64::from(*logit) * sign(position as u64, id)).sum());
    }

    /// The signed sum at the position of a step; `None` where none was taken.
    pub fn signed_sum(&self, position: usize) -> Option<f64> {
        let at = self.steps.iter().position(|step| step.position == position)?;
        self.signed_sums.get(at).copied()
    }
}
