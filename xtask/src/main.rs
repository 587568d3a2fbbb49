//! `cargo xtask`: [`cargo_infergate`] in a clone of this repository.

fn main() {
    std::process::exit(cargo_infergate::cli::main(std::env::args_os()))
}
