//! After a verdict: which functions take the time that cases take longer.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use infergate_core::case::{Case, choose_benches};
use infergate_core::progress::Progress;

use super::progress;
use crate::code::Changed;
use crate::gate::paired::{PairedPolicy, judge};
use crate::paired::PairedRequest;
use crate::receipt::{Against, Explained, Outcome, PairedCase, PairedReceipt, VerdictRow};
use crate::why::{self, BLOCKS, Sides};

/// Cases that are explained without being named: those that got slower most.
const MOST_CASES: usize = 2;

/// Explains each case that regressed, or those that `named` chooses, and writes into the receipt what was found.
pub fn attach(
    receipt: &mut PairedReceipt,
    policy: &PairedPolicy,
    request: &PairedRequest,
    changed: Option<&Changed>,
    named: &[String],
    cancelled: &AtomicBool,
) -> Result<()> {
    if receipt.partial || receipt.blocks.is_empty() || receipt.servers.is_some() {
        return Ok(());
    }
    let chosen = chosen(receipt, policy, named);
    if chosen.is_empty() {
        return Ok(());
    }
    let (base, head) = (request.base.open()?, request.head.open()?);
    let prompt_text = request.prompt_text.as_deref();
    let sides = Sides { base: &base, head: &head, load: &request.load, prompt_text, changed, cancelled };
    let line = progress::Line::new();
    let total_steps = chosen.len() * BLOCKS;
    for (at, (case, change)) in chosen.into_iter().enumerate() {
        let explained = if case.load.is_some() {
            Explained::not(case.id, "a server's threads are not looked at".into())
        } else {
            let mut begun = |block: usize| {
                let label = format!("where {} takes its time, block {} of {BLOCKS}", case.id, block + 1);
                line.show(&Progress { label, done_steps: at * BLOCKS + block, total_steps });
            };
            match why::explain(&case, change, &sides, &mut begun) {
                Ok(explained) => explained,
                // Who ends it has a verdict, and wants that.
                Err(_) => break,
            }
        };
        receipt.explained.push(explained);
    }
    line.finish();
    Ok(())
}

/// The cases to explain, with the fraction that their time changed by.
fn chosen(receipt: &PairedReceipt, policy: &PairedPolicy, named: &[String]) -> Vec<(PairedCase, f64)> {
    let verdict = judge(receipt, policy);
    let change = |row: &VerdictRow| {
        let time = row.time().filter(|time| time.against == Against::Base)?;
        Some((row.subject.case()?, time.ratio? - 1.0))
    };
    let largest = |rows: &mut dyn Iterator<Item = &VerdictRow>| {
        let mut found: Vec<(Case, f64)> = Vec::new();
        for (case, change) in rows.filter_map(change) {
            match found.iter_mut().find(|(known, _)| *known == case) {
                Some((_, known)) => *known = if change.abs() > known.abs() { change } else { *known },
                None => found.push((case, change)),
            }
        }
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        found
    };
    let timed: Vec<&PairedCase> = receipt.cases.iter().filter(|case| case.timed).collect();
    let found = if named.is_empty() {
        let mut regressed = largest(&mut verdict.rows.iter().filter(|row| row.outcome == Outcome::Regressed));
        regressed.truncate(MOST_CASES);
        regressed
    } else {
        let ids: Vec<Case> = timed.iter().map(|case| case.id).collect();
        let wanted: Vec<Case> = named
            .iter()
            .filter_map(|pattern| choose_benches(std::slice::from_ref(pattern), &ids).ok())
            .flatten()
            .collect();
        let mut all = largest(&mut verdict.rows.iter());
        all.retain(|(case, _)| wanted.contains(case));
        all
    };
    let case = |id: Case| timed.iter().find(|case| case.id == id).map(|case| (*case).clone());
    found.into_iter().filter_map(|(id, change)| Some((case(id)?, change))).collect()
}
