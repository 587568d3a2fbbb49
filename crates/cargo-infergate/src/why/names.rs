//! Names of functions, as people know them.

use std::rc::Rc;

use infergate_build::code;

/// Without hashes, and without what glibc puts behind a name and LLVM behind copies of a function.
pub fn readable(symbol: &str) -> Rc<str> {
    let plain = symbol.split_once("@@").map_or(symbol, |(plain, _)| plain);
    code::readable(plain.as_bytes()).into()
}

/// Whether it is the standard library's own, which says little of who does the work.
pub fn is_std(name: &str) -> bool {
    ["core::", "alloc::", "std::", "<core::", "<alloc::", "<std::"].iter().any(|start| name.starts_with(start))
}

/// `attend` of `<engine::Gpt2 as Engine>::attend::<f32>::{{closure}}`.
pub fn last_part(name: &str) -> &str {
    let mut name = name;
    loop {
        let without = match name.rsplit_once("::") {
            Some((rest, last)) if last.starts_with('{') => rest,
            _ if name.ends_with('>') => match generics(name) {
                Some(at) => name[..at].trim_end_matches("::"),
                None => name,
            },
            _ => name,
        };
        if without == name {
            return name.rsplit("::").next().unwrap_or(name);
        }
        name = without;
    }
}

/// Where the last pair of angle brackets begins, if something stands before it.
fn generics(name: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, letter) in name.char_indices().rev() {
        match letter {
            // `->` of a function's type is no bracket.
            '>' if !name[..at].ends_with('-') => depth += 1,
            '<' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return (at > 0).then_some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::last_part;

    #[test]
    fn a_symbol_is_known_by_its_last_part() {
        for (symbol, name) in [
            ("attend", "attend"),
            ("engine::step::attend", "attend"),
            ("engine::step::attend::{{closure}}", "attend"),
            ("engine::step::attend::{closure#0}::{closure#1}", "attend"),
            ("<engine::Gpt2 as infergate::Engine<f32>>::next", "next"),
            ("engine::dot::<core::slice::Iter<'_, f32>, fn(u8) -> u8>", "dot"),
        ] {
            assert_eq!(last_part(symbol), name, "{symbol}");
        }
    }
}
