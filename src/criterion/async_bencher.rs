//! The timed loops for futures: [`AsyncBencher`]. Each runs whole on the executor, as criterion's do.

use std::future::Future;
use std::hint::black_box;

use ::criterion::BatchSize;
use ::criterion::async_executor::AsyncExecutor;
use ::criterion::measurement::{Measurement, WallTime};

use super::bencher::{Bencher, batches};
use super::set_up;

/// As criterion's `AsyncBencher`.
pub struct AsyncBencher<'a, 'b, A: AsyncExecutor, M: Measurement = WallTime> {
    bencher: &'b mut Bencher<'a, M>,
    runner: A,
}

impl<'a, 'b, A: AsyncExecutor, M: Measurement> AsyncBencher<'a, 'b, A, M> {
    pub(super) fn new(bencher: &'b mut Bencher<'a, M>, runner: A) -> Self {
        Self { bencher, runner }
    }

    /// Times futures of `routine`, the drop of what they return included.
    #[inline(never)]
    pub fn iter<O, R, F>(&mut self, mut routine: R)
    where
        R: FnMut() -> F,
        F: Future<Output = O>,
    {
        let (bencher, runner) = (&mut *self.bencher, &self.runner);
        bencher.run(|measurement, iterations| {
            runner.block_on(async {
                let start = measurement.start();
                for _ in 0..iterations {
                    black_box(routine().await);
                }
                measurement.end(start)
            })
        });
    }

    /// Takes the time that the future says so many iterations took.
    #[inline(never)]
    pub fn iter_custom<R, F>(&mut self, mut routine: R)
    where
        R: FnMut(u64) -> F,
        F: Future<Output = M::Value>,
    {
        let (bencher, runner) = (&mut *self.bencher, &self.runner);
        bencher.run(|_, iterations| runner.block_on(routine(iterations)));
    }

    /// As [`iter_batched`](Self::iter_batched), set up for each iteration.
    #[doc(hidden)]
    pub fn iter_with_setup<I, O, S, R, F>(&mut self, setup: S, routine: R)
    where
        S: FnMut() -> I,
        R: FnMut(I) -> F,
        F: Future<Output = O>,
    {
        self.iter_batched(setup, routine, BatchSize::PerIteration);
    }

    /// As [`iter_batched`](Self::iter_batched), all set up at once: criterion 0.3 had it.
    #[doc(hidden)]
    pub fn iter_with_large_setup<I, O, S, R, F>(&mut self, setup: S, routine: R)
    where
        S: FnMut() -> I,
        R: FnMut(I) -> F,
        F: Future<Output = O>,
    {
        self.iter_batched(setup, routine, BatchSize::NumBatches(1));
    }

    /// Times futures of `routine` without the drop of what they return.
    pub fn iter_with_large_drop<O, R, F>(&mut self, mut routine: R)
    where
        R: FnMut() -> F,
        F: Future<Output = O>,
    {
        self.iter_batched(|| (), |()| routine(), BatchSize::SmallInput);
    }

    /// Times futures of `routine` on inputs that are made in batches, untimed; what they return is dropped untimed.
    #[inline(never)]
    pub fn iter_batched<I, O, S, R, F>(&mut self, mut setup: S, mut routine: R, size: BatchSize)
    where
        S: FnMut() -> I,
        R: FnMut(I) -> F,
        F: Future<Output = O>,
    {
        let (bencher, runner) = (&mut *self.bencher, &self.runner);
        bencher.run(|measurement, iterations| {
            runner.block_on(async {
                let mut sum = measurement.zero();
                for batch in batches(iterations, size) {
                    if batch == 1 {
                        let input = set_up(|| black_box(setup()));
                        let start = measurement.start();
                        let output = routine(input).await;
                        sum = measurement.add(&sum, &measurement.end(start));
                        set_up(|| drop(black_box(output)));
                        continue;
                    }
                    let inputs = set_up(|| black_box((0..batch).map(|_| setup()).collect::<Vec<_>>()));
                    let mut outputs = Vec::with_capacity(inputs.len());
                    let start = measurement.start();
                    for input in inputs {
                        outputs.push(routine(input).await);
                    }
                    sum = measurement.add(&sum, &measurement.end(start));
                    set_up(|| drop(black_box(outputs)));
                }
                sum
            })
        });
    }

    /// As [`iter_batched`](Self::iter_batched), with each input lent; inputs, too, are dropped untimed.
    pub fn iter_batched_ref<I, O, S, R, F>(&mut self, setup: S, mut routine: R, size: BatchSize)
    where
        S: FnMut() -> I,
        R: FnMut(&mut I) -> F,
        F: Future<Output = O>,
    {
        let keep_input = |mut input: I| {
            let output = routine(&mut input);
            async move { (output.await, input) }
        };
        self.iter_batched(setup, keep_input, size);
    }
}
