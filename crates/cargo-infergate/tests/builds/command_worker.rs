//! Workers in other languages, and programs that are no workers: `[worker] command`.
#![cfg(unix)]

use std::path::Path;
use std::sync::atomic::AtomicBool;

use infergate::engine::LoadRequest;
use infergate_core::case::Case;
use infergate_core::worker::{Client, Launcher, Sampling, Timeouts, WorkerError, WorkerFile};

use crate::repositories::{commit, empty_repository};
use crate::sandbox::{Sandbox, error, stdout};

static GOES_ON: AtomicBool = AtomicBool::new(false);

#[test]
fn an_engine_in_python_is_a_worker() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/worker.py");
    let file = WorkerFile::open(&path).expect("an example");
    let spawned = Client::spawn(&file, &LoadRequest::default(), Timeouts::default(), &GOES_ON);
    let (mut client, hello) = spawned.expect("python3 runs it");
    assert_eq!(hello.machine.class, "python");
    assert_eq!(client.load(&LoadRequest::default(), None).expect("loaded").engine.name, "toy");
    for (id, ids, times) in [("prefill/p8", 1, 1), ("decode/p8", 2, 1), ("generate/p8-o5", 5, 5)] {
        let case: Case = id.parse().expect("a case");
        let said = client.prepare(case, None).expect("an output").output.ids;
        assert_eq!(said.len(), ids, "{id}");
        assert_eq!(client.prepare(case, Some(said.clone())).expect("again").output.ids, said, "{id}");
        let samples = client.sample(case, Sampling::of(2, 1)).expect("samples").samples_ns;
        assert!(samples.len() == 2 && samples.iter().all(|sample| sample.len() == times), "{id}: {samples:?}");
        let other = client.prepare(case, Some(vec![256; ids])).expect_err("it says what it said");
        assert!(matches!(&other, WorkerError::Invalid(why) if why.contains("not the same in every run")), "{other}");
        let samples = client.sample(case, Sampling::of(1, 1)).expect_err("it was prepared for another output");
        assert!(matches!(samples, WorkerError::Invalid(_)), "{samples}");
    }
}

/// `program` with `arguments` as a worker, through the command's hidden one.
pub fn launched(program: &str, arguments: &[&str], check_output: bool) -> (Client<'static>, Case) {
    launched_until(program, arguments, check_output, &GOES_ON)
}

/// The same, until `cancelled`.
pub fn launched_until(
    program: &str,
    arguments: &[&str],
    check_output: bool,
    cancelled: &'static AtomicBool,
) -> (Client<'static>, Case) {
    let path = Path::new(program);
    let this = env!("CARGO_BIN_EXE_cargo-infergate");
    let work = serde_json::json!({
        "Program": { "case": "bench:it", "program": program, "arguments": arguments, "check_output": check_output }
    });
    let words = ["__watch", "--", this, "__worker", &work.to_string()];
    let launcher = Launcher {
        program: this.into(),
        arguments: words.into_iter().map(Into::into).collect(),
        folder: std::env::temp_dir(),
    };
    let file = WorkerFile::open(path).expect("a program").behind(launcher);
    let spawned = Client::spawn(&file, &LoadRequest::default(), Timeouts::default(), cancelled);
    let mut client = spawned.expect("a worker").0;
    let loaded = client.load(&LoadRequest::default(), None).expect("loaded");
    assert_eq!(loaded.benches.len(), 1);
    (client, loaded.benches[0])
}

#[test]
fn a_command_is_run_once_a_sample_and_what_it_prints_is_its_output() {
    let (mut client, case) = launched("/bin/sh", &["-c", "echo one"], true);
    let one = client.prepare(case, None).expect("an output").output;
    assert_eq!(one.ids.len(), 8);
    assert_eq!(client.sample(case, Sampling::of(3, 1)).expect("samples").samples_ns.len(), 3);
    let (mut client, case) = launched("/bin/sh", &["-c", "echo two"], true);
    assert_ne!(client.prepare(case, None).expect("an output").output.ids, one.ids);
    let (mut client, case) = launched("/bin/sh", &["-c", "echo $$"], false);
    assert_eq!(client.prepare(case, None).expect("none").output.ids, Vec::<u32>::new());
}

