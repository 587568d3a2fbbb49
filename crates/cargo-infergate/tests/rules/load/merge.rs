//! Receipts of shards, put together: what one client would have written, or a refusal that names a file.

use std::collections::BTreeMap;

use infergate_core::load::{Arrivals, Failure, FailureClass, RequestRecord, Spacing, unmark};
use infergate_load::merge::merge;
use infergate_load::plan::shard::Shard;
use infergate_load::summary::{Window, counted_requests, steady_window, summarise};
use infergate_receipts::{LevelRecord, LoadReceipt, ShardRecord};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::gate::load_runs::of;
use crate::load::receipt::sound;
use crate::load::text;

const MS: u64 = 1_000_000;
/// Levels begin so late that no shard's clock starts after them.
const BEGAN_NS: u64 = 1_000 * MS;
const EPOCH_NS: u64 = 1_790_000_000_000_000_000;

/// A request that takes `ttft_ms` and 3 gaps of `gap_ms`.
fn request(number: u64, user: u32, start_ns: u64, ttft_ms: u64, gap_ms: u64, fails: bool) -> RequestRecord {
    let chunk_ns: Vec<u64> = (0..4).map(|gap| start_ns + (ttft_ms + gap * gap_ms) * MS).collect();
    RequestRecord {
        request: number,
        user,
        scheduled_ns: start_ns,
        sent_ns: start_ns,
        connected_ns: number.is_multiple_of(3).then_some(start_ns),
        first_byte_ns: Some(start_ns),
        first_answer_ns: chunk_ns.first().copied(),
        ended_ns: start_ns + (ttft_ms + 3 * gap_ms) * MS,
        chunk_ns,
        output_tokens: Some(4),
        failure: fails.then(|| Failure { class: FailureClass::Timeout, status: None, detail: "late".into() }),
        ..RequestRecord::default()
    }
}

fn level(arrivals: Arrivals, warm_up_requests: u64, ramp_ns: u64, mut requests: Vec<RequestRecord>) -> LevelRecord {
    requests.sort_by_key(|record| record.request);
    let level = of(arrivals, requests);
    LevelRecord { warm_up_requests, ramp_ns, began_ns: BEGAN_NS, wall_ns: level.wall_ns - BEGAN_NS, ..level }
}

/// How long the requests of each user take: its first token and its gaps, and whether it fails.
type Lengths = Vec<Vec<(u64, u64, bool)>>;

/// A closed loop whose requests are numbered as `count` shards number them.
fn closed(lengths: &Lengths, count: u32, warm_up_requests: u64, ramp_ms: u64) -> LevelRecord {
    let users = lengths.len() as u32;
    let mut own = vec![0; count as usize];
    let mut requests = Vec::new();
    for (user, lengths) in (0..).zip(lengths) {
        let mut start_ns = BEGAN_NS + ramp_ms * MS * u64::from(user) / u64::from(users);
        let shard = user % count;
        for (ttft_ms, gap_ms, fails) in lengths {
            let number = own[shard as usize] * u64::from(count) + u64::from(shard);
            own[shard as usize] += 1;
            let record = request(number, user, start_ns, *ttft_ms, *gap_ms, *fails);
            start_ns = record.ended_ns;
            requests.push(record);
        }
    }
    level(Arrivals::Closed { users }, warm_up_requests, ramp_ms * MS, requests)
}

/// An open loop at 20 requests a second.
fn open(lengths: &[(u64, u64, bool)], warm_up_requests: u64) -> LevelRecord {
    let arrivals = Arrivals::Open { requests_per_s: 20.0, spacing: Spacing::Poisson };
    let starts = arrivals.starts(5).expect("a schedule");
    let requests = (0..).zip(lengths).zip(starts).map(|((number, (ttft_ms, gap_ms, fails)), start_ns)| {
        request(number, 0, BEGAN_NS + start_ns, *ttft_ms, *gap_ms, *fails)
    });
    level(arrivals, warm_up_requests, 0, requests.collect())
}

/// From when the last user had ended its warm-up until the first one had no more to send; in an open loop from the first start behind
/// the warm-up to the last.
fn window(level: &LevelRecord) -> Option<Window> {
    let warm_up = usize::try_from(level.warm_up_requests).ok()?;
    // Before it not everybody had begun, or the rate was not reached.
    let full_ns = level.began_ns.saturating_add(level.ramp_ns);
    let (from_ns, to_ns) = match level.arrivals {
        Arrivals::Open { .. } => {
            let mut starts = level.requests.get(warm_up..)?.iter().map(|record| record.scheduled_ns);
            (starts.find(|start_ns| *start_ns >= full_ns)?, level.requests.last()?.scheduled_ns)
        }
        Arrivals::Closed { users } => {
            let mut ends: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
            for record in &level.requests {
                ends.entry(record.user).or_default().push(record.ended_ns);
            }
            if users == 0 || ends.len() != users as usize {
                return None;
            }
            let mut window = (full_ns, u64::MAX);
            for ends in ends.values() {
                // Who did warm-up alone leaves no window.
                ends.get(warm_up)?;
                let warm = warm_up.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or(full_ns);
                window = (window.0.max(warm), window.1.min(*ends.last()?));
            }
            window
        }
    };
    (from_ns < to_ns).then_some(Window { from_ns, to_ns })
}

