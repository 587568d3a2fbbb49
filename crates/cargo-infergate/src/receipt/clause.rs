//! An error as a clause of a receipt: why something is not known.

use infergate_core::printable::printable_within;

const MOST_CHARACTERS: usize = 300;

/// What `error` says, in one line and without folders of this machine: of an absolute path its last part stays.
pub fn clause(error: &anyhow::Error) -> String {
    let said = format!("{error:#}");
    let words: Vec<String> = said.split(' ').map(without_folders).collect();
    printable_within(&words.join(" "), MOST_CHARACTERS).into_owned()
}

/// The word, in which a path may stand behind a quote, a bracket or `=`.
fn without_folders(word: &str) -> String {
    let of_windows = word.find(":\\").map(|at| at.saturating_sub(1));
    let Some(begin) = of_windows.or_else(|| word.find('/')).filter(|at| word.is_char_boundary(*at)) else {
        return word.to_owned();
    };
    let (before, path) = word.split_at(begin);
    // `decode/p8` and `../a` are no absolute paths.
    let is_absolute = before.ends_with('=') || !before.contains(|c: char| c.is_alphanumeric() || c == '.');
    let name = path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default();
    if is_absolute && !name.is_empty() { format!("{}{name}", before.trim_end_matches('~')) } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::clause;

    #[test]
    fn a_path_is_its_last_part_and_a_case_is_none() {
        for (said, clause_of_it) in [
            (
                "/home/me/secret/inference-1a: the worker hangs (decode/p8)",
                "inference-1a: the worker hangs (decode/p8)",
            ),
            ("base: cannot read '/home/me/.cache/a.txt' of src/a.rs", "base: cannot read 'a.txt' of src/a.rs"),
            (
                "C:\\Users\\me\\worker.exe: ended; see https://example.org/a",
                "worker.exe: ended; see https://example.org/a",
            ),
            ("~/models/a.gguf, 1/2 / 3, ../b/c.rs, --at=/home/me/d", "a.gguf, 1/2 / 3, ../b/c.rs, --at=d"),
        ] {
            assert_eq!(clause(&anyhow!("{said}")), clause_of_it);
        }
    }
}
