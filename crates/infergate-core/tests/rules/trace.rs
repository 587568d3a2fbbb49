//! The times of one request: what is derived from them, and what is undefined.

use infergate_core::trace::Trace;

#[test]
fn one_request_by_hand() {
    let trace = Trace::new(vec![100, 130, 130, 190]).expect("times that rise");
    assert_eq!(trace.ttft_ns(), Some(100));
    assert_eq!(trace.itl_ns(), [30, 0, 60]);
    assert_eq!(trace.generation_ns(), Some(90));
    assert_eq!(trace.tpot_ns(), Some(30.0));
    assert_eq!(trace.e2e_ns(), Some(190));
    assert_eq!(trace.decode_tokens_per_s(), Some(1e9 / 30.0));
    assert_eq!(trace.output_tokens_per_s(), Some(4.0 * 1e9 / 190.0));
}

#[test]
fn without_a_token_nothing_is_defined() {
    let trace = Trace::default();
    assert_eq!((trace.ttft_ns(), trace.e2e_ns(), trace.generation_ns()), (None, None, None));
    assert_eq!((trace.tpot_ns(), trace.decode_tokens_per_s(), trace.output_tokens_per_s()), (None, None, None));
    assert!(trace.itl_ns().is_empty());
}

#[test]
fn one_token_has_a_first_and_no_gap() {
    let trace = Trace::new(vec![50]).expect("one time");
    assert_eq!((trace.ttft_ns(), trace.e2e_ns()), (Some(50), Some(50)));
    assert_eq!((trace.tpot_ns(), trace.generation_ns(), trace.decode_tokens_per_s()), (None, None, None));
    assert!(trace.itl_ns().is_empty());
}

#[test]
fn speed_is_undefined_when_no_time_passed() {
    let trace = Trace::new(vec![0, 0]).expect("times that do not fall");
    assert_eq!((trace.decode_tokens_per_s(), trace.output_tokens_per_s()), (None, None));
    assert_eq!(trace.tpot_ns(), Some(0.0));
}

#[test]
fn times_that_fall_are_refused() {
    let error = Trace::new(vec![10, 9]).expect_err("falling times");
    assert!(error.to_string().contains("token times decrease"), "{error}");
}
