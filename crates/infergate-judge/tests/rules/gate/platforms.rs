//! Where the baseline is of another platform, and exactness cannot be asked for.

use infergate_judge::{Policy, judge_by_all};
use infergate_receipts::{Baseline, Counter, Note, Outcome, Receipt};

use crate::gate::exact::{base, counted, counter_verdict, head, judged};
use crate::gate::output::with_logits;
use crate::gate::support::{decode_baseline, machine, note, output, row};

#[test]
fn on_another_platform_a_near_tie_is_advisory_and_a_clear_choice_is_not() {
    for (margin, expected) in [
        (Some(0.5), Outcome::OutputChanged),
        (Some(1e-3), Outcome::OutputChanged),
        (None, Outcome::OutputChanged),
        (Some(9e-4), Outcome::Advisory),
    ] {
        let mut base = base();
        base.exact[0].output.top2_margins[1] = margin;
        let mut head = head();
        head.machine.instruction_set = Some("avx2".into());
        head.cases[0].output = output(vec![0, 42]);
        let verdict = judged(&head, &base);
        let row = row(&verdict, "decode/p128", "output");
        assert_eq!(row.outcome, expected, "{margin:?}");
        assert!(note(row).contains("output token 2 has id 42 instead of 1"), "{row:?}");
        assert!(note(row).contains("other instruction set (avx2, baseline avx512)"), "{row:?}");
        assert_eq!(verdict.exit_code, i32::from(expected == Outcome::OutputChanged));
        // On the same platform no margin excuses.
        head.machine = machine("linux-x86_64-amd-2");
        assert_eq!(judged(&head, &base).verdict, Outcome::OutputChanged);
    }
}

#[test]
fn on_another_platform_other_rounding_is_advisory_and_what_is_no_rounding_is_not() {
    let mut base = base();
    base.exact[0].output = with_logits(&[0, 1], &[1.0, 2.0, 8.0]);
    for (said, expected) in [
        (with_logits(&[0, 1], &[1.0, 2.0, 8.2]), Outcome::Advisory),
        (with_logits(&[0, 1], &[1.0, f32::NAN, 8.0]), Outcome::OutputChanged),
        (with_logits(&[0, 1], &[1.0, 2.0, 8.0, -9.0]), Outcome::OutputChanged),
        (output(vec![0, 1]), Outcome::Inconclusive),
    ] {
        let mut head = head();
        head.machine.instruction_set = Some("avx2".into());
        head.cases[0].output = said;
        let verdict = judged(&head, &base);
        let row = row(&verdict, "decode/p128", "output");
        assert_eq!(row.outcome, expected, "{row:?}");
    }
}

#[test]
fn each_part_of_the_platform_counts() {
    type Change = fn(&mut Receipt);
    let change: [(&str, Change); 6] = [
        ("other operating system (macos, baseline linux)", |head| head.machine.os = "macos".into()),
        ("other architecture (aarch64, baseline x86_64)", |head| head.machine.arch = "aarch64".into()),
        ("other libc (unknown, baseline glibc 2.36)", |head| head.machine.libc = None),
        ("other instruction set (unknown, baseline avx512)", |head| head.machine.instruction_set = None),
        ("other thread count (4, baseline 2)", |head| head.threads = 4),
        ("other Cargo features (--features=cuda, baseline default)", |head| {
            head.build.features = "--features=cuda".into();
        }),
    ];
    let mut base = decode_baseline(&[1000; 8]);
    base.exact[0].counters.insert("allocations_per_token".into(), Counter { min: 5, max: 5 });
    for (what, change) in change {
        let mut head = counted(9, 9);
        change(&mut head);
        let verdict = judged(&head, &base);
        let row = row(&verdict, "decode/p128", "allocations_per_token");
        assert_eq!(row.outcome, Outcome::Advisory);
        assert!(note(row).contains(what), "{row:?}");
    }
    assert_eq!(counter_verdict(&counted(9, 9), &base), (Outcome::CounterRegressed, 1));
}

/// A change accepted on one machine class is accepted on all.
#[test]
fn the_newest_session_of_any_class_judges_outputs_and_counters() {
    let session = |class: &str, created: &str, count, set: &str| {
        let mut session = counted(count, count);
        (session.created, session.machine) = (created.into(), machine(class));
        session.machine.instruction_set = Some(set.into());
        Baseline::from_receipt(&session)
    };
    let own = session("linux-x86_64-amd-2", "2026-11-20T07:00:00Z", 5, "avx512");
    let newer = session("linux-x86_64-intel-2", "2026-11-21T07:00:00Z", 9, "avx512");
    let other_platform = session("linux-x86_64-intel-4", "2026-11-22T07:00:00Z", 7, "avx2");
    let baselines = [own, newer, other_platform];
    let mut head = counted(9, 9);
    let counter = |head: &Receipt| {
        let verdict = judge_by_all(head, &baselines, &Policy::default()).expect("a verdict");
        let classes = verdict.notes.iter().filter_map(|note| match note {
            Note::OtherClass { machine_class, .. } => Some(machine_class.clone()),
            _ => None,
        });
        (row(&verdict, "decode/p128", "allocations_per_token").outcome, classes.collect::<Vec<_>>())
    };
    assert_eq!(counter(&head), (Outcome::Pass, vec!["linux-x86_64-intel-2".to_owned()]));
    head.machine.instruction_set = Some("avx2".into());
    assert_eq!(counter(&head), (Outcome::CounterRegressed, vec!["linux-x86_64-intel-4".to_owned()]));
}
