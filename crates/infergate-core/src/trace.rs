//! One request's token times, and the metrics derived from them. Pure.

/// When the output of one request came: of an engine a token at a time, of a server in pieces that can hold several.
#[derive(Debug, Clone, Copy)]
pub struct Times<'a> {
    /// `t_0`, nanoseconds.
    pub start_ns: u64,
    /// When each piece came, nanoseconds.
    pub piece_ns: &'a [u64],
    /// Tokens in all of them.
    pub tokens: u64,
    /// Tokens in the first of them, where that is known; else one.
    pub first_tokens: u64,
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

    /// `t_n - t_1` by the tokens that came after the first piece, nanoseconds. `None` without such a token, or where all came in one piece.
    pub fn tpot_ns(self) -> Option<f64> {
        let [first, .., last] = self.piece_ns else { return None };
        let gaps = self.tokens.checked_sub(self.first_tokens).filter(|gaps| *gaps > 0)?;
        Some(last.saturating_sub(*first) as f64 / gaps as f64)
    }
}

impl<'a> Times<'a> {
    /// Of a request that was handed over at 0 and gave a token at each of these times, nanoseconds.
    pub fn of_tokens(token_ns: &'a [u64]) -> Self {
        Self { start_ns: 0, piece_ns: token_ns, tokens: token_ns.len() as u64, first_tokens: 1 }
    }

    /// Each gap between two pieces, nanoseconds.
    pub fn gaps_ns(self) -> impl Iterator<Item = f64> + 'a {
        self.piece_ns.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64)
    }
}

/// `count` in a time, by the second; `None` when no time passed.
pub fn per_second(count: f64, ns: f64) -> Option<f64> {
    (ns > 0.0).then(|| count * 1e9 / ns)
}
