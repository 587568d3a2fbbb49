//! `demo` before it measures: its repository, and what it leaves behind. That its verdicts come out right takes minutes, and is
//! tried each night.

use std::fs;
use std::process::Command as Process;

use crate::interrupt::signal;
use crate::sandbox::{Sandbox, error, ran, stderr};

/// `demo` with a cargo that does `instead` of a build, and its folder in the sandbox's `cache`.
fn demo(sandbox: &Sandbox, instead: &str) -> Process {
    let real = env!("CARGO");
    let script = format!("#!/bin/sh\ncase $1 in bench) ;; *) exec '{real}' \"$@\" ;; esac\n{instead}\n");
    let mut demo = sandbox.process(&["demo"]);
    demo.env("CARGO", sandbox.program("cargo", &script)).env("XDG_CACHE_HOME", sandbox.path("cache"));
    demo
}

/// Whether nothing is left in a folder that no other user may write to.
fn is_tidy(sandbox: &Sandbox) -> bool {
    fs::read_dir(sandbox.path("cache/infergate")).expect("a folder").next().is_none()
}

#[test]
fn the_users_settings_of_git_do_not_decide_what_is_in_its_repository() {
    let sandbox = Sandbox::new();
    for name in ["template/hooks/pre-commit", "hooks/pre-commit"] {
        sandbox.program(name, "#!/bin/sh\nexit 1\n");
    }
    sandbox.write("template/info/exclude", "benches\n");
    sandbox.write("excludes", "*.toml\n*.rs\n*.lock\n");
    sandbox.write("attributes", "*.rs text eol=crlf\n");
    let place = sandbox.path("").display().to_string();
    let settings = format!(
        "[commit]\ngpgSign = true\ntemplate = nowhere\n[tag]\ngpgSign = true\n[gpg]\nprogram = false\n\
         [user]\nuseConfigOnly = true\n[init]\ntemplateDir = {place}/template\n\
         [core]\nhooksPath = {place}/hooks\nexcludesFile = {place}/excludes\nattributesFile = {place}/attributes\n\
         autocrlf = true\nsafecrlf = true\n"
    );
    let mut demo = demo(&sandbox, &format!("git ls-files --eol > '{place}/tracked'\nexit 101"));
    demo.env("GIT_CONFIG_GLOBAL", sandbox.write("gitconfig", &settings));
    let said = stderr(&ran(demo).code(2));
    assert!(said.contains("error: a comment: the gate failed; its output is above"), "{said}");
    let tracked = fs::read_to_string(sandbox.path("tracked")).expect("the gate got as far as a build");
    for name in ["Cargo.toml", "Cargo.lock", "src/lib.rs", "benches/inference.rs", "benches/memory.rs"] {
        let found = tracked.lines().find(|line| line.ends_with(&format!("\t{name}")));
        assert!(found.is_some_and(|line| line.contains("w/lf")), "{name}: {tracked}");
    }
    assert!(is_tidy(&sandbox));
}

#[test]
fn a_cache_that_is_no_whole_path_is_the_one_at_home() {
    let sandbox = Sandbox::new();
    let home = sandbox.write("home", "no folder");
    for cache in ["", "cache"] {
        let mut demo = sandbox.process(&["demo"]);
        demo.env("XDG_CACHE_HOME", cache).env("HOME", &home);
        let line = error(ran(demo));
        assert!(line.contains("home/.cache/infergate: cannot be written"), "{line}");
    }
}

#[test]
fn ctrl_c_leaves_no_folder_behind() {
    let sandbox = Sandbox::new();
    let pipe = sandbox.path("pipe");
    assert!(Process::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let demo = demo(&sandbox, &format!("echo 'waits in a build' >&2\nread -r line < '{}'", pipe.display()));
    let (code, said) = signal(demo, &[("waits in a build", &|id| format!("-{id}"))]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("interrupted after 0 of 5 changes"), "{said}");
    assert!(is_tidy(&sandbox), "{said}");
}
