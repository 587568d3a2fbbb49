//! What a case runs of what changed: that is a reason in its row of time, and a case that runs nothing of it is not timed.

use infergate_judge::paired::{Policy, judge};
use infergate_receipts::{CodeRecord, CodeRuns, Outcome, PairedReceipt};

use crate::gate::support::{case, measured, note, row};

const SLOWER: [f64; 13] = [0.05, 0.051, 0.049, 0.05, 0.052, 0.048, 0.05, 0.051, 0.049, 0.05, 0.052, 0.048, 0.05];

/// 5 % slower in every block, and `functions` of three that changed were seen to run: with --time-same-code it is timed also
/// where there are none.
#[test]
fn what_may_run_a_changed_function_is_judged_by_its_time() {
    for functions in [Some(0), None] {
        let why = functions.is_none().then(|| "it starts another program, 'nvidia-smi'".to_owned());
        let runs = vec![CodeRuns { id: case("decode/p8"), functions, changed: None, named: Vec::new(), why }];
        let code = Some(CodeRecord { same: false, same_cases: Vec::new(), changed: Some(3), named: Vec::new(), runs });
        let receipt = PairedReceipt { code, ..measured("decode/p8", 10_000_000, &SLOWER) };
        let verdict = judge(&receipt, &Policy::default());
        let row = row(&verdict, "decode/p8", "itl_ns");
        assert_eq!((row.outcome, verdict.exit_code), (Outcome::Regressed, 1));
        let said = note(row);
        assert_eq!(said.contains("not known: it starts another program, 'nvidia-smi'"), functions.is_none(), "{said}");
    }
}
