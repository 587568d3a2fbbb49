//! The server's count of an answer's tokens beside the tokenizer's. Pure.

use infergate_core::load::RequestRecord;

/// The answers whose tokens both counted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TokenCounts {
    /// How many there are.
    pub both: u64,
    /// Of these, with the same count.
    pub same: u64,
    /// Of these, more than one token apart. One is none: some servers count the end of a sequence, which no text shows.
    pub apart: u64,
    /// The largest difference, tokens.
    pub most_apart: u64,
}

/// Compares both counts of each answer; `None` where no answer has both.
pub fn compare<'a>(requests: impl IntoIterator<Item = &'a RequestRecord>) -> Option<TokenCounts> {
    let completed = requests.into_iter().filter(|record| record.failure.is_none());
    let mut counts = TokenCounts::default();
    let sent = |record: &RequestRecord| record.output_tokens.map(|_| record.sent_tokens());
    for (usage, text) in completed.filter_map(|record| sent(record).zip(record.text_tokens)) {
        let apart = usage.abs_diff(text);
        counts.both += 1;
        counts.same += u64::from(apart == 0);
        counts.apart += u64::from(apart > 1);
        counts.most_apart = counts.most_apart.max(apart);
    }
    (counts.both > 0).then_some(counts)
}
