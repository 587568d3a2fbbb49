fn main() -> std::process::ExitCode {
    infergate::bench::main(&candle_step::load)
}
