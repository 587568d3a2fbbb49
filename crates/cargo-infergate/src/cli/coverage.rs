//! Before anything is timed: what each case runs of what changed.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};

use super::same_code::shown_names;
use crate::coverage::watch;
use crate::paired::PairedRequest;
use infergate_build::code::{Changed, ChangedFunction};
use infergate_build::progress;
use infergate_core::case::Case;
use infergate_receipts::{CodeRuns, PairedCase, clause};

/// What each of `cases` runs of what changed, in either build. Nothing where not all that changed is known.
///
/// # Errors
/// When it was cancelled.
pub fn functions_run(cases: &[PairedCase], request: &PairedRequest, changed: &Changed) -> Result<Vec<CodeRuns>> {
    let side = |program, of_side: fn(&ChangedFunction) -> Option<u64>| {
        ensure!(changed.is_all, "something differs that is in no function of a name");
        let functions: BTreeSet<u64> = changed.functions.iter().filter_map(of_side).collect();
        watch(program, request, &functions, cases)
    };
    let base = side(&request.base, |function| function.base).context("base");
    let seen = base.and_then(|base| Ok((base, side(&request.head, |function| function.head).context("head")?)));
    progress::ensure_not_cancelled()?;
    let of_case = |case: &PairedCase| {
        let (functions, named, why) = match &seen {
            Ok((base, head)) => {
                let is_in = |side: &BTreeMap<Case, BTreeSet<u64>>, at: Option<u64>| {
                    side.get(&case.id).zip(at).is_some_and(|(seen, at)| seen.contains(&at))
                };
                let runs = |function: &&ChangedFunction| is_in(base, function.base) || is_in(head, function.head);
                let functions: Vec<&ChangedFunction> = changed.functions.iter().filter(runs).collect();
                (Some(functions.len()), shown_names(&functions), None)
            }
            Err(error) => (None, Vec::new(), Some(clause(error))),
        };
        CodeRuns { id: case.id, functions, changed: None, named, why }
    };
    Ok(cases.iter().map(of_case).collect())
}
