//! A baseline changes only by what is sound, and only after it was shown.

use std::fs;

use infergate_receipts::{Baseline, Receipt, read};

use crate::sandbox::{Sandbox, stderr};

fn baseline_file(receipt: &Receipt) -> String {
    format!("baselines/{}", Baseline::file_name(&receipt.machine.class, &receipt.engine))
}

#[test]
fn one_bad_receipt_among_good_ones_changes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.baseline(1);
    let mut receipt = sandbox.receipt("fake", "good.json");
    receipt.partial = true;
    sandbox.save(&receipt, "bad.json");
    let baseline = sandbox.path(&baseline_file(&receipt));
    let before = fs::read(&baseline).expect("written");
    let said = sandbox.run(&["bless", "--receipt", "good.json", "--receipt", "bad.json"]).code(2);
    assert!(stderr(&said).contains("error: "), "{}", stderr(&said));
    assert_eq!(fs::read(&baseline).expect("still there"), before);
}

/// The hint to say so comes when the session is written already.
#[test]
fn a_step_is_at_the_first_session_of_each_model_or_at_one_that_is_there_and_never_before_newer_ones() {
    let sandbox = Sandbox::new();
    let mut receipt = sandbox.receipt("fake", "receipt.json");
    let mut save = |day: u32, model: &str, name: &str| {
        receipt.created = format!("2026-01-{day:02}T00:00:00Z");
        receipt.engine.model = model.into();
        sandbox.save(&receipt, name);
        sandbox.path(&baseline_file(&receipt))
    };
    let old = [save(1, "a", "a1.json"), save(2, "b", "b2.json")];
    sandbox.run(&["bless", "--receipt", "a1.json", "--receipt", "b2.json"]).success();
    let new = [save(3, "a", "a3.json"), save(4, "b", "b4.json"), save(5, "a", "a5.json")];
    assert_eq!(old, new[..2]);
    let bless = |names: &[&str]| {
        let receipts = names.iter().flat_map(|name| ["--receipt", name]);
        sandbox.run(&["bless", "--step"].into_iter().chain(receipts).collect::<Vec<_>>())
    };
    let steps = |at: usize| -> Vec<bool> {
        read::<Baseline>(&new[at]).expect("written").sessions.iter().map(|session| session.step).collect()
    };
    bless(&["a3.json", "b4.json", "a5.json"]).success();
    assert_eq!((steps(0), steps(1)), (vec![false, true, false], vec![false, true]));
    bless(&["a5.json"]).success();
    assert_eq!(steps(0), [false, true, true], "a session that is there is marked");
    let again = stderr(&bless(&["a5.json"]).code(2));
    assert!(again.contains("has its step already"), "{again}");
    save(4, "a", "a4.json");
    let older = stderr(&bless(&["a4.json"]).code(2));
    assert!(older.contains("--step: it has newer sessions than that of 2026-01-04T00:00:00Z"), "{older}");
}
