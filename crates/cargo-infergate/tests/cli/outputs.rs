//! The files a command writes: nothing of an earlier run is left by one that fails, and what a command reads stays.

use std::fs;

use crate::sandbox::{Sandbox, error};

#[test]
fn a_run_that_fails_early_leaves_no_file_of_an_earlier_one() {
    let sandbox = Sandbox::new();
    sandbox.write("infergate.toml", "runs = = 5\n");
    for (command, flag) in [
        ("gate", "--json"),
        ("gate", "--out"),
        ("bench", "--out"),
        ("bench", "--json"),
        ("memory", "--json"),
        ("doctor", "--json"),
    ] {
        sandbox.write("old.json", "of an earlier run");
        let line = error(sandbox.run(&[command, flag, "old.json"]));
        assert!(line.contains("not TOML"), "{line}");
        assert!(!sandbox.path("old.json").exists(), "{command} {flag}");
    }
}

#[test]
fn what_a_command_reads_is_not_what_it_writes() {
    let sandbox = Sandbox::new();
    for name in ["one.json", "two.json"] {
        sandbox.write(name, "a receipt");
    }
    for (arguments, flag) in [
        (&["gate", "--receipt=one.json", "--json=one.json"][..], "--receipt"),
        (&["gate", "--receipt=one.json", "--json=./one.json"], "--receipt"),
        (&["bless", "--receipt=two.json", "--receipt=one.json", "--json=one.json"], "--receipt"),
        (&["compare", "one.json", "two.json", "--json=two.json"], "HEAD"),
        (&["bench", "--worker=one.json", "--out=one.json"], "--worker"),
        (&["bench", "--json=new.json", "--out=new.json"], "--out"),
    ] {
        let line = error(sandbox.run(arguments));
        assert!(line.contains(&format!("is what {flag} names too; name another file")), "{arguments:?}: {line}");
    }
    assert_eq!(fs::read_to_string(sandbox.path("one.json")).expect("kept"), "a receipt");
    assert_eq!(fs::read_to_string(sandbox.path("two.json")).expect("kept"), "a receipt");
}
