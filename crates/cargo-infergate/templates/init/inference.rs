//! Times the engine: `cargo bench`, and the worker of `cargo infergate gate`.

mod engine;

fn main() -> std::process::ExitCode {
    infergate::bench::main(&engine::load)
}
