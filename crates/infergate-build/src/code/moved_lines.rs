//! Where lines of base's sources stand in head's.

use std::collections::HashMap;
use std::path::Path;

use infergate_core::text_file::read_text;
use similar::TextDiff;

/// No source is longer.
const MAX_SOURCE_BYTES: u64 = 64 << 20;

/// The unchanged lines of each source that was looked up.
pub struct MovedLines<'a> {
    /// Where each side's compiler ran: it names sources by their paths from there.
    roots: [&'a Path; 2],
    /// By source, a line of base and the same line of head.
    sources: HashMap<String, HashMap<usize, usize>>,
}

impl<'a> MovedLines<'a> {
    pub fn between(roots: [&'a Path; 2]) -> Self {
        Self { roots, sources: HashMap::new() }
    }

    /// The number in head of a line of base's `source`, if that line did not change. Another line keeps its number.
    pub fn in_head(&mut self, source: &str, line: usize) -> usize {
        let roots = self.roots;
        let unchanged = || unchanged_lines(roots, source).unwrap_or_default();
        self.sources.entry(source.to_owned()).or_insert_with(unchanged).get(&line).copied().unwrap_or(line)
    }
}

/// `None` if one of both sources cannot be read. A source of the checkout outside the compiler's folder has an absolute path.
fn unchanged_lines([base, head]: [&Path; 2], source: &str) -> Option<HashMap<usize, usize>> {
    let in_base = base.join(source);
    let mut parents = base.ancestors().zip(head.ancestors());
    let in_head = parents.find_map(|(base, head)| Some(head.join(in_base.strip_prefix(base).ok()?)))?;
    let [base, head] = [in_base, in_head].map(|path| read_text(&path, MAX_SOURCE_BYTES));
    let (base, head) = (base.ok()?, head.ok()?);
    let difference = TextDiff::from_lines(&base, &head);
    let lines = difference.iter_all_changes();
    Some(lines.filter_map(|line| Some((line.old_index()? + 1, line.new_index()? + 1))).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::MovedLines;

    #[test]
    fn an_unchanged_line_is_followed_and_another_one_keeps_its_number() {
        let folder = tempfile::tempdir().expect("a folder");
        let [base, head] = [("base", "one\ntwo\nthree\n"), ("head", "new\none\n2\nthree\n")].map(|(side, text)| {
            let workspace = folder.path().join(side).join("benches");
            fs::create_dir_all(&workspace).expect("a folder");
            for source in ["bench.rs", "../lib.rs"] {
                fs::write(workspace.join(source), text).expect("a source");
            }
            workspace
        });
        let mut moved = MovedLines::between([&base, &head]);
        let outside = folder.path().join("base/lib.rs");
        for source in ["bench.rs", outside.to_str().expect("UTF-8")] {
            assert_eq!([1, 2, 3].map(|line| moved.in_head(source, line)), [2, 2, 4], "{source}");
        }
        assert_eq!(moved.in_head("missing.rs", 7), 7);
    }
}
