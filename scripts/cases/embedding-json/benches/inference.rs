fn main() -> std::process::ExitCode {
    infergate::bench::main(&embedding_json::load)
}
