//! The times of one request: what is derived from them, and what is undefined.

use infergate_core::metric::Metric;
use infergate_core::trace::Times;

const ALL: [Metric; 5] = [Metric::Ttft, Metric::Tpot, Metric::E2e, Metric::DecodeSpeed, Metric::OutputThroughput];

fn values(token_ns: &[u64]) -> [Option<f64>; 5] {
    ALL.map(|metric| metric.value(Times::of_tokens(token_ns)))
}

#[test]
fn one_request_by_hand() {
    let token_ns = [100, 130, 130, 190];
    let expected = [100.0, 30.0, 190.0, 1e9 / 30.0, 4.0 * 1e9 / 190.0];
    assert_eq!(values(&token_ns), expected.map(Some));
    assert_eq!(Metric::Itl.of(Times::of_tokens(&token_ns)), [30.0, 0.0, 60.0]);
}

#[test]
fn without_a_token_nothing_is_defined() {
    assert_eq!(values(&[]), [None; 5]);
    assert!(Metric::Itl.of(Times::of_tokens(&[])).is_empty());
}

#[test]
fn one_token_has_a_first_and_no_gap() {
    assert_eq!(values(&[50]), [Some(50.0), None, Some(50.0), None, Some(1e9 / 50.0)]);
    assert!(Metric::Itl.of(Times::of_tokens(&[50])).is_empty());
}

#[test]
fn speed_is_undefined_when_no_time_passed() {
    assert_eq!(values(&[0, 0]), [Some(0.0), Some(0.0), Some(0.0), None, None]);
}
