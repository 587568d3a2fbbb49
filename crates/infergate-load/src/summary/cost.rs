//! What requests cost at given prices. Pure.

use infergate_core::load::RequestRecord;
use infergate_core::stats::mean;

use crate::receipt::Price;

/// What some requests cost in the mean, in the prices' own money.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Prompt tokens of a request.
    pub input_tokens: f64,
    /// Output tokens of a request.
    pub output_tokens: f64,
    /// A request.
    pub request: f64,
    /// A million output tokens, their prompts included; `None` where there was no output.
    pub per_million_output_tokens: Option<f64>,
}

/// The cost of `requests` by the server's own counts. `None` without requests, or where one of them was not counted.
pub fn cost(requests: &[&RequestRecord], price: Price) -> Option<Cost> {
    let mean_of = |tokens: fn(&RequestRecord) -> Option<u64>| {
        mean(&requests.iter().map(|record| Some(tokens(record)? as f64)).collect::<Option<Vec<_>>>()?)
    };
    let (input_tokens, output_tokens) =
        (mean_of(|record| record.input_tokens)?, mean_of(|record| record.output_tokens)?);
    let of_million_requests = input_tokens * price.input_per_million + output_tokens * price.output_per_million;
    let per_million_output_tokens = (output_tokens > 0.0).then(|| of_million_requests / output_tokens);
    Some(Cost { input_tokens, output_tokens, request: of_million_requests / 1e6, per_million_output_tokens })
}
