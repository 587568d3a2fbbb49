//! Which of several targets is faster.

use std::fmt::Write as _;

use infergate::printable::printable;

use super::Row;
use super::digest::MOST_PAIRS;
use crate::load::crossing::{Faster, compare};
use crate::load::judge::load;
use crate::report::words::load as words;

/// Which of two targets is faster, by the length of the answer. `compared` counts pairs over all calls: those beyond the most
/// that a run compares are left out.
pub fn text(rows: &[Row<'_>], seed: u64, compared: &mut usize) -> String {
    let mut text = String::new();
    for group in rows.chunk_by(|one, other| std::ptr::eq(one.level, other.level)) {
        for (index, first) in group.iter().enumerate() {
            for second in &group[index + 1..] {
                *compared += 1;
                if *compared > MOST_PAIRS {
                    continue;
                }
                let Some(faster) = compare(&first.summary, &second.summary, seed) else { continue };
                let names = |first_wins: bool| if first_wins { (first, second) } else { (second, first) };
                let line = match faster {
                    Faster::Always(wins) => {
                        let (winner, loser) = names(wins);
                        format!("{} is faster than {} for every length of answer", winner.target, loser.target)
                    }
                    Faster::UpTo { first, tokens, interval } => {
                        let (short, long) = names(first);
                        let range = interval.map_or("not sure to be there at all".to_owned(), |(low, high)| {
                            format!("95 % interval {low:.0} to {high:.0}")
                        });
                        format!(
                            "{} is faster up to {tokens:.0} tokens of answer ({range}), {} beyond",
                            short.target, long.target
                        )
                    }
                };
                let _ = writeln!(text, "{}: {}", load(&first.level.arrivals), printable(&line));
            }
        }
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// What is said of the pairs that were left out.
pub fn left_out(compared: usize) -> String {
    let more = compared.saturating_sub(MOST_PAIRS);
    if more == 0 { String::new() } else { format!("\n{}\n", words::more_pairs(more)) }
}
