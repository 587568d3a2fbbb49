//! What docs/reference/engine.md asks of an engine, as a paired gate sees it.

use crate::paired;
use crate::revisions::{self, WORKER, commit, repository};
use crate::sandbox::{Sandbox, stderr, stdout};

/// Its own times show nothing: base is slowed as much.
#[test]
fn a_head_that_computes_in_bases_turns_is_invalid() {
    let sandbox = repository();
    let says = r#"{{"samples_ns":[{}],"idle":{{"cpu_ns":{BUSY_NS},"wall_ns":100000000}}}}"#;
    let worker = WORKER.replace("engine::STEP_NS", "engine::{BUSY_NS, STEP_NS}");
    sandbox.write("bench.rs", &worker.replace(r#"{{"samples_ns":[{}]}}"#, says));
    let engine = |busy_ns: u64| format!("pub const STEP_NS: u64 = 1_000_000;\npub const BUSY_NS: u64 = {busy_ns};\n");
    commit(&sandbox, "engine.rs", &engine(1_000_000), "rests");
    sandbox.write("engine.rs", &engine(97_000_000));
    let said = revisions::gate(&sandbox, "HEAD", &[]).code(3);
    let what = "invalid: head computes while base has its turn, and slows it down: between its calls it uses 97 % of a core, base 1 %";
    assert!(stdout(&said).contains(what), "{}", stdout(&said));
    sandbox.write("engine.rs", &engine(3_000_000));
    revisions::gate(&sandbox, "HEAD", &[]).success();
}

/// Else it would be improved by all that reading a prompt takes, whatever became of the rest.
#[test]
fn a_head_that_answers_a_known_prompt_from_a_cache_is_invalid() {
    let sandbox = Sandbox::new();
    let cases = "--cases=prefill/p32,prefill/p16,decode/p8";
    let said = paired::gate(&sandbox, "fake", "fake+keeps-prompt", &[cases]).code(3);
    let what = "head answers a prompt of prefill/p16 that it has just read";
    let line = stderr(&said).lines().last().unwrap_or_default().to_owned();
    assert!(line.contains(what) && line.contains("as a new one; Engine::start has to compute it anew"), "{line}");
    let said = paired::gate(&sandbox, "fake+keeps-prompt", "fake+keeps-prompt", &[cases]).code(3);
    assert!(stderr(&said).contains("; base answers it 16"), "{}", stderr(&said));
    // What head mended can be judged.
    let said = paired::gate(&sandbox, "fake+keeps-prompt", "fake", &[cases]).code(1);
    assert!(stdout(&said).contains("base answers a prompt of prefill/p32"), "{}", stdout(&said));
    // No prompt is timed, or only short ones.
    paired::gate(&sandbox, "fake", "fake+keeps-prompt", &["--cases=decode/p32"]).success();
    paired::gate(&sandbox, "fake", "fake", &[cases]).success();
}
