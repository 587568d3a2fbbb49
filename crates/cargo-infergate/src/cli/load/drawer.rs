//! The progress line of a load run, drawn by a thread of its own: the client's thread has tokens to stamp.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use infergate_core::load::Stop;
use infergate_core::progress::Progress;

use crate::cli::progress::Line;
use infergate_load::target::live::Live;

/// How often the line is drawn.
const EVERY: Duration = Duration::from_millis(250);
/// Steps of a level.
const STEPS: usize = 1_000;

struct Scene {
    label: String,
    live: Arc<Live>,
    /// `None`: how long it takes is not known.
    stop: Option<Stop>,
    began: Instant,
    done: usize,
    total: usize,
}

/// Draws until it is dropped.
pub struct Drawer {
    scenes: Option<Sender<Scene>>,
    thread: Option<JoinHandle<()>>,
}

impl Drawer {
    /// Nothing to draw yet.
    pub fn start() -> Self {
        let (scenes, shown) = mpsc::channel::<Scene>();
        let thread = thread::spawn(move || {
            let line = Line::default();
            let mut current: Option<Scene> = None;
            let mut before = (Instant::now(), 0);
            loop {
                match shown.recv_timeout(EVERY) {
                    Ok(scene) => current = Some(scene),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if let Some(scene) = &current {
                    line.show(&progress(scene, &mut before));
                }
            }
            line.finish();
        });
        Self { scenes: Some(scenes), thread: Some(thread) }
    }

    /// From now on step `done` of `total` is going on.
    pub fn show(&self, label: &str, live: &Arc<Live>, stop: Option<Stop>, (done, total): (usize, usize)) {
        let scene = Scene { label: label.to_owned(), live: live.clone(), stop, began: Instant::now(), done, total };
        if let Some(scenes) = &self.scenes {
            // A thread that is gone draws nothing, and nothing else is lost.
            let _ = scenes.send(scene);
        }
    }
}

impl Drop for Drawer {
    fn drop(&mut self) {
        drop(self.scenes.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn progress(scene: &Scene, before: &mut (Instant, u64)) -> Progress {
    let seen = scene.live.seen();
    let now = Instant::now();
    let seconds = now.duration_since(before.0).as_secs_f64();
    // A new level counts from 0 again.
    let tokens_per_s = seen.pieces.saturating_sub(before.1) as f64 / seconds.max(1e-3);
    *before = (now, seen.pieces);
    let share = match scene.stop {
        Some(Stop::Requests { count }) => seen.ended as f64 / count.max(1) as f64,
        Some(Stop::Duration { ns }) => scene.began.elapsed().as_nanos() as f64 / ns.max(1) as f64,
        None => 0.0,
    };
    let within = (share.clamp(0.0, 1.0) * STEPS as f64) as usize;
    let errors = if seen.failed == 1 { "error" } else { "errors" };
    Progress {
        label: format!("{}: {tokens_per_s:.0} tokens/s, {} {errors}", scene.label, seen.failed),
        done_steps: scene.done * STEPS + within,
        total_steps: scene.total * STEPS,
    }
}
