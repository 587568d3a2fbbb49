//! A worker whose `main` is not `criterion_main!`'s: one pass, from the first `Criterion` to `final_summary`, and each further one in a
//! process that is new.

use std::process;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::{BEGUN, DIRECTOR, Director, bench_of, fail};

/// Where a worker's `main` is not `criterion_main!`'s: the pass that its first `Criterion` begins.
pub fn begin_in_main() {
    if BEGUN.swap(true, Relaxed) {
        return;
    }
    infergate_core::process::end_with_parent();
    let begun = crate::criterion::enter_package().and_then(|()| Director::new()).and_then(|mut director| {
        director.wire.serve(&mut director.between)?;
        Ok(Director { in_main: Some(Instant::now()), ..director })
    });
    match begun {
        Ok(director) if director.is_over() => process::exit(0),
        Ok(director) => DIRECTOR.set(Some(director)),
        Err(error) => fail(&error),
    }
}

/// The end of that pass. Any further one takes a process that is new.
pub fn end_in_main() {
    let taken = DIRECTOR.with_borrow_mut(|director| {
        let begun = director.as_ref()?.in_main?;
        Some((director.take()?, begun))
    });
    let Some((mut director, begun)) = taken else { return };
    let bench = director.wire.left().and_then(bench_of);
    match director.passed(bench, begun) {
        Ok(()) if director.is_over() => process::exit(0),
        Ok(()) => fail(&director.afresh()),
        Err(error) => fail(&error),
    }
}
