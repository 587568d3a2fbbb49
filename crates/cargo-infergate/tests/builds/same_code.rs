//! What is the same machine code is not timed: `gate --against` and `--base-bin` on programs whose code, data or words change.

use std::fs;

#[cfg(target_os = "linux")]
use infergate_receipts::PairedReceipt;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use crate::repositories::run;
use crate::repositories::{MANIFEST, WORKER, commit, gate, gate_in, repository};
use crate::sandbox::{Sandbox, ran, stderr, stdout};

const OUT: &[&str] = &["--out=paired.json", "--json=verdict.json"];

#[test]
fn code_that_differs_is_timed() {
    let sandbox = repository();
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = 1_000_001;\n");
    let manifest = fs::read_to_string(sandbox.path("Cargo.toml")).expect("a manifest");
    sandbox.write("Cargo.toml", &format!("{manifest}\n[profile.bench]\ndebug = 1\n"));
    let said = gate(&sandbox, "HEAD", OUT).success();
    let profiles = "- cargo's settings differ: profile.bench.debug is 1 in head, not set in base\n";
    assert!(stdout(&said).contains(profiles), "{}", stdout(&said));
    let receipt = sandbox.receipt();
    assert!(!receipt.is_same_code() && receipt.blocks.len() == 6);
}

/// Base has nothing that git ignores or that lies above the repository. Head, which is built in place, has.
#[test]
fn cargos_settings_that_head_alone_has_are_refused() {
    let sandbox = repository();
    commit(&sandbox, ".gitignore", "/target\n/cache\nCargo.lock\n/.cargo\n", "settings of each one's own");
    sandbox.write(".cargo/config.toml", "[build]\nrustflags = ['-Cdebuginfo=1']\n");
    let elsewhere = Sandbox::new();
    let gate = |code: i32| ran(gate_in(&sandbox, elsewhere.path("cache"))).code(code);
    let said = stderr(&gate(4));
    let note = "cargo's settings that git ignores, or above the repository, hold in no checkout; commit them, or name";
    assert!(said.contains(note), "{said}");
    // Those that make the same program are of no interest, and variables are named.
    for (settings, is_named) in [("[build]\njobs = 2\n", false), ("[env]\nNUMBER = '1'\n", true)] {
        sandbox.write(".cargo/config.toml", settings);
        let said = gate(0);
        assert_eq!(stdout(&said).contains(note), is_named, "{settings}: {}", stdout(&said));
    }
    sandbox.write(".cargo/config.toml", "[build]\nrustflags = ['-Cdebuginfo=1']\n");
    sandbox.write("infergate.toml", "[bench]\ncarry = ['.cargo/config.toml']\n");
    let said = gate(0);
    assert!(!stdout(&said).contains("git ignores"), "{}", stdout(&said));
}

#[test]
fn data_beside_the_same_code_is_timed_and_so_is_a_target_of_time() {
    let sandbox = repository();
    for file in ["prompts/long.txt", "tests/input.md", "PROMPT.md", "benches/RELEASES.md", "HISTORY.json"] {
        let written = sandbox.write(file, "one");
        let said = gate(&sandbox, "HEAD", OUT).success();
        let receipt = sandbox.receipt();
        assert!(receipt.code.is_none() && !receipt.blocks.is_empty(), "{file}");
        let why = format!("timed because '{file}' differs, which a bench may read");
        assert!(cfg!(not(target_os = "linux")) || stdout(&said).contains(&why), "{}", stdout(&said));
        fs::remove_file(written).expect("the file");
    }
    sandbox.write("Changelog.md", "one");
    let said = gate(&sandbox, "HEAD", OUT).success();
    assert!(cfg!(not(target_os = "linux")) || sandbox.receipt().blocks.is_empty(), "{}", stdout(&said));
    let said = gate(&sandbox, "HEAD", &[OUT, &["--targets=* itl_ms < 50"]].concat()).success();
    assert!(stdout(&said).contains("1 of 1 target met"), "{}", stdout(&said));
}

/// The receipt of a gate of the working tree, and what the gate said.
#[cfg(target_os = "linux")]
fn gated(sandbox: &Sandbox) -> (PairedReceipt, String) {
    let said = stdout(&gate(sandbox, "HEAD", OUT).success());
    (sandbox.receipt(), said)
}

