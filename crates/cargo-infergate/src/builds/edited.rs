//! Functions whose source a change edits, by git's own comparison.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::git::{file_of, git};

/// A file of source code that is larger is generated.
const MOST_BYTES: u64 = 10 << 20;

/// Names of functions without what they lie in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edited(BTreeSet<String>);

impl Edited {
    /// What changed in the Rust files of a repository from the revision `from` to the commit `to`, or to the working tree.
    ///
    /// # Errors
    /// When git says no.
    pub fn between(folder: &Path, from: &str, to: Option<&str>) -> Result<Self> {
        let root = git(folder, &["rev-parse", "--show-toplevel"])?;
        let root = Path::new(&root);
        let mut words = vec![
            "diff",
            "--unified=0",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--no-renames",
            "--end-of-options",
            from,
        ];
        words.extend(to);
        words.extend(["--", "*.rs"]);
        let mut names = BTreeSet::new();
        for (path, places) in places(&git(root, &words)?) {
            let text = match to {
                Some(commit) => file_of(root, commit, &path, MOST_BYTES)?,
                None => fs::read_to_string(root.join(&path)).ok(),
            };
            names.extend(text.iter().flat_map(|text| functions_at(text, &places)));
        }
        Ok(Self(names))
    }

    /// Whether the function that a program calls `name` is one of them.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(last_part(name))
    }
}

/// Of each file that is still there: the lines that are new, or that something was before, from 1, as begin and count.
fn places(difference: &str) -> Vec<(String, Vec<(usize, usize)>)> {
    let mut found: Vec<(String, Vec<(usize, usize)>)> = Vec::new();
    let mut is_there = false;
    for line in difference.lines() {
        if let Some(path) = line.strip_prefix("+++ ") {
            is_there = path.starts_with("b/");
            if is_there {
                found.push((path[2..].trim_end_matches('\t').to_owned(), Vec::new()));
            }
        } else if let Some((_, places)) = found.last_mut().filter(|_| is_there) {
            places.extend(place(line));
        }
    }
    found
}

/// `@@ -3,2 +3,4 @@`: where it is now.
fn place(line: &str) -> Option<(usize, usize)> {
    let now = line.strip_prefix("@@ -")?.split(' ').nth(1)?.strip_prefix('+')?;
    let (begin, count) = now.split_once(',').unwrap_or((now, "1"));
    Some((begin.parse().ok()?, count.parse().ok()?))
}

/// The functions that begin in one of these places, or before it and before any other.
fn functions_at(text: &str, places: &[(usize, usize)]) -> BTreeSet<String> {
    let functions: Vec<(usize, &str)> =
        text.lines().enumerate().filter_map(|(at, line)| Some((at + 1, function_in(line)?))).collect();
    let mut found = BTreeSet::new();
    for (begin, count) in places {
        let after = functions.partition_point(|(at, _)| at <= begin);
        let to = functions.partition_point(|(at, _)| *at < begin + count);
        let touched = &functions[after.saturating_sub(1)..to.max(after)];
        found.extend(touched.iter().map(|(_, name)| (*name).to_owned()));
    }
    found
}

/// The name in `pub fn name(`.
fn function_in(line: &str) -> Option<&str> {
    let code = line.split("//").next()?;
    let after =
        code.match_indices("fn ").find(|(at, _)| code[..*at].chars().next_back().is_none_or(char::is_whitespace));
    let name = code[after?.0 + 3..].trim_start();
    let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(name.len());
    (end > 0).then_some(&name[..end])
}

/// `attend` of `<engine::Gpt2 as Engine>::attend::<f32>::{{closure}}`.
fn last_part(name: &str) -> &str {
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