#[test]
fn a_command_that_fails_or_changes_its_mind_is_called() {
    let (mut client, case) = launched("/bin/sh", &["-c", "echo $$"], true);
    let changed = client.prepare(case, None).expect_err("invalid");
    assert!(matches!(&changed, WorkerError::Invalid(why) if why.contains("prints something else")), "{changed}");
    let (mut client, case) = launched("/bin/sh", &["-c", "exit 7"], true);
    let failed = client.prepare(case, None).expect_err("refused").to_string();
    assert!(failed.contains("the command failed (exit status: 7)"), "{failed}");
}

/// A repository whose program is a script: base prints one thing, head another.
fn repository(head: &str) -> Sandbox {
    let sandbox = empty_repository();
    sandbox.write("infergate.toml", "[worker]\ncommand = ['./built.sh', 'x']\nbuild = ['sh', 'build.sh']\n");
    sandbox.write("build.sh", "cp source.sh built.sh && chmod +x built.sh\n");
    sandbox.write("source.sh", "#!/bin/sh\necho base \"$1\"\n");
    commit(&sandbox, ".gitignore", "built.sh\ntarget\n", "base");
    sandbox.write("source.sh", head);
    sandbox
}

#[test]
fn a_build_of_head_that_changes_bases_program_ends_the_gate() {
    let sandbox = repository("#!/bin/sh\necho head\n");
    let cache = Sandbox::new();
    let built = cache.path("base/base/tree/built.sh");
    sandbox.write("build.sh", &format!("cp source.sh built.sh && cp source.sh '{}'\n", built.display()));
    let folder = format!("--base-folder={}", cache.path("base").display());
    let line = error(sandbox.run(&["gate", "--against=HEAD", &folder, "--memory-runs=0"]));
    assert!(line.contains("was rebuilt or removed"), "{line}");
}

/// An image has one name, whatever the checkout that it is built in.
#[cfg(unix)]
#[test]
fn what_is_built_elsewhere_has_a_name_for_each_side() {
    let sandbox = repository("#!/bin/sh\necho \"$1\"\n");
    let (cache, images) = (Sandbox::new(), Sandbox::new());
    let image = images.path("image").display().to_string();
    sandbox.program("docker", &format!("#!/bin/sh\nexec sh \"{image}$1\" same\n"));
    let gate = |name: &str| {
        let settings =
            format!("[worker]\nbuild = ['cp', 'source.sh', '{image}{name}']\ncommand = ['./docker', '{name}']\n");
        commit(&sandbox, "infergate.toml", &settings, "an image");
        let folder = format!("--base-folder={}", cache.path("base").display());
        sandbox.run(&["gate", "--against=HEAD", &folder, "--memory-runs=0"]).success();
    };
    gate("-of-{side}");
    let mut made = images.files();
    made.sort();
    assert_eq!(made, ["image-of-base", "image-of-head"]);
}

/// As one that is installed outside of the checkouts.
#[test]
fn a_program_may_have_a_name_for_each_side() {
    let (sandbox, cache, place) = (repository("#!/bin/sh\n"), Sandbox::new(), Sandbox::new());
    let program = place.path("program-{side}").display().to_string();
    let build = format!("build = ['install', '-m', '755', 'source.sh', '{program}']\n");
    commit(&sandbox, "infergate.toml", &format!("[worker]\n{build}command = ['{program}']\n"), "installed");
    let folder = format!("--base-folder={}", cache.path("base").display());
    let said = stdout(&sandbox.run(&["gate", "--against=HEAD", &folder, "--quick"]).success());
    assert!(said.contains("program-{side}"), "{said}");
}

#[test]
fn what_base_built_among_its_files_serves_the_next_gate() {
    let sandbox = repository("#!/bin/sh\necho base \"$1\"\n");
    let source = "mkdir -p target && echo built >> target/builds && cp source.sh built.sh && chmod +x built.sh\n";
    commit(&sandbox, "build.sh", source, "builds are kept");
    let cache = Sandbox::new();
    let builds_after_a_gate = || {
        let folder = format!("--base-folder={}", cache.path("base").display());
        sandbox.run(&["gate", "--against=HEAD", &folder, "--quick", "--memory-runs=0"]);
        let builds = std::fs::read_to_string(cache.path("base/base/tree/target/builds")).expect("it was built");
        builds.lines().count()
    };
    assert_eq!([builds_after_a_gate(), builds_after_a_gate()], [1, 2]);
    commit(&sandbox, "other.txt", "other\n", "another commit");
    assert_eq!(builds_after_a_gate(), 3);
}