/// As the receipt of a client that kept its load to the end of `level`.
fn marked(mut level: LevelRecord) -> LevelRecord {
    level.steady = window(&level);
    let from_ns = level.steady.map_or(u64::MAX, |window| window.from_ns);
    level.requests.iter_mut().for_each(|record| record.measured = record.scheduled_ns >= from_ns);
    unmark(&mut level.requests, level.steady);
    level
}

fn whole(levels: Vec<LevelRecord>) -> LoadReceipt {
    let levels = levels.into_iter().map(marked).collect();
    LoadReceipt { audits: Vec::new(), notes: Vec::new(), levels, ..sound() }
}

/// What `count` shards with clocks that start so long after each other write of `receipt`.
fn split(receipt: &LoadReceipt, count: u32, clocks_ms: &[u64]) -> Vec<(String, LoadReceipt)> {
    (0..count)
        .map(|index| {
            let shard = Shard { index, count };
            let offset_ns = clocks_ms.get(index as usize).copied().unwrap_or(0) * MS;
            let mut own = receipt.clone();
            own.shards =
                vec![ShardRecord { index, count, run: "00ff00ff00ff00ff".into(), clock_unix_ns: EPOCH_NS + offset_ns }];
            for level in &mut own.levels {
                level.whole = Some(level.arrivals);
                level.arrivals = shard.arrivals(level.arrivals);
                level.stop = shard.stop(level.stop);
                if let Arrivals::Open { .. } = level.arrivals {
                    level.warm_up_requests = shard.share(level.warm_up_requests);
                }
                level.began_ns -= offset_ns;
                level.steady = level.steady.map(|Window { from_ns, to_ns }| Window {
                    from_ns: from_ns.saturating_sub(offset_ns),
                    to_ns: to_ns.saturating_sub(offset_ns),
                });
                level.requests.retain(|record| shard.has(record.request));
                level.requests.iter_mut().for_each(|record| earlier(record, offset_ns));
                let end_ns = level.requests.iter().map(|record| record.ended_ns).max().unwrap_or(level.began_ns);
                level.wall_ns = end_ns - level.began_ns;
            }
            (format!("{index}.json"), own)
        })
        .collect()
}

fn earlier(record: &mut RequestRecord, offset_ns: u64) {
    let RequestRecord {
        scheduled_ns, sent_ns, connected_ns, first_byte_ns, first_answer_ns, chunk_ns, ended_ns, ..
    } = record;
    let times = [scheduled_ns, sent_ns, ended_ns].into_iter();
    let optional = connected_ns.iter_mut().chain(first_byte_ns).chain(first_answer_ns);
    times.chain(optional).chain(chunk_ns).for_each(|time_ns| *time_ns -= offset_ns);
}

fn lengths() -> impl Strategy<Value = (u64, u64, bool)> {
    (1u64..200, 0u64..50, prop::bool::weighted(0.05))
}

proptest! {
    #[test]
    fn the_shards_of_a_receipt_give_it_back(
        users in vec(vec(lengths(), 1..12), 4..9),
        schedule in vec(lengths(), 1..80),
        count in 2u32..5,
        warm_up in 0u64..4,
        ramp_ms in prop_oneof![Just(0u64), 1u64..500],
        clocks_ms in vec(0u64..1000, 5),
    ) {
        let receipt = whole(vec![closed(&users, count, warm_up, ramp_ms), open(&schedule, warm_up)]);
        // The first clock is the earliest, as in the receipt itself.
        let clocks_ms: Vec<u64> = [0].into_iter().chain(clocks_ms).collect();
        let mut shards = split(&receipt, count, &clocks_ms);
        shards.reverse();
        let merged = merge(shards).expect("they fit");
        for (level, expected) in merged.levels.iter().zip(&receipt.levels) {
            prop_assert_eq!(summarise(level), summarise(expected));
        }
        prop_assert_eq!(&merged.levels, &receipt.levels);
        prop_assert_eq!(merged.shards.len(), count as usize);
    }
}

/// Four users with 20 requests of 160 ms each, and 40 requests of a schedule.
fn example() -> LoadReceipt {
    let users = vec![vec![(100, 20, false); 20]; 4];
    whole(vec![closed(&users, 2, 1, 0), open(&[(100, 20, false); 40], 2)])
}

#[test]
fn each_shard_keeps_its_audit_and_one_that_is_invalid_makes_all_invalid() {
    let receipt = LoadReceipt { audits: sound().audits, ..example() };
    let mut shards = split(&receipt, 2, &[]);
    shards[1].1.invalid = vec!["why".into()];
    shards[1].1.partial = true;
    let merged = merge(shards).expect("they fit");
    let whose: Vec<Option<u32>> = merged.audits.iter().map(|audit| audit.shard).collect();
    assert_eq!(whose, [Some(0), Some(1)]);
    assert!(merged.invalid.contains(&"shard 2 of 2: why".to_owned()), "{:?}", merged.invalid);
    assert!(merged.partial);
    assert!(text(&merged).contains("shard"));
}

