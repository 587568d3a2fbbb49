//! Re-measures counters that rose, since one process may differ by chance.

use infergate_judge::{counts_more, holds_more};
use infergate_receipts::{PairedReceipt, Side, SideRecord};

/// Processes of each side, if the first one of head holds or counts more than that of base. Counters vary by chance: which threads of a
/// pool computed, how those met that loaded, when one frees, where a heap begins. If five of each side differ by chance alone, all of head
/// are above all of base once in 252.
const REPEATS: usize = 5;

/// If head's model holds more than base's, or a case counts more, measures both again until their ranges meet. `look` gives the counters of
/// a side in a fresh process; `None` if that failed or was interrupted: then the rise is not confirmed, and the counters of both sides are
/// dropped.
pub fn look_again(
    receipt: &mut PairedReceipt,
    tolerance: f64,
    mut look: impl FnMut(&mut PairedReceipt, Side) -> Option<SideRecord>,
) {
    for _ in 1..REPEATS {
        let (base, head) = (&receipt.base, &receipt.head);
        if !holds_more(&base.held, &head.held, tolerance) && !counts_more(&base.counted, &head.counted, tolerance) {
            break;
        }
        for side in [Side::Base, Side::Head] {
            let Some(again) = look(receipt, side) else { return forget(receipt) };
            add(if side == Side::Base { &mut receipt.base } else { &mut receipt.head }, &again);
        }
    }
}

fn add(known: &mut SideRecord, again: &SideRecord) {
    for counted in &mut known.counted {
        if let Some(again) = again.counted.iter().find(|again| again.id == counted.id) {
            counted.add(again);
        }
    }
    for (name, counter) in &mut known.held {
        *counter = again.held.get(name).map_or(*counter, |again| counter.with(*again));
    }
}

fn forget(receipt: &mut PairedReceipt) {
    for side in [&mut receipt.base, &mut receipt.head] {
        side.held.clear();
        side.counted.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{PairedReceipt, REPEATS, Side, SideRecord, counts_more, holds_more, look_again};
    use infergate_receipts::{CountedCase, Counter};

    const MIB: u64 = 1 << 20;

    fn both(base: SideRecord, head: SideRecord) -> PairedReceipt {
        PairedReceipt { base, head, ..PairedReceipt::default() }
    }

    fn held(bytes: u64) -> SideRecord {
        let held = [("live_bytes_at_rest".to_owned(), Counter { min: bytes, max: bytes })].into();
        SideRecord { held, ..SideRecord::default() }
    }

    /// Eight repeats, of which `large` take 400 MiB and the others 100.
    fn counted(large: u64) -> SideRecord {
        let repeats = (0..8).map(|at| if at < large { 400 * MIB } else { 100 * MIB }).collect();
        let (id, values) = ("decode/p8".parse().expect("a case"), [("peak_live_bytes".to_owned(), repeats)].into());
        SideRecord { counted: vec![CountedCase::of_repeats(id, String::new(), values)], ..SideRecord::default() }
    }

    /// The number of further processes, if base and head have these counters in one process after the other; and whether head fails then.
    fn looked(of: fn(u64) -> SideRecord, base: [u64; REPEATS], head: [u64; REPEATS]) -> (usize, bool) {
        let (mut receipt, mut at) = (both(of(base[0]), of(head[0])), [0; 2]);
        look_again(&mut receipt, 0.01, |_, side| {
            let side = usize::from(side == Side::Head);
            at[side] += 1;
            Some(of([base, head][side][at[side]]))
        });
        let (base, head) = (&receipt.base, &receipt.head);
        let fails = holds_more(&base.held, &head.held, 0.01) || counts_more(&base.counted, &head.counted, 0.01);
        (at[0] + at[1], fails)
    }

    #[test]
    fn what_a_model_holds_by_chance_is_measured_again_until_both_sides_meet() {
        assert_eq!(looked(held, [40 * MIB; 5], [40 * MIB; 5]), (0, false));
        let (two, four) = (42 * MIB, 44 * MIB);
        assert_eq!(looked(held, [two, four, two, two, two], [four; 5]), (2, false));
        assert_eq!(looked(held, [two; 5], [four, four, four, two, four]), (6, false));
        assert_eq!(looked(held, [two; 5], [four; 5]), (8, true), "more in every process is no accident");
    }

    #[test]
    fn what_some_repeats_take_in_every_process_of_head_and_in_none_of_base_fails() {
        assert_eq!(looked(counted, [0; 5], [0; 5]), (0, false));
        assert_eq!(looked(counted, [0; 5], [1; 5]), (0, false), "one of eight is chance");
        assert_eq!(looked(counted, [0; 5], [3, 2, 3, 3, 2]), (8, true));
        assert_eq!(looked(counted, [0; 5], [3, 3, 1, 3, 3]), (4, false));
        assert_eq!(looked(counted, [0, 0, 1, 0, 0], [3; 5]), (4, false));
    }

    /// The first of eight repeats takes `least` MiB, the others twice as many.
    fn doubled(least: u64) -> SideRecord {
        let repeats = (0..8).map(|at| if at == 0 { least * MIB } else { 2 * least * MIB }).collect();
        let (id, values) = ("decode/p8".parse().expect("a case"), [("peak_live_bytes".to_owned(), repeats)].into());
        SideRecord { counted: vec![CountedCase::of_repeats(id, String::new(), values)], ..SideRecord::default() }
    }

    #[test]
    fn what_every_repeat_of_head_takes_fails_where_it_is_so_in_every_process() {
        assert_eq!(looked(doubled, [100; 5], [300; 5]), (8, true));
        assert_eq!(looked(doubled, [100; 5], [300, 300, 100, 300, 300]), (4, false), "one process is chance");
        assert_eq!(looked(doubled, [100; 5], [150; 5]).0, 8, "one repeat is within base's");
    }

    #[test]
    fn what_was_cut_short_before_it_was_confirmed_is_not_known() {
        let cut = |of: fn(u64) -> SideRecord, base, head| {
            let mut receipt = both(of(base), of(head));
            look_again(&mut receipt, 0.01, |_, _| None);
            let (base, head) = (receipt.base, receipt.head);
            let fails = counts_more(&base.counted, &head.counted, 0.01);
            (head.held.len(), fails)
        };
        assert_eq!(cut(held, 40 * MIB, 44 * MIB), (0, false));
        assert_eq!(cut(held, 40 * MIB, 40 * MIB), (1, false), "there was nothing to confirm");
        assert_eq!(cut(counted, 0, 3), (0, false));
        assert_eq!(cut(doubled, 100, 300), (0, false));
    }
}
