//! How far a level is, and the line that shows it.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use infergate_build::progress::Line;
use infergate_core::load::Stop;
use infergate_core::progress::Progress;
use infergate_load::targets::live::Live;
use infergate_report::units::many;

/// How often the line is drawn.
const EVERY: Duration = Duration::from_millis(250);
/// Steps of a level.
const STEPS: usize = 1_000;

/// Step `done` of `total`.
pub struct Stage {
    pub label: String,
    /// `None`: how long it takes is not known.
    pub stop: Option<Stop>,
    pub done: usize,
    pub total: usize,
}

/// Does `work`, of which `live` tells how far it is, and draws the line meanwhile in a thread of its own: the client's has tokens to stamp.
pub fn drawn<T>(line: &mut Line, stage: &Stage, live: &Live, work: impl FnOnce() -> T) -> T {
    let (end, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let began = Instant::now();
            loop {
                line.show(&stage.progress(live, began.elapsed()));
                if ended.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
        });
        let outcome = work();
        drop(end);
        outcome
    })
}

impl Stage {
    fn progress(&self, live: &Live, took: Duration) -> Progress {
        let seen = live.seen();
        let tokens_per_s = seen.pieces as f64 / took.as_secs_f64().max(1e-3);
        let share = match self.stop {
            Some(Stop::Requests { count }) => seen.ended as f64 / count.max(1) as f64,
            Some(Stop::Duration { ns }) => took.as_nanos() as f64 / ns.max(1) as f64,
            None => 0.0,
        };
        let within = (share.clamp(0.0, 1.0) * STEPS as f64) as usize;
        Progress {
            label: format!("{}: {tokens_per_s:.0} tokens/s, {}", self.label, many(seen.failed as usize, "error")),
            done_steps: self.done * STEPS + within,
            total_steps: self.total * STEPS,
        }
    }
}
