//! Which bench targets of a package are gated together, and of which files each is built.

use std::fs;

use crate::repositories::{MANIFEST, commit, gate_in, repository, repository_of_a_bench, run};
use crate::sandbox::{Sandbox, ran, stderr, stdout};

/// A package whose benches are workers, each of the targets with more lines in Cargo.toml; not committed.
pub fn with_benches(targets: &[(&str, &str)]) -> (Sandbox, Sandbox) {
    let infergate = Sandbox::new();
    infergate.write("Cargo.toml", "[package]\nname = 'infergate-criterion'\nversion = '0.1.0'\nedition = '2021'\n");
    infergate.write("src/lib.rs", "");
    let sandbox = repository_of_a_bench();
    let worker = fs::read_to_string(sandbox.path("bench.rs")).expect("a worker");
    for (name, _) in targets {
        sandbox.write(&format!("benches/{name}.rs"), &worker);
    }
    sandbox.write("Cargo.toml", &manifest(&infergate, targets));
    (sandbox, infergate)
}

fn manifest(infergate: &Sandbox, targets: &[(&str, &str)]) -> String {
    let place = infergate.path("").to_string_lossy().trim_end_matches('/').to_owned();
    let package = MANIFEST.split("[[bench]]").next().unwrap_or_default();
    let benches: String =
        targets.iter().map(|(name, more)| format!("[[bench]]\nname = '{name}'\nharness = false\n{more}\n")).collect();
    format!(
        "{package}{benches}[dev-dependencies]\ninfergate-criterion = {{ path = '{place}' }}\n[features]\ntext = []\n"
    )
}

/// What is left out is said, and by the verdict, too.
#[test]
fn bench_targets_that_are_not_gated_are_named() {
    let off = "bench = false\n";
    let (sandbox, _infergate) = with_benches(&[("first", ""), ("off", off), ("own", ""), ("other", "")]);
    for name in ["own", "other"] {
        sandbox.write(&format!("benches/{name}.rs"), "fn main() {}\n");
    }
    commit(&sandbox, "benches/plain.rs", "criterion::criterion_main!(all);\n", "benches");
    let said = stdout(&run(&sandbox, &["gate", "--against=HEAD", "--json=verdict.json"]).success());
    for line in [
        "not gated: off: 'bench = false' in Cargo.toml, and not named with --bench-target\n",
        "not gated: plain: no 'harness = false' in Cargo.toml\n",
        "bench target 'other' is not compared, it fails in base: ",
        "bench target 'own' is not compared, it fails in base: ",
    ] {
        assert!(said.contains(&format!("- {line}")), "{line}: {said}");
    }
    let verdict = fs::read_to_string(sandbox.path("verdict.json")).expect("a verdict");
    assert!(verdict.contains("not gated: off"), "{verdict}");
    let said = stdout(&run(&sandbox, &["gate", "--against=HEAD", "--bench-target=first,off"]).success());
    assert!(said.contains("off/long") && !said.contains("not gated"), "{said}");
}

/// One that does not compile is no fault of the others.
#[test]
fn bench_targets_of_a_package_are_built_in_one_call() {
    let (sandbox, _infergate) = with_benches(&[("first", ""), ("second", ""), ("third", "")]);
    commit(&sandbox, "notes.txt", "", "benches");
    let said = run(&sandbox, &["gate", "--against=HEAD"]).success();
    assert!(stderr(&said).contains("building bench targets 'first', 'second', 'third' of HEAD"), "{said}");
    sandbox.write("benches/second.rs", "fn main() { wrong }\n");
    let said = stdout(&run(&sandbox, &["gate", "--against=HEAD"]).failure());
    assert!(said.contains("first/long") && said.contains("third/long"), "{said}");
    assert!(said.contains("bench target 'second' is not compared, it fails in head alone: "), "{said}");
}

