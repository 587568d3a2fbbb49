//! A measurement that criterion and a [`Bencher`](super::Bencher) both use: criterion keeps its own to itself.

use std::sync::Arc;

use ::criterion::measurement::{Measurement, ValueFormatter};

/// `M`, held by two.
pub struct Shared<M>(pub Arc<M>);

impl<M: Measurement> Measurement for Shared<M> {
    type Intermediate = M::Intermediate;
    type Value = M::Value;

    fn start(&self) -> Self::Intermediate {
        self.0.start()
    }

    fn end(&self, begun: Self::Intermediate) -> Self::Value {
        self.0.end(begun)
    }

    fn add(&self, one: &Self::Value, other: &Self::Value) -> Self::Value {
        self.0.add(one, other)
    }

    fn zero(&self) -> Self::Value {
        self.0.zero()
    }

    fn to_f64(&self, value: &Self::Value) -> f64 {
        self.0.to_f64(value)
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        self.0.formatter()
    }
}
