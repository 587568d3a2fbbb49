//! The verdict file: what the comment says, for programs.

use infergate::printable::printable;

use super::inputs::Inputs;
use super::words::{accept, headline, look};
use crate::receipt::{Verdict, VerdictFile};

/// The verdict of these inputs with its words.
pub fn verdict_file(verdict: &Verdict, inputs: &Inputs) -> VerdictFile {
    let line = |text: String| printable(&text).into_owned();
    let tables = inputs.paired.as_ref().map_or_else(Vec::new, |receipt| accept::tables(receipt, verdict));
    let (accept, _) = accept::shown(&tables, usize::MAX);
    VerdictFile {
        headline: headline::of(verdict),
        how_sure: look::how_sure(inputs).map(line),
        where_to_look: look::places(verdict, inputs).into_iter().map(line).collect(),
        repeat: look::repeat(inputs),
        find_commit: look::bisect(inputs),
        accept: Some(accept).filter(|accept| !accept.is_empty()),
        verdict: verdict.clone(),
    }
}
