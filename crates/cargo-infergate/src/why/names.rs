//! Names of functions, as people know them.

use infergate_build::code::ChangedFunction;
use infergate_core::printable::printable_within;
use infergate_report::words::explained::parts;

/// Whether it is the standard library's own, which says little of who does the work. A trait of somebody else's is not, whatever it is for.
pub fn is_std(name: &str) -> bool {
    let is_own = |path: &str| ["core::", "alloc::", "std::"].iter().any(|start| path.starts_with(start));
    let of_trait = parts(name).first().and_then(|part| Some(part.rsplit_once(" as ")?.1));
    is_own(name.trim_start_matches('<')) && of_trait.is_none_or(is_own)
}

/// `attend` of `<engine::Gpt2 as Engine>::attend::<f32>::{{closure}}`.
pub fn last_part(name: &str) -> &str {
    parts(name).pop().and_then(|last| last.split('<').next()).unwrap_or(name)
}

/// As many as a line has room for.
pub fn shown_names(functions: &[&ChangedFunction]) -> Vec<String> {
    const MOST: usize = 4;
    const MOST_CHARACTERS: usize = 60;
    let name = |function: &&ChangedFunction| printable_within(&function.name, MOST_CHARACTERS).into_owned();
    // What calls a bench changes with what is inlined into it, and nobody edited it.
    let is_own = |name: &String| name.starts_with("infergate::");
    let mut names: Vec<String> = functions.iter().map(name).filter(|name| !is_own(name)).collect();
    names.dedup();
    names.truncate(MOST);
    names
}

#[cfg(test)]
mod tests {
    use super::{is_std, last_part};

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

    #[test]
    fn a_trait_of_somebody_elses_is_not_the_standard_librarys() {
        for symbol in [
            "core::ptr::drop_in_place::<<engine::Gpt2 as engine::Model>::Cache>",
            "<alloc::vec::Vec<engine::Token>>::push",
            "<alloc::vec::Vec<u8> as core::clone::Clone>::clone",
        ] {
            assert!(is_std(symbol), "{symbol}");
        }
        for symbol in [
            "engine::step::attend",
            "<engine::Gpt2 as core::fmt::Debug>::fmt",
            "<alloc::vec::Vec<f32> as engine::Tensor>::dot",
        ] {
            assert!(!is_std(symbol), "{symbol}");
        }
    }
}
