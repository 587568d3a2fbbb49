//! What a search found, compared with the one before it as the gate compares.
//!
//! A step has one build a side, whose placement is luck that more blocks do not average out, and is compared with the good one, from which
//! small changes add up. So what is found is named only where it is slower than the one before it by the gate's own rules: both laid out
//! alike, and nothing timed that runs none of what changed.

use anyhow::Result;

use super::{Search, judged};
use crate::cli::paired_gate;
use crate::cli::{explain, output, progress, same_code};
use crate::paired::{Program, ensure_not};
use infergate_build::edited::Edited;
use infergate_build::revision::Tree;
use infergate_build::sources::Sources;
use infergate_receipts::{BisectionEnd, BisectionStep, Explained, Outcome, PairedReceipt, VerdictRow, clause};

/// The tree of the one before, and that of what was found.
type Sides<'t> = (&'t Tree, &'t Tree);

impl Search<'_> {
    /// Compares what was found, called `name`, with the one before it, and explains it where it is slower: how the search ended.
    pub(super) fn confirm(&mut self, name: String, trees: Result<Sides>) -> Result<BisectionEnd> {
        output::line(&format!("{name}, against the one before it"));
        let measured = trees.and_then(|trees| Ok((trees, self.measure(trees)?)));
        ensure_not(self.cancelled)?;
        let (trees, (base, head, receipt)) = match measured {
            Ok(measured) => measured,
            Err(error) => {
                self.confirmed = Some(BisectionStep { name: name.clone(), row: None, skipped: Some(clause(&error)) });
                return Ok(BisectionEnd::Unconfirmed { name });
            }
        };
        let row = judged(&receipt);
        let is_slower = row.as_ref().is_some_and(|row| row.outcome == Outcome::Regressed);
        let ratio = row.as_ref().and_then(VerdictRow::time).and_then(|time| time.ratio);
        self.confirmed = Some(BisectionStep { name: name.clone(), row, skipped: None });
        if !is_slower {
            return Ok(BisectionEnd::Unconfirmed { name });
        }
        if let Some(ratio) = ratio.filter(|_| self.explains) {
            self.explained = self.explain(trees, (&base, &head), &receipt, ratio);
        }
        Ok(BisectionEnd::First { name })
    }

    fn measure(&self, (before, found): Sides) -> Result<(Program, Program, PairedReceipt)> {
        let wanted = &self.config.wanted();
        let (base, head) = (before.build(wanted, false)?, found.build(wanted, false)?);
        let sources = Sources { base: Some(before.source(wanted)?), head: Some(found.source(wanted)?) };
        let commit = (before.commit != found.commit).then_some(before.commit.as_str());
        let look = same_code::of_checkouts(&base, &head, commit, &found.folder()?);
        let request = paired_gate::request(self.config, base.clone(), head.clone(), &self.options(look.code.clone()))?;
        let (changed, line) = (look.changed.as_ref(), progress::Line::default());
        let receipt = paired_gate::measure(&request, self.config, Some(&sources), changed, None, &line, self.cancelled);
        line.finish();
        let receipt = receipt?;
        Ok((base, head, receipt))
    }

    /// Which functions take the time. `None` where it was interrupted: who ends it has what was found, and wants that.
    fn explain(
        &self,
        (before, found): Sides,
        sides: (&Program, &Program),
        receipt: &PairedReceipt,
        ratio: f64,
    ) -> Option<Explained> {
        let case = receipt.cases.first()?;
        output::line("where it takes its time");
        let is_commit = before.commit != found.commit;
        // A swapped dependency edits nothing.
        let edited = is_commit.then(|| Edited::between(found.files(), &before.commit, Some(&found.commit)).ok());
        let difference = explain::difference(receipt, case.id, ratio, true);
        let explained =
            explain::between((case, difference), sides, self.config, edited.flatten().as_ref(), self.cancelled);
        match explained {
            Err(_) if ensure_not(self.cancelled).is_err() => None,
            explained => Some(explained.unwrap_or_else(|error| Explained::not(case.id, clause(&error)))),
        }
    }
}
