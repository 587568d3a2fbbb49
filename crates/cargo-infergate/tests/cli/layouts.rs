//! Several layouts of each side, linked and drawn from: with every way to choose the sides, used again, and interrupted.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::SystemTime;

use cargo_infergate::receipt::{Calibration, LayoutFiles, PairedReceipt, read};

use crate::interrupt::signal;
use crate::revisions::{commit, gate, repository, repository_of_a_bench};
use crate::sandbox::{Sandbox, stdout};

const OUT: &str = "--out=paired.json";

fn receipt(sandbox: &Sandbox) -> PairedReceipt {
    read::<PairedReceipt>(&sandbox.path("paired.json")).expect("a receipt")
}

/// What blocks drew from.
#[track_caller]
fn layouts(sandbox: &Sandbox) -> LayoutFiles {
    let receipt = receipt(sandbox);
    let files = receipt.layouts.expect("layouts");
    for hashes in [&files.base, &files.head] {
        assert!(
            hashes.iter().enumerate().all(|(at, hash)| !hashes[..at].contains(hash)),
            "one layout twice: {hashes:?}"
        );
    }
    let drawn = |at: fn(&cargo_infergate::receipt::BlockLayouts) -> usize| {
        let mut drawn: Vec<usize> =
            receipt.blocks.iter().map(|block| at(block.layouts.as_ref().expect("layouts"))).collect();
        drawn.sort_unstable();
        drawn.dedup();
        drawn
    };
    // Six blocks and more draw each.
    assert_eq!(drawn(|block| block.base), (0..files.base.len()).collect::<Vec<_>>());
    assert_eq!(drawn(|block| block.head), (0..files.head.len()).collect::<Vec<_>>());
    files
}

/// When the first layout of each side was written.
fn written(sandbox: &Sandbox) -> [SystemTime; 2] {
    let base = glob(sandbox, "cache", FIRST);
    let head = glob(sandbox, "target", FIRST);
    [base, head].map(|path| fs::metadata(path).and_then(|file| file.modified()).expect("a layout"))
}

const FIRST: &str = "inference-layout001";

/// A file whose name begins so somewhere below a folder.
fn glob(sandbox: &Sandbox, folder: &str, name: &str) -> PathBuf {
    let mut folders = vec![sandbox.path(folder)];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let (below, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
        let is_it = |path: &PathBuf| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name));
        if let Some(first) = files.into_iter().find(is_it) {
            return first;
        }
        folders.extend(below.into_iter().filter(|path| !path.is_symlink()));
    }
    panic!("no {name} below {folder}")
}

#[test]
fn layouts_are_used_again_until_their_build_changes() {
    let sandbox = repository();
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = 1_000_001;\n");
    let asked = |count: &str| {
        let said = gate(&sandbox, "HEAD", &[OUT, "--layouts", count]).success();
        assert!(
            stdout(&said).contains(&format!("{count} layouts a side: each block draws one of each")),
            "{}",
            stdout(&said)
        );
        (layouts(&sandbox), written(&sandbox))
    };
    let (three, first) = asked("3");
    assert_eq!((three.base.len(), three.head.len()), (3, 3));
    let (two, then) = asked("2");
    assert_eq!((&two.base[..], &two.head[..]), (&three.base[..2], &three.head[..2]));
    assert_eq!(then, first, "nothing is linked again");
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = 1_000_002;\n");
    let (other, then) = asked("2");
    assert_eq!((&other.base, then[0]), (&two.base, first[0]), "base is the same build");
    assert!(other.head.iter().all(|hash| !three.head.contains(hash)) && then[1] > first[1], "{other:?}");
    // One that was cut off in its list: all are linked anew.
    let list = glob(&sandbox, "target", "made-of");
    let text = fs::read_to_string(&list).expect("the list");
    fs::write(&list, &text[..text.len() - 2]).expect("a file");
    let (again, last) = asked("2");
    assert_eq!((again, last[0]), (other, then[0]));
    assert!(last[1] > then[1]);
}

