//! `cargo infergate`: [`cargo_infergate`] as a program.

fn main() {
    std::process::exit(cargo_infergate::cli::main(std::env::args_os()))
}
