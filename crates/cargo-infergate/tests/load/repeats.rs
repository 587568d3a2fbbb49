//! A prompt that is sent again and answered faster is called, and nothing else is.

use cargo_infergate::load::repeats::{fall, warnings};
use cargo_infergate::receipt::{LevelRecord, LoadReceipt};
use cargo_infergate::stats::median_interval;

use crate::receipt::sound;
use crate::summary::level;

const MS: u64 = 1_000_000;

/// 40 requests of one user, of 20 prompts in turn; the first token of a prompt's second use comes after `again_ms`, of its first
/// after 100 ms and up to 5 ms more.
fn repeated(again_ms: u64) -> LoadReceipt {
    let mut level = level(1, 40);
    for record in &mut level.requests {
        let ttft_ms = if record.request < 20 { 100 + record.request % 6 } else { again_ms };
        record.chunk_ns[0] = record.scheduled_ns + ttft_ms * MS;
    }
    LoadReceipt { dataset_prompts: Some(20), levels: vec![level], ..sound() }
}

#[test]
fn repeated_prompts_that_are_answered_faster_are_called_with_figures_and_what_to_change() {
    let said = warnings(&repeated(40), None);
    assert_eq!(said.len(), 1, "{said:?}");
    // The first use of the first prompt is warm-up.
    assert!(
        said[0].starts_with("chatbot, 1 user: prompts sent again got their first token in 0.39 of the time"),
        "{said:?}"
    );
    assert!(said[0].contains("(median of 19, 95 % interval 0.38 to 0.40)"), "{said:?}");
    assert!(said[0].ends_with("give --dataset more prompts than requests, or leave it out"), "{said:?}");
}

#[test]
fn noise_and_prompts_that_differ_are_not_called() {
    assert_eq!(warnings(&repeated(97), None), Vec::<String>::new());
    let unlike = LoadReceipt { dataset_prompts: Some(40), ..repeated(40) };
    assert_eq!(warnings(&unlike, None), Vec::<String>::new());
    let made_up = LoadReceipt { dataset_prompts: None, ..repeated(40) };
    assert_eq!(warnings(&made_up, None), Vec::<String>::new());
}

#[test]
fn too_few_first_uses_are_said_instead() {
    let few = LoadReceipt { dataset_prompts: Some(3), ..repeated(40) };
    let said = warnings(&few, None);
    assert!(said[0].contains("the dataset's 3 prompts were sent 40 times, and too few of them first"), "{said:?}");
}

#[test]
fn a_run_is_compared_with_an_earlier_one_of_the_same_prompts_request_by_request() {
    let earlier = LoadReceipt { dataset_prompts: None, ..repeated(100) };
    let mut faster = earlier.clone();
    for record in &mut faster.levels[0].requests {
        record.chunk_ns[0] -= 60 * MS;
    }
    let said = warnings(&faster, Some(&earlier));
    assert!(said[0].contains("of the earlier run got their first token in 0.4"), "{said:?}");
    assert!(said[0].ends_with("leave out --same-prompts, or start the server anew"), "{said:?}");
    assert_eq!(warnings(&earlier, Some(&earlier)), Vec::<String>::new());
    let other = LoadReceipt { levels: vec![LevelRecord { scenario: 1, ..faster.levels[0].clone() }], ..faster };
    assert_eq!(warnings(&other, Some(&earlier)), Vec::<String>::new(), "another load");
}

#[test]
fn the_interval_is_that_of_the_sign_test() {
    let values: Vec<f64> = (1..=20).map(f64::from).collect();
    // P(B <= 5) = 0.0207 and P(B <= 6) = 0.0577 for 20 throws of a coin.
    assert_eq!(median_interval(&values), Some((6.0, 15.0)));
    assert_eq!(median_interval(&values[..6]), Some((1.0, 6.0)));
    assert_eq!(median_interval(&values[..5]), None);
    assert_eq!(median_interval(&[f64::NAN; 9]), None);
    assert_eq!(fall(&[(1.0, 0.5); 5]), None);
    assert!(fall(&[(1.0, 0.5); 6]).is_some_and(|fall| fall.is_called && fall.ratio == 0.5));
    assert!(fall(&[(1.0, 0.95); 60]).is_some_and(|fall| !fall.is_called));
    assert_eq!(fall(&[(0.0, 1.0); 20]), None);
}
