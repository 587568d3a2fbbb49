//! Both sides laid out alike: linked in one order, once for each placement of what changed.

use std::fs;

use infergate_receipts::{Calibration, PairedReceipt, read};

use crate::interrupt::{INTERRUPTS, signal};
use crate::paired;
use crate::repositories::{cargo, commit, gate, gate_in, repository, run};
use crate::sandbox::{Sandbox, ran, stderr, stdout};

const OUT: &str = "--out=paired.json";
const ALIKE: &str = "base and head are laid out alike";
const AS_LINKED: &str = "base and head are not laid out alike";

/// Programs lie where the plain build lies: above them, `assert_cmd` finds a program of the package.
#[test]
fn each_block_times_all_placements() {
    let sandbox = repository();
    let start = "fn main() {\n    assert!(std::env::current_exe().unwrap().parent().unwrap().ends_with(\"deps\"));\n";
    let worker = fs::read_to_string(sandbox.path("bench.rs")).expect("a worker").replace("fn main() {\n", start);
    commit(&sandbox, "bench.rs", &worker, "a bench that looks where it lies");
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = 1_000_001;\n");
    let said = gate(&sandbox, "HEAD", &[OUT]).success();
    assert!(stdout(&said).contains(ALIKE), "{}", stdout(&said));
    let receipt = sandbox.receipt();
    let alike = receipt.alike.expect("laid out alike");
    assert!(alike.same > 0 && alike.same <= alike.functions, "{alike:?}");
    let built = fs::read_dir(sandbox.path("cache/base/target/release/deps")).expect("a folder");
    let names: Vec<_> = built.map(|file| file.expect("a file").file_name().into_string().expect("UTF-8")).collect();
    assert!(
        names.iter().any(|name| name.ends_with(".o")) && !names.iter().any(|name| name.ends_with(".bc")),
        "{names:?}"
    );
    for case in receipt.blocks.iter().flat_map(|block| &block.cases) {
        let mut placements = case.placements.clone();
        placements.sort_unstable();
        assert_eq!(placements, [0, 1, 2, 3]);
    }
}

/// As when a CI restores base's build, and not the folder for temporary files that a compiler kept one of them in.
#[test]
fn object_files_that_are_gone_are_made_again() {
    let sandbox = repository();
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = 1_000_001;\n");
    gate(&sandbox, "HEAD", &[]).success();
    let built = fs::read_dir(sandbox.path("cache/base/target/release/deps")).expect("a folder");
    let mut files = built.map(|file| file.expect("a file").path());
    let command = files.find(|file| file.extension().is_some_and(|ending| ending == "link-args"));
    let linked = fs::read_to_string(command.expect("the linker's command")).expect("a command");
    let object = linked.split('"').find(|word| word.ends_with(".o")).expect("an object file");
    fs::remove_file(object).expect("it was kept");
    let said = gate(&sandbox, "HEAD", &[]).success();
    assert!(stdout(&said).contains(ALIKE), "{}", stdout(&said));
    assert!(!stderr(&said).contains("was not compared"), "{}", stderr(&said));
}

/// As when `cargo bench` ran before, or another program stands in the compiler's place, such as sccache.
#[test]
fn what_cargo_built_before_and_what_a_wrapper_compiles_is_laid_out_alike() {
    let sandbox = repository();
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = 1_000_001;\n");
    cargo(&sandbox, &sandbox.path("target/home"), &["bench", "--no-run", "--offline"]);
    let called = sandbox.path("target/called");
    let wrapper = sandbox.program("target/wrapper", &format!("#!/bin/sh\ntouch '{}'\nexec \"$@\"\n", called.display()));
    let mut process = gate_in(&sandbox, sandbox.path("cache"));
    process.arg(OUT).env("RUSTC_WRAPPER", wrapper);
    let said = ran(process).success();
    assert!(stdout(&said).contains(ALIKE) && called.exists(), "{said}");
}

#[test]
fn a_linker_that_orders_no_functions_and_a_given_program_are_timed_as_they_are() {
    let sandbox = repository();
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = 1_000_001;\n");
    let mut process = gate_in(&sandbox, sandbox.path("cache"));
    process.arg(OUT).env("RUSTFLAGS", "-Clinker-features=-lld");
    let said = ran(process).success();
    assert!(stdout(&said).contains(AS_LINKED) && stdout(&said).contains("(lld does"), "{said}");
    let is_as_linked = |receipt: PairedReceipt| {
        let cases: Vec<_> = receipt.blocks.iter().flat_map(|block| &block.cases).collect();
        receipt.alike.is_none() && !cases.is_empty() && cases.iter().all(|case| case.placements.is_empty())
    };
    assert!(is_as_linked(sandbox.receipt()));

    let given = Sandbox::new();
    let said = paired::gate(&given, "fake", "fake", &[OUT]).success();
    assert!(stdout(&said).contains(AS_LINKED), "{said}");
    assert!(is_as_linked(given.receipt()));
}

#[test]
fn a_calibration_compares_with_a_revision_laid_out_alike() {
    let sandbox = repository();
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = 1_000_001;\n");
    let asked = ["--against=HEAD", "--gates=1", "--out=c.json", "--cases=decode/p8"];
    run(&sandbox, &[&["calibrate"], &asked[..]].concat()).success();
    let calibration = read::<Calibration>(&sandbox.path("c.json")).expect("kept");
    let [gate] = &calibration.gates[..] else { panic!("one gate") };
    assert!(gate.alike.is_some_and(|alike| alike.same > 0), "{:?}", gate.alike);
    assert_ne!(gate.base_sha256, gate.head_sha256);
}

/// Ctrl-C comes while a linker runs that does not end: it is ended, and is not taken for one that orders no functions.
#[test]
fn an_interruption_while_both_are_linked_ends_the_link_and_the_command() {
    let sandbox = repository();
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = 1_000_001;\n");
    let path = std::env::var_os("PATH").expect("a path");
    let linker = std::env::split_paths(&path).map(|folder| folder.join("cc")).find(|cc| cc.is_file()).expect("cc");
    // A second signal would end the command at once.
    let script = format!(
        "#!/bin/sh\ncase \"$1\" in @*/alike/*)\n  mkdir '{}' 2>/dev/null && {INTERRUPTS}\n  \
         exec tail -f /dev/null;;\nesac\nexec '{}' \"$@\"\n",
        sandbox.path("target/once").display(),
        linker.display()
    );
    let shim = sandbox.program("target/shim/cc", &script);
    for command in [&["gate"][..], &["calibrate", "--gates=2"]] {
        let mut process = sandbox.process(command);
        process.args(["--against=HEAD", "--base-folder=cache", "--model=m", "--threads=1", "--cases=decode/p8", OUT]);
        process.env("PATH", sandbox.on_path("target/shim"));
        let (code, said) = signal(process, &[]);
        assert_eq!(code, Some(2), "{said}");
        fs::remove_dir(sandbox.path("target/once")).expect("it was linked");
        assert!(said.lines().last().is_some_and(|line| line.contains("interrupted")), "{said}");
        assert!(!said.contains(AS_LINKED) && !sandbox.path("paired.json").exists(), "{said}");
    }
    // The linker's command is kept for the next gate, with its PATH.
    fs::remove_file(shim).expect("a file");
    let said = gate(&sandbox, "HEAD", &[OUT]).success();
    assert!(sandbox.receipt().alike.is_some(), "{}", stdout(&said));
}
