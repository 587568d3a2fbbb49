fn main() -> std::process::ExitCode {
    infergate::bench::main(&infergate_demo::load)
}
