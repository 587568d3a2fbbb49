//! What a search found, compared with the one before it as the gate compares.
//!
//! A step has one build a side, whose placement is luck that more blocks do not average out, and is compared with the good one, from which
//! small changes add up. So what is found is named only where it is slower than the one before it by the gate's own rules: both laid out
//! alike, and nothing timed that runs none of what changed.

use anyhow::Result;

use super::{Search, judged, policy, stand};
use crate::cli::explain::{self, Explaining};
use crate::cli::paired_gate;
use crate::cli::{output, progress, same_code};
use crate::paired::ensure_not;
use infergate_build::edited::Edited;
use infergate_build::sources::Sources;
use infergate_receipts::{BisectionEnd, BisectionStep, Outcome, PairedReceipt, clause};

impl Search<'_> {
    /// Compares the point that was found, the latter, with the one before it, and explains it where it is slower: how the search ended.
    pub(super) fn confirm(&mut self, (before, found): (usize, usize)) -> Result<BisectionEnd> {
        let name = self.points[found].name.clone();
        output::line(&format!("{name}, against the one before it"));
        let stood = stand(&mut self.base, &self.points[before], self.config)
            .and_then(|()| stand(&mut self.tree, &self.points[found], self.config));
        let measured = stood.and_then(|()| self.measure());
        ensure_not(self.cancelled)?;
        let step = |row, skipped| Some(BisectionStep { name: name.clone(), row, skipped });
        match measured {
            Err(error) => self.confirmed = step(None, Some(clause(&error))),
            Ok(mut receipt) => {
                let row = judged(&receipt);
                let is_slower = row.as_ref().is_some_and(|row| row.outcome == Outcome::Regressed);
                self.confirmed = step(row, None);
                self.explained = receipt.explained.pop();
                if is_slower {
                    return Ok(BisectionEnd::First { name });
                }
            }
        }
        Ok(BisectionEnd::Unconfirmed { name })
    }

    fn measure(&self) -> Result<PairedReceipt> {
        let (wanted, before, found) = (&self.config.wanted(), &self.base, &self.tree);
        let (base, head) = (before.build(wanted, false)?, found.build(wanted, false)?);
        let sources = Sources { base: Some(before.source(wanted)?), head: Some(found.source(wanted)?) };
        let commit = (before.commit != found.commit).then_some(before.commit.as_str());
        let look = same_code::of_checkouts(&base, &head, commit, &found.folder()?);
        let request = self.request(base, head, look.code)?;
        let (changed, line) = (look.changed.as_ref(), progress::Line::default());
        let receipt = paired_gate::measure(&request, self.config, Some(&sources), changed, None, &line, self.cancelled);
        line.finish();
        let mut receipt = receipt?;
        if self.explains {
            // A swapped dependency edits nothing.
            let edited = commit.and_then(|commit| Edited::between(found.files(), commit, Some(&found.commit)).ok());
            let explaining = Explaining::new(Vec::new(), edited);
            explain::attach(&mut receipt, &policy(), &request, changed, &explaining, self.cancelled);
        }
        Ok(receipt)
    }
}
