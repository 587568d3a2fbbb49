//! Properties of what measuring is made of: cases, token times, subjects, fingerprints, printable text.
//!
//! They stand here because the development dependencies of the package they are about are built by every `cargo bench`.

use infergate_core::case::Case;
use infergate_core::printable::{printable, printable_report};
use infergate_core::receipt::{StepLogits, Subject};
use infergate_core::trace::Times;
use proptest::prelude::*;

proptest! {
    #[test]
    fn every_case_survives_its_id(prompt_tokens in 1usize.., output_tokens in 1usize..) {
        let cases = [
            Case::Prefill { prompt_tokens },
            Case::Decode { prompt_tokens },
            Case::Generate { prompt_tokens, output_tokens },
        ];
        for case in cases {
            prop_assert_eq!(case.to_string().parse::<Case>().unwrap(), case);
        }
    }

    #[test]
    fn any_text_is_a_case_or_an_error(id in "\\PC{0,24}", context in any::<usize>()) {
        if let Ok(case) = id.parse::<Case>() {
            prop_assert!(case.prompt_tokens() > 0 && case.output_tokens() > 0);
            let _ = case.ensure_fits(context);
        }
    }

    #[test]
    fn no_token_count_wraps_around_the_context(prompt_tokens in usize::MAX - 4.., output_tokens in usize::MAX - 4..) {
        for case in [Case::Generate { prompt_tokens, output_tokens }, Case::Decode { prompt_tokens }] {
            prop_assert!(case.ensure_fits(1024).is_err());
        }
    }
}

proptest! {
    #[test]
    fn the_parts_add_up(gaps in prop::collection::vec(0u64..1 << 40, 1..300)) {
        let token_ns: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
        let times = Times::of_tokens(&token_ns);
        let itl: Vec<f64> = times.gaps_ns().collect();
        let (ttft, e2e) = (times.ttft_ns().unwrap(), times.e2e_ns().unwrap());
        prop_assert_eq!(ttft + itl.iter().sum::<f64>(), e2e);
        prop_assert_eq!(itl.len(), gaps.len() - 1);
        match times.tpot_ns() {
            Some(tpot) => {
                let mean = itl.iter().sum::<f64>() / itl.len() as f64;
                prop_assert!((tpot - mean).abs() <= 1e-9 * mean.max(1.0));
            }
            None => prop_assert!(itl.is_empty()),
        }
    }
}

proptest! {
    #[test]
    fn every_subject_survives_its_text(name in "\\PC{1,40}", prompt in 1usize..9999) {
        let case = Case::Prefill { prompt_tokens: prompt };
        for subject in [Subject::Load(name), Subject::Case(case), Subject::Model] {
            prop_assert_eq!(subject.to_string().parse::<Subject>().unwrap(), subject.clone());
            let json = serde_json::to_string(&subject).unwrap();
            prop_assert_eq!(serde_json::from_str::<Subject>(&json).unwrap(), subject);
        }
    }
}

proptest! {
    #[test]
    fn a_file_gives_back_every_bit(position in 0..10_000_usize, bits in prop::collection::vec(any::<u32>(), 1..40)) {
        let logits: Vec<f32> = bits.iter().map(|bits| f32::from_bits(*bits)).collect();
        let step = StepLogits::of(position, &logits);
        let text = serde_json::to_string(&step).unwrap();
        prop_assert_eq!(serde_json::from_str::<StepLogits>(&text).unwrap(), step);
    }
}

proptest! {
    #[test]
    fn whatever_comes_it_is_one_line_and_stays_what_it_is(text in any::<String>()) {
        let shown = printable(&text);
        prop_assert!(!shown.chars().any(char::is_control));
        prop_assert_eq!(printable(&shown), shown.clone());
        let report = printable_report(&text);
        let foreign = report.chars().any(|c| c.is_control() && !['\n', '\u{1b}'].contains(&c));
        prop_assert!(!foreign);
    }
}
