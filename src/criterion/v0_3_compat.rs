//! What criterion 0.3 had before its groups, and has no more since 0.4.

use std::fmt::Debug;
use std::time::Duration;

use ::criterion::measurement::{Measurement, WallTime};
use ::criterion::{PlotConfiguration, SamplingMode, Throughput};

use super::{Bencher, BenchmarkGroup, BenchmarkId, Criterion};

type Routine<T, M> = Box<dyn FnMut(&mut Bencher<'_, M>, &T)>;
type ThroughputOf<T> = Box<dyn Fn(&T) -> Throughput>;
type Setting<M> = Box<dyn Fn(&mut BenchmarkGroup<'_, M>)>;

/// As criterion 0.3's `ParameterizedBenchmark`: functions, each called with each parameter.
pub struct ParameterizedBenchmark<T: Debug, M: Measurement + 'static = WallTime> {
    settings: Vec<Setting<M>>,
    parameters: Vec<T>,
    routines: Vec<(String, Routine<T, M>)>,
    throughput: Option<ThroughputOf<T>>,
}

/// As criterion 0.3's `Benchmark`: functions without a parameter.
pub struct Benchmark<M: Measurement + 'static = WallTime>(ParameterizedBenchmark<(), M>);

/// As criterion 0.3's `Fun`: a named function of an input.
pub struct Fun<I: Debug, M: Measurement + 'static = WallTime> {
    name: String,
    routine: Routine<I, M>,
}

/// What [`Criterion::bench`] takes.
pub trait BenchmarkDefinition<M: Measurement + 'static = WallTime>: Sized {
    #[doc(hidden)]
    fn run(self, group: &str, criterion: &mut Criterion<M>);
}

/// Criterion's settings, which mean nothing to a worker.
macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident($argument:ident: $type:ty);)*) => {
        impl<T: Debug, M: Measurement + 'static> ParameterizedBenchmark<T, M> {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(mut self, $argument: $type) -> Self {
                    self.settings.push(Box::new(move |group| {
                        group.$name($argument.clone());
                    }));
                    self
                }
            )*
        }

        impl<M: Measurement + 'static> Benchmark<M> {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(self, $argument: $type) -> Self {
                    Self(self.0.$name($argument))
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

impl<T: Debug + 'static, M: Measurement + 'static> ParameterizedBenchmark<T, M> {
    /// One function, and its parameters.
    pub fn new<S, F, I>(id: S, f: F, parameters: I) -> Self
    where
        S: Into<String>,
        F: FnMut(&mut Bencher<'_, M>, &T) + 'static,
        I: IntoIterator<Item = T>,
    {
        Self::of(parameters.into_iter().collect()).with_function(id, f)
    }

    fn of(parameters: Vec<T>) -> Self {
        Self { settings: Vec::new(), parameters, routines: Vec::new(), throughput: None }
    }

    /// Another function of the same parameters.
    #[must_use]
    pub fn with_function<S, F>(mut self, id: S, f: F) -> Self
    where
        S: Into<String>,
        F: FnMut(&mut Bencher<'_, M>, &T) + 'static,
    {
        self.routines.push((id.into(), Box::new(f)));
        self
    }

    /// What an iteration with a parameter gets through.
    #[must_use]
    pub fn throughput<F>(mut self, throughput: F) -> Self
    where
        F: Fn(&T) -> Throughput + 'static,
    {
        self.throughput = Some(Box::new(throughput));
        self
    }
}

impl<M: Measurement + 'static> Benchmark<M> {
    /// One function.
    pub fn new<S, F>(id: S, f: F) -> Self
    where
        S: Into<String>,
        F: FnMut(&mut Bencher<'_, M>) + 'static,
    {
        Self(ParameterizedBenchmark::of(vec![()])).with_function(id, f)
    }

    /// Another function.
    #[must_use]
    pub fn with_function<S, F>(self, id: S, mut f: F) -> Self
    where
        S: Into<String>,
        F: FnMut(&mut Bencher<'_, M>) + 'static,
    {
        Self(self.0.with_function(id, move |bencher, ()| f(bencher)))
    }

    /// What an iteration gets through.
    #[must_use]
    pub fn throughput(self, throughput: Throughput) -> Self {
        Self(self.0.throughput(move |()| throughput.clone()))
    }
}

impl<I: Debug, M: Measurement + 'static> Fun<I, M> {
    /// A function and its name.
    pub fn new<F>(name: &str, f: F) -> Self
    where
        F: FnMut(&mut Bencher<'_, M>, &I) + 'static,
    {
        Self { name: name.to_owned(), routine: Box::new(f) }
    }
}

impl<T: Debug, M: Measurement + 'static> BenchmarkDefinition<M> for ParameterizedBenchmark<T, M> {
    fn run(self, name: &str, criterion: &mut Criterion<M>) {
        let Self { settings, parameters, routines, throughput } = self;
        let is_only = routines.len() == 1;
        let mut group = criterion.benchmark_group(name);
        settings.iter().for_each(|set| set(&mut group));
        for (function, mut routine) in routines {
            for parameter in &parameters {
                if let Some(throughput) = &throughput {
                    group.throughput(throughput(parameter));
                }
                if parameters.len() == 1 {
                    group.bench_function(function.as_str(), |bencher| routine(bencher, parameter));
                    continue;
                }
                let said = format!("{parameter:?}");
                let is_group = is_only && function == name;
                let id =
                    if is_group { BenchmarkId::from_parameter(said) } else { BenchmarkId::new(function.clone(), said) };
                group.bench_with_input(id, parameter, &mut routine);
            }
        }
        group.finish();
    }
}

impl<M: Measurement + 'static> BenchmarkDefinition<M> for Benchmark<M> {
    fn run(self, name: &str, criterion: &mut Criterion<M>) {
        self.0.run(name, criterion);
    }
}

impl<M: Measurement + 'static> Criterion<M> {
    /// Functions that are defined apart.
    pub fn bench<B: BenchmarkDefinition<M>>(&mut self, group: &str, benchmark: B) -> &mut Self {
        benchmark.run(group, self);
        self
    }

    /// Several functions of one input.
    pub fn bench_functions<I: Debug + 'static>(&mut self, id: &str, functions: Vec<Fun<I, M>>, input: I) -> &mut Self {
        let routines = functions.into_iter().map(|function| (function.name, function.routine)).collect();
        self.bench(id, ParameterizedBenchmark { routines, ..ParameterizedBenchmark::of(vec![input]) })
    }

    /// A function of several inputs.
    pub fn bench_function_over_inputs<I, F>(&mut self, id: &str, f: F, inputs: I) -> &mut Self
    where
        I: IntoIterator,
        I::Item: Debug + 'static,
        F: FnMut(&mut Bencher<'_, M>, &I::Item) + 'static,
    {
        self.bench(id, ParameterizedBenchmark::new(id, f, inputs))
    }

    /// Whether plots can be drawn: as in criterion 0.3, always.
    #[must_use]
    pub fn can_plot(&self) -> bool {
        true
    }
}
