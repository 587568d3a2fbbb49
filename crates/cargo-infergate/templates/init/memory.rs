//! Counts the engine's allocations and looks for leaks. A target of its own: what is timed is not counted.

mod engine;

#[global_allocator]
static ALLOCATOR: infergate::memory::CountingAllocator = infergate::memory::CountingAllocator;

fn main() -> std::process::ExitCode {
    infergate::bench::memory_main(&engine::load)
}
