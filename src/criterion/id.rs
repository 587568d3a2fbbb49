//! Names of benches, made as criterion makes them.

use std::fmt::Display;

/// A bench's name within its group: a function, a parameter, or both.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BenchmarkId {
    function: Option<String>,
    parameter: Option<String>,
}

impl BenchmarkId {
    /// `function/parameter`.
    pub fn new<S: Into<String>, P: Display>(function_name: S, parameter: P) -> Self {
        Self { function: Some(function_name.into()), parameter: Some(parameter.to_string()) }
    }

    /// One function with this parameter.
    pub fn from_parameter<P: Display>(parameter: P) -> Self {
        Self { function: None, parameter: Some(parameter.to_string()) }
    }

    /// The whole id outside a group, where the function is the group, as criterion's filter and `--list` have it.
    pub(super) fn alone(&self) -> String {
        let parts = [self.function.as_deref(), self.parameter.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join("/")
    }

    /// The same for criterion.
    pub(super) fn of_criterion(self) -> ::criterion::BenchmarkId {
        match (self.function, self.parameter) {
            (Some(function), Some(parameter)) => ::criterion::BenchmarkId::new(function, parameter),
            (function, parameter) => {
                ::criterion::BenchmarkId::from_parameter(parameter.or(function).unwrap_or_default())
            }
        }
    }

    /// Only the function, where there is no parameter: criterion has no constructor for that but from a text.
    pub(super) fn function_alone(&self) -> Option<&str> {
        self.function.as_deref().filter(|_| self.parameter.is_none())
    }
}

/// What names a bench in a group: a [`BenchmarkId`], or a text.
pub trait IntoBenchmarkId {
    /// The id.
    fn into_benchmark_id(self) -> BenchmarkId;
}

impl IntoBenchmarkId for BenchmarkId {
    fn into_benchmark_id(self) -> BenchmarkId {
        self
    }
}

impl<S: Into<String>> IntoBenchmarkId for S {
    fn into_benchmark_id(self) -> BenchmarkId {
        BenchmarkId { function: Some(self.into()), parameter: None }
    }
}
