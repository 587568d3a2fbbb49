//! What tokens cost.

use std::str::FromStr;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

/// The highest price: beyond it a sum of prices means nothing.
const MAX_PRICE: f64 = 1e12;

/// Prices of a million tokens, in whatever currency: all prices of a run in the same one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// Of the prompt.
    pub input_per_million: f64,
    /// Of the answer.
    pub output_per_million: f64,
}

impl FromStr for Price {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let write = "write two numbers, of a million tokens in and out, for example 0.15,0.60";
        let (input, output) = text.split_once(',').context(write)?;
        let number = |text: &str| text.trim().parse::<f64>().ok().context(write);
        let price = Self { input_per_million: number(input)?, output_per_million: number(output)? };
        ensure!(
            [price.input_per_million, price.output_per_million].iter().all(|price| (0.0..=MAX_PRICE).contains(price)),
            "a price is no number from 0 to {MAX_PRICE:e}; give the price of a million tokens"
        );
        Ok(price)
    }
}
