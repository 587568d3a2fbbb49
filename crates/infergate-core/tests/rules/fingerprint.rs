//! The numbers behind a token: which are kept, and that a file gives them back to the last bit.

use infergate_core::receipt::{Fingerprint, StepLogits};

#[test]
fn the_best_eight_are_kept_and_the_lower_id_comes_first() {
    let mut logits = vec![0.0_f32; 100];
    for (id, logit) in [(3, 5.0), (50, 9.0), (51, 9.0), (99, 7.0)] {
        logits[id] = logit;
    }
    let step = StepLogits::of(4, &logits);
    let ids: Vec<u32> = step.top.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [50, 51, 99, 3, 0, 1, 2, 4]);
    let sum: f64 = logits.iter().map(|logit| f64::from(*logit).exp()).sum();
    assert!((step.log_sum_exp - sum.ln()).abs() < 1e-12);
    // One number anywhere in the vocabulary shows.
    logits[77] = 0.001;
    assert_ne!(StepLogits::of(4, &logits), step);
}

#[test]
fn large_logits_and_small_vocabularies_are_no_trouble() {
    let step = StepLogits::of(0, &[-1000.0, f32::NEG_INFINITY]);
    assert_eq!((step.log_sum_exp, step.top.len()), (-1000.0, 2));
    let nan = StepLogits::of(0, &[f32::NAN, 1.0]);
    assert_eq!(nan, nan.clone());
}

#[test]
fn a_line_that_was_edited_is_refused() {
    let step = StepLogits { position: 3, log_sum_exp: 2.25, top: vec![(1, 2.0), (0, 0.5)] };
    let line = step.to_string();
    assert_eq!(line, "3 4002000000000000 1:40000000 0:3f000000");
    for edited in [
        "",
        "3",
        "3 4002000000000000",
        "-3 4002000000000000 1:40000000",
        "3 400200000000000 1:40000000",
        "3 +002000000000000 1:40000000",
        "3 4002000000000000 1:4000000",
        "3 4002000000000000 1:40000000 ",
        "3 4002000000000000 99999999999:40000000",
    ] {
        assert!(edited.parse::<StepLogits>().is_err(), "{edited:?}");
    }
}

#[test]
fn signed_sums_lie_apart_as_far_as_all_logits_do() {
    let mut random = fastrand::Rng::with_seed(1);
    let (mut base, mut head) = (Fingerprint::default(), Fingerprint::default());
    let (mut squares, mut sums) = (0.0, 0.0);
    for position in 0..16 {
        let logits: Vec<f32> = (0..5000).map(|_| random.f32() * 20.0 - 10.0).collect();
        // The same ones are wrong by the same at each position.
        let other: Vec<f32> =
            logits.iter().zip(0_u32..).map(|(logit, id)| if id % 7 == 0 { logit + 0.01 } else { *logit }).collect();
        squares += logits.iter().zip(&other).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
        base.add(position, &logits);
        head.add(position, &other);
        let sum = |fingerprint: &Fingerprint| fingerprint.signed_sum(position).expect("a sum");
        sums += (sum(&base) - sum(&head)).powi(2);
    }
    let ratio = (sums / squares).sqrt();
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
    assert_eq!((base.logits, base.signed_sum(16)), (Some(5000), None));
    base.add(16, &[f32::NAN]);
    assert_eq!((base.logits, base.signed_sum(16)), (Some(0), Some(0.0)));
}
