//! [`BenchmarkGroup`]: benches with a common name.

use std::sync::Arc;
use std::time::Duration;

use ::criterion::measurement::{Measurement, WallTime};
use ::criterion::{PlotConfiguration, SamplingMode, Throughput};

use super::shared::Shared;
use super::{Bencher, IntoBenchmarkId, director};

/// As criterion's `BenchmarkGroup`.
pub struct BenchmarkGroup<'a, M: Measurement = WallTime> {
    /// `None` in a worker.
    inner: Option<::criterion::BenchmarkGroup<'a, Shared<M>>>,
    name: String,
    measurement: Arc<M>,
    throughput: Option<Throughput>,
}

/// Criterion's settings, which mean nothing to a worker.
macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident($argument:ident: $type:ty);)*) => {
        impl<M: Measurement> BenchmarkGroup<'_, M> {
            $(
                $(#[$doc])*
                pub fn $name(&mut self, $argument: $type) -> &mut Self {
                    if let Some(inner) = &mut self.inner {
                        inner.$name($argument);
                    }
                    self
                }
            )*
        }
    };
}

settings_of_benches! { settings {
    /// How criterion draws its plots.
    plot_config(configuration: PlotConfiguration);
    /// How criterion spreads its samples.
    sampling_mode(mode: SamplingMode);
} }

impl<'a, M: Measurement> BenchmarkGroup<'a, M> {
    pub(super) fn new(
        inner: Option<::criterion::BenchmarkGroup<'a, Shared<M>>>,
        name: String,
        measurement: Arc<M>,
    ) -> Self {
        Self { inner, name, measurement, throughput: None }
    }

    /// What an iteration of the benches that follow gets through.
    pub fn throughput(&mut self, throughput: Throughput) -> &mut Self {
        self.throughput = Some(throughput.clone());
        if let Some(inner) = &mut self.inner {
            inner.throughput(throughput);
        }
        self
    }

    /// A bench of this group.
    pub fn bench_function<ID: IntoBenchmarkId, F>(&mut self, id: ID, mut f: F) -> &mut Self
    where
        F: FnMut(&mut Bencher<'_, M>),
    {
        self.bench(id, &(), &mut |bencher, ()| f(bencher));
        self
    }

    /// A bench of an input.
    pub fn bench_with_input<ID: IntoBenchmarkId, F, I>(&mut self, id: ID, input: &I, mut f: F) -> &mut Self
    where
        F: FnMut(&mut Bencher<'_, M>, &I),
        I: ?Sized,
    {
        self.bench(id, input, &mut f);
        self
    }

    fn bench<I: ?Sized>(&mut self, id: impl IntoBenchmarkId, input: &I, f: &mut dyn FnMut(&mut Bencher<'_, M>, &I)) {
        let (id, measurement) = (id.into_benchmark_id(), &self.measurement);
        let Some(inner) = &mut self.inner else {
            let name = format!("{}/{}", self.name, id.alone());
            let throughput = self.throughput.as_ref();
            director::visit(&name, throughput, measurement.as_ref(), &mut |bencher| f(bencher, input));
            return;
        };
        let timed = |bencher: &mut ::criterion::Bencher<'_, Shared<M>>, input: &I| {
            f(&mut Bencher::new(bencher, measurement), input);
        };
        match id.function_alone() {
            Some(function) => inner.bench_with_input(function, input, timed),
            None => inner.bench_with_input(id.of_criterion(), input, timed),
        };
    }

    /// Ends the group; dropping it does the same.
    pub fn finish(self) {
        if let Some(inner) = self.inner {
            inner.finish();
        }
    }
}