/// What source makes without being in the code: what a build script or a command writes.
#[test]
#[cfg(target_os = "linux")]
fn source_that_makes_data_is_timed() {
    let named = MANIFEST.replace("edition =", "build = 'make/data.rs'\nedition =");
    let main = "fn main() {}\n";
    for (manifest, file, text) in
        [(MANIFEST, "build.rs", main), (&named, "make/data.rs", main), (&named, "make/table.rs", "fn table() {}\n")]
    {
        let sandbox = repository();
        sandbox.write("Cargo.toml", manifest);
        sandbox.write("make/data.rs", main);
        commit(&sandbox, file, text, "base");
        let (receipt, said) = gated(&sandbox);
        assert!(receipt.is_same_code() && receipt.blocks.is_empty(), "{said}");
        sandbox.write(file, &format!("// A comment.\n{text}"));
        let (receipt, said) = gated(&sandbox);
        assert!(receipt.code.is_none() && !receipt.blocks.is_empty(), "{file}: {said}");
        let why = format!("timed because '{file}' differs, source of a build script, which may make");
        assert!(said.contains(&why), "{said}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_library_that_a_build_script_makes_is_compared() {
    let sandbox = repository();
    let build = r#"fn main() {
        let out = std::env::var("OUT_DIR").unwrap();
        let arguments = ["--crate-type=cdylib", "--edition=2021", "-Cstrip=symbols", "native/work.rs", "--out-dir", &out];
        assert!(std::process::Command::new("rustc").args(arguments).status().unwrap().success());
        println!("cargo:rerun-if-changed=native/work.rs\ncargo:rustc-link-search=native={out}");
    }"#;
    sandbox.write("build.rs", build);
    let work = "#[no_mangle] pub extern \"C\" fn work(number: i32) -> i32 { number ^ 1 }\n";
    sandbox.write("native/work.rs", work);
    sandbox.write(
        "bench.rs",
        &WORKER.replace("fn main() {", "fn main() {\n    assert!(unsafe { engine::work(4) } > 4);\n"),
    );
    let engine = "pub const STEP_NS: u64 = 1_000_000;\n#[link(name = \"work\")] extern \"C\" { pub fn work(number: i32) -> i32; }\n";
    commit(&sandbox, "engine.rs", engine, "a library");
    sandbox.write("native/work.rs", &format!("// A comment.\n{work}"));
    let (_, said) = gated(&sandbox);
    assert!(said.contains("timed because 'native/work.rs' differs, source of a build script"), "{said}");
    sandbox.write("native/work.rs", &work.replace("^ 1", "^ 2"));
    let (receipt, said) = gated(&sandbox);
    assert!(receipt.code.is_none() && !receipt.blocks.is_empty(), "{said}");
    assert!(said.contains("timed because the library 'libwork.so' differs, which a build script made"), "{said}");
}

/// A bench that times a program of its package: the bench itself stays the same.
#[test]
#[cfg(target_os = "linux")]
fn a_program_of_the_package_is_compared() {
    let sandbox = repository();
    let tool = |number: &str| format!("fn main() {{\n    println!(\"{number}\");\n}}\n");
    commit(&sandbox, "src/bin/tool.rs", &tool("1"), "a program");
    sandbox.write("src/bin/tool.rs", &format!("// A comment.\n//\n{}", tool("1")));
    let (receipt, said) = gated(&sandbox);
    assert!(receipt.is_same_code() && receipt.blocks.is_empty(), "{said}");
    assert!(receipt.took.pilot_ns > 0, "a budget of several bench targets counts it");
    sandbox.write("src/bin/tool.rs", &tool("2"));
    let (receipt, said) = gated(&sandbox);
    assert!(receipt.code.is_none() && !receipt.blocks.is_empty(), "{said}");
    assert!(said.contains("timed because the program 'tool' differs, which a bench may start"), "{said}");
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn a_change_that_runs_while_loading_reaches_all_cases() {
    let rare = |step_ns: u64| {
        format!("#[inline(never)] pub fn rare(number: u64) -> u64 {{ std::hint::black_box(number) * {step_ns} }}\n")
    };
    let call = "let taken_ns = if line.contains(\"load\") { engine::rare(1) } else { 1_000_000 };\n        \
                let answer = if line.contains(\"\\\"op\\\":\\\"hello";
    let worker = WORKER.replace("use engine::STEP_NS;", "").replace("STEP_NS", "taken_ns");
    let worker = worker.replace("let answer = if line.contains(\"\\\"op\\\":\\\"hello", call);
    assert!(worker.contains("engine::rare"), "{worker}");
    let sandbox = repository();
    sandbox.write("bench.rs", &worker);
    commit(&sandbox, "engine.rs", &rare(1_000_000), "a step");
    sandbox.write("engine.rs", &rare(1_000_001));
    let arguments = ["gate", "--against=HEAD", "--cases=decode/p8,decode/p16"];
    let said = run(&sandbox, &[&arguments[..], OUT].concat()).success();
    let timed = sandbox.receipt().blocks.first().map_or(0, |block| block.cases.len());
    assert_eq!(timed, 2, "{}", stdout(&said));
}
