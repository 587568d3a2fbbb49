//! What a bench reads and git ignores: carried into base's checkout, or made there.

use crate::repositories::{commit, gate, gate_in, left_behind, repository};
use crate::sandbox::{Sandbox, decision, error, ran, stderr, stdout};

/// An engine that does not build without a file that git ignores.
fn repository_of_data(settings: &str) -> Sandbox {
    let sandbox = repository();
    sandbox.write("infergate.toml", settings);
    sandbox.write(".gitignore", "/target\n/cache\n/data\nCargo.lock\n");
    commit(&sandbox, "engine.rs", "include!(\"data/step.rs\");\n", "needs data");
    sandbox
}

#[test]
fn what_git_ignores_is_linked_into_each_checkout() {
    let sandbox = repository_of_data("[bench]\ncarry = ['data/']\n");
    sandbox.write("data/step.rs", "pub const STEP_NS: u64 = 1_000_000;\n");
    let before = left_behind(&sandbox);
    for _ in 0..2 {
        let said = gate(&sandbox, "HEAD", &[]).success();
        assert!(decision(&said).contains("verdict: pass (exit 0)"), "{}", stdout(&said));
    }
    assert_eq!(left_behind(&sandbox), before);
    // What is removed in the checkout is the link.
    commit(&sandbox, "notes.txt", "no code", "another");
    gate(&sandbox, "HEAD", &[]).success();
    assert!(sandbox.path("data/step.rs").exists());
}

#[test]
fn a_file_that_no_checkout_has_is_said_with_its_remedy() {
    let sandbox = repository_of_data("");
    sandbox.write("data/step.rs", "pub const STEP_NS: u64 = 1_000_000;\n");
    // The compiler's words stand above it.
    let last_line = || stderr(&gate(&sandbox, "HEAD", &[]).failure()).lines().last().unwrap_or_default().to_owned();
    let line = last_line();
    assert!(
        line.starts_with("error: HEAD") && line.contains("does not build") && line.contains("[bench] carry"),
        "{line}"
    );

    commit(&sandbox, "engine.rs", "pub const STEP_NS: u64 = 1_000_000;\n", "needs it to run");
    let worker = std::fs::read_to_string(sandbox.path("bench.rs")).expect("a worker");
    let read = "std::fs::read(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/data/step.rs\")).unwrap();";
    let reads = worker.replace("fn main() {", &format!("fn main() {{\n    {read}\n"));
    assert_ne!(reads, worker);
    commit(&sandbox, "bench.rs", &reads, "reads it");
    let line = last_line();
    assert!(line.contains("ended early (exit status: 101)") && line.contains("[bench] carry"), "{line}");

    let refuse = r##"if let Err(error) = std::fs::read("data/step.rs") {
                println!(r#"{{"error":"data/step.rs: {error}"}}"#);
                continue;
            }
            "##;
    let loads = "format!(r#\"{{\"engine\":";
    let refuses = worker.replace(loads, &format!("{refuse}{loads}"));
    assert_ne!(refuses, worker);
    commit(&sandbox, "bench.rs", &refuses, "says why it does not load");
    let line = last_line();
    assert!(line.contains("base cannot load m: data/step.rs: ") && line.contains("[bench] carry"), "{line}");
}

/// As under `cargo bench`, an engine runs in its package's folder: base's in base's checkout.
#[test]
fn each_side_reads_the_files_of_its_revision() {
    let sandbox = repository();
    let worker = std::fs::read_to_string(sandbox.path("bench.rs")).expect("a worker");
    let read = "let step_ns: u64 = std::fs::read_to_string(\"assets/step\").unwrap().parse().unwrap();";
    let worker =
        worker.replace("fn main() {", &format!("fn main() {{\n    {read}\n")).replace("{STEP_NS}", "{step_ns}");
    sandbox.write("bench.rs", &worker.replace("use engine::STEP_NS;", ""));
    commit(&sandbox, "assets/step", "1000000", "a file");
    sandbox.write("assets/step", "1050000");
    let said = gate(&sandbox, "HEAD", &[]).code(1);
    assert!(decision(&said).contains("regressed (exit 1): decode/p8 +5.0 %"), "{}", stdout(&said));
}

