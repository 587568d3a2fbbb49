fn main() -> std::process::ExitCode {
    infergate::bench::main(&chat_template::load)
}