#[test]
fn windows_of_shards_that_began_apart_are_cut_to_what_they_share() {
    let receipt = example();
    let alone: Vec<Window> = receipt.levels.iter().filter_map(steady_window).collect();
    let mut shards = split(&receipt, 2, &[]);
    // Its clock says that all it did came 500 ms later.
    shards[1].1.shards[0].clock_unix_ns += 500 * MS;
    let merged = merge(shards).expect("they fit");
    for (level, alone) in merged.levels.iter().zip(alone) {
        let expected = Window { from_ns: alone.from_ns + 500 * MS, to_ns: alone.to_ns };
        assert_eq!(steady_window(level), Some(expected));
    }
    let mut shards = split(&receipt, 2, &[]);
    shards[1].1.shards[0].clock_unix_ns += 60_000 * MS;
    let merged = merge(shards).expect("they fit");
    assert!(merged.levels.iter().all(|level| steady_window(level).is_none()));
    assert!(
        merged.invalid.iter().any(|reason| reason.contains("no steady time in common; start them together")),
        "{:?}",
        merged.invalid
    );
}

#[test]
fn a_schedule_counts_once_every_shard_is_warm() {
    let mut shards = split(&example(), 2, &[]);
    let level = &mut shards[1].1.levels[1];
    let window = level.steady.expect("steady");
    let from_ns = window.from_ns + 300 * MS;
    level.steady = Some(Window { from_ns, ..window });
    level.requests.iter_mut().for_each(|record| record.measured &= record.scheduled_ns >= from_ns);
    let merged = merge(shards).expect("they fit");
    assert_eq!(steady_window(&merged.levels[1]), Some(Window { from_ns, ..window }));
    let counted = counted_requests(&merged.levels[1], None);
    assert!(!counted.is_empty() && counted.iter().all(|record| record.scheduled_ns >= from_ns));
}

#[test]
fn a_shard_that_ended_early_ends_the_window_of_a_schedule() {
    let mut shards = split(&example(), 2, &[]);
    let level = &mut shards[1].1.levels[1];
    let to_ns = level.requests[9].ended_ns;
    level.steady = level.steady.map(|window| Window { to_ns, ..window });
    level.requests.iter_mut().for_each(|record| record.measured &= record.ended_ns <= to_ns);
    let merged = merge(shards).expect("they fit");
    let level = &merged.levels[1];
    assert_eq!(steady_window(level).map(|window| window.to_ns), Some(to_ns));
    let counted = counted_requests(level, None);
    assert!(!counted.is_empty() && counted.iter().all(|record| record.ended_ns <= to_ns));
    let next = level.requests.iter().find(|record| record.ended_ns > to_ns).expect("others went on");
    assert!(counted.iter().all(|record| record.scheduled_ns < next.scheduled_ns), "chosen by their starts");
}

#[test]
fn a_level_that_a_shard_left_out_is_no_level_of_the_whole_and_neither_are_those_behind_it() {
    let users = vec![vec![(100, 20, false); 20]; 4];
    let receipt = whole(vec![closed(&users, 2, 1, 0), open(&[(100, 20, false); 40], 2), closed(&users, 2, 1, 0)]);
    let mut shards = split(&receipt, 2, &[]);
    shards[1].1.levels.remove(1);
    assert_eq!(merge(shards).expect("they fit").levels, receipt.levels[..1]);
}

#[track_caller]
fn refused(change: impl FnOnce(&mut Vec<(String, LoadReceipt)>)) -> String {
    let users = vec![vec![(100, 20, false); 5]; 6];
    let mut shards = split(&whole(vec![closed(&users, 3, 1, 0)]), 3, &[]);
    change(&mut shards);
    let error = format!("{:#}", merge(shards).expect_err("it does not fit"));
    assert!(!error.contains('\n'), "{error}");
    error
}

#[test]
fn shards_that_do_not_make_one_load_are_refused_by_the_name_of_a_file() {
    let missing = refused(|shards| drop(shards.remove(1)));
    assert!(missing.contains("shards 1, 3 of 3 are given"), "{missing}");
    let missing = refused(|shards| drop(shards.pop()));
    assert!(missing.contains("shards 1, 2 of 3 are given"), "{missing}");
    let twice = refused(|shards| {
        let again = shards[1].1.clone();
        shards.push(("again.json".into(), again));
    });
    assert!(twice.contains("shards 1, 2, 2, 3 of 3 are given; give each of the 3 once"), "{twice}");
    let unrelated = refused(|shards| shards[2].1.shards[0].run = "11".into());
    assert!(unrelated.contains("2.json: is of another run than 0.json"), "{unrelated}");
    let alone = refused(|shards| shards[0].1.shards.clear());
    assert!(alone.contains("0.json: is no shard of a load"), "{alone}");
    let merged = refused(|shards| {
        let more = shards[0].1.shards[0].clone();
        shards[0].1.shards.push(more);
    });
    assert!(merged.contains("0.json: was merged already"), "{merged}");
    assert!(merge(Vec::new()).expect_err("nothing").to_string().contains("no receipt to merge"));
}
