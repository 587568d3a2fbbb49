//! The times of one request: what is derived from them, and what is undefined.

use infergate::trace::Trace;
use proptest::prelude::*;

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

proptest! {
    #[test]
    fn the_parts_add_up(gaps in prop::collection::vec(0u64..1 << 40, 1..300)) {
        let token_ns: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
        let trace = Trace::new(token_ns).unwrap();
        let (ttft, e2e) = (trace.ttft_ns().unwrap(), trace.e2e_ns().unwrap());
        prop_assert!(ttft <= e2e);
        prop_assert_eq!(ttft + trace.itl_ns().iter().sum::<u64>(), e2e);
        prop_assert_eq!(trace.itl_ns(), &gaps[1..]);
        if gaps.len() > 1 {
            let itl = trace.itl_ns();
            let mean = itl.iter().sum::<u64>() as f64 / itl.len() as f64;
            prop_assert!((trace.tpot_ns().unwrap() - mean).abs() <= 1e-9 * mean.max(1.0));
        } else {
            prop_assert_eq!(trace.tpot_ns(), None);
        }
    }

    #[test]
    fn any_fall_is_refused(mut token_ns in prop::collection::vec(any::<u64>(), 2..50)) {
        token_ns.sort_unstable();
        let last = token_ns.len() - 1;
        prop_assume!(token_ns[0] != token_ns[last]);
        token_ns.swap(0, last);
        prop_assert!(Trace::new(token_ns).is_err());
    }
}
