//! Who is started first, who runs first. The process that is started second was .28 % faster on decode (standard error .06 %,
//! 312 blocks); on prefill and generation nothing was to be seen.

use crate::receipt::Side;

/// Draws orders so that every two blocks in a row balance both, and every four blocks hold each combination once.
#[derive(Debug, Clone)]
pub struct Order {
    random: fastrand::Rng,
    /// Of the group of four under way, those to come; the next one is last.
    waiting: Vec<(Side, Side)>,
}

impl Order {
    /// The same seed gives the same orders.
    pub fn new(seed: u64) -> Self {
        Self { random: fastrand::Rng::with_seed(seed), waiting: Vec::new() }
    }

    /// Started first, runs first.
    pub fn next(&mut self) -> (Side, Side) {
        if let Some(next) = self.waiting.pop() {
            return next;
        }
        let mut draw = || if self.random.bool() { Side::Base } else { Side::Head };
        let (started, ran) = (draw(), draw());
        let flip = self.random.bool();
        let mut second = (started, ran.other());
        if flip {
            second = (started.other(), ran);
        }
        self.waiting = vec![(second.0.other(), second.1.other()), second, (started.other(), ran.other())];
        (started, ran)
    }
}
