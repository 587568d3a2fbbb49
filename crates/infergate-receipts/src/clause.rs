//! An error as a clause of a receipt: why something is not known.

use std::env;
use std::path::PathBuf;

use infergate_core::printable::printable_within;

const MOST_CHARACTERS: usize = 300;

/// What `error` says, in one line and without folders of this machine: of an absolute path its last part stays.
pub fn clause(error: &anyhow::Error) -> String {
    let folders: Vec<PathBuf> = [env::current_dir().ok(), env::home_dir()].into_iter().flatten().collect();
    clause_without(&format!("{error:#}"), &folders)
}

/// The same of `said`, where a path may begin with one of these folders, whose names may have spaces.
fn clause_without(said: &str, folders: &[PathBuf]) -> String {
    let names = folders.iter().map(|folder| folder.to_string_lossy());
    let said = names
        .filter(|name| name.contains(char::is_whitespace))
        .fold(said.to_owned(), |said, name| said.replace(&*name, "/~"));
    let words: Vec<String> = said.split_whitespace().map(without_folders).collect();
    printable_within(&words.join(" "), MOST_CHARACTERS).into_owned()
}

/// The word, in which a path may stand behind a quote, a bracket or `=`.
fn without_folders(word: &str) -> String {
    let Some(begin) = word.find('/') else { return word.to_owned() };
    let (before, path) = word.split_at(begin);
    // `decode/p8` and `../a` are no absolute paths.
    let is_absolute = before.ends_with('=') || !before.contains(|c: char| c.is_alphanumeric() || c == '.');
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    if is_absolute && !name.is_empty() { format!("{}{name}", before.trim_end_matches('~')) } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::{clause, clause_without};

    #[test]
    fn a_path_is_its_last_part_and_a_case_is_none() {
        for (said, clause_of_it) in [
            (
                "/home/me/secret/inference-1a: the worker hangs (decode/p8)",
                "inference-1a: the worker hangs (decode/p8)",
            ),
            ("base: cannot read '/home/me/.cache/a.txt' of src/a.rs", "base: cannot read 'a.txt' of src/a.rs"),
            ("/opt/worker: ended; see https://example.org/a", "worker: ended; see https://example.org/a"),
            ("~/models/a.gguf, 1/2 / 3, ../b/c.rs, --at=/home/me/d", "a.gguf, 1/2 / 3, ../b/c.rs, --at=d"),
        ] {
            assert_eq!(clause(&anyhow!("{said}")), clause_of_it);
        }
    }

    #[test]
    fn a_folder_whose_name_has_spaces_is_left_out_and_so_is_one_on_another_line() {
        let folders = ["/home/jo doe/my work".into(), "/home/jo doe".into()];
        for (said, clause_of_it) in [
            ("cannot read '/home/jo doe/my work/a.txt'", "cannot read 'a.txt'"),
            ("/home/jo doe/.cache/infergate/worker: ended", "worker: ended"),
            ("error:\n/srv/secret/a.rs:1\tis wrong", "error: a.rs:1 is wrong"),
        ] {
            assert_eq!(clause_without(said, &folders), clause_of_it);
        }
    }
}
