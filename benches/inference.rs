//! Prefill, decode and generate on a local model. Criterion's flags work: `cargo bench -- decode`, `--list`, `--test`.

use std::process::ExitCode;

fn main() -> ExitCode {
    infergate::bench::main(&infergate_candle::Candle)
}
