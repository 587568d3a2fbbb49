#[global_allocator]
static ALLOCATOR: infergate::memory::CountingAllocator = infergate::memory::CountingAllocator;

fn main() -> std::process::ExitCode {
    infergate::bench::memory_main(&word_bounds::load)
}
