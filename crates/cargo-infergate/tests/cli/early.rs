//! What is refused before anything is built or measured.

use crate::sandbox::{Sandbox, error, stderr};

/// The error of a command that has nothing to build from, and must not get that far.
#[track_caller]
fn refused(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let said = sandbox.run(arguments);
    assert!(!stderr(&said).contains("building"), "{arguments:?}: {}", stderr(&said));
    error(said)
}

#[test]
fn a_model_file_that_is_not_there() {
    let sandbox = Sandbox::new();
    for command in [
        &["bench"][..],
        &["gate"],
        &["gate", "--against=HEAD"],
        &["memory"],
        &["bless"],
        &["calibrate"],
        &["bisect", "--good=HEAD~1", "--bad=HEAD", "--case=decode/p8"],
    ] {
        for model in ["missing.gguf", "./missing", "/no/such/folder", "../Model.SAFETENSORS"] {
            let line = refused(&sandbox, &[command, &["--model", model]].concat());
            assert!(line.contains(&format!("model '{model}': there is no such file or folder")), "{line}");
        }
    }
    // Those are the engine's business: what is missing here is a package to build.
    for model in ["synthetic:none", "hf:ORG/NAME/model.gguf", "ORG/NAME", "http://localhost:1/model.gguf"] {
        let said = stderr(&sandbox.run(&["bench", "--model", model]).code(2));
        assert!(said.contains("could not find `Cargo.toml`"), "{model}: {said}");
    }
}

#[test]
fn a_target_that_no_case_of_the_run_can_meet() {
    let sandbox = Sandbox::new();
    sandbox.write("Cargo.toml", "[package]\nname = 'empty'\nversion = '0.1.0'\n");
    sandbox.write("src/lib.rs", "");
    sandbox.write("infergate.toml", "targets = ['prefill/* ttft_ms < 5']\n");
    for command in [&["gate", "--cases=decode/*"][..], &["gate", "--against=HEAD", "--cases=decode/p8"]] {
        let line = refused(&sandbox, command);
        assert!(line.contains("target 'prefill/* ttft_ms < 5' names no case of this run"), "{line}");
    }
    // The default suite has such cases, as has a grid for a long context; and what judges nothing asks for none.
    for command in [
        &["gate"][..],
        &["gate", "--cases=*/p1024*", "--targets=*/p1024-o256 e2e_ms < 5"],
        &["bench", "--cases=decode/*"],
    ] {
        let said = stderr(&sandbox.run(command).code(2));
        assert!(said.contains("there is no bench target"), "{command:?}: {said}");
    }
}
