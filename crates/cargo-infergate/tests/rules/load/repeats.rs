//! A prompt that is sent again and answered faster is called, and nothing else is.

use infergate_load::summary::repeats::warnings;
use infergate_receipts::{LevelRecord, LoadReceipt};

use crate::load::queue::{Load, Queue, Server};
use crate::load::receipt::sound;
use crate::load::summary::level;

const MS: u64 = 1_000_000;

/// 60 requests of one user, whose first tokens come after so long.
fn answered(after_ms: impl Fn(u64) -> u64) -> LoadReceipt {
    let mut level = level(1, 60);
    for record in &mut level.requests {
        record.chunk_ns[0] = record.scheduled_ns + after_ms(record.request) * MS;
    }
    LoadReceipt { levels: vec![level], ..sound() }
}

/// Of 30 prompts in turn; the first token of a prompt's second use comes after `again_ms`, of its first after 100 ms and up to 5 ms more.
fn repeated(again_ms: u64) -> LoadReceipt {
    let receipt = answered(|request| if request < 30 { 100 + request % 6 } else { again_ms });
    LoadReceipt { dataset_prompts: Some(30), ..receipt }
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
    assert!(said[0].contains("(median of 29, 95 % interval 0.38 to 0.40)"), "{said:?}");
    assert!(said[0].ends_with("give --dataset more prompts than requests, or leave it out"), "{said:?}");
}

#[test]
fn noise_and_prompts_that_differ_are_not_called() {
    assert_eq!(warnings(&repeated(97), None), Vec::<String>::new());
    let unlike = LoadReceipt { dataset_prompts: Some(60), ..repeated(40) };
    assert_eq!(warnings(&unlike, None), Vec::<String>::new());
    let made_up = LoadReceipt { dataset_prompts: None, ..repeated(40) };
    assert_eq!(warnings(&made_up, None), Vec::<String>::new());
}

#[test]
fn a_run_is_compared_with_an_earlier_one_of_the_same_prompts_request_by_request() {
    let earlier = answered(|request| 100 + request % 6);
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

/// Of 100 runs of a made-up server each, in which `prompts` prompts are sent twice: how many are called, of those from which it can be
/// told. The first token of a second use comes after the part `again` of the time.
fn called(server: Server, users: u32, prompts: u64, again: f64) -> (usize, usize) {
    const RUNS: usize = 100;
    let mut queue = Queue::warm(server, Load::Closed(users), 33);
    let mut told = (0, 0);
    for _ in 0..RUNS {
        let mut level = queue.level(2 * prompts as usize);
        for (number, record) in (0..).zip(&mut level.requests) {
            record.request = number;
            // A prompt takes some time of its own.
            let wait_ns = record.chunk_ns[0] - record.sent_ns + 20 * MS;
            let part = if number < prompts { 1.0 } else { again };
            record.chunk_ns[0] = record.sent_ns + (wait_ns as f64 * part) as u64;
        }
        let said = warnings(&LoadReceipt { dataset_prompts: Some(prompts), levels: vec![level], ..sound() }, None);
        let is_called = said.iter().any(|what| what.contains("sent again"));
        told = (told.0 + usize::from(is_called), told.1 + usize::from(is_called || said.is_empty()));
    }
    told
}

#[test]
fn a_server_without_a_cache_is_seldom_called_where_requests_wait_for_each_other() {
    for slots in [1, 4, 16] {
        for fixed in [0.0, 0.8] {
            for prompts in [60, 300] {
                let users = 2 * slots as u32;
                let (wrong, told) = called(Server { slots, fixed }, users, prompts, 1.0);
                let (right, of) = called(Server { slots, fixed }, users, prompts, 0.4);
                println!(
                    "{slots} slots, {fixed} fixed, {prompts} prompts: called {wrong} of {told}, with a cache {right} of {of}"
                );
                // A chance of 2.5 % is above this in one of a thousand.
                let most = 0.025 * told as f64 + 3.1 * (0.025 * told as f64).sqrt();
                assert!(wrong as f64 <= most, "{wrong} of {told}");
                assert!(prompts < 300 || (of > 50 && right as f64 >= 0.9 * of as f64), "{right} of {of}");
            }
        }
    }
}