/// Cargo makes that folder in a working tree. A home, or a cache in it, can be a link.
#[cfg(unix)]
#[test]
fn a_bench_keeps_files_in_the_target_folder_of_its_checkout() {
    let (sandbox, elsewhere) = (repository(), Sandbox::new());
    let worker = std::fs::read_to_string(sandbox.path("bench.rs")).expect("a worker");
    let keeps = worker.replace("fn main() {", "fn main() {\n    std::fs::write(\"target/kept\", \"\").unwrap();");
    assert_ne!(keeps, worker);
    commit(&sandbox, "bench.rs", &keeps, "keeps a file");
    std::fs::create_dir(elsewhere.path("home")).expect("a folder");
    std::os::unix::fs::symlink("home", elsewhere.path("link")).expect("a link");
    ran(gate_in(&sandbox, elsewhere.path("link/cache"))).success();
    assert!(elsewhere.path("home/cache/base/tree/target/kept").exists());
}

/// As `cargo bench` does.
#[test]
fn a_bench_gets_the_variables_of_cargos_settings() {
    let sandbox = repository();
    let worker = std::fs::read_to_string(sandbox.path("bench.rs")).expect("a worker");
    let main = "fn main() {\n    let read = |name| std::env::var(name).unwrap_or_else(|_| panic!(\"{name} is not set\"));\n    \
                assert_eq!(read(\"PLAIN\"), \"of the settings\");\n    assert!(read(\"PLACE\").ends_with(\"data/step.rs\"));\n    \
                assert_ne!(read(\"PATH\"), \"none\");\n    assert_eq!(read(\"HOME\"), \"forced\");\n";
    sandbox.write("bench.rs", &worker.replace("fn main() {", main));
    let settings = "[env]\nPLAIN = 'of the settings'\nPLACE = { value = 'data/step.rs', relative = true }\n\
                    PATH = 'none'\nHOME = { value = 'forced', force = true }\n";
    commit(&sandbox, ".cargo/config.toml", settings, "settings");
    let elsewhere = Sandbox::new();
    let mut process = gate_in(&sandbox, elsewhere.path("cache"));
    process.arg("--time-same-code");
    ran(process).success();
}

#[test]
fn what_cannot_be_carried_is_refused_in_one_line() {
    for (carry, refused) in [
        ("missing", "bench.carry: 'missing': is not there"),
        ("../data", "has to be a path below this folder"),
        ("/etc", "has to be a path below this folder"),
        ("engine.rs", "bench.carry: 'engine.rs': is in git in revision 'HEAD'"),
    ] {
        let sandbox = repository_of_data(&format!("[bench]\ncarry = ['{carry}']\n"));
        sandbox.write("data/step.rs", "pub const STEP_NS: u64 = 1_000_000;\n");
        let line = error(gate(&sandbox, "HEAD", &[]));
        assert!(line.contains(refused), "{line}");
    }
}

/// The link of a revision leads nowhere but into its own checkout.
#[cfg(unix)]
#[test]
fn nothing_is_linked_through_a_link_of_the_revision() {
    let sandbox = repository_of_data("[bench]\ncarry = ['out/deep/data']\n");
    let elsewhere = sandbox.path("target/elsewhere");
    std::fs::create_dir_all(&elsewhere).expect("a folder");
    std::os::unix::fs::symlink(&elsewhere, sandbox.path("out")).expect("a link");
    commit(&sandbox, "notes.txt", "", "a link");
    std::fs::remove_file(sandbox.path("out")).expect("a link");
    sandbox.write("out/deep/data", "");
    let line = error(gate(&sandbox, "HEAD", &[]));
    assert!(line.contains("bench.carry: 'out/deep/data': a link stands in its way"), "{line}");
    assert_eq!(std::fs::read_dir(&elsewhere).expect("a folder").count(), 0);
}
