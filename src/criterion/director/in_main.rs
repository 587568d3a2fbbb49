//! A worker whose `main` is not `criterion_main!`'s: one pass, from the first `Criterion` to the end of `main`, which `final_summary` says
//! will come, and each further one in a process that is new.

use std::process;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Instant;

use anyhow::Error;
use infergate_core::printable::print_error;

use super::{BEGUN, DIRECTOR, Director, bench_of, fail};

/// Between `final_summary` and the end of the process, when what belongs to a thread is gone.
static SUMMED_UP: Mutex<Option<Director>> = Mutex::new(None);

/// The end of the process is waited for.
static AT_EXIT: Once = Once::new();

/// Where a worker's `main` is not `criterion_main!`'s: the pass that its first `Criterion` begins.
pub fn begin_in_main() {
    if BEGUN.swap(true, Relaxed) {
        return;
    }
    infergate_core::process::end_with_parent();
    let begun = Director::new().and_then(|mut director| {
        director.wire.serve(&mut director.between)?;
        Ok(Director { in_main: Some(Instant::now()), ..director })
    });
    match begun {
        Ok(director) if director.is_over() => process::exit(0),
        Ok(director) => DIRECTOR.set(Some(director)),
        Err(error) => fail(&error),
    }
}

/// `final_summary` was called: what `main` made goes when it returns, and that ends the pass. Benches may follow, and another such call.
pub fn end_in_main() {
    let taken = DIRECTOR.with_borrow_mut(|director| {
        director.as_ref()?.in_main?;
        director.take()
    });
    let Some(director) = taken else { return };
    *SUMMED_UP.lock().unwrap_or_else(PoisonError::into_inner) = Some(director);
    AT_EXIT.call_once(|| {
        // SAFETY: the function is there as long as the process, takes nothing and does not unwind.
        let refused = unsafe { libc::atexit(at_exit) };
        assert_eq!(refused, 0, "the end of this process cannot be waited for");
    });
}

/// Whoever answers, where a bench comes up behind a `final_summary`.
pub(super) fn summed_up() -> Option<Director> {
    SUMMED_UP.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Any further pass takes a process that is new.
extern "C" fn at_exit() {
    let Some(error) = summed_up().and_then(ended) else { return };
    print_error(&error);
    // SAFETY: ends the process, which is ending: it may not be asked to exit again.
    unsafe { libc::_exit(2) }
}

/// What is wrong, if another pass is asked for and does not come.
fn ended(mut director: Director) -> Option<Error> {
    let begun = director.in_main?;
    let bench = director.wire.left().and_then(bench_of);
    match director.passed(bench, begun) {
        Ok(()) if director.is_over() => None,
        Ok(()) => Some(director.reexec()),
        Err(error) => Some(error),
    }
}
