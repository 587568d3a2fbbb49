//! Loading, one generation and a hundred of them: how much memory, and whether it grows. `cargo bench -- memory`.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: infergate::memory::CountingAllocator = infergate::memory::CountingAllocator;

fn main() -> ExitCode {
    infergate::bench::memory_main(&infergate_candle::Candle)
}
