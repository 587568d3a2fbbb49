fn main() -> std::process::ExitCode {
    infergate::bench::main(&word_bounds::load)
}
