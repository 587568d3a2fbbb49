//! Configuration, flags and ids, damaged: each refusal names what it refuses, in one line.

use std::path::Path;

use cargo_infergate::config::Config;
use cargo_infergate::receipt::Target;
use infergate_core::case::Case;
use infergate_core::config::Settings as _;
use infergate_core::config::keys::{KEYS, commented_file};
use infergate_core::printable::printable;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::inputs;

fn assert_one_line(error: &anyhow::Error) -> Result<(), TestCaseError> {
    let line = format!("{error:#}");
    prop_assert!(!printable(&line).is_empty() && !line.ends_with('.'), "{line}");
    Ok(())
}

const VALUES: [&str; 14] = [
    "18446744073709551616",
    "-9223372036854775809",
    "1e999",
    "nan",
    "-inf",
    "0x_1",
    "''",
    "[[[[[[1]]]]]]",
    "{a.b.c=1}",
    "1979-05-27T07:32:00Z",
    "\"\\u001b[2J\"",
    "['decode/p18446744073709551615']",
    "['prefill/* ttft_ms < nan']",
    "'''\n\n'''",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: inputs(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_configuration(at in any::<Index>(), cut in 0usize..20, byte in any::<char>()) {
        let text: Vec<char> = commented_file().chars().collect();
        let at = at.index(text.len());
        let mut damaged: String = text[..at].iter().collect();
        damaged.push(byte);
        damaged.extend(&text[(at + cut).min(text.len())..]);
        if let Err(error) = Config::default().apply_file(Path::new("infergate.toml"), &damaged) {
            assert_one_line(&error)?;
        }
    }

    #[test]
    fn any_value_for_any_key(key in 0..KEYS.len(), value in 0..VALUES.len(), word in any::<String>()) {
        let key = &KEYS[key];
        let line = format!("{} = {}", key.name, VALUES[value]);
        if let Err(error) = Config::default().apply_file(Path::new("infergate.toml"), &line) {
            assert_one_line(&error)?;
        }
        for word in [word, VALUES[value].to_owned()] {
            if let Err(error) = Config::default().apply_text(key, &[word]) {
                assert_one_line(&error)?;
            }
        }
    }

    #[test]
    fn any_word_for_a_case_or_a_target(
        id in "(prefill|decode|generate|[a-z]{0,3})/?p?[0-9]{0,25}(-o[0-9]{0,25})?",
        target in "[a-z/*]{0,12} ?(ttft_ms|tokens_per_s|x)? ?(<|>|<=|=)? ?-?[0-9.e]{0,12}",
        any in any::<String>(),
    ) {
        for text in [id, any.clone()] {
            match text.parse::<Case>() {
                Ok(case) => {
                    prop_assert_eq!(case.to_string().parse::<Case>().expect("its own id"), case);
                    let _ = case.ensure_fits(1024);
                }
                Err(error) => assert_one_line(&error)?,
            }
        }
        for text in [target, any] {
            if let Err(error) = text.parse::<Target>() {
                assert_one_line(&error)?;
            }
        }
    }
}
