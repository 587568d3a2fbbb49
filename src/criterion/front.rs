//! [`Criterion`]: criterion's own under `cargo bench`, nothing but names and closures in a worker.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ::criterion::measurement::{Measurement, WallTime};
use ::criterion::{BenchmarkFilter, PlottingBackend};

use super::shared::Shared;
use super::{Bencher, BenchmarkGroup, BenchmarkId, director};

/// As criterion's `Criterion`.
pub struct Criterion<M: Measurement = WallTime> {
    /// `None` in a worker, where criterion measures nothing.
    inner: Option<::criterion::Criterion<Shared<M>>>,
    measurement: Arc<M>,
}

impl Default for Criterion {
    fn default() -> Self {
        let measurement = Arc::new(WallTime);
        if crate::bench::is_worker() {
            director::begin_in_main();
            return Self { inner: None, measurement };
        }
        let shared = Shared(Arc::clone(&measurement));
        Self { inner: Some(::criterion::Criterion::default().with_measurement(shared)), measurement }
    }
}

/// Criterion's settings, which mean nothing to a worker: the gate decides how long it measures.
macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*);)*) => {
        impl<M: Measurement> Criterion<M> {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(self, $($argument: $type),*) -> Self {
                    let Self { inner, measurement } = self;
                    Self { inner: inner.map(|inner| inner.$name($($argument),*)), measurement }
                }
            )*
        }
    };
}

settings_of_benches! { settings {
    /// Only benches whose id holds this text, or that it matches as a regular expression.
    with_filter(filter: impl Into<String>);
    /// The benches that a command line names, in place of [`with_filter`](Self::with_filter).
    with_benchmark_filter(filter: BenchmarkFilter);
    /// What draws criterion's plots.
    plotting_backend(backend: PlottingBackend);
    /// Plots, if they can be drawn.
    with_plots();
    /// No plots.
    without_plots();
    /// Saves criterion's own baseline.
    save_baseline(baseline: String);
    /// Compares with criterion's own baseline.
    retain_baseline(baseline: String, strict: bool);
    /// Colours, or none.
    with_output_color(enabled: bool);
    /// Where criterion's files go.
    output_directory(path: &Path);
    /// Runs each bench for so long and measures nothing.
    profile_time(time: Option<Duration>);
    /// The arguments of the command line. A macro of this module calls it; in a worker they are not criterion's.
    configure_from_args();
} }

impl<M: Measurement> Criterion<M> {
    /// Another measurement. The gate judges wall time alone.
    #[must_use]
    pub fn with_measurement<M2: Measurement>(self, measurement: M2) -> Criterion<M2> {
        let measurement = Arc::new(measurement);
        let shared = Shared(Arc::clone(&measurement));
        Criterion { inner: self.inner.map(|inner| inner.with_measurement(shared)), measurement }
    }

    /// A profiler, also one of another criterion's: none is used.
    #[cfg(feature = "any_profiler")]
    #[must_use]
    pub fn with_profiler<P>(self, _profiler: P) -> Self {
        self
    }

    /// A profiler for `cargo bench -- --profile-time`.
    #[cfg(not(feature = "any_profiler"))]
    #[must_use]
    pub fn with_profiler<P: ::criterion::profiler::Profiler + 'static>(self, profiler: P) -> Self {
        let Self { inner, measurement } = self;
        Self { inner: inner.map(|inner| inner.with_profiler(profiler)), measurement }
    }

    /// Benches with a common name.
    ///
    /// # Panics
    /// As criterion's: an empty name.
    pub fn benchmark_group<S: Into<String>>(&mut self, group_name: S) -> BenchmarkGroup<'_, M> {
        let name: String = group_name.into();
        let inner = self.inner.as_mut().map(|inner| inner.benchmark_group(name.as_str()));
        BenchmarkGroup::new(inner, name, Arc::clone(&self.measurement))
    }

    /// Criterion's last words, and the end of a worker's `main` that is not `criterion_main!`'s.
    pub fn final_summary(&self) {
        match &self.inner {
            Some(inner) => inner.final_summary(),
            None => director::end_in_main(),
        }
    }
}

impl<M: Measurement + 'static> Criterion<M> {
    /// A bench on its own.
    pub fn bench_function<F>(&mut self, id: &str, mut f: F) -> &mut Self
    where
        F: FnMut(&mut Bencher<'_, M>),
    {
        let measurement = &self.measurement;
        match &mut self.inner {
            Some(inner) => {
                inner.bench_function(id, |bencher| f(&mut Bencher::new(bencher, measurement)));
            }
            None => director::visit(id, None, measurement.as_ref(), &mut f),
        }
        self
    }

    /// A bench of an input.
    ///
    /// # Panics
    /// As criterion's: an id without a function.
    pub fn bench_with_input<F, I>(&mut self, id: BenchmarkId, input: &I, mut f: F) -> &mut Self
    where
        F: FnMut(&mut Bencher<'_, M>, &I),
    {
        let measurement = &self.measurement;
        match &mut self.inner {
            Some(inner) => {
                let timed = |bencher: &mut ::criterion::Bencher<'_, Shared<M>>, input: &I| {
                    f(&mut Bencher::new(bencher, measurement), input);
                };
                inner.bench_with_input(id.of_criterion(), input, timed);
            }
            None => {
                director::visit(&id.alone(), None, measurement.as_ref(), &mut |bencher| f(bencher, input));
            }
        }
        self
    }
}
