fn main() -> std::process::ExitCode {
    infergate::bench::main(&tokenizers_reload::load)
}
