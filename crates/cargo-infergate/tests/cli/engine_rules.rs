//! What docs/reference/engine.md asks of an engine, as a paired gate sees it.

use crate::repositories::{self, WORKER, commit, repository};
use crate::sandbox::stdout;

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
    let said = repositories::gate(&sandbox, "HEAD", &[]).code(3);
    let what = "invalid: head computes while base has its turn, and slows it down: between its calls it uses 97 % of a core, base 1 %";
    assert!(stdout(&said).contains(what), "{}", stdout(&said));
    sandbox.write("engine.rs", &engine(3_000_000));
    repositories::gate(&sandbox, "HEAD", &[]).success();
}