/// As `assert_cmd` finds a program of the package: above the folder that cargo builds benches in.
#[test]
fn a_layout_lies_where_the_plain_build_lies() {
    let sandbox = repository();
    let start = "fn main() {\n    assert!(std::env::current_exe().unwrap().parent().unwrap().ends_with(\"deps\"));\n";
    let worker = fs::read_to_string(sandbox.path("bench.rs")).expect("a worker").replace("fn main() {\n", start);
    commit(&sandbox, "bench.rs", &worker, "a bench that looks where it lies");
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = 1_000_001;\n");
    gate(&sandbox, "HEAD", &[OUT, "--layouts=2"]).success();
    assert_eq!(layouts(&sandbox).head.len(), 2);
}

#[test]
fn a_given_program_has_one_layout_and_so_has_whoever_asks_for_one() {
    let sandbox = repository();
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = 1_000_001;\n");
    let said = gate(&sandbox, "HEAD", &[OUT, "--layouts=1"]).success();
    assert!(stdout(&said).contains("one build a side, as asked for"), "{}", stdout(&said));
    assert_eq!(receipt(&sandbox).layouts, None);
}

#[test]
fn a_calibration_of_benches_draws_from_half_of_the_builds_a_side_where_a_gate_would() {
    for (sandbox, case, draws) in [(repository_of_a_bench(), "bench:long", true), (repository(), "decode/p8", false)] {
        let mut process = sandbox.process(&["calibrate", "--model=m", "--threads=1", "--gates=2", "--builds=3"]);
        process.args(["--power-blocks=0", "--out=c.json", "--cases", case]);
        assert_cmd::Command::from_std(process).assert().success();
        let calibration = read::<Calibration>(&sandbox.path("c.json")).expect("kept");
        let [alone, apart] = &calibration.gates[..] else { panic!("two gates") };
        // Of one file, or of two and two others in its place; then two of them.
        let drawn = alone.layouts.as_ref().map(|files| (files.base.len(), files.of_each_side()));
        assert_eq!((drawn, alone.base_sha256.is_none()), (draws.then_some((2, Some(2))), draws), "{case}");
        assert_eq!((apart.layouts.is_none(), apart.base_sha256 == apart.head_sha256), (true, false), "{case}");
    }
}

/// Ctrl-C comes while a linker runs that does not end: it is ended, and is not taken for one that cannot shuffle.
#[test]
fn an_interruption_while_layouts_are_linked_ends_the_link_and_the_command() {
    let sandbox = repository();
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = 1_000_001;\n");
    let path = std::env::var_os("PATH").expect("a path");
    let linker = std::env::split_paths(&path).map(|folder| folder.join("cc")).find(|cc| cc.is_file()).expect("cc");
    // Of a link the parent is the command. A second signal would end it at once.
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *shuffle-sections*)\n  mkdir '{}' 2>/dev/null && kill -INT \"$PPID\"\n  \
         exec tail -f /dev/null;;\nesac\nexec '{}' \"$@\"\n",
        sandbox.path("target/once").display(),
        linker.display()
    );
    let shim = sandbox.write("target/shim/cc", &script);
    fs::set_permissions(&shim, fs::Permissions::from_mode(0o755)).expect("executable");
    let folders = [sandbox.path("target/shim")].into_iter().chain(std::env::split_paths(&path));
    let folders = std::env::join_paths(folders).expect("a path");
    let asked = ["--model=m", "--threads=1", "--cases=decode/p8", OUT];
    let of_a_gate = ["gate", "--against=HEAD", "--base-folder=cache", "--layouts=2"];
    for command in [&of_a_gate[..], &["calibrate", "--gates=2", "--builds=2"]] {
        let mut process: Command = sandbox.process(command);
        process.args(asked).env("PATH", &folders);
        let (code, said) = signal(process, &[]);
        assert_eq!(code, Some(2), "{said}");
        fs::remove_dir(sandbox.path("target/once")).expect("it was linked");
        assert!(said.lines().last().is_some_and(|line| line.contains("interrupted")), "{said}");
        assert!(!said.contains("does not shuffle") && !sandbox.path("paired.json").exists(), "{said}");
    }
    // The next one links anew.
    let said = gate(&sandbox, "HEAD", &[OUT, "--layouts=2"]).success();
    assert!(receipt(&sandbox).layouts.is_some(), "{}", stdout(&said));
    assert_eq!(layouts(&sandbox).head.len(), 2);
}
