fn main() {
    std::process::exit(infergate::cli::main(std::env::args_os()))
}
