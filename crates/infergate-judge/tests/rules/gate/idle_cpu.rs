//! A side that computes while the other one has its turn.

use infergate_core::engine::Pacing;
use infergate_judge::paired::{computes_between, head_computes_between};
use infergate_receipts::{Idle, PairedReceipt};
use infergate_report::words;

use crate::gate::support::measured;

/// Blocks between whose calls base and head use this many % of a core.
fn between(id: &str, percent: &[(u64, u64)]) -> PairedReceipt {
    let mut receipt = measured(id, 10_000_000, &vec![0.0; percent.len()]);
    for (block, (base, head)) in receipt.blocks.iter_mut().zip(percent) {
        let idle = |percent: &u64| Some(Idle { cpu_ns: percent * 1_000_000, wall_ns: 100_000_000 });
        (block.base_idle, block.head_idle) = (idle(base), idle(head));
    }
    receipt
}

fn note(receipt: &PairedReceipt) -> Option<String> {
    computes_between(receipt).map(|note| words::note(&note))
}

#[test]
fn a_head_that_computes_while_base_has_its_turn_is_invalid() {
    let busy = between("decode/p8", &[(1, 97), (1, 95), (2, 99), (0, 97), (1, 97), (1, 60)]);
    let said = head_computes_between(&busy).expect("it breaks an invariant");
    let what = "head computes while base has its turn, and slows it down: between its calls it uses 97 % of a core, base 1 %; let it rest";
    assert!(said.starts_with(what) && said.contains("Pacing::Streaming"), "{said}");
}

#[test]
fn a_few_blocks_or_a_little_work_say_nothing() {
    let quiet = |percent: &[(u64, u64)]| assert_eq!(head_computes_between(&between("decode/p8", percent)), None);
    quiet(&[(1, 97); 5]);
    quiet(&[(1, 97), (1, 97), (1, 97), (1, 97), (1, 97), (1, 10)]);
    quiet(&[(1, 11); 20]);
    quiet(&[(0, 0); 8]);
    assert_eq!(note(&between("decode/p8", &[(1, 9); 8])), None);
    // One side is older than this.
    let mut old = between("decode/p8", &[(1, 97); 8]);
    old.blocks.iter_mut().for_each(|block| block.base_idle = None);
    assert_eq!((head_computes_between(&old), note(&old)), (None, None));
    old.blocks.iter_mut().for_each(|block| block.base_idle = Some(Idle::default()));
    assert_eq!((head_computes_between(&old), note(&old)), (None, None));
}

#[test]
fn one_that_says_so_is_shown_and_not_judged_and_so_is_one_that_cannot() {
    let mut streaming = between("decode/p8", &[(1, 97); 8]);
    streaming.head.engine.pacing = Pacing::Streaming;
    assert_eq!((head_computes_between(&streaming), note(&streaming).is_some()), (None, true));
    let bench = between("bench:fib/20", &[(1, 97); 8]);
    assert_eq!(head_computes_between(&bench), None);
    let said = note(&bench).expect("a note");
    assert!(said.contains("between its calls base uses 1 % of a core and head 97 %"), "{said}");
    // Both alike: no side is favoured, and both are slow.
    let both = between("decode/p8", &[(97, 98); 8]);
    assert!(head_computes_between(&both).is_none() && note(&both).is_some(), "{:?}", note(&both));
    let base = between("decode/p8", &[(97, 1); 8]);
    assert!(head_computes_between(&base).is_none() && note(&base).is_some(), "what head mended passes");
}