/// Of one that only head has, too: base is built with them as far as it has them.
#[test]
fn a_bench_target_is_built_with_the_features_that_it_asks_for() {
    let (sandbox, infergate) = with_benches(&[("known", "required-features = ['text']\n")]);
    let step = "pub const STEP_NS: u64 = if cfg!(feature = \"text\") { 4_000_000 } else { 9_000_000 };\n";
    commit(&sandbox, "engine.rs", step, "a bench");
    let worker = fs::read_to_string(sandbox.path("benches/known.rs")).expect("a worker");
    sandbox.write("benches/new.rs", &worker);
    let both = ["known", "new"].map(|name| (name, "required-features = ['text', 'newer']\n"));
    sandbox.write("Cargo.toml", &format!("{}newer = []\n", manifest(&infergate, &both)));
    let said = stdout(&run(&sandbox, &["gate", "--against=HEAD", "--time-same-code"]).success());
    for bench in ["known/long", "new/long"] {
        let row = said.lines().find(|line| line.starts_with(bench)).unwrap_or_default();
        assert_eq!(row.matches("4.00 ms").count(), 2, "{said}");
    }
}

/// An engine's is gated alone; one of criterion has only the name of it.
#[test]
fn a_bench_target_of_the_usual_name_hides_no_other() {
    let (sandbox, _infergate) = with_benches(&[("inference", ""), ("tensor_ops", "")]);
    commit(&sandbox, "notes.txt", "", "benches");
    let gate = |more: &[&str]| stdout(&run(&sandbox, &[&["gate", "--against=HEAD"], more].concat()).success());
    let said = gate(&[]);
    assert!(said.contains("inference/long") && said.contains("tensor_ops/long"), "{said}");
    let said = gate(&["--cases=tensor_ops/*"]);
    assert!(said.contains("tensor_ops/long") && !said.contains("inference/long"), "{said}");
    let said = gate(&["--bench-target=inference", "--cases=lon*"]);
    assert!(said.contains("long") && !said.contains("tensor_ops"), "{said}");
    let infergate = Sandbox::new();
    infergate.write("Cargo.toml", "[package]\nname = 'infergate'\nversion = '0.1.0'\nedition = '2021'\n");
    infergate.write("src/lib.rs", "");
    let manifest = fs::read_to_string(sandbox.path("Cargo.toml")).expect("a manifest");
    let place = infergate.path("");
    let takes = format!("[dev-dependencies]\ninfergate = {{ path = '{}' }}\n", place.display());
    commit(&sandbox, "Cargo.toml", &manifest.replace("[dev-dependencies]\n", &takes), "an engine's");
    let said = gate(&[]);
    let beside = "- not gated: tensor_ops: an engine's bench target is gated alone; name others with --bench-target\n";
    assert!(said.contains(beside), "{said}");
}

/// As it is one of the usual name, nobody has to name it.
#[test]
fn an_engines_bench_target_is_that_of_the_folders_package() {
    let sandbox = repository();
    let inference = fs::read_to_string(sandbox.path("bench.rs")).expect("a worker");
    for file in ["bench.rs", "engine.rs"] {
        fs::remove_file(sandbox.path(file)).expect("a file");
    }
    sandbox.write("Cargo.toml", "[workspace]\nresolver = '2'\nmembers = ['crates/*']\n");
    for package in ["codec", "engine"] {
        let manifest = MANIFEST.replace("\"engine\"", &format!("'{package}'"));
        let needs = format!("{manifest}required-features = ['text']\n[features]\ntext = []\n");
        sandbox.write(&format!("crates/{package}/Cargo.toml"), &needs);
        sandbox.write(&format!("crates/{package}/bench.rs"), &inference.replace("engine::", &format!("{package}::")));
        sandbox.write(&format!("crates/{package}/engine.rs"), "pub const STEP_NS: u64 = 1_000_000;\n");
    }
    commit(&sandbox, "notes.txt", "", "two engines");
    let mut gate = gate_in(&sandbox, sandbox.path("cache"));
    gate.current_dir(sandbox.path("crates/engine"));
    ran(gate).success();
}
