//! The names of functions, in one program and in two.

use std::collections::HashSet;

/// A name without the hashes of crates and types that the compiler adds, and without the version that glibc appends.
pub fn readable(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let plain = name.split_once("@@").map_or(&*name, |(plain, _)| plain);
    format!("{:#}", rustc_demangle::demangle(plain))
}

/// The name under which both sides look a unit of these symbols up: a mangled name that the other side has too (`others` are its names, by
/// [`stem`]), else the name without its hash.
pub fn shared_name(symbols: &[&[u8]], others: &HashSet<&[u8]>) -> String {
    let mut names = symbols.iter().map(|symbol| stem(symbol));
    let first = names.clone().next().unwrap_or_default();
    let shared = names.find(|name| others.contains(name));
    shared.map_or_else(|| readable(first), |name| String::from_utf8_lossy(name).into_owned())
}

/// A name of Rust without the number that LLVM gives to copies of a function if it optimises whole programs, a new one in each build, as in
/// `_ZN...17h0123456789abcdefE.2041` and `_R....llvm.77`. Names of other languages stay: two files of C may each have a function of one
/// name.
pub fn stem(name: &[u8]) -> &[u8] {
    let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let stem = name[..name.len() - digits]
        .strip_suffix(b".")
        .filter(|_| digits > 0)
        .map(|stem| stem.strip_suffix(b".llvm").unwrap_or(stem));
    stem.filter(|stem| is_of_rust(stem)).unwrap_or(name)
}

/// Whether it is a mangled name of Rust.
pub fn is_of_rust(name: &[u8]) -> bool {
    // The hash that ends a name of the older kind.
    let is_hashed = name.len() > 20 && name.ends_with(b"E") && name[name.len() - 20..].starts_with(b"17h");
    name.starts_with(b"_R") || is_hashed
}
