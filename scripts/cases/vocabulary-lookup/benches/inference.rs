fn main() -> std::process::ExitCode {
    infergate::bench::main(&vocabulary_lookup::load)
}
