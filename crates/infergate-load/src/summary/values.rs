//! Values of a metric over a level's requests, failed ones included: their percentiles and where these lie. Pure.

use infergate_core::load::RequestRecord;
use infergate_core::metric::Metric;
use infergate_core::stats::{Queue, Timed, neighbours, percentile_interval, samples_needed};

/// Values of a metric, taken from some requests.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Values {
    /// Each value of the requests that completed, in the order of their starts.
    pub values: Vec<f64>,
    /// The requests they are from: gaps of one request are not independent of each other.
    pub requests: usize,
    /// Requests that failed. Each counts in a percentile like one that completed, infinitely slow; a speed has none of them.
    pub failed: usize,
    /// How many values each request gave; 0: it failed.
    counts: Vec<usize>,
}

impl Values {
    /// Values of `requests` in the order of their starts. Requests that completed and have none are left out.
    pub fn of(requests: &[&RequestRecord], values: impl Fn(&RequestRecord) -> Vec<f64>) -> Self {
        let mut found = Self::default();
        for record in requests {
            if record.failure.is_some() {
                found.failed += 1;
                found.counts.push(0);
                continue;
            }
            let its = values(record);
            if !its.is_empty() {
                found.requests += 1;
                found.counts.push(its.len());
                found.values.extend(its);
            }
        }
        found
    }

    /// Values of `metric`. A request that failed is infinitely slow, and no sample of a speed.
    pub fn of_metric(requests: &[&RequestRecord], metric: Metric) -> Self {
        let mut requests = requests.to_vec();
        requests.retain(|record| !metric.is_rate() || record.failure.is_none());
        Self::of(&requests, |record| metric.of(record))
    }

    /// The percentile at `p`. `None` where it is from fewer requests than it needs, or falls among those that failed.
    pub fn at(&self, p: f64) -> Option<f64> {
        self.with_failures(p).filter(|value| value.is_finite())
    }

    /// As [`at`](Self::at), and infinite where it falls among those that failed.
    pub fn with_failures(&self, p: f64) -> Option<f64> {
        if self.requests + self.failed < samples_needed(p)? {
            return None;
        }
        // As many each as the others in the mean.
        let lost = (self.failed as f64 * self.weight_of_failed()).round() as usize;
        let last = (self.values.len() + lost).checked_sub(1)?;
        Some(at_place(self.values.clone(), p * last as f64))
    }

    /// Where the percentile at `p` lies, 95 %, by batch means over time ([`percentile_interval`]); the upper end is infinite where
    /// failures reach it. `None` where requests are too few for how much they depend on each other.
    pub fn within(&self, p: f64, queue: Queue) -> Option<(f64, f64)> {
        percentile_interval(&self.timed(), p, queue)
    }

    /// What each request gave, in the order of their starts; infinity of one that failed.
    pub fn in_order(&self) -> Vec<f64> {
        self.timed().into_iter().map(|timed| timed.value).collect()
    }

    /// How much neighbouring requests are alike, 0 to 1.
    pub fn dependence(&self) -> f64 {
        neighbours(&self.timed())
    }

    fn weight_of_failed(&self) -> f64 {
        if self.requests == 0 { 1.0 } else { self.values.len() as f64 / self.requests as f64 }
    }

    fn timed(&self) -> Vec<Timed> {
        let mut timed = Vec::with_capacity(self.values.len() + self.failed);
        let mut values = self.values.iter();
        for (request, count) in self.counts.iter().enumerate() {
            if *count == 0 {
                timed.push(Timed { value: f64::INFINITY, weight: self.weight_of_failed(), request });
            }
            timed.extend(values.by_ref().take(*count).map(|value| Timed { value: *value, weight: 1.0, request }));
        }
        timed
    }
}

/// The value at the place `at`, from 0, of these in order, or between two of them; infinite behind the last one.
pub fn at_place(mut values: Vec<f64>, at: f64) -> f64 {
    let place = at.floor() as usize;
    if place >= values.len() {
        return f64::INFINITY;
    }
    let (_, low, above) = values.select_nth_unstable_by(place, f64::total_cmp);
    let high = above.iter().copied().min_by(f64::total_cmp).unwrap_or(f64::INFINITY);
    if *low == high || at.fract() == 0.0 { *low } else { *low + at.fract() * (high - *low) }
}
