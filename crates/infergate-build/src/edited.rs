//! Functions whose source a change edits, by git's own comparison.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use infergate_core::text_file::read_text;

use super::git::{file_of, git};

/// A file of source code that is larger is generated.
const MOST_BYTES: u64 = 10 << 20;

/// Names of functions without what they lie in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edited(BTreeSet<String>);

impl Edited {
    /// What changed in the Rust files of a repository from the revision `from` to the commit `to`, or to the working tree.
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
            // Whatever the user's settings call both sides.
            "--src-prefix=a/",
            "--dst-prefix=b/",
            "--end-of-options",
            from,
        ];
        words.extend(to);
        words.extend(["--", "*.rs"]);
        let mut names = BTreeSet::new();
        for (path, places) in places(&git(root, &words)?) {
            let text = match to {
                Some(commit) => file_of(root, commit, &path, MOST_BYTES)?,
                // One that cannot be read, or is no file, has no functions to name.
                None => read_text(&root.join(&path), MOST_BYTES).ok(),
            };
            names.extend(text.iter().flat_map(|text| functions_at(text, &places)));
        }
        Ok(Self(names))
    }

    /// Whether a function of this name, without what it lies in, is one of them.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::git::git;
    use super::Edited;

    const BEFORE: &str = "\
fn first() {
    one();
}

impl Engine {
    // A fn that is only spoken of.
    pub(crate) const fn second<T>(&self) -> T {
        two();
        three();
    }

    async fn third() {}
}
";

    fn commit(folder: &Path, text: &str) -> String {
        fs::write(folder.join("engine.rs"), text).expect("a file");
        git(folder, &["add", "--all"]).expect("added");
        let who = ["-c", "user.name=a", "-c", "user.email=a@localhost"];
        git(folder, &[&who[..], &["commit", "--quiet", "--message", "engine"]].concat()).expect("committed");
        git(folder, &["rev-parse", "HEAD"]).expect("a commit")
    }

    #[test]
    fn a_function_is_edited_where_a_line_of_it_is_new_other_or_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        git(folder, &["init", "--quiet"]).expect("a repository");
        git(folder, &["config", "diff.mnemonicPrefix", "true"]).expect("a setting");
        let base = commit(folder, BEFORE);
        let edited = |before: &str, after: &str| {
            fs::write(folder.join("engine.rs"), BEFORE.replace(before, after)).expect("a file");
            let edited = Edited::between(folder, &base, None).expect("a difference");
            ["first", "second", "third"].map(|name| edited.has(name))
        };
        assert_eq!(edited("", ""), [false; 3]);
        assert_eq!(edited("two();", "four();"), [false, true, false]);
        assert_eq!(edited("        three();\n", ""), [false, true, false]);
        assert_eq!(edited("one();", "one();\n    four();"), [true, false, false]);
        assert_eq!(edited("third() {}", "third() { five() }"), [false, false, true]);
        // From one commit to another, whatever the working tree holds.
        let head = commit(folder, &BEFORE.replace("one();", "six();"));
        commit(folder, "");
        let edited = Edited::between(folder, &base, Some(&head)).expect("a difference");
        assert!(edited.has("first") && !edited.has("second"));
        assert!(Edited::between(folder, "no-such-revision", None).is_err());
        // A link to what never ends.
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/dev/zero", folder.join("zero.rs")).expect("a link");
            git(folder, &["add", "--all"]).expect("added");
            assert_eq!(Edited::between(folder, "HEAD", None).expect("a difference"), Edited::default());
        }
    }
}
