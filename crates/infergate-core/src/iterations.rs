//! How many iterations make one sample, so that reading the clock is little against it.

/// A sample takes at least about this long, nanoseconds, by as many iterations as that needs: reading the clock takes some 50.
pub const LEAST_SAMPLE_NS: f64 = 1e5;
/// An iteration that took this long is no fast one that was interrupted; another is looked at so many times more.
pub const SURELY_SLOW_NS: f64 = 1e7;
/// Further looks.
pub const LOOKS: usize = 4;
/// Iterations by which the time of a fast one is found.
pub const LOOK_ITERATIONS: usize = 64;

/// Iterations that make a sample of a case whose iteration takes `iteration_ns`.
pub fn fitting_iterations(iteration_ns: f64) -> usize {
    (LEAST_SAMPLE_NS / iteration_ns.max(1.0)).ceil().max(1.0) as usize
}
