//! Shards of a level do together what one client does: the same schedule, no prompt twice, each user once.

use std::collections::BTreeSet;

use infergate_core::load::{Arrivals, RequestRecord, Spacing, Stop};
use infergate_load::plan::shard::Shard;
use infergate_load::plan::{LoadPlan, Prompts};
use infergate_load::targets::Outcome;

use crate::load::runner::{plan, prompt_of, run};
use crate::load::script::{Script, answer};

fn shard(index: u32, count: u32) -> Shard {
    Shard { index, count }
}

/// Each shard's run of `plan`, and the prompts it sent.
fn in_shards(plan: &LoadPlan, count: u32) -> Vec<(Outcome, Vec<String>)> {
    let one = |index| {
        let script = Script::new([answer(40, 20, 4)]);
        let (ran, _) = run(&script, LoadPlan { shard: shard(index, count), ..plan.clone() }, None);
        let prompts = script.requests.borrow().iter().map(|request| prompt_of(request)).collect();
        (ran, prompts)
    };
    (0..count).map(one).collect()
}

fn measured(ran: &Outcome) -> impl Iterator<Item = &RequestRecord> {
    ran.level.requests.iter().filter(|record| record.measured)
}

#[test]
fn an_open_loop_in_shards_is_the_schedule_of_one_client() {
    for (spacing, turns) in [(Spacing::Poisson, 1), (Spacing::Gamma { shape: 0.5 }, 1), (Spacing::Poisson, 3)] {
        let arrivals = Arrivals::Open { requests_per_s: 20.0, spacing };
        let mut whole = plan(arrivals, Stop::Requests { count: 50 });
        whole.shape.turns = turns;
        whole.shape.turn_tokens = 5;
        let script = Script::new([answer(40, 20, 4)]);
        run(&script, whole.clone(), None);
        let expected: Vec<String> = script.requests.borrow().iter().map(|request| prompt_of(request)).collect();
        let shards = in_shards(&whole, 3);
        assert_eq!(shards.iter().map(|(ran, _)| measured(ran).count()).sum::<usize>(), 50);
        let schedule: Vec<u64> = arrivals.starts(whole.seed).expect("a schedule").take(500).collect();
        for (index, (ran, _)) in (0..).zip(&shards) {
            assert!(ran.level.requests.iter().all(|record| record.request % 3 == index));
            assert!(ran.level.requests.iter().all(|record| record.scheduled_ns == schedule[record.request as usize]));
            let first = measured(ran).next().expect("some");
            assert!(first.scheduled_ns >= ran.level.requests[0].ended_ns, "each shard has its warm-up");
        }
        let prompts: Vec<String> = shards.into_iter().flat_map(|(_, prompts)| prompts).collect();
        let unique: BTreeSet<&String> = prompts.iter().collect();
        assert_eq!(unique.len(), prompts.len(), "none is sent twice");
        assert!(expected[..51].iter().all(|prompt| unique.contains(prompt)), "warm-up and all that are measured");
    }
}

#[test]
fn users_are_shared_out_and_no_prompt_is_sent_twice() {
    let whole = plan(Arrivals::Closed { users: 5 }, Stop::Requests { count: 31 });
    let shards = in_shards(&whole, 2);
    let users = |ran: &Outcome| {
        let mut users: Vec<u32> = ran.level.requests.iter().map(|record| record.user).collect();
        users.sort_unstable();
        users.dedup();
        users
    };
    assert_eq!((users(&shards[0].0), users(&shards[1].0)), (vec![0, 2, 4], vec![1, 3]));
    assert_eq!((measured(&shards[0].0).count(), measured(&shards[1].0).count()), (16, 15));
    let mut prompts: Vec<&String> = shards.iter().flat_map(|(_, prompts)| prompts).collect();
    let sent = prompts.len();
    prompts.sort_unstable();
    prompts.dedup();
    assert_eq!(prompts.len(), sent);
}

/// Nobody tells a shard that the others still measure.
#[test]
fn a_shard_keeps_its_load_for_as_long_again_as_its_longest_measured_request_took() {
    let whole = plan(Arrivals::Closed { users: 4 }, Stop::Requests { count: 12 });
    for (ran, _) in in_shards(&whole, 2) {
        let last_ns = measured(&ran).map(|record| record.ended_ns).max().expect("some");
        let window = ran.level.steady.expect("steady");
        assert_eq!(window.to_ns, last_ns + 100_000_000, "an answer takes 100 ms");
        assert!(ran.level.requests.iter().any(|record| record.ended_ns >= window.to_ns));
    }
}

#[test]
fn each_shard_sends_its_own_rows_of_a_dataset() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = folder.path().join("data.jsonl");
    let rows: Vec<String> = (0..6).map(|row| format!("{{\"prompt\": \"row {row}\"}}")).collect();
    std::fs::write(&path, rows.join("\n")).expect("a file");
    let dataset = infergate_load::plan::dataset::Dataset::read(&path).expect("a dataset");
    let mut whole = plan(Arrivals::Closed { users: 2 }, Stop::Requests { count: 6 });
    whole.prompts = Prompts::File { dataset: dataset.into(), targets: 1 };
    let sent: Vec<Vec<String>> = in_shards(&whole, 2).into_iter().map(|(_, prompts)| prompts).collect();
    assert_eq!(sent[0][..4], ["row 0", "row 2", "row 4", "row 0"], "in turn");
    assert_eq!(sent[1][..4], ["row 1", "row 3", "row 5", "row 1"]);
}

#[test]
fn a_shard_that_is_none_is_refused() {
    for (text, word) in [
        ("3/2", "no shard 3 of 2; they are numbered from 1 to 2"),
        ("0/2", "no shard 0 of 2"),
        ("0/0", "0 shards"),
        ("1", "K/N"),
        ("-1/2", "K/N"),
        ("1/5000", "there can be 1 to"),
    ] {
        let error = text.parse::<Shard>().expect_err(text).to_string();
        assert!(error.contains(word), "{error}");
    }
    assert_eq!("1/4".parse::<Shard>().expect("a shard"), shard(0, 4));
}
