//! Functions whose source a change edits, by git's own comparison.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

use super::git::git;

/// The lines that git shows with the place of a change: the nearest line before it that has a function's name.
const FUNCTION_LINES: &str = "diff.default.xfuncname=^([^/]*fn[ \t]+[a-zA-Z0-9_]+.*)$";

/// Names of functions, without the names of their modules and types.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edited(BTreeSet<String>);

impl Edited {
    /// The functions edited in the Rust files of a repository from the revision `from` to the commit `to`, or to the working tree: those
    /// that begin in a changed line, and those that changed lines lie in.
    pub fn between(folder: &Path, from: &str, to: Option<&str>) -> Result<Self> {
        let mut words = vec!["-c", FUNCTION_LINES, "diff", "--unified=0", "--no-color", "--no-ext-diff"];
        words.extend(["--no-textconv", "--no-renames", "--end-of-options", from]);
        words.extend(to);
        words.extend(["--", ":(top)*.rs"]);
        let difference = git(folder, &words)?;
        let (mut names, mut around) = (BTreeSet::new(), None);
        for line in difference.lines() {
            if let Some(place) = line.strip_prefix("@@ ") {
                names.extend(around.take());
                around = place.split_once("@@").and_then(|(_, before)| function_in(before));
            } else if let Some(new) = line.strip_prefix('+') {
                let begun = function_in(new);
                names.extend(around.take().filter(|_| begun.is_none()));
                names.extend(begun);
            } else if line.starts_with("diff ") {
                names.extend(around.take());
            }
        }
        names.extend(around);
        Ok(Self(names.into_iter().map(str::to_owned).collect()))
    }

    /// Whether a function of this name, without its module or type, is one of them.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

/// The name in `pub fn name(`.
fn function_in(line: &str) -> Option<&str> {
    let mut words = line.split("//").next()?.split_whitespace();
    words.find(|word| *word == "fn")?;
    let name = words.next()?.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next();
    name.filter(|name| !name.is_empty())
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
