//! What is set up between timed regions, marked for who looks where the time goes.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static UNTIMED: AtomicBool = AtomicBool::new(false);

/// Does `work`, which no sample has in it. It is called outside of the two looks at the clock.
pub fn untimed<T>(work: impl FnOnce() -> T) -> T {
    let before = UNTIMED.swap(true, Relaxed);
    let done = work();
    UNTIMED.store(before, Relaxed);
    done
}

/// Whether [`untimed`] work is under way.
#[cfg(feature = "bench")]
pub fn is_untimed() -> bool {
    UNTIMED.load(Relaxed)
}
