//! After a verdict: finds the functions that make cases slower.

use std::time::{Duration, Instant};

use infergate_build::{output, progress};
use infergate_core::case::{Case, choose_benches};
use infergate_core::progress::Progress;

use crate::paired::{PairedRequest, TimedBuilds};
use crate::why::{self, Difference, Sides};
use infergate_build::code::Changed;
use infergate_build::edited::Edited;
use infergate_core::stats::sample_std;
use infergate_judge::paired::{Policy, block_difference, judge_without_power};
use infergate_receipts::{Against, Explained, Outcome, PairedCase, PairedReceipt, blocks_of, clause};

/// Cases of a bench target that are explained without being named: those that got slower most.
const MOST_CASES: usize = 2;
/// The shortest time limit of explaining a bench target. The limit is the time that measuring it took, if that is longer.
const LEAST_LIMIT: Duration = Duration::from_secs(20);

/// What to explain.
pub struct Explaining {
    /// Cases to explain; empty: those that regressed.
    pub named: Vec<String>,
    /// Functions that head edits; `None` if that is unknown.
    pub edited: Option<Edited>,
}

/// Explains the cases that regressed, or those that were named, by the builds that were timed, and writes into the receipt what was found.
pub fn attach(
    receipt: &mut PairedReceipt,
    policy: &Policy,
    (request, builds): (&PairedRequest, &TimedBuilds),
    changed: Option<&Changed>,
    options: &Explaining,
) {
    // The threads of a server or a command cannot be sampled.
    if receipt.partial || receipt.blocks.is_empty() || !request.is_of_bench_target() {
        return;
    }
    let chosen = chosen(receipt, policy, &options.named);
    let sides = Sides { builds, request, changed, edited: options.edited.as_ref() };
    let line = progress::Line::default();
    let until = Instant::now() + receipt.took.measured().max(LEAST_LIMIT);
    for (at, (case, difference)) in chosen.iter().enumerate() {
        // The remaining cases share the remaining time.
        let share = until.saturating_duration_since(Instant::now()) / (chosen.len() - at) as u32;
        let most = options.named.is_empty().then_some(share);
        let mut show = |block: usize| {
            let label = format!("where {} takes its time, block {}", case.id, block + 1);
            line.show(&Progress { label, done_steps: block, total_steps: difference.blocks() });
        };
        receipt.explained.push(match why::explain(case, *difference, most, &sides, &mut show) {
            Ok(explained) => explained,
            // The user ended it: the verdict is known already.
            Err(_) if progress::is_cancelled() => break,
            Err(error) => Explained::not(case.id, clause(&error)),
        });
    }
}

/// Prints which of the `named` patterns match no timed case.
pub fn print_unmatched(receipt: &PairedReceipt, named: &[String]) {
    let timed: Vec<Case> = receipt.timed().map(|case| case.id).collect();
    for pattern in named {
        if choose_benches(std::slice::from_ref(pattern), &timed).is_err() {
            output::status_escaped(&format!(
                "--explain {pattern}: names none of the {} cases that were timed",
                timed.len()
            ));
        }
    }
}

/// The cases to explain, with how their time differs: of median and mean, what differs more.
fn chosen(receipt: &PairedReceipt, policy: &Policy, named: &[String]) -> Vec<(PairedCase, Difference)> {
    let ids: Vec<Case> = receipt.timed().map(|case| case.id).collect();
    let wanted: Vec<Case> = named.chunks(1).flat_map(|one| choose_benches(one, &ids).unwrap_or_default()).collect();
    let verdict = judge_without_power(receipt, policy);
    let mut found = Vec::new();
    for case in receipt.timed() {
        let rows = verdict.rows.iter().filter(|row| {
            let is_time = row.time().is_some_and(|time| time.against == Against::Base);
            let is_wanted = row.outcome == Outcome::Regressed && named.is_empty() || wanted.contains(&case.id);
            row.subject.case() == Some(case.id) && is_time && is_wanted
        });
        let is_reported = rows.clone().any(|row| [Outcome::Regressed, Outcome::Improved].contains(&row.outcome));
        let changes = rows.filter_map(|row| Some(row.time()?.ratio? - 1.0));
        let Some(change) = changes.max_by(|a, b| a.abs().total_cmp(&b.abs())) else { continue };
        let differences: Vec<f64> = blocks_of(&receipt.blocks, case.id).filter_map(block_difference).collect();
        found.push((case.clone(), Difference { change, block_std: sample_std(&differences), is_reported }));
    }
    found.sort_by(|a, b| b.1.change.total_cmp(&a.1.change));
    if named.is_empty() {
        found.truncate(MOST_CASES);
    }
    found
}
