//! Windows of load in a paired run: what each gave, and the cases that are made of them.

use std::collections::BTreeMap;

use infergate_core::load::FailureClass;
use serde::{Deserialize, Serialize};

use super::{Metric, Side};
use infergate_core::stats::{floats, quantile};

/// The numbers of a window that are compared, with their words in the names of cases. The longest gap is there for stalls: a server that
/// stands still for 500 ms each ten seconds loses 5 % of its tokens, just the limit, and too few gaps are long to move a P90 of them.
pub const METRICS: [(Metric, &str); 4] = [
    (Metric::SystemToken, "token"),
    (Metric::TtftP90, "ttft-p90"),
    (Metric::ItlP90, "itl-p90"),
    (Metric::LongestGap, "longest-gap"),
];

/// The name of a case: `chat/16-users/token`. `None` for a metric that no window has.
pub fn case_name(scenario: &str, users: u32, metric: Metric) -> Option<String> {
    let (_, word) = METRICS.into_iter().find(|(known, _)| *known == metric)?;
    Some(format!("{scenario}/{users}-users/{word}"))
}

/// The scenario and the metric of a case of this name.
pub fn of_case_name(name: &str, users: u32) -> Option<(&str, Metric)> {
    let (level, word) = name.rsplit_once('/')?;
    let (metric, _) = METRICS.into_iter().find(|(_, known)| *known == word)?;
    Some((level.strip_suffix(&format!("/{users}-users"))?, metric))
}

/// What a case is that is measured in windows of load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadCase {
    /// The scenario's name.
    pub scenario: String,
    /// Users at once.
    pub users: u32,
    /// Which number of a window it is.
    pub metric: Metric,
    /// When things happen in each of its windows.
    pub times: WindowTimes,
}

/// When things happen in a window, nanoseconds since the load began; chosen from the pilot.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WindowTimes {
    /// By then every user has sent its first request.
    pub ramp_ns: u64,
    /// The window begins.
    pub from_ns: u64,
    /// The window ends.
    pub to_ns: u64,
    /// Users send requests up to here, so that those that started in the window run at full load to their end.
    pub stop_ns: u64,
    /// What is in flight then is given up.
    pub give_up_ns: u64,
}

impl WindowTimes {
    /// How long the window is, nanoseconds.
    pub fn length_ns(self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// What answers under load are, beside others that should be the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowAnswers {
    /// Whole answers to requests whose numbers, and so their prompts, the other side answered in the window beside it.
    pub compared: u64,
    /// Bytes of their text.
    pub compared_bytes: u64,
    /// Whole answers to the prompt whose output is known.
    pub repeated: u64,
    /// Of these, the ones that are not that output.
    pub changed: u64,
}

/// One window of load on one side's server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowRecord {
    /// Whose server.
    pub side: Side,
    /// The scenario's name.
    pub scenario: String,
    /// Users at once.
    pub users: u32,
    /// How long it was, nanoseconds.
    pub length_ns: u64,
    /// Output tokens that came within it, each as many bytes of text as one of base's answers in this block.
    pub output_tokens: u64,
    /// Requests that were sent, before and behind it as well.
    pub issued: u64,
    /// Of these, the ones that failed, by class; `cancelled`: they began before its end and had none long after it.
    pub failures: BTreeMap<FailureClass, u64>,
    /// Requests that were in flight all the time and got no token.
    pub starved: u64,
    /// Time to first token of each request that started within it or waited at its begin, nanoseconds; of one that failed, or
    /// got none, to the window's end or its own.
    pub ttft_ns: Vec<u64>,
    /// P90 of the gaps between pieces that ended within it, nanoseconds; `null` where there are none.
    pub itl_p90_ns: Option<u64>,
    /// Each user's longest one, nanoseconds, or the time since a last piece at the window's end where that is longer; of the
    /// users that have one.
    pub longest_gap_ns: Vec<u64>,
    /// Its answers.
    pub answers: WindowAnswers,
}

impl WindowRecord {
    /// One number of it, nanoseconds of at least one; `None` where there is nothing to take it from.
    pub fn value_ns(&self, metric: Metric) -> Option<u64> {
        let p90 = |values: &[u64]| quantile(&floats(values), 0.9).map(|ns| ns.round() as u64);
        let value = match metric {
            Metric::SystemToken => self.length_ns.checked_div(self.output_tokens),
            Metric::TtftP90 => p90(&self.ttft_ns),
            Metric::ItlP90 => self.itl_p90_ns,
            Metric::LongestGap => p90(&self.longest_gap_ns),
            _ => None,
        };
        value.map(|ns| ns.max(1))
    }

    /// Requests that failed.
    pub fn failed(&self) -> u64 {
        self.failures.values().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

impl LoadCase {
    /// The times of this case in a block of these windows, nanoseconds: one of each window, but of the longest gap the longest of
    /// all, since what happens each ten seconds is in some windows and not in others. `None` where a window has none.
    pub fn times_ns(&self, side: Side, windows: &[WindowRecord]) -> Option<Vec<u64>> {
        let own = windows
            .iter()
            .filter(|window| window.side == side && window.users == self.users && window.scenario == self.scenario);
        let times_ns: Vec<u64> = own.map(|window| window.value_ns(self.metric)).collect::<Option<_>>()?;
        match self.metric {
            Metric::LongestGap => times_ns.into_iter().max().map(|ns| vec![ns]),
            _ => Some(times_ns),
        }
    }
}
