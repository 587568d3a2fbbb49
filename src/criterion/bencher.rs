//! The timed loops of a bench: [`Bencher`].

use std::hint::black_box;

use ::criterion::BatchSize;
use ::criterion::measurement::{Measurement, WallTime};

use super::set_up;
use super::shared::Shared;

/// Whoever asks for a number of iterations and keeps what they took: criterion, or a worker.
pub(super) trait Timed<M: Measurement> {
    /// Runs `routine` with the number of iterations it has to do.
    fn time(&mut self, routine: &mut dyn FnMut(u64) -> M::Value);
}

impl<M: Measurement> Timed<M> for ::criterion::Bencher<'_, Shared<M>> {
    fn time(&mut self, routine: &mut dyn FnMut(u64) -> M::Value) {
        self.iter_custom(routine);
    }
}

/// Times iterations of a routine; a bench's closure calls one of the loops once. As criterion's `Bencher`.
pub struct Bencher<'a, M: Measurement = WallTime> {
    timed: &'a mut dyn Timed<M>,
    measurement: &'a M,
    pub(super) output: Option<Vec<u8>>,
}

// SAFETY: it is behind an exclusive borrow, and whatever implements `Timed` is plain data, criterion's `Bencher` with its `Arc<M>`, or a
// look that is `Send`. Criterion's own can be sent, and benches do it: `pool.install(|| b.iter(..))`.
unsafe impl<M: Measurement + Send + Sync> Send for Bencher<'_, M> where M::Value: Send {}

impl<'a, M: Measurement> Bencher<'a, M> {
    pub(super) fn new(timed: &'a mut dyn Timed<M>, measurement: &'a M) -> Self {
        Self { timed, measurement, output: None }
    }

    /// Says what the bench computed, for example its result as bytes. The gate keeps a SHA-256 of it, and judges no time of a
    /// bench whose output is not what it was. `cargo bench` ignores it.
    pub fn output(&mut self, computed: impl AsRef<[u8]>) {
        self.output = Some(computed.as_ref().to_vec());
    }

    /// Runs `routine` with the measurement and a number of iterations.
    #[cfg(feature = "async")]
    pub(super) fn run(&mut self, mut routine: impl FnMut(&M, u64) -> M::Value) {
        let measurement = self.measurement;
        self.timed.time(&mut |iterations| routine(measurement, iterations));
    }

    /// Times `routine`, the drop of what it returns included.
    #[inline(never)]
    pub fn iter<O, R: FnMut() -> O>(&mut self, mut routine: R) {
        let measurement = self.measurement;
        self.timed.time(&mut |iterations| {
            let start = measurement.start();
            for _ in 0..iterations {
                black_box(routine());
            }
            measurement.end(start)
        });
    }

    /// Takes the time that `routine` says so many iterations took.
    #[inline(never)]
    pub fn iter_custom<R: FnMut(u64) -> M::Value>(&mut self, mut routine: R) {
        self.timed.time(&mut routine);
    }

    /// As [`iter_batched`](Self::iter_batched), set up for each iteration.
    #[doc(hidden)]
    pub fn iter_with_setup<I, O, S: FnMut() -> I, R: FnMut(I) -> O>(&mut self, setup: S, routine: R) {
        self.iter_batched(setup, routine, BatchSize::PerIteration);
    }

    /// As [`iter_batched`](Self::iter_batched), all set up at once: criterion 0.3 had it.
    #[doc(hidden)]
    pub fn iter_with_large_setup<I, O, S: FnMut() -> I, R: FnMut(I) -> O>(&mut self, setup: S, routine: R) {
        self.iter_batched(setup, routine, BatchSize::NumBatches(1));
    }

    /// Times `routine` without the drop of what it returns.
    pub fn iter_with_large_drop<O, R: FnMut() -> O>(&mut self, mut routine: R) {
        self.iter_batched(|| (), |()| routine(), BatchSize::SmallInput);
    }

    /// Times `routine` on inputs that are made in batches, untimed; what it returns is dropped untimed.
    #[inline(never)]
    pub fn iter_batched<I, O, S, R>(&mut self, mut setup: S, mut routine: R, size: BatchSize)
    where
        S: FnMut() -> I,
        R: FnMut(I) -> O,
    {
        let measurement = self.measurement;
        self.timed.time(&mut |iterations| {
            let mut sum = measurement.zero();
            for batch in batches(iterations, size) {
                if batch == 1 {
                    let input = set_up(|| black_box(setup()));
                    let start = measurement.start();
                    let output = routine(input);
                    sum = measurement.add(&sum, &measurement.end(start));
                    set_up(|| drop(black_box(output)));
                    continue;
                }
                let inputs = set_up(|| black_box((0..batch).map(|_| setup()).collect::<Vec<_>>()));
                let mut outputs = Vec::with_capacity(inputs.len());
                let start = measurement.start();
                outputs.extend(inputs.into_iter().map(&mut routine));
                sum = measurement.add(&sum, &measurement.end(start));
                set_up(|| drop(black_box(outputs)));
            }
            sum
        });
    }

    /// As [`iter_batched`](Self::iter_batched), with each input lent; inputs, too, are dropped untimed.
    #[inline(never)]
    pub fn iter_batched_ref<I, O, S, R>(&mut self, mut setup: S, mut routine: R, size: BatchSize)
    where
        S: FnMut() -> I,
        R: FnMut(&mut I) -> O,
    {
        let measurement = self.measurement;
        self.timed.time(&mut |iterations| {
            let mut sum = measurement.zero();
            for batch in batches(iterations, size) {
                if batch == 1 {
                    let mut input = set_up(|| black_box(setup()));
                    let start = measurement.start();
                    let output = routine(&mut input);
                    sum = measurement.add(&sum, &measurement.end(start));
                    set_up(|| drop((black_box(output), black_box(input))));
                    continue;
                }
                let mut inputs = set_up(|| black_box((0..batch).map(|_| setup()).collect::<Vec<_>>()));
                let mut outputs = Vec::with_capacity(inputs.len());
                let start = measurement.start();
                outputs.extend(inputs.iter_mut().map(&mut routine));
                sum = measurement.add(&sum, &measurement.end(start));
                set_up(|| drop((black_box(outputs), black_box(inputs))));
            }
            sum
        });
    }

    /// The loops for futures, run on `runner`.
    #[cfg(feature = "async")]
    pub fn to_async<'b, A: ::criterion::async_executor::AsyncExecutor>(
        &'b mut self,
        runner: A,
    ) -> super::AsyncBencher<'a, 'b, A, M> {
        super::AsyncBencher::new(self, runner)
    }
}

/// The sizes of the batches that make up so many iterations, by criterion's rule.
pub(super) fn batches(iterations: u64, size: BatchSize) -> impl Iterator<Item = u64> {
    let each = match size {
        BatchSize::SmallInput => iterations.div_ceil(10),
        BatchSize::LargeInput => iterations.div_ceil(1000),
        BatchSize::NumBatches(count) => iterations.div_ceil(count),
        BatchSize::NumIterations(each) => each,
        _ => 1,
    };
    assert!(each != 0 || iterations == 0, "a batch has to hold at least one iteration; name another BatchSize");
    let mut left = iterations;
    std::iter::from_fn(move || {
        let batch = each.min(left);
        left -= batch;
        (batch > 0).then_some(batch)
    })
}
