//! Work that several threads do at the same time, without what it takes to start them.

use std::sync::{Barrier, mpsc};
use std::thread;

use anyhow::{Context, Result};

use infergate_core::clock::{Clock, MonotonicClock};

/// The shortest of `repeats`, seconds: from the first thread that begins to the last one that ends. Each of `parts` is one thread's, begun
/// once: it sets up what the thread needs, and gives what is timed, which gets the number of the repeat. Never zero.
///
/// # Errors
/// When a thread cannot be started.
pub fn best_seconds<P, W>(repeats: usize, parts: Vec<P>) -> Result<f64>
where
    P: FnOnce() -> W + Send,
    W: FnMut(usize),
{
    let (clock, together) = (MonotonicClock::default(), Barrier::new(parts.len()));
    let times = thread::scope(|scope| -> Result<Vec<Vec<(u64, u64)>>> {
        let (mut begun, mut threads) = (Vec::new(), Vec::new());
        for part in parts {
            let (go, wait) = mpsc::channel::<()>();
            let (clock, together) = (&clock, &together);
            let run = move || {
                // Where another one could not be started, nobody comes to the barrier.
                if wait.recv().is_err() {
                    return Vec::new();
                }
                let mut work = part();
                let timed = |repeat| {
                    together.wait();
                    let start_ns = clock.now_ns();
                    work(repeat);
                    (start_ns, clock.now_ns())
                };
                (0..repeats).map(timed).collect()
            };
            let thread = thread::Builder::new().spawn_scoped(scope, run);
            threads.push(thread.context("the probes cannot start their threads; ask for fewer --threads")?);
            begun.push(go);
        }
        for go in begun {
            // A thread that is there waits for it.
            let _ = go.send(());
        }
        let joined = threads.into_iter().map(|thread| thread.join());
        Ok(joined.map(|times| times.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect())
    })?;
    let took_ns = |repeat: usize| {
        let start_ns = times.iter().filter_map(|times| Some(times.get(repeat)?.0)).min()?;
        let end_ns = times.iter().filter_map(|times| Some(times.get(repeat)?.1)).max()?;
        Some(end_ns - start_ns)
    };
    Ok((0..repeats).filter_map(took_ns).min().unwrap_or(u64::MAX).max(1) as f64 * 1e-9)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::best_seconds;

    #[test]
    fn each_thread_does_its_part_in_each_repeat() {
        let done = Mutex::new(Vec::new());
        let part = |thread: usize| {
            let done = &done;
            move || move |repeat| done.lock().expect("no thread panics").push((repeat, thread))
        };
        let seconds = best_seconds(2, (0..3).map(part).collect()).expect("threads");
        assert!(seconds > 0.0 && seconds.is_finite());
        let mut done = done.into_inner().expect("no thread panics");
        done.sort_unstable();
        assert_eq!(done, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
        assert!(best_seconds(2, Vec::<fn() -> fn(usize)>::new()).expect("nothing to start").is_finite());
    }
}
