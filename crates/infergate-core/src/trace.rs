//! One request's token times, and the metrics derived from them. Pure.

use anyhow::{Result, ensure};

/// When each output token of one request was on the host, in nanoseconds after the request was handed over (`t_0`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    token_ns: Vec<u64>,
}

impl Trace {
    /// From `t_k - t_0` for k = 1..n.
    ///
    /// # Errors
    /// When the times decrease.
    pub fn new(token_ns: Vec<u64>) -> Result<Self> {
        ensure!(token_ns.is_sorted(), "token times decrease; the clock or the recording is broken");
        Ok(Self { token_ns })
    }

    /// `t_k - t_0`, nanoseconds.
    pub fn token_ns(&self) -> &[u64] {
        &self.token_ns
    }

    /// As those of any request.
    pub fn times(&self) -> Times<'_> {
        Times { start_ns: 0, piece_ns: &self.token_ns, tokens: self.token_ns.len() as u64 }
    }

    /// TTFT: `t_1 - t_0`. `None` without a token.
    pub fn ttft_ns(&self) -> Option<u64> {
        self.token_ns.first().copied()
    }

    /// Every ITL: `t_k - t_(k-1)`, k = 2..n. Empty below two tokens.
    pub fn itl_ns(&self) -> Vec<u64> {
        self.token_ns.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    /// Generation time: `t_n - t_1`. `None` below two tokens.
    pub fn generation_ns(&self) -> Option<u64> {
        match self.token_ns.as_slice() {
            [first, .., last] => Some(last - first),
            _ => None,
        }
    }

    /// TPOT: `(t_n - t_1) / (n - 1)`, the mean ITL of this request. `None` below two tokens.
    pub fn tpot_ns(&self) -> Option<f64> {
        self.times().tpot_ns()
    }

    /// E2E: `t_n - t_0`. `None` without a token.
    pub fn e2e_ns(&self) -> Option<u64> {
        self.token_ns.last().copied()
    }

    /// Decode speed: `1 / TPOT`. `None` below two tokens or when no time passed.
    pub fn decode_tokens_per_s(&self) -> Option<f64> {
        per_second(1.0, self.tpot_ns()?)
    }

    /// Output throughput of this request: `n / E2E`. `None` without a token or when no time passed.
    pub fn output_tokens_per_s(&self) -> Option<f64> {
        per_second(self.token_ns.len() as f64, self.e2e_ns()? as f64)
    }
}

/// When the output of one request came: of an engine a token at a time, of a server in pieces that can hold several.
#[derive(Debug, Clone, Copy)]
pub struct Times<'a> {
    /// `t_0`, nanoseconds.
    pub start_ns: u64,
    /// When each piece came, nanoseconds.
    pub piece_ns: &'a [u64],
    /// Tokens in all of them.
    pub tokens: u64,
}

impl Times<'_> {
    /// `t_1 - t_0`, nanoseconds. `None` without a piece.
    pub fn ttft_ns(self) -> Option<f64> {
        Some(self.piece_ns.first()?.saturating_sub(self.start_ns) as f64)
    }

    /// `t_n - t_0`, nanoseconds. `None` without a piece.
    pub fn e2e_ns(self) -> Option<f64> {
        Some(self.piece_ns.last()?.saturating_sub(self.start_ns) as f64)
    }

    /// `(t_n - t_1) / (n - 1)` for n tokens, nanoseconds. `None` below two tokens, or where all came in one piece.
    pub fn tpot_ns(self) -> Option<f64> {
        let [first, .., last] = self.piece_ns else { return None };
        let gaps = self.tokens.checked_sub(1).filter(|gaps| *gaps > 0)?;
        Some(last.saturating_sub(*first) as f64 / gaps as f64)
    }
}

impl<'a> Times<'a> {
    /// Each gap between two pieces, nanoseconds.
    pub fn gaps_ns(self) -> impl Iterator<Item = f64> + 'a {
        self.piece_ns.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64)
    }
}

impl<'a> From<&'a Trace> for Times<'a> {
    fn from(trace: &'a Trace) -> Self {
        trace.times()
    }
}

/// `count` in a time, by the second; `None` when no time passed.
pub fn per_second(count: f64, ns: f64) -> Option<f64> {
    (ns > 0.0).then(|| count * 1e9 / ns)
}
